import type { LookedUp, Sent } from '../broker/port.ts';
import type { Fact, Shared } from '../db/facts.ts';
import type { PartnerTransaction } from '../db/partner-transaction.ts';
import type { SqlRow, Statement } from '../db/statement.ts';
import type { Table } from '../db/table.ts';
import type { NewEvent } from '../events/outbox.ts';
import type { ErrorCode } from '../lib/errors.ts';
import type { IdPrefix } from '../lib/ids.ts';
import type { Origin } from '../lib/origin.ts';
import type { Applied, States } from './rules.ts';
import type { History, NewStep, Submission } from './table.ts';

/** What the mechanism itself gives a new row; the rest comes from the kind. */
type Given = Exclude<keyof Submission, 'param' | 'lastReport' | 'missedReport'>;

/** What a kind makes of a request: the fields of a new row that the mechanism does not know. */
export type Draft<Row extends Submission> = Omit<Row, Given>;

/**
 * What one kind of submission (order, application, allocation) brings to the mechanism they share: what is stored, how it is
 * sent and looked up, what a report does to it. The mechanism stores, sends once, records and reconciles. `Report` is what
 * the upstream says of an object, and `Facts` what storing one depends on.
 */
export interface Kind<Row extends Submission, Report> {
  /** Names the kind in crash points, metrics and logs. */
  readonly name: string;
  /** How ids of the kind begin. */
  readonly prefix: IdPrefix;
  /** Where objects are read, followed by their id. */
  readonly path: string;
  /**
   * Where objects are stored. Another version may have stored what this one does not know (`Table.isKnown`): such an object is
   * shown, and never changed or sent.
   */
  readonly table: Table<Row>;
  readonly history: History;
  /** Who has the objects: the word for it in sentences that partners and operators read. */
  readonly upstream: 'exchange' | 'broker';
  readonly states: States<Row['state']>;
  /** What an object becomes when it is proven that it never arrived. */
  readonly absent: { readonly state: Row['state']; readonly reason: string };
  /** The fields that a note to the broker keeps, to store the object again if the database loses it. */
  readonly noted: readonly (keyof Row & string)[];
  /** The fields of a new object that neither its request nor the mechanism gives. */
  readonly blank: Partial<Row>;
  toEvent(row: Row): Pick<NewEvent, 'data'>;
  /** What a partner's work on this kind shares, such as the wallet. */
  shared?(partnerId: string): readonly Shared<unknown>[];
  /** What a stored object takes of its partner: of a day's limit, of the wallet. Throws `wallet_too_low`. */
  take?(row: Row, partner: PartnerTransaction): void;
  /** What changes with an object: limits and wallet through the transaction, rows that hang on it as statements. */
  settle?(before: Row, after: Row, partner: PartnerTransaction): readonly Statement[];
  /** Asks the upstream's record. Throws if there is no answer that makes sense. */
  lookUp(row: Row): Promise<LookedUp<readonly Report[]>>;
  /** Applies one report. Undefined if the object has seen it. */
  applyReport(row: Row, report: Report, now: number): Applied<Row> | undefined;
  /** What a step of the history says of a report. */
  reportStep(report: Report): Partial<NewStep>;
  /** What is cleared of an object about which nothing is unclear any more. */
  cleared?(row: Row): Partial<Row>;
}

/** A kind that partners create. */
export interface CreatedKind<Row extends Submission, Report, Request, Facts> extends Kind<Row, Report> {
  readonly codes: { readonly duplicate: ErrorCode; readonly rejected: ErrorCode; readonly notSent: ErrorCode };
  /** What the upstream did with an object that it took: 'accepted', 'booked'. */
  readonly accepted: string;
  isRejection(answer: Report): boolean;
  /** What must be known before anything is stored, read together with the key. */
  preparationReads?(partnerId: string, request: Request): readonly Statement[];
  /** The draft of a request about which all is known and nothing is to refuse; undefined if something must be read. */
  prepareCached(partnerId: string, request: Request): Draft<Row> | undefined;
  /** Checks what concerns the outside, before the lock. Throws an ApiError to refuse: nothing is stored then. */
  prepare?(origin: Origin, request: Request, rows: readonly SqlRow[][]): Promise<Draft<Row>>;
  /** What storing it depends on. */
  facts(row: Row): Fact<Facts>;
  /** Throws an ApiError if the partner may not have it stored now. */
  check(row: Row, facts: Facts, partner: PartnerTransaction): void;
  /** Sends once. Does not throw. What is in the request and not in the row is held no longer than this takes. */
  send(row: Row, request: Request, note: Buffer): Promise<Sent<Report>>;
}

/** A kind, to whoever does not ask what its reports are. */
// biome-ignore lint/suspicious/noExplicitAny: reports of one kind are only given to that kind.
export type KindOf<Row extends Submission> = Kind<Row, any>;

/** A kind, to whoever only knows that it has objects. */
// biome-ignore lint/suspicious/noExplicitAny: rows of one kind are only given to that kind.
export type AnyKind = Kind<any, any>;

/** How long a send may take, and how far clocks may be apart. */
export interface SendTimes {
  /** The upstream must not take an object later than this after it was stored. */
  readonly submitTimeoutMs: number;
  /** How far the upstream's clock may be from ours. */
  readonly clockSkewMs: number;
}

/** What a request gives its object. */
export interface NewSubmission extends Origin {
  /** Null if another request has the key by now. */
  readonly idempotencyKey: string | null;
  readonly requestDigest: Buffer;
}

/** A new row, as it is before it is sent. `now` is business time. */
export function newRow<Row extends Submission>(
  kind: KindOf<Row>,
  id: string,
  submission: NewSubmission,
  fields: Partial<Row>,
  { now, notAfter, checkAt }: { readonly now: number; readonly notAfter: number; readonly checkAt: number },
): Row {
  const { partnerId, requestId, traceParent, idempotencyKey, requestDigest } = submission;
  const given = {
    ...{ partnerId, id, requestId, traceParent, idempotencyKey, requestDigest },
    ...{ state: 'sending', reason: null, rejectReason: null, firstAnswer: null },
    ...{ createdAt: now, updatedAt: now, notAfter, checkAt, steps: 1, checks: 0, missingSince: null },
  };
  return { ...given, ...kind.blank, ...fields } as Row;
}

/** What a partner reads of an object whose outcome is unknown. */
export function unclearReason({ upstream }: Pick<AnyKind, 'upstream'>): string {
  return `It is not known whether the ${upstream} received it; the gateway is finding out.`;
}

/** Every kind of submission there is: whoever must treat all alike asks here. */
export class Kinds {
  constructor(readonly all: readonly AnyKind[]) {}

  /** The kind of an object, by how its id begins. */
  ofId(id: string): AnyKind | undefined {
    return this.all.find(({ prefix }) => id.startsWith(`${prefix}_`));
  }
}
