import { type Report, ReportKind, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { checks, expect, filling, must, NotRun, resting, should } from '../check.ts';
import { type CheckSession, shownReport } from '../session.ts';
import { reportsById } from './every-kind.ts';
import { filled } from './fills.ts';
import { lifeProblem, reportProblem, tradedShares, tradeProblem } from './rules.ts';

/** Checks of everything that came in the run: over all orders, breaks and restarts. */
export const wholeRunChecks = checks({
  'reports-dense': must('The stream has every number once, in order and without a gap', async (session) => {
    await session.settled();
    const { follower } = session;
    const near = follower.reports.slice(-4).map(shownReport);
    expect(follower.gaps.length === 0, follower.gaps.join('; '), follower.shown(near));
  }),
  'answers-streamed': resting.must(
    'Every report of an answer comes in the stream too, under its number',
    async (session) => {
      await session.settled();
      for (const { id, outcome } of session.sends) {
        const report = outcome.answer?.report;
        if (report === undefined || report.number <= session.follower.from) continue;
        const streamed = session.follower.byNumber.get(report.number);
        if (streamed === undefined && session.follower.gaps.length > 0) continue; // `reports-dense` says it.
        const shown = session.follower.shown(streamed ? [shownReport(streamed)] : []);
        const has = streamed?.clientOrderId === id;
        expect(has, `report ${report.number} of the answer is not in the stream`, outcome.exchange, shown);
      }
    },
  ),
  'reports-well-formed': must(
    'Every report has its number, order and kind, a trade its time, and an exchange_order_id has at most 64 characters',
    async (session) => {
      await eachReport(session, reportProblem);
    },
  ),
  'trades-exact': must(
    'A trade has a whole number of shares and a price in whole kobo; nothing else has them',
    async (session) => {
      await eachReport(session, tradeProblem);
    },
  ),
  'order-life': resting.must(
    'The first report of an order accepts or rejects it, once; it ends once, and never after a rejection',
    async (session) => {
      for (const [id, reports] of await byOrder(session)) {
        const problem = lifeProblem(reports);
        expect(problem === undefined, `${id}: ${problem}`, session.follower.shown(reports.map(shownReport)));
      }
    },
  ),
  'fills-within-quantity': filling.must('The trades of an order are never more than its quantity', async (session) => {
    await filled(session);
    for (const [id, reports] of await byOrder(session)) {
      const ordered = BigInt(session.sends.find((sent) => sent.id === id)?.request.quantity ?? 0n);
      const traded = tradedShares(reports);
      const shown = session.follower.shown(reports.map(shownReport));
      expect(traded <= ordered, `${id}: ${traded} of ${ordered} shares traded`, shown);
    }
  }),
  'fills-within-limit': filling.must('No trade is at a worse price than the limit', async (session) => {
    await filled(session);
    for (const [id, reports] of await byOrder(session)) {
      const request = session.sends.find((sent) => sent.id === id)?.request;
      if (request?.priceKobo === undefined || request.side !== Side.BUY) continue;
      const limit = BigInt(request.priceKobo);
      const worse = reports.find(({ kind, priceKobo }) => kind === ReportKind.TRADE && priceKobo > limit);
      const shown = session.follower.shown(worse ? [shownReport(worse)] : []);
      expect(worse === undefined, `${id}: ${worse?.priceKobo} kobo, and the limit is ${limit}`, shown);
    }
  }),
  'fills-within-band': filling.should(
    "A trade's price is within the day's band of the symbol: one outside of it shows a wrong unit",
    async (session) => {
      await filled(session);
      for (const [id, reports] of await byOrder(session)) {
        const { symbol = '' } = session.sends.find((sent) => sent.id === id)?.request ?? {};
        if (!reports.some(({ kind }) => kind === ReportKind.TRADE)) continue;
        const { lowerPriceKobo: lower, upperPriceKobo: upper } = await session.instrument(symbol);
        const outside = reports.find(({ kind, priceKobo }) => {
          return kind === ReportKind.TRADE && (priceKobo < lower || priceKobo > upper);
        });
        const shown = session.follower.shown(outside ? [shownReport(outside)] : []);
        expect(outside === undefined, `${outside?.priceKobo} kobo, and the band is ${lower} to ${upper}`, shown);
      }
    },
  ),
  'look-up-complete': resting.must(
    'The look-up of an order has every report about it that the stream has',
    async (session) => {
      for (const [id, reports] of await byOrder(session)) {
        const recorded = await session.recorded(id);
        const numbers = new Set(recorded.reports.map(({ number }) => number));
        const lacking = reports.find(({ number }) => !numbers.has(number));
        const shown = session.follower.shown(lacking ? [shownReport(lacking)] : []);
        expect(lacking === undefined, `it does not have report ${lacking?.number}`, shown, ...recorded.exchanges);
      }
    },
  ),
  'stream-complete': resting.must('The stream has every report that the look-up of an order has', async (session) => {
    for (const [id] of await byOrder(session)) {
      const { reports, exchanges } = await session.recorded(id);
      const last = reports.at(-1)?.number ?? 0n;
      await session.follower.until(() => session.follower.last >= last, session.settings.waits.settleMs);
      if (session.follower.gaps.length > 0) throw new NotRun('the stream has gaps');
      const lacking = reports.find(({ number }) => {
        return number > session.follower.from && session.follower.byNumber.get(number)?.clientOrderId !== id;
      });
      expect(lacking === undefined, `it does not have report ${lacking?.number}`, ...exchanges);
    }
  }),
  'broker-time-stated': should('Every answer and every message of a stream states broker_time', async (session) => {
    const silent = session.calls.find(({ outcome: { answer } }) => {
      return answer !== undefined && (answer as { brokerTime?: unknown }).brokerTime === undefined;
    });
    expect(silent === undefined, 'the answer has no broker_time', ...(silent ? [silent.outcome.exchange] : []));
    const isStated = session.follower.arrivals.flat().every(({ brokerTimeMs }) => brokerTimeMs !== undefined);
    expect(isStated, 'a message of the stream has no broker_time', session.follower.shown([]));
  }),
  'calls-in-time': should(
    'No call takes longer than two seconds, unless the adapter or its exchange is away',
    async (session) => {
      const { slowMs } = session.settings.waits;
      const slow = session.calls.find(
        ({ outcome, bounded, isDisturbed }) => !isDisturbed && outcome.exchange.tookMs > slowMs && bounded > slowMs,
      );
      expect(slow === undefined, 'one took longer', ...(slow ? [slow.outcome.exchange] : []));
    },
  ),
});

/** The orders of this run that the stream has reports about, each with them. */
async function byOrder(session: CheckSession) {
  await session.settled();
  return reportsById(session.sends, session.follower.reports, (report) => report.clientOrderId);
}

async function eachReport(session: CheckSession, problemOf: (report: Report) => string | undefined): Promise<void> {
  await session.settled();
  if (session.follower.reports.length === 0) throw new NotRun('the stream brought nothing');
  for (const report of session.follower.reports) {
    const problem = problemOf(report);
    expect(problem === undefined, `${problem}`, session.follower.shown([shownReport(report)]));
  }
}
