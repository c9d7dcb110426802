import type { Clock } from '../../../kit/clock.ts';
import type { KeyedDigest } from '../../../kit/key-ring.ts';
import type { Logger } from '../../../kit/log.ts';
import type { Permission } from '../../edge/auth/caller.ts';
import { whilePermitted } from '../../edge/auth/caller.ts';
import { ApiError, catalogue } from '../../edge/errors.ts';
import type { IdMaker } from '../../edge/ids.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Database } from '../../store/database.ts';
import { allFacts, existsFact, type Fact, sharedFact } from '../../store/facts.ts';
import type { PartnerTransaction } from '../../store/partner-transaction.ts';
import { type Statement, statement } from '../../store/statement.ts';
import type { Sent } from '../broker/broker.ts';
import { applySent, heldFields } from './change.ts';
import { checkLimit, count, usedOf } from './day-limit.ts';
import { type EnvironmentState, inForceFact, refusalBy } from './environment.ts';
import { type AnyKind, type CreatedKind, type Draft, type KindOf, newRow, pathOf, type SendTimes } from './kind.ts';
import type { Notes } from './notes.ts';
import type { Recorder } from './record.ts';
import type { StartGate } from './start-gate.ts';
import { isHeld, readUpToDate, type Submission } from './table.ts';

/** That nothing makes a new object wait. */
const neverWaits: Fact<boolean> = { reads: [], value: () => false, expected: { value: false, guards: [] } };

/** A request to submit something, with its key and its digest. */
export interface SubmitRequest<Request> {
  readonly origin: Origin;
  /** The id of the caller's key. */
  readonly keyId: string;
  readonly idempotencyKey: string;
  /** A keyed digest of the request after defaults and upper-casing. */
  readonly digest: KeyedDigest;
  readonly request: Request;
  /** The caller's permission, which must still hold when the object is stored. */
  readonly permission: Permission;
  /** Creates the request's logger on demand. */
  readonly log: () => Logger;
}

/** The object a request led to, now or earlier. */
export interface Submitted<Row> {
  readonly row: Row;
  readonly replayed: boolean;
}

export interface SubmitterParts extends SendTimes {
  readonly database: Database;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly notes: Notes;
  /** The pause and the stops that this process knows. The transaction reads it from the database. */
  readonly environment: Pick<EnvironmentState, 'paused' | 'stops' | 'stopsVersion' | 'obstacleTo'>;
  readonly gate: StartGate;
}

/**
 * Stores, sends once, records. Everything that partners submit is sent here and nowhere else. A repeated key is never sent,
 * and nothing is sent before it is provably stored. Cancels are stored, sent once and recorded in `gateway/trading/orders/cancel`.
 */
export class Submitter {
  constructor(private readonly parts: SubmitterParts) {}

  async submit<Row extends Submission, Report, Request>(
    kind: CreatedKind<Row, Report, Request>,
    wanted: SubmitRequest<Request>,
  ): Promise<Submitted<Row>> {
    const prepared = await this.#prepare(kind, wanted);
    if ('prior' in prepared) return replay(kind, prepared.prior, wanted.digest);
    const stored = await this.#store(kind, wanted, prepared.draft);
    if (stored === undefined) return replay(kind, await this.#readPrior(kind, wanted), wanted.digest);
    if (isHeld(stored)) return { row: stored, replayed: false };
    const recorded = await this.#send(kind, stored, wanted.request, wanted.log);
    throwFirstError(kind, recorded);
    return { row: recorded, replayed: false };
  }

  /** Sends an object that waited, once its release is recorded. Answers with the object after that. */
  sendReleased<Row extends Submission, Report, Request>(
    kind: CreatedKind<Row, Report, Request>,
    released: Row,
    request: Request,
    log: Logger,
  ): Promise<Row> {
    return this.#send(kind, released, request, () => log);
  }

  /** Sends an object that is provably stored, and records the outcome. */
  async #send<Row extends Submission, Report, Request>(
    kind: CreatedKind<Row, Report, Request>,
    stored: Row,
    request: Request,
    log: () => Logger,
  ): Promise<Row> {
    const { environment, notes } = this.parts;
    // Trading may have been paused or stopped since it was stored.
    const sent =
      environment.obstacleTo(kind.affects(stored)) ?? (await kind.send(stored, request, notes.write(kind, stored)));
    return this.#record(kind, stored, sent, log);
  }

  /**
   * The draft of a new row, or the object that the key led to before. Usually the draft is made of cached data, and it is
   * enough to check the key later, in the transaction that locks the partner's row. If the request may be refused or have to
   * wait, its key is looked up first, because a repeated one must get its first answer at once.
   */
  async #prepare<Row extends Submission, Report, Request>(
    kind: CreatedKind<Row, Report, Request>,
    wanted: SubmitRequest<Request>,
  ): Promise<{ readonly prior: Row } | { readonly draft: Draft<Row> }> {
    const { database, environment, gate } = this.parts;
    const { partnerId } = wanted.origin;
    const prepared = kind.prepare(wanted.origin, wanted.request);
    const { draft: cached } = prepared;
    if (cached !== undefined && !environment.paused && gate.admits(kind.name, partnerId)) return { draft: cached };
    const [priors = [], ...rows] = await database.readAll([findByKey(kind, wanted), ...prepared.reads]);
    if (priors[0] !== undefined) return { prior: kind.table.all.read(priors[0]) };
    if (environment.paused) throw new ApiError('trading_paused');
    const draft = await prepared.prepare(rows);
    await gate.pass({ kind: kind.name, partnerId });
    return { draft };
  }

  /** Stores the row. Undefined if the key is used: only the transaction can be certain of that. */
  #store<Row extends Submission, Report, Request>(
    kind: CreatedKind<Row, Report, Request>,
    { origin, keyId, idempotencyKey, digest, permission }: SubmitRequest<Request>,
    draft: Draft<Row>,
  ): Promise<Row | undefined> {
    const { database, environment, clock, ids, notes, submitTimeoutMs, clockSkewMs } = this.parts;
    const { partnerId, requestId, traceParent } = origin;
    const submission = { partnerId, requestId, traceParent, keyId, idempotencyKey, requestDigest: digest.current };
    const times = { now: clock.now(), notAfter: 0, checkAt: 0 };
    const made = newRow(kind, ids.object(kind.prefix), submission, draft as Partial<Row>, times);
    const { dayLimit } = kind;
    const sums = dayLimit === undefined ? [] : [usedOf(dayLimit, made)];
    const preconditions = kind.preconditions(made);
    return whilePermitted(permission, (check) =>
      database.inPartnerTransaction(partnerId, {
        touches: [`${kind.name} key ${idempotencyKey}`],
        fact: allFacts({
          isUsed: isKeyUsed(kind, partnerId, idempotencyKey),
          inForce: inForceFact(environment),
          mustWait: kind.mustWait?.(made) ?? neverWaits,
          met: allFacts(Object.fromEntries(preconditions.map(({ fact }, at) => [at, fact]))),
          shared: sharedFact(...sums, ...(kind.shared?.(partnerId) ?? [])),
        }),
        decide: ({ isUsed, inForce, mustWait, met }, partner) => {
          check();
          if (isUsed) return { writes: [], result: undefined };
          const refusal = refusalBy(inForce, kind.affects(made), clock.now());
          if (refusal !== undefined) throw refusal;
          const unmet = preconditions.find(({ mustBe }, at) => met[at] !== mustBe);
          if (unmet !== undefined) throw unmet.otherwise();
          if (dayLimit !== undefined) checkLimit(dayLimit, made, partner);
          // The wait for the lock does not shorten the time to send.
          const notAfter = clock.realNow() + submitTimeoutMs;
          const times = { notAfter, checkAt: notAfter + clockSkewMs };
          const row = { ...made, ...(mustWait ? heldFields(made.createdAt, clock.realNow()) : times) };
          notes.checkLength(kind, row);
          const detail = mustWait ? 'stored; it waits for its release' : 'stored, before it is sent';
          return { writes: storing(kind, row, partner, detail), result: row };
        },
      }),
    );
  }

  /**
   * Records the outcome in the row as it is now. If that fails, the partner gets `outcome_not_recorded`, and the reconciler
   * settles the object.
   */
  async #record<Row extends Submission, Report, Request>(
    kind: CreatedKind<Row, Report, Request>,
    stored: Row,
    sent: Sent<Report>,
    log: () => Logger,
  ): Promise<Row> {
    const { recorder, clock } = this.parts;
    try {
      return await recorder.changeCached(kind, stored, (current) =>
        applySent(kind, current, sent, clock.now(), clock.realNow()),
      );
    } catch (error) {
      log().error({ err: error, objectId: stored.id }, 'the outcome of a send could not be recorded');
      throw new ApiError('outcome_not_recorded', { location: pathOf(kind, stored.id), cause: error });
    }
  }

  /** The object of a used key. */
  async #readPrior<Row extends Submission>(kind: KindOf<Row>, wanted: ByKey): Promise<Row> {
    const [prior] = await readUpToDate(this.parts.database, findByKey(kind, wanted));
    if (prior === undefined) throw new Error(`the ${kind.name} of a key is gone`);
    return kind.table.all.read(prior);
  }
}

/**
 * Adds a new object to the partner's sum of the day and reserves its money in the wallet, and stores its row with the first
 * step of its history.
 */
export function storing<Row extends Submission>(
  kind: KindOf<Row>,
  row: Row,
  partner: PartnerTransaction,
  detail: string,
): Statement[] {
  kind.take?.(row, partner);
  count(kind.dayLimit, undefined, row, partner);
  const { createdAt: at, state } = row;
  const stored = 'evidence' in row ? { ...row, evidence: detail } : row;
  return [kind.table.insert(stored), ...kind.history.append(row, [{ kind: 'stored', at, state, detail }])];
}

/** The fields of a request by which its key is looked up. */
type ByKey = Pick<SubmitRequest<unknown>, 'origin' | 'idempotencyKey'>;

function findByKey({ table }: AnyKind, { origin: { partnerId }, idempotencyKey }: ByKey): Statement {
  return table.find({ partnerId, idempotencyKey });
}

/** Whether a key is used. It selects no columns, because it nearly never finds a row. */
function isKeyUsed({ table }: AnyKind, partnerId: string, idempotencyKey: string) {
  const { sql, values } = table.where({ partnerId, idempotencyKey } as never);
  return existsFact(statement(`SELECT 1 FROM ${table.name} WHERE ${sql}`, ...values), false);
}

/** The fields of a kind that are needed to repeat a first answer. */
type FirstAnswers<Row extends Submission> = Pick<CreatedKind<Row, never, never>, 'name' | 'shownRejectReason'>;

/** Repeats the first answer. It does not depend on trading, limits or the upstream, and never sends. */
function replay<Row extends Submission>(kind: FirstAnswers<Row>, row: Row, digest: KeyedDigest): Submitted<Row> {
  if (!digest.matches(row.requestDigest)) throw new ApiError(`duplicate_${kind.name}`, { param: 'Idempotency-Key' });
  throwFirstError(kind, row);
  return { row, replayed: true };
}

function throwFirstError<Row extends Submission>(kind: FirstAnswers<Row>, row: Row): void {
  const { state, firstAnswer, reason, param } = row;
  const location = pathOf(kind, row.id);
  if (firstAnswer === 'not_sent') throw new ApiError(`${kind.name}_not_sent`, { location });
  if (firstAnswer !== 'rejected') return;
  const rejected = `${kind.name}_rejected` as const;
  const { message: usual } = catalogue[rejected];
  // If the broker contradicts itself later, the row has another state. Then the reason in the row is not the reason of the
  // rejection.
  const says = state === 'rejected' && reason !== null && reason !== usual;
  const message = says ? `${usual} ${reason}` : usual;
  const rejectReason = kind.shownRejectReason?.(row) ?? row.rejectReason ?? undefined;
  throw new ApiError(rejected, { message, location, rejectReason, param: param ?? undefined });
}
