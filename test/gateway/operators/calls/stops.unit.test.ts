/** How stops begin and end, over stops that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { stopCalls } from '../../../../src/gateway/operators/calls/stops.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { accounts } from '../../../../src/gateway/trading/accounts/store.ts';
import { type StoredStop, stops } from '../../../../src/gateway/trading/stops/table.ts';
import { StopAction } from '../../../../src/gen/marina/admin/v1/trading_pb.ts';
import { storedRow } from '../../../support/stored-row.ts';

const now = 1_000_000_000_000;
const dayMs = 86_400_000;
const { BUY, SELL, FUND, WITHDRAW, APPLY } = StopAction;
const call = { operator: 'ada', action: 'Trading.AddStop', requestId: 'req' } as never;

const one: StoredStop = {
  ...{ id: 'stp_a', partnerId: null, target: 'symbol', value: 'SIM', actions: 'buy,sell', reason: 'a test' },
  ...{ startedBy: 'bola', startedAt: now - 1, endsAt: null, endedAt: null, endedBy: null, endReason: null },
};
const nothing = { partnerId: '', account: '', symbol: '', everything: false, reason: 'why', endsAt: undefined };

function open(stored: readonly StoredStop[] = [], listed: boolean | null = true) {
  let writes: readonly Statement[] = [];
  const rows = stored.map((stop) => storedRow(stops, stop));
  type Decide = (before: object, rows: SqlRow[][]) => { writes: readonly Statement[]; result: unknown };
  const change = async (decide: Decide) => {
    const decision = decide({ stopsVersion: 6n }, [rows]);
    writes = decision.writes;
    return decision.result;
  };
  const owned = { account: 'A1', partnerId: 'par_a', applicationId: null, createdAt: 1 };
  const database = {
    read: async ({ sql, values }: Statement) => {
      if (sql.includes('FROM partners')) return values[0] === 'par_a' ? [{ id: 'par_a' }] : [];
      return values[0] === 'A1' ? [storedRow(accounts, owned as never)] : [];
    },
  };
  const parts = { database, clock: { now: () => now }, ids: { object: () => 'stp_new' } };
  const calls = stopCalls(parts as never, change as never, async () => (listed ?? undefined) as never);
  const add = (request: object) =>
    calls.addStop({ ...nothing, ...request } as never, call) as unknown as Promise<Added>;
  const end = (id: string) => calls.endStop({ id, reason: 'over' } as never, call) as unknown as Promise<Added>;
  return {
    add,
    end,
    tables: () => writes.map(({ sql }) => /(?:INTO|UPDATE) (\w+)/.exec(sql)?.[1]),
    written: () => writes,
  };
}

interface Added {
  readonly changed: boolean;
  readonly warning: string;
  readonly stop: StoredStop & Readonly<Record<'inForce' | 'account' | 'everything' | 'symbol', unknown>>;
}

const begun = ['stops', 'stops', 'environment', 'audit_entries'];

describe('a stop', () => {
  it('a stop begins with its audit entry, and with a version of all stops that nobody has seen before', async () => {
    const { add, tables, written } = open();
    const { changed, stop, warning } = await add({ symbol: 'SIM', actions: [BUY] });
    assert.deepEqual([changed, stop.id, stop.symbol, stop.inForce, warning], [true, 'stp_new', 'SIM', true, '']);
    assert.deepEqual(tables(), begun);
    assert.deepEqual(written()[2]?.values, [7n, 1]);
  });

  it('a stop begins once, while the same one is in force', async () => {
    const isNew = async (before: Partial<StoredStop>, request: object) => {
      const { add, tables } = open([{ ...one, ...before }]);
      const { changed, stop } = await add(request);
      assert.deepEqual(tables(), changed ? begun : []);
      assert.equal(stop.id, changed ? 'stp_new' : 'stp_a');
      return changed;
    };
    const same = { symbol: 'SIM', actions: [SELL, BUY] };
    assert.equal(await isNew({}, same), false, 'in any order of its actions');
    assert.equal(await isNew({ endsAt: now + 1 }, same), false);
    assert.equal(await isNew({ endsAt: now }, same), true, 'the time of the other is over');
    assert.equal(await isNew({ actions: 'buy' }, same), true);
    assert.equal(await isNew({ value: 'SIM-2' }, same), true);
    assert.equal(await isNew({ target: 'account' }, same), true);
  });

  it('a stop has a time in the future and at most 400 days ahead, or none', async () => {
    for (const [aheadMs, isTaken] of [
      [0, false],
      [1, true],
      [400 * dayMs, true],
      [400 * dayMs + 1, false],
    ] as const) {
      const adding = open().add({ everything: true, actions: [BUY], endsAt: timestampFromMs(now + aheadMs) });
      if (!isTaken) await assert.rejects(adding, /ends_at/, `${aheadMs}`);
      else assert.equal((await adding).stop.endsAt, now + aheadMs);
    }
    assert.equal((await open().add({ everything: true, actions: [BUY] })).stop.endsAt, null);
  });

  it('a stop is for one target, and for actions that the target can have', async () => {
    const wrong: readonly [object, RegExp][] = [
      [{ actions: [BUY] }, /only one of them/],
      [{ actions: [BUY], everything: true, symbol: 'SIM' }, /only one of them/],
      [{ actions: [BUY], partnerId: 'par_a', account: 'A1' }, /only one of them/],
      [{ actions: [], symbol: 'SIM' }, /at least one action/],
      [{ actions: [BUY, BUY], symbol: 'SIM' }, /each once/],
      [{ actions: [99], symbol: 'SIM' }, /at least one action/],
      [{ actions: [APPLY], account: 'A1' }, /must not have apply/],
      [{ actions: [BUY, FUND], symbol: 'SIM' }, /buy, sell or both/],
      [{ actions: [WITHDRAW], symbol: 'SIM' }, /buy, sell or both/],
      [{ actions: [BUY], partnerId: 'par_b' }, /no such partner/],
      [{ actions: [BUY], account: 'A2' }, /no partner has this account/],
    ];
    for (const [request, error] of wrong) await assert.rejects(open().add(request), error, JSON.stringify(request));
    for (const [request, partnerId] of [
      [{ actions: [APPLY, WITHDRAW, FUND], partnerId: 'par_a' }, 'par_a'],
      [{ actions: [WITHDRAW, FUND, SELL, BUY], account: 'A1' }, 'par_a'],
      [{ actions: [APPLY], everything: true }, null],
      [{ actions: [SELL], symbol: 'SIM' }, null],
    ] as const) {
      const { add, written } = open();
      await add(request);
      assert.equal([written()[1]?.values].flat(3)[1], partnerId, JSON.stringify(request));
    }
  });

  it('a stop begins with a warning if the broker does not list its symbol', async () => {
    const warning = async (listed: boolean | null, request: object) =>
      (await open([], listed).add({ actions: [BUY], ...request })).warning;
    assert.match(await warning(false, { symbol: 'SIM' }), /lists no instrument SIM/);
    assert.equal(await warning(null, { symbol: 'SIM' }), '', 'the broker did not say');
    assert.equal(await warning(false, { account: 'A1' }), '');
  });

  it('a stop is refused above 200 in force, or above 100 of one operator, where those whose time is over do not count', async () => {
    const many = (count: number, more: Partial<StoredStop> = {}) =>
      Array.from({ length: count }, (_, at) => ({ ...one, value: `S${at}`, ...more }));
    const request = { everything: true, actions: [BUY] };
    for (const [stored, error] of [
      [many(199), undefined],
      [many(200), /200 stops are in force/],
      [[...many(199), ...many(50, { endsAt: now })], undefined],
      [many(99, { startedBy: 'Ada' }), undefined],
      [many(100, { startedBy: 'Ada' }), /100 stops of yours/],
      [[...many(99, { startedBy: 'ada' }), ...many(3, { startedBy: 'ADA', endsAt: now - 1 })], undefined],
    ] as const) {
      const adding = open(stored).add(request);
      if (error !== undefined) await assert.rejects(adding, error);
      else assert.equal((await adding).changed, true);
    }
  });

  it('a stop ends once, and one whose time is over or that somebody ended stays as it is', async () => {
    const { end, tables, written } = open([one]);
    const { changed, stop } = await end('stp_a');
    assert.deepEqual(
      [changed, stop.endedAt, stop.endedBy, stop.endReason, stop.inForce],
      [true, now, 'ada', 'over', false],
    );
    assert.deepEqual(tables(), ['stops', 'environment', 'audit_entries']);
    assert.deepEqual(written()[1]?.values, [7n, 1]);
    for (const before of [{ endedAt: now - 1, endedBy: 'bola' }, { endsAt: now }, { endsAt: now - 1 }]) {
      const over = open([{ ...one, ...before }]);
      assert.equal((await over.end('stp_a')).changed, false);
      assert.deepEqual(over.tables(), []);
    }
    assert.equal((await open([{ ...one, endsAt: now + 1 }]).end('stp_a')).changed, true);
    await assert.rejects(open().end('stp_a'), /no such stop/);
  });
});
