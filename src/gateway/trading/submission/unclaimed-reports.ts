import { type Statement, statement } from '../../store/statement.ts';
import { defineTable, instant, optional, shortened, text, whole } from '../../store/table.ts';
import { type BrokerId, nameAt } from '../broker/broker.ts';
import type { ReportedStep } from './rules.ts';

/**
 * Reports of the broker about objects that are not stored here, each once. They changed nothing: somebody else uses the
 * broker's connection, or an object was lost. Rows are added, and removed when they are old (`unclaimed-retention`).
 */
export const unclaimedReports = defineTable({
  name: 'unclaimed_reports',
  columns: {
    /** Of which stream the report is: `order` or `application`, for a broker that is not the first with its id (`nameAt`). */
    kind: text(20),
    /** The report's number in the broker's stream. */
    number: whole(),
    /** The id of the object, as the broker states it. */
    objectId: shortened(64),
    /** The exchange's or the broker's own id; empty if the report has none. */
    reference: shortened(64),
    /** What the report says, as in `trade`. */
    report: shortened(40),
    quantity: optional(whole()),
    priceKobo: optional(whole()),
    /** The broker's time of it. */
    upstreamAt: optional(instant()),
    /** Real: when the gateway first met it. */
    seenAt: instant(),
  },
  primary: ['kind', 'number'],
  indexes: { unclaimed_reports_seen_at: ['seenAt'] },
});

/** A kind's reports, as far as they are kept without their object. */
interface Described<Report> {
  readonly name: string;
  reportStep(report: Report): ReportedStep;
  describeReport(report: Report): { readonly report: string; readonly reference: string };
}

/**
 * Keeps reports about an object that is not stored. One that is kept already stays as it is. A report with a value that its
 * column cannot keep makes the transaction fail: nothing of it is stored in another form.
 */
export function keepUnclaimed<Report extends { readonly number: bigint }>(
  broker: BrokerId,
  kind: Described<Report>,
  objectId: string,
  reports: readonly Report[],
  seenAt: number,
): Statement[] {
  return reports.map((one) => {
    const { quantity = null, priceKobo = null, upstreamAt = null } = kind.reportStep(one);
    const described = kind.describeReport(one);
    const facts = {
      kind: nameAt(broker, kind.name),
      number: one.number,
      objectId,
      ...described,
      quantity,
      priceKobo,
      upstreamAt,
    };
    return unclaimedReports.insertIfMissing({ ...facts, seenAt });
  });
}

/** The latest ones by their numbers, newest first, of a kind or of all; before a kind and number. */
export function listUnclaimed(kind: string, before: bigint | undefined, most: number): Statement {
  const isBefore = before === undefined ? statement('') : statement('AND number < ?', before);
  const tail = statement(`${isBefore.sql} ORDER BY number DESC LIMIT ${most}`, ...isBefore.values);
  return unclaimedReports.find({ kind }, unclaimedReports.all, tail);
}
