import type { Message } from '@bufbuild/protobuf';
import type { Event } from '../../../gen/marina/gateway/v1/events_pb.ts';
import { lagosDay } from '../../../kit/clock.ts';
import type { ApiError } from '../../edge/errors.ts';
import { type IdPrefix, isObjectId } from '../../edge/ids.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Fact, Shared } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import type { SqlRow, Statement } from '../../store/statement.ts';
import type { Table } from '../../store/table.ts';
import type { LookedUp, Sent } from '../broker/broker.ts';
import type { Affected } from '../stops/rules.ts';
import type { DayLimit } from './day-limit.ts';
import type { Applied, ReportedStep, States } from './rules.ts';
import type { History, Submission } from './table.ts';

/** The fields of a new row that the mechanism sets; the kind sets the rest. */
type Given = Exclude<keyof Submission, 'param' | 'lastReport' | 'missedReport'> | 'countedDay';

/** The fields of a new row that the kind sets from the request. */
export type Draft<Row extends Submission> = Omit<Row, Given>;

/** The draft of a new object, now or later. */
export interface Prepared<Row extends Submission> {
  /** Made of cached data, if nothing is to be refused; undefined: `prepare` must make it. */
  readonly draft: Draft<Row> | undefined;
  /** The statements that `prepare` needs the rows of. They are read together with the key. */
  readonly reads: readonly Statement[];
  /** Checks the request against other systems. Throws an ApiError to refuse: then nothing is stored. */
  prepare(rows: readonly SqlRow[][]): Promise<Draft<Row>>;
}

/** A draft that needs no other system. */
export function preparedAs<Row extends Submission>(draft: Draft<Row>): Prepared<Row> {
  return { draft, reads: [], prepare: async () => draft };
}

/** The name of a kind: that of its object in events. */
export type KindName = NonNullable<Event['data']['case']>;

/** A fact that an object needs to be stored, and the error otherwise. */
export interface Precondition {
  readonly fact: Fact<boolean>;
  readonly mustBe: boolean;
  readonly otherwise: () => ApiError;
}

/**
 * One kind of submission (order, application, allocation), for the mechanism that all kinds share: it stores, sends once,
 * records and reconciles. `Report` is a report of the upstream about an object.
 */
export interface Kind<Row extends Submission, Report> {
  /** Names the kind in paths, error codes, crash points, metrics and logs. */
  readonly name: KindName;
  /** The prefix of the kind's ids. */
  readonly prefix: IdPrefix;
  /**
   * The table of the objects. Another version may have stored values that this one does not know (`Table.isKnown`): such an
   * object is shown, and never changed or sent.
   */
  readonly table: Table<Row>;
  readonly history: History;
  /** The system that has the objects, as sentences for partners and operators name it. */
  readonly upstream: 'exchange' | 'broker';
  readonly states: States<Row['state']>;
  /** The state and reason of an object that provably never arrived. */
  readonly absent: { readonly state: Row['state']; readonly reason: string };
  /** The fields in the note to the broker, from which the object is restored if the database loses it. */
  readonly noted: readonly (keyof Row & string)[];
  /** The fields of a new object that neither its request nor the mechanism gives. */
  readonly blank: Partial<Row>;
  readonly dayLimit?: DayLimit<Row>;
  /** The object as partners see it, in answers and in events alike. */
  toMessage(row: Row): Message;
  /** The values that all work on this kind shares for a partner, such as the wallet. */
  shared?(partnerId: string): readonly Shared<unknown>[];
  /** Charges a new object to its partner's wallet. Throws `wallet_too_low`. */
  take?(row: Row, partner: PartnerTransaction): void;
  /** Changes the wallet with the object, through the transaction. Returns statements for rows that belong to it. */
  settle(before: Row, after: Row, partner: PartnerTransaction): readonly Statement[];
  /** Queries the upstream's record. Throws if there is no valid answer. */
  lookUp(row: Row): Promise<LookedUp<readonly Report[]>>;
  /** Applies one report. Undefined if the object has seen it. */
  applyReport(row: Row, report: Report, now: number): Applied<Row> | undefined;
  /** The fields of the history's step for a report, which changed an object if it is given before and after. */
  reportStep(report: Report, before?: Row, after?: Row): ReportedStep;
  /** Fields to reset once the object's outcome is known. */
  cleared?(row: Row): Partial<Row>;
}

/** A kind that partners create, with what `submit` needs of it. */
export interface CreatedKind<Row extends Submission, Report, Request> extends Kind<Row, Report> {
  /** The verb for an upstream that took the object: 'accepted', 'booked'. */
  readonly accepted: string;
  /** The facts of a new object that stops ask for. */
  affects(row: Row): Affected;
  /** Prepares the draft, before the lock. */
  prepare(origin: Origin, request: Request): Prepared<Row>;
  /** The facts that must be so when it is stored, in the order in which they are checked. The daily limit comes after them. */
  preconditions(row: Row): readonly Precondition[];
  /** Whether a new object must wait until operators release it. Absent: none waits. */
  mustWait?(row: Row): Fact<boolean>;
  /** Sends once. Does not throw. Request data that is not in the row is dropped when this returns. */
  send(row: Row, request: Request, note: Buffer): Promise<Sent<Report>>;
  isRejection(answer: Report): boolean;
  /** The reject reason of a row as partners see it, if that is not the stored one. */
  readonly shownRejectReason?: (row: Row) => string | null;
}

/** A kind, for code that does not use its reports. */
// biome-ignore lint/suspicious/noExplicitAny: reports of one kind are only given to that kind.
export type KindOf<Row extends Submission> = Kind<Row, any>;

/** A kind, for code that treats all kinds alike. */
// biome-ignore lint/suspicious/noExplicitAny: rows of one kind are only given to that kind.
export type AnyKind = Kind<any, any>;

/** The bounds of a send. */
export interface SendTimes {
  /** How long after it was stored the upstream may take an object, in milliseconds. */
  readonly submitTimeoutMs: number;
  /** The largest expected difference between the upstream's clock and ours, in milliseconds. */
  readonly clockSkewMs: number;
}

/** The fields of an object that come from its request. */
export interface NewSubmission extends Origin {
  /** The key it was created with; null if a note of an earlier version does not say. */
  readonly keyId: string | null;
  /** Null if another request uses the key by now. */
  readonly idempotencyKey: string | null;
  readonly requestDigest: Buffer;
}

/** A new row, not sent yet. `now` is business time. */
export function newRow<Row extends Submission>(
  kind: KindOf<Row>,
  id: string,
  submission: NewSubmission,
  fields: Partial<Row>,
  { now, notAfter, checkAt }: { readonly now: number; readonly notAfter: number; readonly checkAt: number },
): Row {
  const { partnerId, requestId, traceParent, keyId, idempotencyKey, requestDigest } = submission;
  const given = {
    partnerId,
    id,
    requestId,
    traceParent,
    keyId,
    idempotencyKey,
    requestDigest,
    state: 'sending',
    reason: null,
    rejectReason: null,
    firstAnswer: null,
    createdAt: now,
    updatedAt: now,
    notAfter,
    checkAt,
    steps: 1,
    checks: 0,
    missingSince: null,
    settlement: null,
    countedDay: kind.table.fields.includes('countedDay' as never) ? lagosDay(now) : undefined,
  };
  // Not by spreads: V8 takes 14 µs for those.
  return Object.assign(given, kind.blank, fields) as unknown as Row;
}

/** The reason that partners read while the outcome is unknown. */
export function unclearReason({ upstream }: Pick<AnyKind, 'upstream'>): string {
  return `It is not known whether the ${upstream} received it; the gateway is finding out.`;
}

/** The path of an object. */
export function pathOf({ name }: Pick<AnyKind, 'name'>, id: string): string {
  return `/v1/${name}s/${id}`;
}

/** The registry of all kinds of submissions. */
export class Kinds {
  constructor(readonly all: readonly AnyKind[]) {}

  /** The kind of an object, by the prefix of its id. */
  ofId(id: string): AnyKind | undefined {
    return isObjectId(id) ? this.all.find(({ prefix }) => id.startsWith(`${prefix}_`)) : undefined;
  }
}
