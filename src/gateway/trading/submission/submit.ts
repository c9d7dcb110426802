import type { Clock } from '../../../kit/clock.ts';
import { crash } from '../../../kit/crash.ts';
import type { KeyedDigest } from '../../../kit/key-ring.ts';
import type { Logger } from '../../../kit/log.ts';
import type { Permission } from '../../edge/auth/call.ts';
import { whilePermitted } from '../../edge/auth/call.ts';
import { ApiError, catalogue } from '../../edge/errors.ts';
import type { IdMaker } from '../../edge/ids.ts';
import type { Origin } from '../../edge/origin.ts';
import type { Database } from '../../store/database.ts';
import { together, whether } from '../../store/facts.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { applySent, type Change } from './change.ts';
import { type EnvironmentState, pausedBeforeSend, tradingPause } from './environment.ts';
import { type AnyKind, type CreatedKind, type KindOf, newRow, type SendTimes } from './kind.ts';
import type { Notes } from './notes.ts';
import type { Recorder } from './record.ts';
import type { StartGate } from './start-gate.ts';
import type { Submission } from './table.ts';

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
  /** Whether trading is paused, as far as this process knows. The transaction reads it from the database. */
  readonly environment: Pick<EnvironmentState, 'paused'>;
  readonly gate: StartGate;
}

/**
 * Stores, sends once, records. Everything that partners submit is sent here and nowhere else. A repeated key is never sent,
 * and nothing is sent before it is provably stored. Cancels take the same three steps in `gateway/trading/orders/cancel`.
 */
export class Submitter {
  constructor(private readonly parts: SubmitterParts) {}

  async submit<Row extends Submission, Report, Request, Facts>(
    kind: CreatedKind<Row, Report, Request, Facts>,
    submission: SubmitRequest<Request>,
  ): Promise<Submitted<Row>> {
    const { origin, idempotencyKey, digest, request, log } = submission;
    const { database, clock, environment, gate, notes } = this.parts;
    const { partnerId } = origin;
    const byKey = { partnerId, idempotencyKey } as never;
    let draft =
      environment.paused || !gate.admits(kind.name, partnerId) ? undefined : kind.prepareCached(partnerId, request);
    if (draft === undefined) {
      // The request may be refused or have to wait, but a repeated one must get its first answer at once: so its key is
      // looked up first. If everything is cached, the check under the lock is enough.
      const [priors = [], ...rows] = await database.readAll([
        kind.table.find(byKey),
        ...(kind.preparationReads?.(partnerId, request) ?? []),
      ]);
      if (priors[0] !== undefined) return replay(kind, kind.table.all.read(priors[0]), digest);
      if (environment.paused) throw new ApiError('trading_paused');
      draft = kind.prepare ? await kind.prepare(origin, request, rows) : kind.prepareCached(partnerId, request);
    }

    await gate.pass({ kind: kind.name, partnerId });
    crash(`${kind.name}.before-store`);
    const stored = await this.#store(kind, submission, draft as Partial<Row>);
    if (stored === undefined) {
      // In a transaction, because a read can come from a replica that does not have it yet.
      const prior = await database.transaction([kind.table.find(byKey)], ([rows]) => ({
        writes: [],
        result: rows?.[0],
      }));
      if (prior === undefined) throw new Error(`the ${kind.name} of a key is gone`);
      return replay(kind, kind.table.all.read(prior), digest);
    }
    crash(`${kind.name}.stored`);
    const sent = environment.paused ? pausedBeforeSend : await kind.send(stored, request, notes.write(kind, stored));
    crash(`${kind.name}.sent`);
    const row = await this.#record(kind, stored, log, (current) =>
      applySent(kind, current, sent, clock.now(), clock.realNow()),
    );
    crash(`${kind.name}.recorded`);
    throwFirstError(kind, row);
    return { row, replayed: false };
  }

  /** Stores the row. Undefined if the key is used: only the transaction can be certain of that. */
  #store<Row extends Submission, Report, Request, Facts>(
    kind: CreatedKind<Row, Report, Request, Facts>,
    { origin, keyId, idempotencyKey, digest, permission }: SubmitRequest<Request>,
    draft: Partial<Row>,
  ): Promise<Row | undefined> {
    const { database, clock, ids, notes, submitTimeoutMs, clockSkewMs } = this.parts;
    const { partnerId, requestId, traceParent } = origin;
    const now = clock.now();
    const requestDigest = digest.current;
    const submission = { partnerId, requestId, traceParent, keyId, idempotencyKey, requestDigest };
    const fields = Object.assign({}, draft, kind.dated?.(now));
    const made = newRow(kind, ids.object(kind.prefix), submission, fields, { now, notAfter: 0, checkAt: 0 });
    return whilePermitted(permission, (check) =>
      database.inPartner(partnerId, {
        touches: [`${kind.name} key ${idempotencyKey}`],
        fact: together({
          isUsed: isKeyUsed(kind, partnerId, idempotencyKey),
          isPaused: tradingPause,
          facts: kind.facts(made),
        }),
        decide: ({ isUsed, isPaused, facts }, partner) => {
          check();
          if (isUsed) return { writes: [], result: undefined };
          if (isPaused) throw new ApiError('trading_paused');
          kind.check(made, facts, partner);
          // The wait for the lock does not shorten the time to send.
          const notAfter = clock.realNow() + submitTimeoutMs;
          const row = { ...made, notAfter, checkAt: notAfter + clockSkewMs };
          notes.checkLength(kind, row);
          kind.take?.(row, partner);
          return { writes: storing(kind, row, 'stored, before it is sent'), result: row };
        },
      }),
    );
  }

  /** Records the outcome. If that fails, the partner gets `outcome_not_recorded`, and the reconciler settles the object. */
  async #record<Row extends Submission>(
    kind: KindOf<Row>,
    stored: Row,
    log: () => Logger,
    decide: (row: Row) => Change<Row>,
  ): Promise<Row> {
    try {
      return await this.parts.recorder.changeCached(kind, stored, decide);
    } catch (error) {
      log().error({ err: error, objectId: stored.id }, 'the outcome of a send could not be recorded');
      throw new ApiError('outcome_not_recorded', { location: `${kind.path}/${stored.id}`, cause: error });
    }
  }
}

/** Stores a new row with the first step of its history. */
export function storing<Row extends Submission>(kind: KindOf<Row>, row: Row, detail: string): Statement[] {
  const { createdAt: at, state } = row;
  const stored = 'evidence' in row ? { ...row, evidence: detail } : row;
  return [kind.table.insert(stored), ...kind.history.append(row, [{ kind: 'stored', at, state, detail }])];
}

/** Whether a key is used. It selects no columns, because it nearly never finds a row. */
function isKeyUsed({ table }: AnyKind, partnerId: string, idempotencyKey: string) {
  const { sql, values } = table.where({ partnerId, idempotencyKey } as never);
  return whether(statement(`SELECT 1 FROM ${table.name} WHERE ${sql}`, ...values), false);
}

interface FirstAnswers<Row> extends Pick<CreatedKind<never, never, never, never>, 'codes' | 'path'> {
  /** The reject reason of a row as partners see it, if that is not the stored one. */
  readonly shownRejectReason?: (row: Row) => string | null;
}

/** Repeats the first answer. It does not depend on trading, limits or the upstream, and never sends. */
function replay<Row extends Submission>(kind: FirstAnswers<Row>, row: Row, digest: KeyedDigest): Submitted<Row> {
  if (!digest.matches(row.requestDigest)) throw new ApiError(kind.codes.duplicate, { param: 'Idempotency-Key' });
  throwFirstError(kind, row);
  return { row, replayed: true };
}

function throwFirstError<Row extends Submission>(kind: FirstAnswers<Row>, row: Row): void {
  const { codes, path } = kind;
  const { id, state, firstAnswer, reason, param } = row;
  const location = `${path}/${id}`;
  if (firstAnswer === 'not_sent') throw new ApiError(codes.notSent, { location });
  if (firstAnswer !== 'rejected') return;
  const { message: usual } = catalogue[codes.rejected];
  // A broker that contradicts itself later can give the row another state, whose reason is not that of the rejection.
  const says = state === 'rejected' && reason !== null && reason !== usual;
  const message = says ? `${usual} ${reason}` : usual;
  const rejectReason = kind.shownRejectReason?.(row) ?? row.rejectReason ?? undefined;
  const details = { message, location, rejectReason, param: param ?? undefined };
  throw new ApiError(codes.rejected, details);
}
