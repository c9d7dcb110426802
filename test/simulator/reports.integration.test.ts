import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { type Report, ReportKind } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../support/eventually.ts';
import { fails, newOrder, soon, startTestSimulator } from './fixture.ts';

const simulator = await startTestSimulator();
const { orders, controls } = simulator;

/** Reads a report stream in the background until it is stopped. */
function read(afterNumber: bigint) {
  const leave = new AbortController();
  const seen: Report[] = [];
  const stream = { seen, heartbeats: 0, largest: 0, ended: Promise.resolve<unknown>(undefined) };
  const run = async () => {
    for await (const { reports } of orders.streamReports({ afterNumber }, { signal: leave.signal })) {
      if (reports.length === 0) stream.heartbeats += 1;
      stream.largest = Math.max(stream.largest, reports.length);
      seen.push(...reports);
    }
  };
  stream.ended = run().then(
    () => undefined,
    (error: unknown) => error,
  );
  return Object.assign(stream, {
    numbers: () => seen.map((report) => Number(report.number)),
    async stop() {
      leave.abort();
      fails(status.CANCELLED)(await stream.ended);
    },
  });
}

async function submitMany(count: number, symbol = 'SIM-FILL'): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, () => orders.submitOrder(newOrder({ symbol }), { timeoutMs: 60_000 })),
  );
}

/** The number of the newest report. */
async function newest(): Promise<bigint> {
  const { report } = await orders.submitOrder(newOrder(), soon);
  assert.ok(report);
  return report.number;
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

describe('the report stream', () => {
  it('gives many readers every report once and in order, from the backlog into what is live', async () => {
    await submitMany(700);
    const loading = submitMany(700);
    const early = [read(0n), read(0n), read(600n)];
    await submitMany(300);
    const late = [read(0n), read(1_401n)];
    await loading;
    const last = Number(await newest());
    assert.equal(last, 2 * 1_700 + 1);
    for (const [stream, first] of [
      [early[0], 1],
      [early[1], 1],
      [early[2], 601],
      [late[0], 1],
      [late[1], 1_402],
    ] as const) {
      await eventually(() => assert.equal(stream?.seen.length, last - first + 1), 20_000);
      assert.deepEqual(stream?.numbers(), range(first, last));
      assert.ok(stream.largest <= 500);
      await stream.stop();
    }
  });

  it('shows that it lives when there is nothing to report', async () => {
    const stream = read(await newest());
    await eventually(() => assert.ok(stream.heartbeats >= 2, 'no heartbeats'));
    await stream.stop();
  });

  it('waits for a reader that does not read, and then gives it everything', async () => {
    const from = await newest();
    const iterator = orders.streamReports({ afterNumber: from })[Symbol.asyncIterator]();
    const first = iterator.next();
    await submitMany(2_000);
    const last = await newest();
    const numbers = (await first).value?.reports.map((report: Report) => report.number) ?? [];
    while (numbers.at(-1) !== last) {
      const { value } = await iterator.next();
      numbers.push(...(value?.reports ?? []).map((report: Report) => report.number));
    }
    assert.deepEqual(numbers.map(Number), range(Number(from) + 1, Number(last)));
    await iterator.return?.();
  });

  it('misbehaves as asked: repeats, swaps and leaves out; a new stream and a look-up have it right', async () => {
    const from = await newest();
    const stream = read(from);
    await eventually(() => assert.ok(stream.heartbeats > 0, 'no heartbeat'));
    const disturb = async (disturbance: { repeat?: number; swap?: number; omit?: number }) => {
      await controls.disturbReports(disturbance, soon);
      return Number(await newest());
    };
    const repeated = await disturb({ repeat: 1 });
    await eventually(() => assert.deepEqual(stream.numbers(), [repeated, repeated]));
    const omitted = await disturb({ omit: 1 });
    const swapped = await disturb({ swap: 1 });
    const second = Number(await newest());
    await eventually(() => assert.deepEqual(stream.numbers(), [repeated, repeated, second, swapped]));
    const fresh = read(from);
    await eventually(() => assert.deepEqual(fresh.numbers(), [repeated, omitted, swapped, second]));
    await stream.stop();
    await fresh.stop();
  });

  it('keeps a disturbance for the next stream when none is open', async () => {
    const from = await newest();
    await eventually(async () => {
      // The streams of earlier tests may take a moment to be gone.
      await controls.disturbReports({ repeat: 1 }, soon);
      const stream = read(from);
      const number = Number(await newest());
      await eventually(() => assert.ok(stream.numbers().includes(number), 'not there'));
      await stream.stop();
      assert.notEqual(stream.seen.length, new Set(stream.numbers()).size);
    });
  });

  it('breaks on request, for every reader', async () => {
    const from = await newest();
    const streams = [read(from), read(from)];
    await eventually(() =>
      assert.ok(
        streams.every((stream) => stream.heartbeats > 0),
        'no heartbeats',
      ),
    );
    await controls.disturbReports({ breakStreams: true }, soon);
    for (const stream of streams) fails(status.UNAVAILABLE)(await stream.ended);
  });

  it('refuses a number below 0', async () => {
    fails(status.INVALID_ARGUMENT)(await read(-1n).ended);
  });
});

describe('numbers', () => {
  it('are dense over all orders, and an order is accepted before it trades', async () => {
    const last = await newest();
    const stream = read(0n);
    await eventually(() => assert.equal(stream.seen.at(-1)?.number, last), 20_000);
    await stream.stop();
    assert.deepEqual(stream.numbers(), range(1, Number(last)));
    const accepted = new Set<string>();
    for (const report of stream.seen) {
      if (report.kind === ReportKind.ACCEPTED) accepted.add(report.clientOrderId);
      assert.ok(accepted.has(report.clientOrderId));
    }
  });
});
