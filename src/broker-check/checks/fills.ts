import { ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { checks, expect, filling, NotRun } from '../check.ts';
import { type CheckSession, type PlacedOrder, shownReport } from '../session.ts';
import { tradedShares } from './rules.ts';

/** An order that is filled. */
export const fillChecks = checks({
  'fills-whole': filling.should(
    'An order at the highest price of the day, on the symbol named for it, is filled in whole',
    async (session) => {
      const { id, outcome } = await filled(session);
      const reports = session.streamed(id);
      const traded = tradedShares(reports);
      const shown = session.follower.shown(reports.map(shownReport));
      expect(traded >= session.settings.quantity, `${traded} shares traded`, outcome.exchange, shown);
    },
  ),
  'look-up-current-trades': filling.must('The look-up knows a trade once the stream has it', async (session) => {
    const { id } = await session.place('fill');
    const trade = await session.streamedReport(id, ({ kind }) => kind === ReportKind.TRADE);
    if (trade === undefined) throw new NotRun('nothing traded in time');
    const { reports, exchanges } = await session.recorded(id);
    const has = reports.some(({ number }) => number === trade.number);
    const shown = session.follower.shown([shownReport(trade)]);
    expect(has, `it does not have report ${trade.number}`, shown, ...exchanges);
  }),
});

/** An order that was filled, as far as it was in time. All checks of fills look at the same. */
export function filled(session: CheckSession): Promise<PlacedOrder> {
  return session.once('a filled order', async () => {
    const placed = await session.place('fill');
    const { quantity, waits } = session.settings;
    await session.follower.until(() => tradedShares(session.streamed(placed.id)) >= quantity, waits.settleMs);
    if (tradedShares(session.streamed(placed.id)) === 0n) throw new NotRun('nothing traded in time');
    return placed;
  });
}
