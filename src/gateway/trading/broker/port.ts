import { ApiError } from '../../edge/errors.ts';

/** A submission's note, from which it can be restored. */
export interface Noted {
  readonly note: Buffer;
}

/**
 * The outcome of a send. `never-left` needs proof that the other side did not and will not take it. Anything that is
 * neither an answer nor such a proof is `unclear`.
 */
export type Sent<Answer> =
  | { readonly outcome: 'answered'; readonly answer: Answer }
  | {
      readonly outcome: 'never-left';
      readonly evidence: string;
      /** A sentence for the partner, if there is more to say than that it never left. */
      readonly reason?: string;
    }
  | { readonly outcome: 'unclear'; readonly evidence: string };

/** The answer from the broker's record: for an order, all reports above the given number. */
export type LookedUp<Answer> =
  | {
      readonly found: false;
      /** Business time in milliseconds before which the record is complete; undefined: unknown. */
      readonly completeUntil: number | undefined;
      /** Real time in milliseconds that the broker's clock had reached when it was asked; undefined: not stated. */
      readonly brokerTime: number | undefined;
    }
  | { readonly found: true; readonly answer: Answer };

/** The largest number of a report. Numbers are dense from 1, and one near 2^63 could not be followed by another. */
const maxReportNumber = 2n ** 53n - 1n;

/** Whether a report's number can be one. */
export function isReportNumber(number: bigint): boolean {
  return number > 0n && number <= maxReportNumber;
}

/** Whether a text is an id of the broker or the exchange: at most 64 printable ASCII characters, or none. */
export function isUpstreamId(text: string): boolean {
  return /^[ -~]{0,64}$/.test(text);
}

/** The reports in a query's answer, above a number and in order; undefined if not found. Throws if it makes no sense. */
export function reportsOf<Report extends { readonly number: bigint }>(
  { found, reports }: { readonly found: boolean; readonly reports: readonly Report[] },
  afterNumber: bigint,
  isReport: (report: Report) => boolean,
): readonly Report[] | undefined {
  const isInOrder = reports.every((report, at) => report.number > (reports[at - 1]?.number ?? afterNumber));
  if (!isInOrder || !reports.every(isReport) || (!found && reports.length > 0)) throw new ApiError('exchange_error');
  return found ? reports : undefined;
}
