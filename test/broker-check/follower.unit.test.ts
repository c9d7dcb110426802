/** The kit's own view of an adapter's streams, with an adapter that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { type Batch, Follower, type NumberedReport, readStream } from '../../src/broker-check/follower.ts';
import { eventually } from '../support/eventually.ts';

type Stream = readonly (Batch<NumberedReport> | Error)[];

const batch = (...numbers: readonly number[]): Batch<NumberedReport> => ({
  reports: numbers.map((number) => ({ number: BigInt(number) })),
  lastNumber: BigInt(numbers.at(-1) ?? 0),
});
const broken = Object.assign(new Error('it broke'), { code: status.UNAVAILABLE });

/** An adapter with a script for each stream that is opened; the streams behind those stay silent. */
function adapter(...streams: readonly Stream[]) {
  const openedFrom: bigint[] = [];
  const open = async function* (afterNumber: bigint, signal: AbortSignal) {
    const script = streams[openedFrom.length];
    openedFrom.push(afterNumber);
    for (const each of script ?? []) {
      if (each instanceof Error) throw each;
      yield each;
    }
    if (script === undefined) {
      await new Promise<void>((_, reject) => {
        signal.addEventListener('abort', () => reject(Object.assign(new Error('left'), { code: status.CANCELLED })));
      });
    }
  };
  return { open, openedFrom };
}

describe("the kit's view of a stream of reports", () => {
  it('a stream that breaks again and again is opened behind the last report each time, and each report is kept once', async () => {
    const { open, openedFrom } = adapter([batch(5, 6), broken], [broken], [batch(7)], [batch(), batch(8, 9)]);
    const follower = new Follower('Orders.StreamReports', open, 4n);
    assert.equal(await follower.until(() => follower.last === 9n, 10_000), true);
    await eventually(() => assert.equal(openedFrom.length, 5));
    assert.deepEqual(openedFrom, [4n, 6n, 6n, 7n, 9n]);
    assert.deepEqual(
      [follower.reports.map(({ number }) => number), follower.gaps, follower.ended],
      [[5n, 6n, 7n, 8n, 9n], [], 'OK'],
    );
    assert.deepEqual(
      follower.arrivals.map((messages) => messages.map(({ count }) => count)),
      [[2], [], [1], [0, 2], []],
    );
    await follower.close();
  });

  it('reports that come behind a gap, again or out of order are told, and each is kept as it came first', async () => {
    const again = { reports: [{ number: 6n, text: 'changed' }], lastNumber: 6n };
    const { open } = adapter([batch(5, 6, 8), batch(8), batch(7), again]);
    const follower = new Follower('Orders.StreamReports', open, 4n);
    await follower.until(() => follower.gaps.length === 4, 10_000);
    assert.deepEqual(follower.gaps, [
      'after report 6 came report 8',
      ...[8, 7, 6].map((number) => `after report 8 came report ${number} again`),
    ]);
    assert.deepEqual(follower.byNumber.get(6n), { number: 6n });
    assert.deepEqual(
      follower.reports.map(({ number }) => number),
      [5n, 6n, 8n, 7n],
    );
    await follower.close();
  });

  it('a wait for what does not come ends with its time, and with the end of the run', async () => {
    const { open, openedFrom } = adapter();
    const follower = new Follower('Orders.StreamReports', open, 0n);
    assert.equal(await follower.until(() => false, 5), false);
    const waiting = follower.until(() => false, 60_000);
    await eventually(() => assert.equal(openedFrom.length, 1));
    await follower.close();
    assert.equal(await waiting, false);
    assert.equal(openedFrom.length, 1, 'it is opened no more');
  });

  it('a stream is read until enough came, it ends or it breaks, and the last two are told', async () => {
    const enough = (batches: readonly unknown[]) => batches.length === 2;
    for (const [stream, count, ended] of [
      [[batch(1), batch(2), batch(3)], 2, undefined],
      [[batch(1), batch(2)], 2, undefined],
      [[batch(1)], 1, 'OK'],
      [[], 0, 'OK'],
      [[batch(1), broken], 1, 'UNAVAILABLE'],
    ] as const) {
      const read = await readStream(adapter(stream).open, 0n, { enough, boundMs: 10_000 });
      assert.deepEqual([read.batches.length, read.reports.length, read.ended], [count, count, ended]);
    }
  });
});
