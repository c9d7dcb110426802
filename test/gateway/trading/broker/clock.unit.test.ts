import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { BrokerClock, rememberedMs } from '../../../../src/gateway/trading/broker/clock.ts';
import { type Absence, isProven } from '../../../../src/gateway/trading/submission/reconcile.ts';

const skewMs = 2_000;
const startedAt = Date.UTC(2026, 2, 2, 9);
/** The last slot ends up to a second later, and clocks are granted some drift. */
const forgottenMs = rememberedMs + 2_000;

/** A gateway and a broker in right time, each with a clock that is wrong by what a test says. */
class Model {
  /** Right time since the start. */
  t = 0;
  ownErrorMs = 0;
  brokerErrorMs = 0;
  readonly clock = new BrokerClock(skewMs, {
    realNow: () => Math.floor(this.ownNow),
    monotonicNow: () => 12_345.6 + this.t,
  });

  get ownNow(): number {
    return startedAt + this.t + this.ownErrorMs;
  }

  get brokerNow(): number {
    return startedAt + this.t + this.brokerErrorMs;
  }

  /** How far the broker's clock is ahead of ours. */
  get offsetMs(): number {
    return this.brokerErrorMs - this.ownErrorMs;
  }

  wait(ms: number): void {
    this.t += ms;
  }

  /** A call whose answer states the time. */
  call(thereMs: number, backMs: number, stated: (ms: number) => number = Math.floor): void {
    const sentAt = this.clock.now();
    this.wait(thereMs);
    const at = timestampFromMs(stated(this.brokerNow));
    this.wait(backMs);
    this.clock.answered(sentAt, at);
  }

  /** A message of a stream, which is under way for so long. */
  message(ms: number): void {
    const at = timestampFromMs(Math.floor(this.brokerNow));
    this.wait(ms);
    this.clock.streamed(at);
  }
}

const delay = fc.double({ min: 0, max: 3_000, noNaN: true });
const error = fc.oneof(
  fc.double({ min: -10_000, max: 10_000, noNaN: true }),
  fc.constantFrom(-86_400_000, -120_000, -skewMs, 0, skewMs, 120_000),
);
const traffic = fc.oneof(
  fc.record({ kind: fc.constant('call' as const), there: delay, back: delay, pause: delay }),
  fc.record({ kind: fc.constant('message' as const), there: delay, back: delay, pause: delay }),
);
type Traffic = typeof traffic extends fc.Arbitrary<infer T> ? T : never;

function carry(model: Model, { kind, there, back, pause }: Traffic): void {
  model.wait(pause);
  if (kind === 'call') model.call(there, back);
  else model.message(there);
}

describe("the measured offset of the broker's clock", () => {
  it('lies within its bounds, and is never called in step or apart when it is not, however slow the calls are', () => {
    fc.assert(
      fc.property(error, error, fc.array(traffic, { minLength: 1, maxLength: 30 }), (own, broker, calls) => {
        const model = new Model();
        model.ownErrorMs = own;
        model.brokerErrorMs = broker;
        for (const each of calls) {
          carry(model, each);
          const { offset, agreement } = model.clock;
          assert.ok(offset.leastMs <= model.offsetMs && model.offsetMs <= offset.mostMs, JSON.stringify(offset));
          if (agreement === 'in_step') assert.ok(Math.abs(model.offsetMs) <= skewMs, `${model.offsetMs} in step`);
          if (agreement === 'apart') assert.ok(Math.abs(model.offsetMs) > skewMs, `${model.offsetMs} apart`);
        }
      }),
    );
  });

  it('is known to within the quickest round trip', () => {
    const model = new Model();
    model.brokerErrorMs = 1_000;
    model.call(1_500, 1_500);
    model.call(3, 4);
    model.call(900, 10);
    const { leastMs, mostMs } = model.clock.offset;
    assert.ok(mostMs - leastMs < 20, `${leastMs} to ${mostMs}`);
    assert.ok(Math.abs((model.clock.estimateMs ?? 0) - 1_000) < 10, `${model.clock.estimateMs}`);
    assert.equal(model.clock.agreement, 'in_step');
  });

  it('shows a jump of either clock with the next answer, and goes by it until everything has agreed for a while', () => {
    const jump = fc.constantFrom(-3_600_000, -120_000, -6_000, 6_000, 120_000);
    fc.assert(
      fc.property(jump, fc.boolean(), fc.array(traffic, { maxLength: 20 }), (by, isOurs, calls) => {
        const model = new Model();
        for (const each of calls) carry(model, each);
        model.call(1, 1);
        assert.equal(model.clock.agreement, 'in_step');
        if (isOurs) model.ownErrorMs += by;
        else model.brokerErrorMs += by;
        if (!isOurs) model.call(1_000, 1_000);
        assert.equal(model.clock.agreement, 'apart');
        assert.ok(Math.abs((model.clock.estimateMs ?? 0) - model.offsetMs) < 2_100, `${model.clock.estimateMs}`);
        // It is put right, and stays suspect for as long as what was measured is remembered.
        if (isOurs) model.ownErrorMs -= by;
        else model.brokerErrorMs -= by;
        model.call(1, 1);
        assert.equal(model.clock.agreement, isOurs ? 'in_step' : 'apart');
        model.wait(forgottenMs);
        assert.equal(model.clock.agreement, 'unknown', 'nothing was measured for a while');
        model.call(1, 1);
        assert.equal(model.clock.agreement, 'in_step');
      }),
    );
  });

  it('one node of many with a wrong clock is enough to be apart', () => {
    const model = new Model();
    for (let call = 0; call < 20; call += 1) {
      model.brokerErrorMs = call === 7 ? -120_000 : 0;
      model.call(5, 5);
      model.wait(500);
    }
    assert.equal(model.clock.agreement, 'apart');
    assert.ok((model.clock.estimateMs ?? 0) < -100_000, `${model.clock.estimateMs}`);
  });

  it('a stream alone shows a clock that is ahead, and nothing else', () => {
    const model = new Model();
    for (const [errorMs, expected] of [
      [0, 'unknown'],
      [-120_000, 'unknown'],
      [120_000, 'apart'],
    ] as const) {
      model.wait(forgottenMs);
      model.brokerErrorMs = errorMs;
      model.message(40);
      assert.equal(model.clock.agreement, expected, `${errorMs}`);
    }
  });

  it('a broker that states no time, or none for a while, is not known to agree', () => {
    const model = new Model();
    assert.deepEqual([model.clock.agreement, model.clock.estimateMs], ['unknown', undefined]);
    model.clock.answered(model.clock.now(), undefined);
    model.clock.streamed(undefined);
    assert.deepEqual([model.clock.agreement, model.clock.silentMs], ['unknown', undefined]);
    model.call(1, 1);
    assert.equal(model.clock.agreement, 'in_step');
    model.wait(forgottenMs);
    assert.deepEqual([model.clock.agreement, model.clock.estimateMs], ['unknown', undefined]);
  });

  it("a broker's clock is in step up to the bound, unknown around it and apart beyond it, ahead and behind", () => {
    // One answer without a delay: 1 ms for each cut-off time and 1 ms of drift make 2 ms to either side.
    const answeredAt = 5_000;
    for (const [aheadMs, expected] of [
      [skewMs - 2, 'in_step'],
      [skewMs - 1, 'unknown'],
      [skewMs + 2, 'unknown'],
      [skewMs + 3, 'apart'],
    ] as const) {
      for (const sign of [1, -1]) {
        const clock = new BrokerClock(skewMs, { realNow: () => startedAt, monotonicNow: () => answeredAt });
        clock.answered(answeredAt, timestampFromMs(startedAt + sign * aheadMs));
        assert.equal(clock.agreement, expected, `${sign * aheadMs} ms ahead`);
      }
    }
  });

  it("a broker's clock goes by a measurement for 20 s, and forgets it in the second after", () => {
    for (const [afterMs, expected] of [
      [rememberedMs - 1_000, 'apart'],
      [rememberedMs, 'apart'],
      [rememberedMs + 999, 'apart'],
      [rememberedMs + 1_000, 'unknown'],
    ] as const) {
      let now = 50_000;
      const clock = new BrokerClock(skewMs, { realNow: () => startedAt + now, monotonicNow: () => now });
      clock.answered(now, timestampFromMs(startedAt + now + 120_000));
      now += afterMs;
      assert.equal(clock.agreement, expected, `${afterMs} ms later`);
    }
  });

  it('a time that is cut off to the second is within what clocks may differ by', () => {
    const model = new Model();
    for (let call = 0; call < 30; call += 1) {
      model.call(3, 4, (ms) => Math.floor(ms / 1_000) * 1_000);
      model.wait(333);
    }
    assert.equal(model.clock.agreement, 'in_step');
  });
});

describe('what the broker does not have', () => {
  /** An order that is lost on its way for a while, and look-ups of it. */
  const story = fc.record({
    ownErrorMs: error,
    brokerErrorMs: error,
    /** A jump of one of the clocks before a look-up. */
    jump: fc.record({ before: fc.nat(5), isOurs: fc.boolean(), byMs: error }),
    lateMs: fc.double({ min: 0, max: 200_000, noNaN: true }),
    lookUps: fc.array(
      fc.record({ pause: fc.double({ min: 0, max: 30_000, noNaN: true }), there: delay, back: delay }),
      {
        minLength: 1,
        maxLength: 12,
      },
    ),
  });
  const submitTimeoutMs = 10_000;

  /** Whether the order is called refused, and whether the exchange takes it after that. */
  function tell(
    { ownErrorMs, brokerErrorMs, jump, lateMs, lookUps }: typeof story extends fc.Arbitrary<infer T> ? T : never,
    rule: typeof isProven = isProven,
  ): { readonly refused: boolean; readonly takenLater: boolean } {
    const model = new Model();
    model.ownErrorMs = ownErrorMs;
    model.brokerErrorMs = brokerErrorMs;
    const notAfter = model.ownNow + submitTimeoutMs;
    for (const [index, { pause, there, back }] of lookUps.entries()) {
      model.wait(pause);
      if (jump.before === index && jump.isOurs) model.ownErrorMs += jump.byMs;
      if (jump.before === index && !jump.isOurs) model.brokerErrorMs += jump.byMs;
      const [askedAt, sentAt] = [model.ownNow, model.clock.now()];
      model.wait(there);
      if (model.t >= lateMs && model.brokerNow <= notAfter) return { refused: false, takenLater: false };
      const [readAt, stated] = [model.t, Math.floor(model.brokerNow)];
      model.wait(back);
      model.clock.answered(sentAt, timestampFromMs(stated));
      const proven = rule({
        lookedUp: { found: false, completeUntil: undefined, brokerTime: stated - (model.clock.now() - sentAt) },
        ...{ askedAt, notAfter, clockSkewMs: skewMs, honoursNotAfter: true, lastArrival: 0 },
        agreement: model.clock.agreement,
      });
      if (!proven) continue;
      const brokerAtReceipt = startedAt + lateMs + model.brokerErrorMs;
      return { refused: true, takenLater: lateMs >= readAt && brokerAtReceipt <= notAfter };
    }
    return { refused: false, takenLater: false };
  }

  it('is never called refused and taken afterwards, whatever the clocks do before that', () => {
    fc.assert(
      fc.property(story, (each) => assert.equal(tell(each).takenLater, false)),
      { numRuns: 2_000 },
    );
  });

  it('our clock alone would call it refused and the broker take it afterwards (so that the model can tell)', () => {
    const byOurs: typeof isProven = ({ askedAt, notAfter, clockSkewMs }) => askedAt > notAfter + clockSkewMs;
    const found = fc.check(
      fc.property(story, (each) => !tell(each, byOurs).takenLater),
      { numRuns: 2_000 },
    );
    assert.equal(found.failed, true);
  });

  it('is called refused in time when all clocks are right', () => {
    const lookUps = Array.from({ length: 6 }, () => ({ pause: 3_000, there: 5, back: 5 }));
    const right = {
      ownErrorMs: 0,
      brokerErrorMs: 0,
      jump: { before: 0, isOurs: true, byMs: 0 },
      lateMs: 150_000,
      lookUps,
    };
    assert.deepEqual(tell(right), { refused: true, takenLater: false });
  });

  const absence: Absence = {
    lookedUp: { found: false, completeUntil: undefined, brokerTime: 1_000_000 },
    askedAt: 1_000_000,
    notAfter: 900_000,
    clockSkewMs: skewMs,
    lastArrival: 4_500_000,
    honoursNotAfter: true,
    agreement: 'in_step',
  };
  const cases: readonly [string, Partial<Absence>, boolean][] = [
    ['all is known and its time is over', {}, true],
    ['the broker takes what comes late', { honoursNotAfter: false }, false],
    ['the clocks are apart', { agreement: 'apart' }, false],
    ['it is not known whether the clocks agree', { agreement: 'unknown' }, false],
    ['the answer states no time', { lookedUp: { ...absence.lookedUp, brokerTime: undefined } }, false],
    ["by the broker's clock its time is not over", { lookedUp: { ...absence.lookedUp, brokerTime: 900_000 } }, false],
    ['by our clock its time is over by no more than clocks may differ', { askedAt: 902_000 }, false],
    ['by our clock it is over by a millisecond more', { askedAt: 902_001 }, true],
  ];
  for (const [when, change, expected] of cases) {
    it(`${expected ? 'is proven' : 'proves nothing'} when ${when}`, () => {
      assert.equal(isProven({ ...absence, ...change }), expected);
    });
  }

  it('is proven by a record that is complete, unless a clock is known to be wrong', () => {
    const complete = { ...absence.lookedUp, completeUntil: 4_500_001, brokerTime: undefined };
    const known: Absence = { ...absence, lookedUp: complete, honoursNotAfter: false, agreement: 'unknown' };
    assert.equal(isProven(known), true);
    assert.equal(isProven({ ...known, lastArrival: 4_500_001 }), false);
    assert.equal(isProven({ ...known, agreement: 'apart' }), false);
  });
});
