import type { ApplicationFields } from '../gen/marina/broker/v1/applications_pb.ts';
import type { Report } from '../gen/marina/broker/v1/orders_pb.ts';
import { ApiError } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';

/** An order as the broker must know it. Names are the ones the database and partners use. */
export interface OrderToSend {
  readonly id: string;
  readonly account: string;
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly quantity: bigint;
  readonly type: 'limit' | 'market';
  readonly timeInForce: 'day' | 'gtc' | 'ioc' | 'fok';
  readonly priceKobo: bigint | null;
  /** On whose behalf it is sent. */
  readonly origin: Origin;
}

/** What is sent, with the note by which it can be restored. */
export interface Noted {
  readonly note: Buffer;
}

/**
 * What a send came to. `never-left` needs proof that the other side did not and will not take it; everything that is
 * neither an answer nor such a proof is `unclear`.
 */
export type Sent<Answer> =
  | { readonly outcome: 'answered'; readonly answer: Answer }
  | {
      readonly outcome: 'never-left';
      readonly evidence: string;
      /** A sentence for the partner, where there is more to say than that it never left. */
      readonly reason?: string;
    }
  | { readonly outcome: 'unclear'; readonly evidence: string };

export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly report: Report }
  | { readonly outcome: 'too-late' }
  | { readonly outcome: 'unclear'; readonly evidence: string };

/** A file for the broker. */
export interface DocumentToSend {
  readonly applicationId: string;
  readonly type: 'photo' | 'government_id' | 'utility_bill' | 'signature';
  /** `image/jpeg` or `image/png`. */
  readonly mediaType: string;
  readonly content: Buffer;
  readonly origin: Origin;
}

/** What the broker's record says of something: of an order, all reports above the number asked for. */
export type LookedUp<Answer> =
  | {
      readonly found: false;
      /** Business time before which the record is known to be complete, in milliseconds; undefined: not known. */
      readonly completeUntil: number | undefined;
      /** Real time in milliseconds that the broker's clock showed at least when it was asked; undefined: not stated. */
      readonly brokerTime: number | undefined;
    }
  | { readonly found: true; readonly answer: Answer };

/** An application as the broker must know it. */
export interface ApplicationToSend {
  readonly id: string;
  readonly fields: ApplicationFields;
  readonly origin: Origin;
}

/** An allocation as the broker must know it. */
export interface AllocationToSend {
  readonly id: string;
  readonly account: string;
  readonly amountKobo: bigint;
  readonly origin: Origin;
}

/** One thing the broker took, by its number among all. */
export interface Taken {
  readonly number: bigint;
  /** The id the gateway gave it. */
  readonly clientId: string;
  /** The note it was sent with. */
  readonly note: Uint8Array;
}

/** What a read of records needs besides what is read: how long it may take, and on whose behalf it is made. */
export interface ReadTime {
  readonly timeoutMs: number;
  readonly origin: Origin;
}

/**
 * The reports in the answer to a look-up, above a number and in order; undefined if the object was not found. Throws if the
 * answer makes no sense.
 */
export function reportsOf<Report extends { readonly number: bigint }>(
  { found, reports }: { readonly found: boolean; readonly reports: readonly Report[] },
  afterNumber: bigint,
  isReport: (report: Report) => boolean,
): readonly Report[] | undefined {
  const isInOrder = reports.every((report, at) => report.number > (reports[at - 1]?.number ?? afterNumber));
  if (!isInOrder || !reports.every(isReport) || (!found && reports.length > 0)) throw new ApiError('exchange_error');
  return found ? reports : undefined;
}
