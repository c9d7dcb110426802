import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { BrokerClock } from '../../../../src/gateway/trading/broker/clock.ts';
import { BrokerConnection } from '../../../../src/gateway/trading/broker/grpc-connection.ts';
import { Orders, type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';

interface Batch {
  readonly reports: readonly Report[];
  readonly lastNumber: bigint;
  readonly brokerTime?: Timestamp;
}

function report(number: bigint, exchangeOrderId = 'X1'): Report {
  return create(ReportSchema, { number, clientOrderId: 'ord_a', exchangeOrderId, kind: ReportKind.ACCEPTED });
}

function batch(numbers: readonly bigint[], lastNumber: bigint): Batch {
  return { reports: numbers.map((number) => report(number)), lastNumber };
}

/** A connection that is never made, because its streams are those of the test. */
function open() {
  const warned: object[] = [];
  const clock = new BrokerClock(0, { realNow: () => 0, monotonicNow: () => 0 });
  const log = { child: () => ({ warn: (facts: object) => void warned.push(facts) }) } as never;
  const options = { address: '127.0.0.1:1', submitTimeoutMs: 1, readTimeoutMs: 1, clock, log };
  return { connection: new BrokerConnection(Orders, 'exchange', options), clock, warned };
}

/** Replaces the timer of the silence: the mock timers of Node do not begin anew when they are refreshed. */
function mockSilence(t: TestContext) {
  const real = setTimeout;
  let [now, due] = [0, Number.POSITIVE_INFINITY];
  let fire = () => {};
  t.mock.method(globalThis, 'setTimeout', (work: () => void, ms: number) => {
    if (ms !== 5_000) return real(work, ms);
    [fire, due] = [work, now + ms];
    const refresh = () => {
      due = now + ms;
    };
    return { refresh };
  });
  const tick = (ms: number) => {
    now += ms;
    if (now >= due) fire();
  };
  return { tick };
}

describe('a stream of reports above number 5', () => {
  const after = 5n;
  for (const [name, batches, read, end] of [
    ['ends if the broker ends it', [batch([6n, 7n], 7n)], [6n, 7n], /ended/],
    ['may state no last number', [batch([6n], 0n), batch([], 0n)], [6n], /ended/],
    ['goes on with heartbeats', [batch([], 5n), batch([6n], 6n), batch([], 6n)], [6n], /ended/],
    ['ends behind a batch that leaves out its last reports', [batch([6n], 7n), batch([7n], 7n)], [6n], /left out/],
    ['ends at a heartbeat that tells of further reports', [batch([6n], 6n), batch([], 7n)], [6n], /left out/],
    ['is whole though a batch repeats earlier reports', [batch([6n, 3n], 6n), batch([4n], 6n)], [6n, 3n, 4n], /ended/],
    ['is not read if the broker has lost reports', [batch([], 4n), batch([6n], 6n)], [], /is 4, and reports up to 5/],
    ['ends once the broker loses reports', [batch([6n], 6n), batch([1n], 1n)], [6n], /is 1, and reports up to 5/],
  ] as const) {
    it(`a stream of reports ${name}`, async () => {
      const { connection } = open();
      const seen: bigint[] = [];
      const reading = (async () => {
        const stream = connection.follow(
          async function* () {
            yield* batches;
          },
          after,
          new AbortController().signal,
        );
        for await (const reports of stream) seen.push(...reports.map(({ number }) => number));
      })();
      await assert.rejects(reading, end);
      assert.deepEqual(seen, read);
      connection.close();
    });
  }

  it('a stream counts as dead after five seconds without a message, of which its reader needed none', async (t) => {
    const { tick } = mockSilence(t);
    const { connection } = open();
    let send: (batch: Batch) => void = () => {};
    let signal = new AbortController().signal;
    const stream = connection
      .follow(
        async function* (_, given) {
          signal = given;
          for (;;) yield await new Promise<Batch>((resolve) => (send = resolve));
        },
        after,
        new AbortController().signal,
      )
      [Symbol.asyncIterator]();
    for (let number = 6n; number < 9n; number += 1n) {
      const next = stream.next();
      await new Promise(setImmediate);
      tick(4_999);
      assert.equal(signal.aborted, false, 'after 4,999 ms');
      send(batch([number], number));
      assert.equal((await next).value?.[0]?.number, number);
      tick(4_999);
    }
    void stream.next();
    await new Promise(setImmediate);
    tick(5_000);
    assert.equal(signal.aborted, true);
    connection.close();
  });

  it("a stream tells of the broker's time, and names a field that is not printable once", async () => {
    const { connection, clock, warned } = open();
    const told: string[] = [];
    const stream = connection.follow(
      async function* () {
        yield { reports: [report(6n, 'X\n1'), report(7n, '\0')], lastNumber: 7n, brokerTime: timestampFromMs(9_000) };
        yield { reports: [report(8n, '\0'), report(9n)], lastNumber: 9n };
      },
      after,
      new AbortController().signal,
    );
    await assert.rejects(async () => {
      for await (const reports of stream) told.push(...reports.map(({ exchangeOrderId }) => exchangeOrderId));
    }, /ended/);
    assert.deepEqual(told, ['', '', '', 'X1']);
    assert.deepEqual(warned, [{ service: Orders.name, field: 'exchange_order_id' }]);
    assert.equal(clock.agreement, 'apart', 'the clock is nine seconds ahead');
    connection.close();
  });
});
