import type { Clock } from '../../../kit/clock.ts';
import { statusOf } from '../../../kit/grpc-client.ts';
import type { Logger } from '../../../kit/log.ts';
import { Refusal } from '../../../kit/refusal.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import { asApiError } from '../../edge/errors.ts';
import type { Database } from '../../store/database.ts';
import { type Lease, underLease } from '../../store/lease.ts';
import type { Statement } from '../../store/statement.ts';
import { type BrokerId, type LookedUp, nameAt } from '../broker/broker.ts';
import type { ClockAgreement } from '../broker/clock.ts';
import { applyFound, applyLeaseEnd, applyMissing, applyUnanswered, type Change } from './change.ts';
import type { AnyKind, Kind } from './kind.ts';
import { isFarAhead, isSendingOver, mostBehindMs, nextLookUpAt, waitAfter } from './look-up-times.ts';
import { PartnerRests } from './partner-rests.ts';
import type { Recorder } from './record.ts';
import { farAheadMs, isUnsettled } from './rules.ts';
import type { StuckPartners } from './stuck-partners.ts';
import { isBehind, type LookUp, mustBeLookedAt, type Submission, saveLookUp, sentFrom } from './table.ts';

const maxAtOnce = 50;
const lookUpsAtOnce = 8;
const pollMs = 500;

export interface ReconcilerOptions<Row extends Submission, Report> {
  readonly broker: BrokerId;
  readonly kind: Kind<Row, Report>;
  readonly database: Database;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly holder: string;
  readonly clockSkewMs: number;
  /** Whether the broker refuses a submission after its `not_after`. */
  readonly honoursNotAfter: () => Promise<boolean>;
  /** Whether the broker's clock and ours agree. */
  readonly clocks: { agreement(): Promise<ClockAgreement> };
  readonly stuck: StuckPartners;
}

/** The time of a query, and what else was known then. */
type Asked = Pick<Absence, 'askedAt' | 'honoursNotAfter' | 'agreement'> & { readonly afterReport: bigint };

/** The result of reconciling one object. */
export interface Reconciled<Row> {
  readonly before: Row;
  readonly after: Row;
  /** Whether the broker's record was queried. */
  readonly asked: boolean;
  readonly isSettled: boolean;
  /** Whether this version knows the object. If not, the object is left to a version that knows it. */
  readonly isKnown: boolean;
}

/**
 * Settles unknown outcomes by querying the broker's record. It never sends. An object is refused only with proof. The broker's
 * record did not have it; then its `not_after` passed, by more than the allowed difference of the clocks; and the record was
 * queried again and still did not have it (`isProven`). While there is no such proof, the object stays as it is and is queried
 * again later, so it settles by itself.
 */
export class Reconciler<Row extends Submission, Report> {
  readonly worker: Worker;
  readonly #rests = new PartnerRests();

  constructor(private readonly options: ReconcilerOptions<Row, Report>) {
    const { broker, database, kind, holder } = options;
    const name = nameAt(broker, `reconcile-${kind.name}s`);
    this.worker = underLease(database, name, holder, (lease) => this.#run(lease));
  }

  /** Queries about several objects at once. An answer that comes late holds up only the object that it is about. */
  async #run(lease: Lease): Promise<void> {
    const { database, kind, clock } = this.options;
    const underWay = new Map<string, Promise<void>>();
    const failures: unknown[] = [];
    const begin = (row: Row) => {
      const ended = this.#rests.begin(row.partnerId);
      const settling = this.#settle(row)
        .catch((error: unknown) => this.#postpone(row, error))
        .then(
          () => ended(false),
          (error: unknown) => {
            ended(true);
            this.#noteFailure(row, error, failures);
          },
        )
        .finally(() => underWay.delete(row.id));
      underWay.set(row.id, settling);
    };
    const goesOn = () => !lease.signal.aborted && failures.length === 0;
    try {
      while (goesOn()) {
        // The query below may return old rows of objects that are being settled now. These are skipped.
        const before = new Set(underWay.keys());
        const [found = []] = await database.readAll([due(kind, clock.realNow(), this.#rests.all)]);
        const rows = found.map((row) => kind.table.all.read(row));
        for (const row of rows) {
          if (before.has(row.id)) continue;
          while (underWay.size >= lookUpsAtOnce) await Promise.race(underWay.values());
          if (!goesOn()) break;
          if (this.#rests.mayTry(row.partnerId)) begin(row);
        }
        if (rows.length < maxAtOnce) await pause(pollMs, lease.signal);
      }
    } finally {
      await Promise.all(underWay.values());
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Reconciles one object now, and returns it before and after. An object whose
   * sender still has time is left alone. Any replica may do it, because the decision is made under the partner's lock.
   */
  async reconcileNow(partnerId: string, id: string): Promise<Reconciled<Row>> {
    const { kind, clock, clockSkewMs, recorder } = this.options;
    const before = await recorder.change(kind, partnerId, id, () => undefined);
    if (!kind.table.isKnown(before)) return { before, after: before, asked: false, isSettled: false, isKnown: false };
    const isOver = (row: Row) => isSendingOver(row.notAfter, clockSkewMs, clock.realNow());
    const row = await this.#change(before, (current) =>
      isOver(current) ? applyLeaseEnd(kind, current, clock.now()) : undefined,
    );
    const isKnown = true;
    if (!this.#mustLookUp(row)) return { before, after: row, asked: false, isSettled: true, isKnown };
    if (row.state === 'sending') return { before, after: row, asked: false, isSettled: false, isKnown };
    await this.#lookUp(row);
    const after = await recorder.change(kind, partnerId, id, () => undefined);
    return { before, after, asked: true, isSettled: !this.#mustLookUp(after), isKnown };
  }

  /**
   * If the partner's row is locked, others go on. If the database is away, the next query for due objects fails and shows it.
   */
  #noteFailure({ partnerId, id }: Row, error: unknown, failures: unknown[]): void {
    if (!(error instanceof Refusal)) failures.push(error);
    else this.options.log.warn({ err: error, partnerId, objectId: id }, "a partner's object cannot be changed now");
  }

  /** A partner's damaged events must not hold up all others: the object is tried again later. */
  async #postpone(due: Row, error: unknown): Promise<void> {
    const { kind, clock, stuck } = this.options;
    stuck.note(due.partnerId, [due.id], error);
    const next = clock.realNow() + waitAfter(due.checks);
    await this.#change(due, (current) =>
      current.checkAt === due.checkAt ? applyUnanswered(kind, current, next, clock.now()) : undefined,
    );
  }

  async #settle(due: Row): Promise<void> {
    const row = await this.#change(due, (current) => this.#leaseRanOut(current));
    if (row.state !== 'sending' && this.#mustLookUp(row)) await this.#lookUp(row);
  }

  /**
   * The sender's time is over. If `check_at` is further in the future than any sender sets it, the clock of the sender was
   * ahead. The sender may still be sending, or its process may be dead. It gets more time than any sender needs, by our clock.
   */
  #leaseRanOut(row: Row): Change<Row, Report> | undefined {
    const { kind, clock } = this.options;
    const realNow = clock.realNow();
    if (row.state !== 'sending' || !isFarAhead(row.checkAt, realNow)) return applyLeaseEnd(kind, row, clock.now());
    return applyUnanswered(kind, row, realNow + farAheadMs, clock.now());
  }

  /** Its outcome is unknown, or reports about it were not applied. */
  #mustLookUp(row: Row): boolean {
    const { kind } = this.options;
    return (isUnsettled(row.state) && kind.table.isKnown(row)) || isBehind(row);
  }

  async #lookUp(row: Row): Promise<void> {
    const { kind, log, clock } = this.options;
    let answered: LookUp | undefined;
    try {
      const honoursNotAfter = await this.options.honoursNotAfter();
      const askedAt = clock.realNow();
      const answer = await kind.lookUp(row);
      // After the answer, because the answer states the broker's time.
      const agreement = await this.options.clocks.agreement();
      const lookUp: LookUp = { at: askedAt, outcome: answer.found ? 'found' : 'missing', errorClass: null };
      answered = lookUp;
      const asked = { askedAt, honoursNotAfter, agreement, afterReport: row.lastReport ?? 0n };
      await this.#change(row, (current) => noted(this.#apply(current, answer, asked), lookUp));
    } catch (error) {
      const next = clock.realNow() + waitAfter(row.checks);
      const about = { err: error, objectId: row.id, nextCheckAt: next };
      if (answered === undefined) log.warn(about, 'an unknown outcome could not be looked up');
      else log.warn(about, "the answer of the broker's record could not be stored");
      const unanswered = { at: clock.realNow(), outcome: 'unanswered', errorClass: errorClassOf(error) } as const;
      const lookUp = answered ?? unanswered;
      await this.#change(row, (current) =>
        this.#mustLookUp(current) ? noted(applyUnanswered(kind, current, next, clock.now()), lookUp) : undefined,
      );
    }
  }

  #apply(row: Row, looked: LookedUp<readonly Report[]>, asked: Asked): Change<Row, Report> | undefined {
    const { kind, clock, clockSkewMs } = this.options;
    if (!this.#mustLookUp(row)) return undefined; // A report came during the query.
    const again = () => applyUnanswered(kind, row, clock.realNow() + waitAfter(row.checks), clock.now());
    // The database lost reports in a failover, after the broker's record was queried. So the record is queried again.
    if ((row.lastReport ?? 0n) < asked.afterReport) return again();
    if (looked.found) return applyFound(kind, row, looked.answer, clock.now()) ?? again();
    if (!isUnsettled(row.state)) return again(); // The object was there before, so its absence now proves nothing.
    const { notAfter, missingSince } = row;
    const now = clock.realNow();
    const behindMs = mostBehindMs(missingSince, notAfter, now);
    const lastArrival = sentFrom(row) + behindMs + lateMs;
    const absence = { lookedUp: looked, ...asked, notAfter, clockSkewMs, lastArrival };
    const proof = missingSince !== null && isProven(absence);
    const nextCheckAt = nextLookUpAt(row, clockSkewMs, now);
    const { askedAt } = asked;
    return applyMissing(kind, row, { askedAt, provesAbsence: proof, nextCheckAt }, clock.now());
  }

  #change(row: Pick<Row, 'partnerId' | 'id'>, decide: (row: Row) => Change<Row, Report> | undefined): Promise<Row> {
    return this.options.recorder.change(this.options.kind, row.partnerId, row.id, decide);
  }
}

/**
 * Finds the rows to query, the longest due first. Rows of some partners are left out, and rows that this version does not know.
 */
function due({ table }: AnyKind, realNow: number, without: readonly string[]): Statement {
  const { sql, values } = mustBeLookedAt(realNow);
  const where = `${sql} AND ${table.isKnownSql} AND partner_id NOT IN (?) ORDER BY check_at LIMIT ${maxAtOnce}`;
  const from = `${table.name} FORCE INDEX (${table.name}_check_at)`;
  return { sql: `SELECT ${table.all.list} FROM ${from} WHERE ${where}`, values: [...values, ['', ...without]] };
}

/** The change together with its query of the record, for operators. */
function noted<Row extends Submission, Report>(
  change: Change<Row, Report> | undefined,
  lookUp: LookUp,
): Change<Row, Report> | undefined {
  return change?.write(saveLookUp(change.after, lookUp));
}

/** Why a query had no answer: a code of the catalogue or a status. Never another system's text. */
function errorClassOf(error: unknown): string {
  return asApiError(error)?.code ?? statusOf(error) ?? 'failed';
}

/** How long after its `not_after` an object could still arrive at a broker that takes late ones. */
export const lateMs = 3_600_000;

/** The facts about an object that the broker's record does not have. */
export interface Absence {
  readonly lookedUp: LookedUp<unknown> & { readonly found: false };
  /** Real time by our clock. */
  readonly askedAt: number;
  /** Real time by our clock after which the broker must not take it. */
  readonly notAfter: number;
  /** The largest expected difference of the clocks. */
  readonly clockSkewMs: number;
  /** Whether the clocks agree, as far as is known after the answer. */
  readonly agreement: ClockAgreement;
  /** Whether the broker refuses a submission after its `not_after`. */
  readonly honoursNotAfter: boolean;
  /**
   * The latest time at which the object can have arrived, in business time. If the broker's record is complete until later than
   * this and does not have the object, the broker does not have it.
   */
  readonly lastArrival: number;
}

/**
 * Whether it is proven that the broker will never have the object. By our clock its time must be over. In addition, either
 * the broker refuses late objects and its time is over by the broker's clock too, or the broker's record is complete. A clock
 * that is wrong, or about which nothing is known, proves nothing.
 */
export function isProven({
  lookedUp: { brokerTime, completeUntil },
  askedAt,
  notAfter,
  clockSkewMs,
  agreement,
  honoursNotAfter,
  lastArrival,
}: Absence): boolean {
  if (agreement === 'apart' || askedAt <= notAfter + clockSkewMs) return false;
  const isTooLate = honoursNotAfter && agreement === 'in_step' && brokerTime !== undefined && brokerTime > notAfter;
  return isTooLate || (completeUntil !== undefined && completeUntil > lastArrival);
}
