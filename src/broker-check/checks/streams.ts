import { pause } from '../../kit/worker.ts';
import { checks, expect, must, NotRun, resting, should } from '../check.ts';
import type { RecordedCall } from '../exchange.ts';
import { type Batch, type Follower, type NumberedReport, type Open, readStream } from '../follower.ts';
import { beyond, shownReport } from '../session.ts';
import { isSameReport } from './rules.ts';

const firstReports = 1_000;
const streamsAtOnce = 3;
const never = new AbortController().signal;

/** The stream of reports. The reports of the whole run are checked last. */
export const streamChecks = checks({
  'stream-from-first': must('The stream from 0 begins with report 1, and goes on without a gap', async (session) => {
    const { silenceMs } = session.settings.waits;
    await denseFromFirst('Orders.StreamReports', session.openReports, silenceMs);
  }),
  'stream-beyond-last': should(
    'A stream from a number that was never reached brings nothing, and states a last_number below it',
    async (session) => {
      await statesItsLast('Orders.StreamReports', session.openReports, session.settings.waits.silenceMs);
    },
  ),
  'stream-any-position': resting.must(
    'A stream from any number begins with the next report, and has the same reports as before',
    async (session) => {
      for (let count = 0; count < 3; count += 1) await session.place('rest');
      await session.settled();
      const { follower } = session;
      const known = [...follower.byNumber.keys()].sort((one, other) => (one < other ? -1 : 1));
      const first = known[0];
      const last = known.at(-1);
      if (first === undefined || last === undefined) throw new NotRun('the stream brought nothing');
      const middle = known[Math.floor(known.length / 2)] ?? first;
      for (const after of new Set([first - 1n, middle, last - 1n])) {
        const enough = (batches: readonly Batch<NumberedReport>[]) =>
          batches.some(({ reports }) => reports.some(({ number }) => number >= last));
        const bound = { enough, boundMs: session.settings.waits.settleMs };
        const { reports, ended } = await readStream(session.openReports, after, bound);
        const shown = streamShown('Orders.StreamReports', after, reports.map(shownReport), ended);
        const expected = known.find((number) => number > after);
        expect(reports[0]?.number === expected, `it begins with report ${reports[0]?.number}`, shown);
        const other = reports.find((report) => {
          const before = follower.byNumber.get(report.number);
          return before !== undefined && !isSameReport(before, report);
        });
        expect(other === undefined, `report ${other?.number} is another than before`, shown);
        expect(ended === undefined, `it ended with ${ended} before report ${last}`, shown);
      }
    },
  ),
  'stream-several': resting.must(
    `A new report comes in each of ${streamsAtOnce} streams that are open at the same time`,
    async (session) => {
      const after = session.follower.last;
      let opened = 0;
      let id: string | undefined;
      const has = (batches: readonly Batch<NumberedReport>[]) =>
        batches.some(({ reports }) =>
          reports.some((report) => (report as { clientOrderId?: string }).clientOrderId === id),
        );
      const streams = Array.from({ length: streamsAtOnce }, () => {
        let isFirst = true;
        const enough = (batches: readonly Batch<NumberedReport>[]) => {
          if (isFirst) opened += 1;
          isFirst = false;
          return id !== undefined && has(batches);
        };
        return readStream(session.openReports, after, { enough, boundMs: session.settings.waits.settleMs });
      });
      // A quiet stream has its first message within a second.
      for (let waited = 0; opened < streamsAtOnce && waited < 2_000; waited += 20) await pause(20, never);
      const order = await session.newOrder('rest');
      id = order.id;
      const { outcome } = await session.send(order);
      const read = await Promise.all(streams);
      if (outcome.answer === undefined) throw new NotRun(`the send ended with ${outcome.exchange.status}`);
      const lacking = read.filter(({ batches }) => !has(batches));
      const shown = lacking.map(({ ended }) => streamShown('Orders.StreamReports', after, [], ended));
      expect(lacking.length === 0, `${lacking.length} did not have it`, outcome.exchange, ...shown);
    },
  ),
  'stream-alive': must(
    'An open stream is never silent for five seconds, because the gateway takes it for dead then',
    async (session) => {
      const { silenceMs } = session.settings.waits;
      const longest = await longestSilence(session.follower, silenceMs + 500);
      expect(longest < silenceMs, `it was silent for ${longest} ms`, session.follower.shown([]));
    },
  ),
  'stream-every-second': should('A quiet stream has a message every second', async (session) => {
    const { silenceMs, quietMs } = session.settings.waits;
    const longest = await longestSilence(session.follower, quietMs * 2);
    if (longest >= silenceMs) throw new NotRun('it was dead');
    expect(longest <= quietMs, `it was silent for ${longest} ms`, session.follower.shown([]));
  }),
  'stream-last-number': should(
    'last_number is never above the last report that was sent, because the gateway takes that for a loss',
    async (session) => {
      await statesNoMoreThanSent('Orders.StreamReports', session.openReports);
    },
  ),
});

/** Throws unless a stream from 0 begins with 1 and has no gap, as far as a bounded look goes. */
export async function denseFromFirst<Report extends NumberedReport>(name: string, open: Open<Report>, boundMs: number) {
  const enough = (batches: readonly Batch<Report>[]) =>
    batches.some(({ reports }) => reports.length === 0) ||
    batches.reduce((sum, { reports }) => sum + reports.length, 0) >= firstReports;
  const { reports, ended } = await readStream(open, 0n, { enough, boundMs });
  const numbers = reports.map(({ number }) => number);
  const wrong = numbers.findIndex((number, at) => number !== BigInt(at + 1));
  const near = numbers.slice(Math.max(0, wrong - 2), wrong + 3).map((number) => ({ number: String(number) }));
  const shown = streamShown(name, 0n, near, ended);
  expect(wrong < 0, `in the place of report ${wrong + 1} is report ${numbers[wrong]}`, shown);
  expect(ended === undefined || reports.length > 0, `it ended with ${ended}`, shown);
}

/** Throws unless a stream from beyond the last report says so. */
export async function statesItsLast<Report extends NumberedReport>(name: string, open: Open<Report>, boundMs: number) {
  const enough = (batches: readonly Batch<Report>[]) => batches.length > 0;
  const { batches, reports, ended } = await readStream(open, beyond, { enough, boundMs });
  const shown = streamShown(
    name,
    beyond,
    reports.map(({ number }) => ({ number: String(number) })),
    ended,
  );
  expect(reports.length === 0, 'it brought reports', shown);
  const last = batches[0]?.lastNumber;
  expect(last !== undefined, `it ended with ${ended}`, shown);
  expect(last < beyond, `it states ${last}`, shown);
}

/** Throws unless each message states no later number than the last one that was sent. */
export async function statesNoMoreThanSent<Report extends NumberedReport>(name: string, open: Open<Report>) {
  const enough = (batches: readonly Batch<Report>[]) => batches.length >= 3;
  const { batches } = await readStream(open, 0n, { enough, boundMs: 3_000 });
  let last = 0n;
  for (const { reports, lastNumber } of batches) {
    last = reports.reduce((most, { number }) => (number > most ? number : most), last);
    const answer = { lastNumber: String(lastNumber), reports: `${reports.length}, the last is ${last}` };
    const shown = { call: name, request: { afterNumber: '0' }, answer, status: 'OK', tookMs: 0 };
    expect(lastNumber <= last, `it states ${lastNumber} after report ${last}`, shown);
  }
}

/** The longest time without a message in the streams that were followed, after each had its first message. */
export async function longestSilence<Report extends NumberedReport>(
  follower: Follower<Report>,
  watchedMs: number,
): Promise<number> {
  const open = () => follower.arrivals.at(-1)?.[0]?.at;
  await follower.until(() => open() !== undefined, watchedMs);
  const began = open();
  if (began === undefined) return watchedMs;
  const leftMs = watchedMs - (performance.now() - began);
  if (leftMs > 0) await pause(leftMs, never);
  const silences = follower.arrivals.flatMap((arrivals) =>
    arrivals.slice(1).map(({ at }, index) => at - (arrivals[index]?.at ?? at)),
  );
  const now = performance.now() - (follower.arrivals.at(-1)?.at(-1)?.at ?? began);
  return Math.round(Math.max(0, now, ...silences));
}

/** Shows a stream's request and reports, for a breach. */
export function streamShown(
  call: string,
  afterNumber: bigint,
  reports: readonly unknown[],
  ended: string | undefined,
): RecordedCall {
  const shown = reports.length > 12 ? [...reports.slice(0, 12), `… (${reports.length} in all)`] : reports;
  const request = { afterNumber: String(afterNumber) };
  return { call, request, answer: { reports: shown }, status: ended ?? 'OK', tookMs: 0 };
}
