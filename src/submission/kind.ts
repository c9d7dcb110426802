import type { Sent } from '../broker/port.ts';
import type { LockedPartner } from '../db/locked-partner.ts';
import type { SqlRow, Statement } from '../db/statement.ts';
import type { NewEvent } from '../events/outbox.ts';
import type { ErrorCode } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';
import type { SubmissionFields } from './row-store.ts';

/** What everything that is stored, sent once and recorded has. */
export interface Submittable extends SubmissionFields {
  readonly id: string;
  readonly state: string;
  readonly rejectReason: string | null;
  /** The field that caused a rejection, by its name; never its value. */
  readonly param?: string | null;
}

/** What became of a row: as it was read under the lock, as it is now, and what must be told of it. */
export interface Change<Row> {
  readonly before: Row;
  readonly after: Row;
  /** The row at each moment that makes an event, oldest first. */
  readonly told: readonly Row[];
  /** What is written beside the row and its events, such as steps of its history. */
  readonly writes: readonly Statement[];
  /** What the upstream said that cannot be, in our own words: the state was kept, and a person must look. */
  readonly contradictions: readonly string[];
  /** How long after the row was stored, by the broker's clock, the earliest of the reports happened that it applies. */
  readonly reportedAfterMs: number | undefined;
}

/** How one kind of object is read, saved and told of. */
export interface ObjectKind<Row extends Submittable> {
  /** Names the kind in crash points and logs. */
  readonly name: 'order' | 'application' | 'allocation';
  /** The path of an object, for `Location`. */
  path(id: string): string;
  find(partnerId: string, id: string): Statement;
  toRow(row: SqlRow): Row;
  /**
   * Whether this version knows what the object is and where it stands. Another version may store what this one does not
   * know: such an object is shown, and never changed or sent.
   */
  isKnown(row: Row): boolean;
  /** What must be known under the lock to save a change, beside the row itself. */
  saveReads?(partnerId: string): readonly Statement[];
  /** Saves a changed row and what hangs on it. `rows` are those of `saveReads`. */
  save(change: Change<Row>, partner: LockedPartner, rows: readonly SqlRow[][]): readonly Statement[];
  /**
   * The same for a row that was not read, in statements that fail, by a null where none may be, where anything has come to
   * the row since `change.before`. A kind that has it has the outcome of a send recorded in one round trip.
   */
  saveAssumed?(change: Change<Row>, partner: LockedPartner): readonly Statement[];
  toEvent(row: Row): NewEvent;
}

/**
 * What one kind of submission (order, application, allocation) brings to the mechanism they share. `Answer` is what the
 * broker says to a send.
 */
export interface Kind<Row extends Submittable, Request, Draft, Answer> extends ObjectKind<Row> {
  /** Where objects and their idempotency keys are stored. */
  readonly table: 'orders' | 'applications' | 'allocations';
  readonly codes: { readonly duplicate: ErrorCode; readonly rejected: ErrorCode; readonly notSent: ErrorCode };
  findByKey(partnerId: string, idempotencyKey: string): Statement;
  /** What must be known before anything is stored, read together with the key. */
  preparationReads(partnerId: string, request: Request): readonly Statement[];
  /** The draft of a request about which all is known and nothing is to refuse; undefined where something must be read. */
  prepareKnown(partnerId: string, request: Request): Draft | undefined;
  /** Checks what concerns the outside, before the lock. Throws an ApiError to refuse: nothing is stored then. */
  prepare(origin: Origin, request: Request, rows: readonly SqlRow[][]): Promise<Draft>;
  /** What must be known under the lock. */
  storeReads(partnerId: string, draft: Draft): readonly Statement[];
  /** Decides under the lock. Throws an ApiError to refuse: nothing is stored then. */
  store(draft: Draft, submission: NewSubmission, partner: LockedPartner, rows: readonly SqlRow[][]): Stored<Row>;
  /**
   * The same without what must be known: the writes fail where `store` would refuse (`PartnerWork.decideAssumed`), and
   * where the key is used. A kind that has it is stored in one round trip.
   */
  storeAssumed?(draft: Draft, submission: NewSubmission, partner: LockedPartner): Stored<Row>;
  /** Sends once. Does not throw. What is in the request and not in the row is held no longer than this takes. */
  send(row: Row, request: Request): Promise<Sent<Answer>>;
  /** What the send came to, applied to the row as it is by now. */
  applySent(row: Row, sent: Sent<Answer>): Change<Row>;
}

export interface Stored<Row> {
  readonly row: Row;
  readonly writes: readonly Statement[];
}

/** The same of a row that is stored anew, whose key may have come again meanwhile. */
export interface RenewedSubmission extends Omit<NewSubmission, 'idempotencyKey'> {
  readonly idempotencyKey: string | null;
}

/** By what a row that was lost and stored anew is known, for its history. */
export const renewedEvidence = "stored anew from the note in the broker's record: the database had lost it";

/** What the mechanism itself stores with a new row. */
export interface NewSubmission {
  readonly partnerId: string;
  readonly origin: Origin;
  readonly idempotencyKey: string;
  readonly requestDigest: Buffer;
}
