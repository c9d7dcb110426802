import type { Permission } from '../auth/call.ts';
import { whilePermitted } from '../auth/permission.ts';
import type { Database } from '../db/database.ts';
import { type Statement, statement } from '../db/statement.ts';
import { crash } from '../lib/crash.ts';
import { ApiError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Origin } from '../lib/origin.ts';
import type { StartGate } from './gate.ts';
import type { Kind, Submittable } from './kind.ts';
import type { Recorder } from './record.ts';
import { isTradingPaused, pausedBeforeSend, readTradingPause, refuseWhilePaused } from './trading-pause.ts';

/** A request to submit something, with what makes two requests the same. */
export interface SubmitRequest<Request> {
  readonly origin: Origin;
  readonly idempotencyKey: string;
  /** A keyed digest of the request after defaults and upper-casing. */
  readonly digest: Buffer;
  readonly request: Request;
  /** The caller's, who must still have it when the object is stored. */
  readonly permission: Permission;
  /** Makes the request's own log, which is rarely needed. */
  readonly log: () => Logger;
}

/** The object a request led to, now or earlier. */
export interface Submitted<Row> {
  readonly row: Row;
  readonly replayed: boolean;
}

/**
 * Stores, sends once, records. Whatever a partner submits goes out here and nowhere else: a request with a key seen
 * before never does, and what is not provably stored is not sent. Cancels go the same three steps in `orders/cancel`.
 */
export class Submitter {
  constructor(
    private readonly database: Database,
    private readonly recorder: Recorder,
    /** Whether trading is paused, as far as this process knows. Under the lock the database is asked. */
    private readonly isPaused: () => boolean,
    private readonly gate: StartGate,
  ) {}

  async submit<Row extends Submittable, Request, Draft, Answer>(
    kind: Kind<Row, Request, Draft, Answer>,
    { origin, idempotencyKey, digest, request, permission, log }: SubmitRequest<Request>,
  ): Promise<Submitted<Row>> {
    const { partnerId } = origin;
    const byKey = kind.findByKey(partnerId, idempotencyKey);
    let draft = this.isPaused() || !this.gate.admits(kind.name) ? undefined : kind.prepareKnown(partnerId, request);
    if (draft === undefined) {
      // Something may be refused or have to be waited for, and a request seen before must be neither: its key is looked
      // for first. Where all is known, the look under the lock is enough.
      const [priors = [], ...known] = await this.database.readAll([
        byKey,
        ...kind.preparationReads(partnerId, request),
      ]);
      const prior = priors[0];
      if (prior !== undefined) return replay(kind, kind.toRow(prior), digest);
      if (this.isPaused()) throw new ApiError('trading_paused');
      draft = await kind.prepare(origin, request, known);
    }
    const ready = draft;
    const submission = { partnerId, origin, idempotencyKey, requestDigest: digest };
    const storeAssumed = kind.storeAssumed?.bind(kind);

    await this.gate.pass(kind.name);
    crash(`${kind.name}.before-store`);
    const stored = await whilePermitted(permission, (check) =>
      this.database.inPartner<Row | undefined>(partnerId, {
        touches: [`${kind.name} key ${idempotencyKey}`],
        reads: [isUsed(kind, partnerId, idempotencyKey), readTradingPause, ...kind.storeReads(partnerId, ready)],
        decide: (partner, [raced = [], pause, ...rows]) => {
          check();
          // The same key may have been stored since it was looked for; only under the lock is the answer certain.
          if (raced[0] !== undefined) return { writes: [], result: undefined };
          if (isTradingPaused(pause)) throw new ApiError('trading_paused');
          const { row, writes } = kind.store(ready, submission, partner, rows);
          return { writes, result: row };
        },
        decideAssumed:
          storeAssumed &&
          ((partner) => {
            check();
            const { row, writes } = storeAssumed(ready, submission, partner);
            return { writes: [refuseWhilePaused, ...writes], result: row };
          }),
      }),
    );
    if (stored === undefined) return this.#replayStored(kind, byKey, digest);

    crash(`${kind.name}.stored`);
    const sent = this.isPaused() ? pausedBeforeSend : await kind.send(stored, request);
    crash(`${kind.name}.sent`);
    const row = await this.#recordSent(kind, stored, log, (current) => kind.applySent(current, sent));
    crash(`${kind.name}.recorded`);
    return answer(kind, row);
  }

  /** The first answer to a key that was stored before it could be stored again. */
  async #replayStored<Row extends Submittable, Request, Draft, Answer>(
    kind: Kind<Row, Request, Draft, Answer>,
    byKey: Statement,
    digest: Buffer,
  ): Promise<Submitted<Row>> {
    const [prior] = await this.database.read(byKey);
    if (prior === undefined) throw new Error(`the ${kind.name} of a key is gone`);
    return replay(kind, kind.toRow(prior), digest);
  }

  /** What came back is recorded, or said not to be: the reconciler then finds out by itself. */
  async #recordSent<Row extends Submittable, Request, Draft, Answer>(
    kind: Kind<Row, Request, Draft, Answer>,
    stored: Row,
    log: () => Logger,
    decide: (row: Row) => ReturnType<typeof kind.applySent>,
  ): Promise<Row> {
    try {
      return await this.recorder.changeStored(kind, stored, decide);
    } catch (error) {
      log().error({ err: error, objectId: stored.id }, 'the outcome of a send could not be recorded');
      throw new ApiError('outcome_not_recorded', { location: kind.path(stored.id), cause: error });
    }
  }
}

/** Finds a row when a key is used. Under the lock it nearly never is, and the columns of a whole row cost without one too. */
function isUsed({ table }: { readonly table: string }, partnerId: string, idempotencyKey: string): Statement {
  const key = Buffer.from(idempotencyKey);
  return statement(`SELECT 1 FROM ${table} WHERE partner_id = ? AND idempotency_key = ?`, partnerId, key);
}

/** The first answer to a submission: its object, or the error that says what became of it. */
function answer<Row extends Submittable, Request, Draft, Answer>(
  kind: Kind<Row, Request, Draft, Answer>,
  row: Row,
): Submitted<Row> {
  throwFirstError(kind, row);
  return { row, replayed: false };
}

/** The first answer again. Works whatever the state of trading, limits and upstream, and never sends. */
function replay<Row extends Submittable, Request, Draft, Answer>(
  kind: Kind<Row, Request, Draft, Answer>,
  row: Row,
  digest: Buffer,
): Submitted<Row> {
  if (!row.requestDigest.equals(digest)) throw new ApiError(kind.codes.duplicate, { param: 'Idempotency-Key' });
  throwFirstError(kind, row);
  return { row, replayed: true };
}

function throwFirstError<Row extends Submittable, Request, Draft, Answer>(
  kind: Kind<Row, Request, Draft, Answer>,
  row: Row,
): void {
  const location = kind.path(row.id);
  if (row.firstAnswer === 'rejected') {
    const { rejectReason, param } = row;
    throw new ApiError(kind.codes.rejected, {
      location,
      rejectReason: rejectReason ?? undefined,
      param: param ?? undefined,
    });
  }
  if (row.firstAnswer === 'not_sent') throw new ApiError(kind.codes.notSent, { location });
}
