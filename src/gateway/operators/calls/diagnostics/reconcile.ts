import { status } from '@grpc/grpc-js';
import { type ReconcileNowRequest, ReconcileOutcome } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Clock } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/log.ts';
import { asApiError } from '../../../edge/errors.ts';
import type { Database } from '../../../store/database.ts';
import { statement } from '../../../store/statement.ts';
import { storedKindOf } from '../../../trading/kinds.ts';
import type { Canceller } from '../../../trading/orders/cancel.ts';
import type { KindName } from '../../../trading/submission/kind.ts';
import type { Reconciled } from '../../../trading/submission/reconcile.ts';
import { lookUps } from '../../../trading/submission/table.ts';
import { audit } from '../audit.ts';
import { type AdminCall, oneAtATime, requirePartner } from '../call.ts';
import { AdminError, invalidField } from '../errors.ts';
import { type UnsettledPages, type UnsettledWord, unsettledKinds } from './unsettled.ts';

interface Facts {
  readonly state: string;
}

/** Queries the broker's record of one object. */
interface Reconciling {
  reconcileNow(partnerId: string, id: string): Promise<Reconciled<Facts>>;
}

interface ReconcileParts extends Record<KindName, Reconciling> {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pages: UnsettledPages;
  readonly cancel: Pick<Canceller, 'reconcileNow'>;
}

/** Kinds that can be reconciled. A document is settled by the partner's next send or `Documents.ReleaseDocument`. */
const askedKinds = unsettledKinds.filter((kind): kind is AskedKind => kind !== 'document');
type AskedKind = Exclude<UnsettledWord, 'document'>;

const maxObjects = 100;
const atOnce = 8;
/** Objects per page. A call reconciles at least one page, however long the broker takes. */
const pageOfObjects = 16;
const longestMs = 20_000;

type ReconciledObject = ReturnType<typeof toMessage>;

interface Target {
  readonly kind: AskedKind;
  readonly partnerId: string;
  readonly id: string;
}

/** The operators' call that reconciles objects now. */
export function reconcileCalls(parts: ReconcileParts) {
  const { database, clock, log, pages } = parts;
  const reconciling = oneAtATime('another call reconciles');

  async function reconcileNow({ objectId, cursor, reason, ...request }: ReconcileNowRequest, call: AdminCall) {
    if (objectId === '' && request.partnerId === '') throw invalidField('object_id', 'or `partner_id` is required.');
    for (const [name, value] of Object.entries({ partner_id: request.partnerId, cursor })) {
      if (objectId !== '' && value !== '') throw invalidField(name, 'must not be given together with `object_id`.');
    }
    return reconciling(async () => {
      const partnerId = objectId === '' ? request.partnerId : await findOwner(objectId);
      await requirePartner(database, partnerId);
      const entry = { partnerId, subject: objectId || partnerId, detail: { reason } };
      await database.write(audit(call, clock.now(), entry));
      return objectId === '' ? reconcilePartner(partnerId, cursor) : reconcileObject(partnerId, objectId);
    });
  }

  async function reconcileObject(partnerId: string, id: string) {
    const { name } = objectsOf(id);
    const asked: AskedKind[] = name === 'order' ? ['order', 'cancel'] : [name];
    const [first, ...rest] = await askAll(asked.map((kind) => ({ kind, partnerId, id })));
    // An order's cancel is in the answer only if there is one.
    const others = rest.filter(({ outcome }) => outcome !== ReconcileOutcome.NOTHING_UNCLEAR);
    return { objects: first === undefined ? [] : [first, ...others], nextCursor: undefined };
  }

  async function reconcilePartner(partnerId: string, cursor: string) {
    const end = performance.now() + longestMs;
    const objects: ReconciledObject[] = [];
    let next: string | undefined = cursor;
    while (next !== undefined && objects.length + pageOfObjects <= maxObjects && performance.now() < end) {
      const page = await pages.read('reconcile', askedKinds, { partnerId }, next, pageOfObjects);
      const targets = page.data.map(({ kind, row }) => ({ kind: kind as AskedKind, partnerId, id: String(row.id) }));
      objects.push(...(await askAll(targets)));
      next = page.nextCursor;
    }
    return { objects, nextCursor: next };
  }

  async function askAll(targets: readonly Target[]): Promise<ReconciledObject[]> {
    const answers: ReconciledObject[] = [];
    const queue = targets.entries();
    const askers = Array.from({ length: Math.min(atOnce, targets.length) }, async () => {
      for (const [at, target] of queue) {
        answers[at] = await (target.kind === 'cancel' ? askAboutCancel(target) : askAbout(target, parts[target.kind]));
      }
    });
    await Promise.all(askers);
    return answers;
  }

  async function askAbout(target: Target, reconciling: Reconciling): Promise<ReconciledObject> {
    const found = await reconciling.reconcileNow(target.partnerId, target.id);
    if (!found.isKnown) return toMessage(target, found, ReconcileOutcome.OTHER_VERSION);
    const asked = lookUps.find({ partnerId: target.partnerId, objectId: target.id });
    const [row] = found.asked ? await database.read(asked) : [];
    const lookUp = row && lookUps.all.read(row);
    const unsettled = found.asked ? ReconcileOutcome.STILL_UNCLEAR : ReconcileOutcome.BEING_SENT;
    const isUnchanged = found.before.state === found.after.state;
    const settled = isUnchanged ? ReconcileOutcome.NOTHING_UNCLEAR : ReconcileOutcome.SETTLED;
    return toMessage(target, found, found.isSettled ? settled : unsettled, lookUp?.outcome, lookUp?.errorClass);
  }

  async function askAboutCancel(target: Target): Promise<ReconciledObject> {
    const { partnerId, id } = target;
    try {
      const found = await parts.cancel.reconcileNow(partnerId, id);
      if (found.before.cancelUntil === null) return toMessage(target, found, ReconcileOutcome.NOTHING_UNCLEAR);
      if (found.after.cancelUntil === null) return toMessage(target, found, ReconcileOutcome.SETTLED, 'found');
      const { STILL_UNCLEAR, BEING_SENT } = ReconcileOutcome;
      return toMessage(target, found, found.lookUp === undefined ? BEING_SENT : STILL_UNCLEAR, found.lookUp);
    } catch (error) {
      log.warn({ err: error, objectId: id }, 'a cancel with an unknown outcome could not be looked up');
      const errorClass = asApiError(error)?.code ?? 'failed';
      const unknown = { before: { state: '' }, after: { state: '' } };
      return toMessage(target, unknown, ReconcileOutcome.STILL_UNCLEAR, 'unanswered', errorClass);
    }
  }

  async function findOwner(id: string): Promise<string> {
    const [row] = await database.read(statement(`SELECT partner_id FROM ${objectsOf(id).table.name} WHERE id = ?`, id));
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such object');
    return String(row.partner_id);
  }

  return { reconcileNow };
}

/** The kind of an object. The proto permits no other id. */
function objectsOf(id: string) {
  const kind = storedKindOf(id);
  if (kind === undefined) throw new Error(`${id} is no object's id`);
  return kind;
}

function toMessage(
  { kind, partnerId, id }: Target,
  { before, after }: { readonly before: Facts; readonly after: Facts },
  outcome: ReconcileOutcome,
  lookUp = '',
  errorClass?: string | null,
) {
  return { kind, partnerId, id, outcome, stateBefore: before.state, stateNow: after.state, lookUp, errorClass };
}
