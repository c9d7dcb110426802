/** The streams of reports of the adapter, over a record and calls that the test holds. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import { AdapterStreams } from '../../../src/fix-adapter/service/streams.ts';
import type { FixReport } from '../../../src/fix-adapter/store/table.ts';
import type { StreamReportsResponse } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { ReportCall } from '../../support/report-call.ts';

const reportOf = (number: bigint): FixReport => ({
  ...{ number, orderId: 'ord_a', exchangeOrderId: 'X1', kind: 'trade', at: 0, quantity: 1n, priceKobo: 250n },
  ...{ rejectReason: null, execId: `e${number}`, counted: number, ...saidNothing },
});

class Call extends ReportCall<StreamReportsResponse> {
  /** The number of the last report in each message, and the number that it states. */
  get stated(): string[] {
    return this.messages.map(({ reports, lastNumber }) => `${reports.at(-1)?.number ?? '-'}/${lastNumber}`);
  }
}

describe('the streams of reports of the adapter', () => {
  let last: bigint;
  let reads: bigint[];
  /** Called with each read of the record, before it is answered. */
  let whileReading: () => void;
  let streams: AdapterStreams;
  const settled = async () => {
    for (let count = 0; count < 10; count += 1) await turn();
  };
  const calls: Call[] = [];
  const serve = async (call: Call) => {
    calls.push(call);
    streams.serve(call as never);
    await settled();
    return call;
  };

  beforeEach(() => {
    [last, reads, whileReading] = [0n, [], () => {}];
    const store = {
      reportsAfter: async (number: bigint, limit: number) => {
        reads.push(number);
        const stated = last;
        whileReading();
        const from = number < 0n ? 0n : number;
        const count = stated <= from ? 0 : Math.min(Number(stated - from), limit);
        return { reports: Array.from({ length: count }, (_, at) => reportOf(from + BigInt(at + 1))), last: stated };
      },
    };
    streams = new AdapterStreams(store as never, () => 5_000, createLogger({ name: 'fix', level: 'silent' }));
  });

  afterEach(() => {
    for (const call of calls.splice(0)) call.cancel();
  });

  it('a stream brings what is recorded in full messages at once, and never states a number that a later message has', async () => {
    for (const [count, stated] of [
      [0n, ['-/0']],
      [1n, ['1/1']],
      [499n, ['499/499']],
      [500n, ['500/500', '-/500']],
      [501n, ['500/500', '501/501']],
      [1_000n, ['500/500', '1000/1000', '-/1000']],
    ] as const) {
      last = count;
      const call = await serve(new Call());
      // A second later it says the last one again.
      assert.deepEqual([...new Set(call.stated)], stated);
    }
  });

  it('a stream from behind the last report says which one is the last', async () => {
    last = 7n;
    assert.deepEqual((await serve(new Call(9n))).stated, ['-/7']);
  });

  it('a stream brings a report that comes while the record is read before it without waiting for its next heartbeat', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    last = 3n;
    whileReading = () => {
      if (last !== 3n) return;
      last = 4n;
      streams.notify();
    };
    const call = await serve(new Call());
    assert.deepEqual(call.stated, ['3/3', '4/4']);
    last = 5n;
    streams.notify();
    await settled();
    assert.equal(call.stated.at(-1), '5/5');
    t.mock.timers.tick(1_000);
    await settled();
    assert.equal(call.stated.at(-1), '-/5', 'a silent stream has a message each second');
  });

  it('a stream waits for a reader that is slow, and reads nothing for it meanwhile', async () => {
    last = 1_200n;
    const call = new Call();
    call.isSlow = true;
    await serve(call);
    streams.notify();
    await settled();
    assert.deepEqual([call.stated, reads], [['500/500'], [0n]]);
    call.isSlow = false;
    call.emit('drain');
    await settled();
    assert.equal(call.stated.at(-1), '1200/1200');
  });

  it('a stream ends with its call, also while its reader is slow, and each one gives its place back', async () => {
    const endings: ((call: Call) => void)[] = [
      (call) => call.cancel(),
      (call) => void call.emit('error', { code: status.CANCELLED }),
      // This one's reader is slow.
      (call) => call.cancel(),
    ];
    for (let round = 0; round < 3; round += 1) {
      const all = Array.from({ length: 50 }, (_, at) => Object.assign(new Call(), { isSlow: at % 3 === 2 }));
      for (const call of all) await serve(call);
      assert.equal(all.flatMap(({ errors }) => errors).length, 0, `round ${round}`);
      const over = await serve(new Call());
      assert.deepEqual([over.errors[0], over.messages], [status.RESOURCE_EXHAUSTED, []]);
      for (const [at, call] of all.entries()) endings[at % endings.length]?.(call);
      await settled();
      const before = reads.length;
      streams.notify();
      await settled();
      assert.equal(reads.length, before, 'nothing is read for calls that have ended');
    }
  });

  it('a stream whose record fails ends with UNAVAILABLE and gives its place back, so that the gateway comes again', async () => {
    whileReading = () => {
      throw new Error('the record is away');
    };
    for (let count = 0; count < 60; count += 1) {
      assert.deepEqual((await serve(new Call())).errors, [status.UNAVAILABLE]);
    }
  });

  it('a stream from a number below 0 is refused, and takes no place', async () => {
    for (let count = 0; count < 60; count += 1) {
      assert.equal((await serve(new Call(-1n))).errors[0], status.INVALID_ARGUMENT);
    }
    assert.equal((await serve(new Call())).errors.length, 0);
  });
});
