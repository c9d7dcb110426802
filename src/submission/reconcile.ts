import type { ClockAgreement } from '../broker/clock.ts';
import { statusOf } from '../broker/connection.ts';
import type { LookedUp } from '../broker/port.ts';
import type { Database } from '../db/database.ts';
import { type Lease, underLease } from '../db/lease.ts';
import type { SqlRow, Statement } from '../db/statement.ts';
import type { Clock } from '../lib/clock.ts';
import { crash } from '../lib/crash.ts';
import { ApiError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { type Absence, isProven, lateMs } from './absence.ts';
import type { Change, ObjectKind, Submittable } from './kind.ts';
import type { Recorder } from './record.ts';
import { farAheadMs } from './row-store.ts';
import { type LookUp, saveLookUp } from './step-store.ts';

/** A row whose outcome may be unclear. Instants are real time. */
export interface Unsettled extends Submittable {
  readonly notAfter: number;
  /** Business time. */
  readonly createdAt: number;
  readonly checks: number;
  readonly missingSince: number | null;
}

/** How one kind of submission is settled when its outcome is unclear. `Answer` is what a look-up finds. */
export interface ReconciledKind<Row extends Unsettled, Answer> extends ObjectKind<Row> {
  /** Rows that must be looked at, longest due first. Those this version does not know are not among them. */
  due(realNow: number, most: number): Statement;
  toRow(row: SqlRow): Row;
  isUnsettled(row: Row): boolean;
  /** Whether reports about it were passed over and must be looked up; absent for a kind without reports. */
  isBehind?(row: Row): boolean;
  /** The sender's time is over. Undefined when it is already known that the outcome is unclear. */
  leaseRanOut(row: Row): Change<Row> | undefined;
  /** Asks the broker's record. Throws when there is no answer that makes sense. */
  lookUp(row: Row): Promise<LookedUp<Answer>>;
  /** Applies what the record has. Undefined where that says nothing new: it is on its way. */
  found(row: Row, answer: Answer): Change<Row> | undefined;
  /** The record does not have it. When that is proof that it never will, the row is refused. */
  missing(row: Row, askedAt: number, provesAbsence: boolean, nextCheckAt: number): Change<Row>;
  unanswered(row: Row, nextCheckAt: number): Change<Row>;
}

export interface ReconcilerOptions<Row extends Unsettled, Answer> {
  readonly kind: ReconciledKind<Row, Answer>;
  readonly database: Database;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly holder: string;
  readonly clockSkewMs: number;
  /** Whether the broker refuses what comes after its `not_after`. */
  readonly honoursNotAfter: () => Promise<boolean>;
  /** Whether the broker's clock and ours agree. */
  readonly clocks: { agreement(): Promise<ClockAgreement> };
}

/** When the record was asked, and what else was known. */
type Asked = Pick<Absence, 'askedAt' | 'honoursNotAfter' | 'agreement'>;

/** What a look at one object came to. */
export interface Reconciled<Row> {
  readonly before: Row;
  readonly after: Row;
  /** Whether the broker's record was asked. */
  readonly asked: boolean;
  readonly isSettled: boolean;
  /** Whether this version knows the object. One it does not know is left to a version that does. */
  readonly isKnown: boolean;
}

const mostAtOnce = 50;
const lookUpsAtOnce = 8;
const pollMs = 500;
const firstWaitMs = 500;
const longestWaitMs = 30_000;

/**
 * Finds out what became of everything whose outcome is unclear, by asking the broker's record. It never sends. A row is
 * called refused only behind proof: the record did not have it, its `not_after` passed by more than clocks may differ, and
 * the record, asked again after that, still did not have it (`absence`). While the broker's clock is known to be wrong, or
 * not known to be right, the row stays as it is and is asked about again, so it settles by itself later.
 */
export class Reconciler<Row extends Unsettled, Answer> {
  readonly worker: Worker;

  constructor(private readonly options: ReconcilerOptions<Row, Answer>) {
    const { database, kind, holder } = options;
    this.worker = underLease(database, `reconcile-${kind.name}s`, holder, (lease) => this.#run(lease));
  }

  async #run(lease: Lease): Promise<void> {
    const { database, kind, clock } = this.options;
    while (!lease.signal.aborted) {
      const rows = (await database.read(kind.due(clock.realNow(), mostAtOnce))).map((row) => kind.toRow(row));
      const queue = rows.values();
      const settlers = Array.from({ length: Math.min(lookUpsAtOnce, rows.length) }, async () => {
        for (const row of queue) {
          if (lease.signal.aborted) return;
          await this.#settle(row);
        }
      });
      await Promise.all(settlers);
      if (rows.length < mostAtOnce) await pause(pollMs, lease.signal);
    }
  }

  /**
   * Asks about one object now, by the way everything unclear goes, and answers with the object before and after. One whose
   * sender still has time is left alone. Any replica may do it: what is decided is decided under the partner's lock.
   */
  async reconcileNow(partnerId: string, id: string): Promise<Reconciled<Row>> {
    const { kind, clock, clockSkewMs, recorder } = this.options;
    const before = await recorder.change(kind, partnerId, id, () => undefined);
    if (!kind.isKnown(before)) return { before, after: before, asked: false, isSettled: false, isKnown: false };
    const isOver = (row: Row) => row.notAfter + clockSkewMs <= clock.realNow();
    const row = await this.#change(before, (current) => (isOver(current) ? kind.leaseRanOut(current) : undefined));
    const isKnown = true;
    if (!this.#mustLookUp(row)) return { before, after: row, asked: false, isSettled: true, isKnown };
    if (row.state === 'sending') return { before, after: row, asked: false, isSettled: false, isKnown };
    await this.#lookUp(row);
    const after = await recorder.change(kind, partnerId, id, () => undefined);
    return { before, after, asked: true, isSettled: !this.#mustLookUp(after), isKnown };
  }

  async #settle(due: Row): Promise<void> {
    const row = await this.#change(due, (current) => this.#leaseRanOut(current));
    if (row.state !== 'sending' && this.#mustLookUp(row)) await this.#lookUp(row);
  }

  /**
   * The sender's time is over. If it lasts longer than any sender's, the sender's clock was ahead: it may be sending still,
   * and it may be dead. It gets more time than any sender needs, by our clock.
   */
  #leaseRanOut(row: Row): Change<Row> | undefined {
    const { kind, clock } = this.options;
    const latest = clock.realNow() + farAheadMs;
    const isFarAhead = row.state === 'sending' && (row.checkAt ?? 0) > latest;
    return isFarAhead ? kind.unanswered(row, latest) : kind.leaseRanOut(row);
  }

  /** Its outcome is unclear, or reports about it were passed over. */
  #mustLookUp(row: Row): boolean {
    const { kind } = this.options;
    return kind.isUnsettled(row) || kind.isBehind?.(row) === true;
  }

  async #lookUp(row: Row): Promise<void> {
    const { kind, log, clock } = this.options;
    try {
      const honoursNotAfter = await this.options.honoursNotAfter();
      const askedAt = clock.realNow();
      const answer = await kind.lookUp(row);
      // Asked after the answer, which states the broker's time.
      const agreement = await this.options.clocks.agreement();
      crash(`${kind.name}-reconcile.looked-up`);
      const lookUp = { at: askedAt, outcome: answer.found ? 'found' : 'missing', errorClass: undefined } as const;
      const asked = { askedAt, honoursNotAfter, agreement };
      await this.#change(row, (current) => noted(this.#apply(current, answer, asked), lookUp));
      crash(`${kind.name}-reconcile.recorded`);
    } catch (error) {
      const next = clock.realNow() + waitAfter(row.checks);
      log.warn({ err: error, objectId: row.id, nextCheckAt: next }, 'an unclear outcome could not be looked up');
      const lookUp = { at: clock.realNow(), outcome: 'unanswered', errorClass: errorClassOf(error) } as const;
      await this.#change(row, (current) =>
        this.#mustLookUp(current) ? noted(kind.unanswered(current, next), lookUp) : undefined,
      );
    }
  }

  #apply(row: Row, looked: LookedUp<Answer>, asked: Asked): Change<Row> | undefined {
    const { kind, clock, clockSkewMs } = this.options;
    if (!this.#mustLookUp(row)) return undefined; // A report came while the record was asked.
    const again = () => kind.unanswered(row, clock.realNow() + waitAfter(row.checks));
    if (looked.found) return kind.found(row, looked.answer) ?? again();
    if (!kind.isUnsettled(row)) return again(); // What is not in the record now says nothing of an object that was there.
    const provableFrom = row.notAfter + clockSkewMs;
    const { notAfter, createdAt, missingSince } = row;
    const now = clock.realNow();
    // The clock of the replica that made it may have been behind, by no more than this.
    const behindMs = Math.max(0, (missingSince ?? now) - notAfter);
    const lastArrival = createdAt + behindMs + lateMs;
    const absence = { lookedUp: looked, ...asked, notAfter, clockSkewMs, lastArrival };
    const proof = missingSince !== null && isProven(absence);
    const next = Math.max(now + waitAfter(row.checks), missingSince === null ? 0 : provableFrom + 1);
    // By a clock that was ahead its time ends much later, and it may come to be found before.
    return kind.missing(row, asked.askedAt, proof, Math.min(next, now + longestWaitMs));
  }

  #change(row: Pick<Row, 'partnerId' | 'id'>, decide: (row: Row) => Change<Row> | undefined): Promise<Row> {
    return this.options.recorder.change(this.options.kind, row.partnerId, row.id, decide);
  }
}

/** A change with what the record said when it was asked, for those who want to know how it is known. */
function noted<Row extends Unsettled>(
  change: Change<Row> | undefined,
  lookUp: Pick<LookUp, 'at' | 'outcome' | 'errorClass'>,
): Change<Row> | undefined {
  if (change === undefined) return undefined;
  const { before, after, told, writes, contradictions, reportedAfterMs } = change;
  const saved = saveLookUp({ partnerId: after.partnerId, id: after.id, ...lookUp });
  return { before, after, told, contradictions, reportedAfterMs, writes: [...writes, saved] };
}

/** What kept a look-up from being answered, in a word: a code of the catalogue, or a status. Never anybody's text. */
function errorClassOf(error: unknown): string {
  return error instanceof ApiError ? error.code : (statusOf(error) ?? 'failed');
}

function waitAfter(checks: number): number {
  return Math.min(firstWaitMs * 2 ** Math.min(checks, 10), longestWaitMs);
}
