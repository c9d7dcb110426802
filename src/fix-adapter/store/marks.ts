import { type Statement, statement } from '../../gateway/store/statement.ts';
import { type FixOrder, fixOrders } from './table.ts';

/** A report's statements about an order that it does not name as we do. An order in doubt may be meant if it is so. */
export type Unmatched = Partial<Pick<FixOrder, 'account' | 'side'>>;

/** The exchange may have reported about any order that lives, and the report is lost. */
export const markPassedOver: readonly Statement[] = [
  statement("UPDATE fix_orders SET must_ask = 1, passed_over = 1 WHERE state = 'sending'"),
  statement("UPDATE fix_orders SET must_ask = 1 WHERE state = 'open'"),
];

/** So many reports are told apart: more may be about any order. */
const maxUnmatched = 50;

/** Returns the marks for reports: each by itself, or all orders if there are many or one says nothing of its order. */
function marksFor(reports: readonly Unmatched[]): readonly Unmatched[] {
  const any = reports.length > maxUnmatched || reports.some((one) => Object.keys(one).length === 0);
  return any ? [{}] : reports;
}

/** Absence proves nothing of orders in doubt that a report may be about. */
export function markUnmatched(unmatched: readonly Unmatched[]): Statement[] {
  return marksFor(unmatched).map((one) =>
    fixOrders.set({ state: 'sending', passedOver: false, ...one }, { passedOver: true }),
  );
}

/** The exchange may have reported about any of these orders under the name of another one. */
export function markMisnamed(misnamed: readonly Unmatched[]): Statement[] {
  return marksFor(misnamed).map((one) =>
    fixOrders.set({ state: ['sending', 'open'], mustAsk: false, ...one }, { mustAsk: true }),
  );
}
