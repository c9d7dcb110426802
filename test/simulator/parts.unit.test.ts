import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { RejectReason } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, Outcome, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { readConfig, SimulatorConfigError } from '../../src/simulator/config.ts';
import { Scheduler } from '../../src/simulator/exchange/scheduler.ts';
import { Directives } from '../../src/simulator/wire/directives.ts';
import { Disturber } from '../../src/simulator/wire/disturbance.ts';
import { fc } from '../support/properties.ts';

describe('the scheduler', () => {
  it('calls back for every key once, earliest first, by the time set last', (context) => {
    context.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 1_000 }))), (sets) => {
        const start = Date.now();
        const called: string[] = [];
        const scheduler = new Scheduler(Date.now, (keys) => called.push(...keys));
        const expected = new Map<string, number>();
        for (const [key, dueInMs] of sets) {
          scheduler.set(`k${key}`, start + dueInMs);
          expected.set(`k${key}`, dueInMs);
        }
        scheduler.set('k7', null);
        expected.delete('k7');
        for (let passed = 0; passed <= 1_000; passed += 10) context.mock.timers.tick(10);
        assert.deepEqual([...called].sort(), [...expected.keys()].sort());
        const times = called.map((key) => expected.get(key) ?? Number.NaN);
        assert.deepEqual(
          times,
          [...times].sort((one, other) => one - other),
        );
        assert.equal(scheduler.size, 0);
        scheduler.close();
      }),
      { numRuns: 50 },
    );
  });
});

describe('a disturbed stream', () => {
  const disturbed = (disturbance: { repeat?: number; swap?: number; omit?: number }, batches: number[][]) => {
    const disturber = new Disturber<number>();
    disturber.add({ repeat: 0, swap: 0, omit: 0, ...disturbance });
    return batches.map((batch) => disturber.apply(batch));
  };

  it('repeats, swaps and leaves out as many as it was asked to', () => {
    assert.deepEqual(disturbed({ repeat: 2 }, [[1, 2, 3]]), [[1, 1, 2, 2, 3]]);
    assert.deepEqual(disturbed({ swap: 1 }, [[1, 2, 3]]), [[2, 1, 3]]);
    assert.deepEqual(disturbed({ omit: 2 }, [[1], [2, 3]]), [[], [3]]);
  });

  it('swaps a pair that comes in two batches, and lets a lonely first go', () => {
    assert.deepEqual(disturbed({ swap: 1 }, [[1], [2, 3]]), [[], [2, 1, 3]]);
    const disturber = new Disturber<number>();
    disturber.add({ repeat: 0, swap: 1, omit: 0 });
    assert.deepEqual(disturber.apply([1]), []);
    assert.ok(disturber.holds);
    assert.deepEqual(disturber.release(), [1]);
    assert.deepEqual(disturber.apply([2, 3]), [2, 3]);
  });
});

describe('directives', () => {
  const behaviour = { outcome: Outcome.REJECT, rejectReason: RejectReason.MARKET_CLOSED };

  it('are used in the order they were given, as often as was said, for what matches', () => {
    const directives = new Directives();
    directives.addOutcome({ account: 'A', symbol: '', behaviour }, 2);
    directives.addOutcome({ account: '', symbol: 'UBA', behaviour: { outcome: Outcome.FILL } }, 0);
    assert.equal(directives.takeOutcome('B', 'GTCO'), undefined);
    assert.equal(directives.takeOutcome('A', 'UBA')?.outcome, Outcome.REJECT);
    assert.equal(directives.takeOutcome('B', 'UBA')?.outcome, Outcome.FILL);
    assert.equal(directives.takeOutcome('A', 'GTCO')?.outcome, Outcome.REJECT);
    assert.equal(directives.takeOutcome('A', 'UBA'), undefined);
  });

  it('are cleared together, and bounded', () => {
    const directives = new Directives();
    const fault = { call: Call.SUBMIT_ORDER, account: 'A', clientId: '', wire: WireFault.HANG, delayMs: 0 };
    for (let count = 0; count < 1_000; count += 1) directives.addFault(fault, 1);
    assert.throws(() => directives.addFault(fault, 1), /1000 directives wait/);
    assert.ok(directives.asksForAccount(Call.SUBMIT_ORDER));
    directives.clear();
    assert.equal(directives.takeFault(Call.SUBMIT_ORDER, 'A', ''), undefined);
  });
});

describe('the bound of waiting directives', () => {
  const documents = { clientApplicationId: 'app', type: 0, outcome: 1 } as const;
  const allocations = { account: 'A', behaviour: { outcome: 1 } } as const;
  const outcomes = { account: 'A', symbol: '', behaviour: { outcome: Outcome.FILL } } as const;
  const faults = { call: Call.SUBMIT_ORDER, account: 'A', clientId: '', wire: WireFault.HANG, delayMs: 0 } as const;

  /** Adds so many directives of a partner, of all kinds by turns. */
  function addMany(directives: Directives, partner: string, count: number): void {
    const kinds = [
      () => directives.addOutcome(outcomes, 1, partner),
      () => directives.addFault(faults, 1, partner),
      () => directives.addDocument(documents, 1, partner),
      () => directives.addAllocation(allocations, 1, partner),
    ];
    for (let at = 0; at < count; at += 1) kinds[at % kinds.length]?.();
  }

  it('is each partner’s own, over all kinds together, and the operator’s another', () => {
    const directives = new Directives();
    addMany(directives, 'par_1', 200);
    assert.throws(() => addMany(directives, 'par_1', 1), { code: status.RESOURCE_EXHAUSTED });
    addMany(directives, 'par_2', 200);
    assert.throws(() => addMany(directives, 'par_2', 1), /200 directives wait already/);
    addMany(directives, '', 1_000);
    assert.throws(() => addMany(directives, '', 1), /1000 directives wait already/);
  });

  it('the bound of all together refuses a partner with none, and lets it in when one was used', () => {
    const directives = new Directives();
    for (let partner = 0; partner < 100; partner += 1) addMany(directives, `par_${partner}`, 200);
    assert.throws(() => addMany(directives, 'par_new', 1), /20000 directives wait already/);
    directives.takeOutcome('A', 'GTCO');
    addMany(directives, 'par_new', 1);
  });

  it('counts a directive until it was used as often as it says, was cleared, or has waited for 24 hours', () => {
    let now = 0;
    const directives = new Directives(() => now);
    directives.addOutcome(outcomes, 2, 'par_1');
    addMany(directives, 'par_1', 199);
    directives.takeOutcome('A', 'GTCO');
    assert.throws(() => addMany(directives, 'par_1', 1), /200 directives/);
    directives.takeOutcome('A', 'GTCO');
    addMany(directives, 'par_1', 1);
    directives.clear();
    addMany(directives, 'par_1', 200);
    now = 24 * 3_600_000 - 1;
    assert.throws(() => addMany(directives, 'par_1', 1), /200 directives/);
    now += 1;
    addMany(directives, 'par_1', 200);
    assert.throws(() => addMany(directives, 'par_1', 1), /200 directives/);
  });

  it('leaves an ended directive out although no other was added since', () => {
    let now = 0;
    const directives = new Directives(() => now);
    addMany(directives, 'par_1', 4);
    now = 24 * 3_600_000;
    assert.equal(directives.takeOutcome('A', 'GTCO'), undefined);
    assert.equal(directives.asksForAccount(Call.SUBMIT_ORDER), false);
    assert.equal(directives.takeFault(Call.SUBMIT_ORDER, 'A', ''), undefined);
  });
});

describe('the settings of the simulator', () => {
  const url = { MARINA_SIMULATOR_DATABASE_URL: 'mysql://u:p@127.0.0.1:3306/simulator' };

  it('have defaults for all but the database', () => {
    const config = readConfig(url);
    assert.equal(config.port, 50_060);
    assert.deepEqual(config.defaultFillDelayMs, { min: 150, max: 450 });
    assert.throws(() => readConfig({}), /MARINA_SIMULATOR_DATABASE_URL is not set/);
  });

  it('are refused by name when they make no sense', () => {
    for (const [name, value] of [
      ['MARINA_SIMULATOR_PORT', '65536'],
      ['MARINA_SIMULATOR_PORT', 'many'],
      ['MARINA_SIMULATOR_SEED', '1.5'],
      ['MARINA_SIMULATOR_FILL_DELAY_MS', '-1'],
      ['MARINA_SIMULATOR_HOURS', 'sometimes'],
      ['MARINA_SIMULATOR_FUNDS', 'yes'],
      ['MARINA_SIMULATOR_START_CASH_KOBO', '-1'],
      ['MARINA_SIMULATOR_SHARES_ELSEWHERE', '1000000000000001'],
      ['MARINA_LOG_LEVEL', 'loud'],
    ] as const) {
      assert.throws(
        () => readConfig({ ...url, [name]: value }),
        (error: unknown) => error instanceof SimulatorConfigError && error.message.startsWith(name),
      );
    }
  });
});
