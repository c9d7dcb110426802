/** The simulator's streams of reports, over a feed and calls that the test holds. */
import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { createLogger } from '../../src/kit/log.ts';
import { ReportFeed } from '../../src/simulator/wire/report-feed.ts';
import { SimulatorStreams } from '../../src/simulator/wire/report-streams.ts';
import { RpcError } from '../../src/simulator/wire/rpc.ts';
import { eventually } from '../support/eventually.ts';
import { ReportCall } from '../support/report-call.ts';

interface Report {
  readonly number: number;
}

describe('the report streams of the simulator', () => {
  let calls: ReportCall<string>[] = [];
  let isOffered = true;
  function begin(table: readonly Report[] = []) {
    const feed = new ReportFeed<Report>(async (number, last, limit) =>
      table.filter((each) => each.number > number && each.number <= last).slice(0, limit),
    );
    feed.restart(table.length);
    const message = (reports: readonly Report[], last: number | bigint) =>
      `${reports.map(({ number }) => number).join(' ') || '-'} / ${last}`;
    const streams = new SimulatorStreams<Report, string>(
      feed,
      message,
      createLogger({ name: 'simulator', level: 'silent' }),
      () => {
        if (!isOffered) throw new RpcError(status.UNIMPLEMENTED, 'There is no such stream.');
      },
    );
    const serve = (call = new ReportCall<string>()) => {
      calls.push(call);
      streams.serve(call as never);
      return call;
    };
    return { feed, streams, serve };
  }
  afterEach(() => {
    for (const call of calls) call.cancel();
    [calls, isOffered] = [[], true];
  });
  const numbers = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, at) => ({ number: from + at }));

  it('a stream brings what is recorded in full messages, then what is published, and states no number that comes later', async () => {
    const { feed, serve } = begin(numbers(1, 501));
    const call = serve();
    await eventually(() => assert.equal(call.messages.length, 2));
    assert.deepEqual(
      call.messages.map((one) => one.replace(/.* (\d+ \/)/, '$1')),
      ['500 / 500', '501 / 501'],
    );
    feed.publish(numbers(502, 503));
    await eventually(() => assert.equal(call.messages[2], '502 503 / 503'));
  });

  it('a stream behind a number that nobody has any more states a lower one: the broker has lost reports', async () => {
    const { feed, serve } = begin(numbers(1, 3));
    const call = serve(new ReportCall<string>(9n));
    await eventually(() => assert.equal(call.messages[0], '- / 3'));
    feed.publish(numbers(4, 4));
    await eventually(() => assert.equal(call.messages.at(-1), '- / 4'));
  });

  it('each stream gives its place back when its reader leaves and when it is broken, any number of times', async () => {
    const { streams, serve } = begin();
    const ends = [
      (call: ReportCall<string>) => call.cancel(),
      (call: ReportCall<string>) => void call.emit('error', { code: status.CANCELLED }),
    ];
    for (let round = 0; round < 2; round += 1) {
      const all = Array.from({ length: 200 }, () => serve());
      assert.deepEqual([serve().errors, all.flatMap(({ errors }) => errors)], [[status.RESOURCE_EXHAUSTED], []]);
      for (const [at, call] of all.entries()) ends[at % 2]?.(call);
      await eventually(() => assert.deepEqual(serve().errors, []));
      streams.breakAll();
      await eventually(() => assert.deepEqual(calls.at(-1)?.errors, [status.UNAVAILABLE]));
    }
    assert.equal(serve(new ReportCall<string>(-1n)).errors[0], status.INVALID_ARGUMENT);
    isOffered = false;
    assert.equal(serve().errors[0], status.UNIMPLEMENTED);
  });

  it('a broken stream whose reader is slow ends at once, and others can be opened', async () => {
    const { streams, serve } = begin(numbers(1, 3));
    const call = Object.assign(new ReportCall<string>(), { isSlow: true });
    serve(call);
    await eventually(() => assert.equal(call.messages.length, 1));
    streams.breakAll();
    await eventually(() => assert.deepEqual(call.errors, [status.UNAVAILABLE]));
    const other = serve();
    await eventually(() => assert.deepEqual(other.messages, ['1 2 3 / 3']));
  });

  it('a stream repeats a report once, in each stream that is open', async () => {
    const { feed, streams, serve } = begin();
    const open = [serve(), serve()];
    streams.repeat({ number: 7 });
    const later = serve();
    feed.publish(numbers(1, 1));
    for (const call of open) await eventually(() => assert.deepEqual(call.messages, ['1 7 / 1']));
    await eventually(() => assert.deepEqual(later.messages, ['1 / 1']));
    feed.publish(numbers(2, 2));
    for (const call of open) await eventually(() => assert.equal(call.messages[1], '2 / 2'));
  });
});
