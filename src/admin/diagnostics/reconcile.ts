import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { Database } from '../../db/database.ts';
import { statement } from '../../db/statement.ts';
import {
  type ReconciledObject,
  ReconciledObjectSchema,
  type ReconcileNowRequest,
  type ReconcileNowResponse,
  ReconcileNowResponseSchema,
  ReconcileOutcome,
} from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Clock } from '../../lib/clock.ts';
import { ApiError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { lookUps } from '../../submission/steps.ts';
import { audit } from '../audit.ts';
import { AdminError, invalidField, type Operator } from '../call.ts';
import { requirePartner } from '../credit.ts';
import { kindWords, type UnsettledPages } from './unsettled.ts';
import type { UnsettledWord } from './unsettled-store.ts';

/** An object before and after a look at it. */
interface Looked {
  readonly before: { readonly state: string };
  readonly after: { readonly state: string };
}

/** Asks the broker's record about one object of a kind. */
export interface Reconciling {
  reconcileNow(
    partnerId: string,
    id: string,
  ): Promise<Looked & { readonly asked: boolean; readonly isSettled: boolean; readonly isKnown: boolean }>;
}

export interface ReconcileParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pages: UnsettledPages;
  readonly order: Reconciling;
  readonly application: Reconciling;
  readonly allocation: Reconciling;
  readonly cancel: {
    reconcileNow(
      partnerId: string,
      id: string,
    ): Promise<{
      readonly before: CancelFacts;
      readonly after: CancelFacts;
      /** What the record had; undefined: it was not asked. */
      readonly lookUp: 'found' | 'missing' | undefined;
    }>;
  };
}

interface CancelFacts {
  readonly state: string;
  readonly cancelUntil: number | null;
}

/** What can be asked about. A document is settled by the partner's next send of the file, or by `Documents.ReleaseDocument`. */
const askedKinds = ['order', 'cancel', 'application', 'allocation'] as const satisfies readonly UnsettledWord[];
type AskedKind = (typeof askedKinds)[number];

const tables = { ord: 'orders', app: 'applications', alc: 'allocations' } as const;
const kindsOf: Record<keyof typeof tables, readonly AskedKind[]> = {
  ord: ['order', 'cancel'],
  app: ['application'],
  alc: ['allocation'],
};

const mostObjects = 100;
const atOnce = 8;
/** How many are read at a time: so many are asked about at least, however long the broker takes. */
const pageOfObjects = 16;
const longestMs = 20_000;

interface Wanted {
  readonly kind: AskedKind;
  readonly partnerId: string;
  readonly id: string;
}

/** The operators' call that asks the broker's record now. */
export function reconcileHandlers(parts: ReconcileParts) {
  const { database, clock, log, pages } = parts;
  let underWay = false;

  async function reconcileNow(request: ReconcileNowRequest, operator: Operator): Promise<ReconcileNowResponse> {
    const { objectId, partnerId, cursor, reason } = request;
    if (objectId === '' && partnerId === '') throw invalidField('object_id', 'or `partner_id` is required.');
    if (objectId !== '' && partnerId !== '') throw invalidField('partner_id', 'must be absent beside `object_id`.');
    if (objectId !== '' && cursor !== '') throw invalidField('cursor', 'must be absent beside `object_id`.');
    if (underWay) throw new AdminError(status.RESOURCE_EXHAUSTED, 'another call reconciles: call again');
    underWay = true;
    try {
      const owner = objectId === '' ? partnerId : await ownerOf(objectId);
      await requirePartner(database, owner);
      const said = { at: clock.now(), operator, action: 'Diagnostics.ReconcileNow', partnerId: owner };
      await database.write(audit({ ...said, subject: objectId || owner, detail: { reason } }));
      if (objectId !== '') {
        const prefix = objectId.slice(0, 3) as keyof typeof tables;
        const objects = await askAll(kindsOf[prefix].map((kind) => ({ kind, partnerId: owner, id: objectId })));
        return create(ReconcileNowResponseSchema, { objects: withoutIdle(objects) });
      }
      return await reconcilePartner(owner, cursor);
    } finally {
      underWay = false;
    }
  }

  async function reconcilePartner(partnerId: string, cursor: string): Promise<ReconcileNowResponse> {
    const end = performance.now() + longestMs;
    const objects: ReconciledObject[] = [];
    let next: string | undefined = cursor;
    while (next !== undefined && objects.length + pageOfObjects <= mostObjects && performance.now() < end) {
      const page = await pages.read('reconcile', askedKinds, { partnerId }, next, pageOfObjects);
      objects.push(...(await askAll(page.rows.map(({ kind, id }) => ({ kind: kind as AskedKind, partnerId, id })))));
      next = page.next;
    }
    return create(ReconcileNowResponseSchema, { objects, nextCursor: next ?? '' });
  }

  async function askAll(wanted: readonly Wanted[]): Promise<ReconciledObject[]> {
    const found: ReconciledObject[] = [];
    const queue = wanted.entries();
    const askers = Array.from({ length: Math.min(atOnce, wanted.length) }, async () => {
      for (const [at, object] of queue) found[at] = await ask(object);
    });
    await Promise.all(askers);
    return found;
  }

  function ask(object: Wanted): Promise<ReconciledObject> {
    return object.kind === 'cancel' ? askAboutCancel(object) : askAbout(object, parts[object.kind]);
  }

  async function askAbout(object: Wanted, reconciling: Reconciling): Promise<ReconciledObject> {
    const looked = await reconciling.reconcileNow(object.partnerId, object.id);
    if (!looked.isKnown) return toMessage(object, looked, ReconcileOutcome.OTHER_VERSION);
    const [row] = looked.asked
      ? await database.read(lookUps.find({ partnerId: object.partnerId, objectId: object.id }))
      : [];
    const lookUp = row && lookUps.all.read(row);
    const isUnchanged = looked.before.state === looked.after.state;
    const outcome = !looked.isSettled
      ? looked.asked
        ? ReconcileOutcome.STILL_UNCLEAR
        : ReconcileOutcome.BEING_SENT
      : isUnchanged
        ? ReconcileOutcome.NOTHING_UNCLEAR
        : ReconcileOutcome.SETTLED;
    return toMessage(object, looked, outcome, lookUp?.outcome, lookUp?.errorClass);
  }

  async function askAboutCancel(object: Wanted): Promise<ReconciledObject> {
    const { partnerId, id } = object;
    try {
      const looked = await parts.cancel.reconcileNow(partnerId, id);
      const { before, after, lookUp } = looked;
      if (before.cancelUntil === null) return toMessage(object, looked, ReconcileOutcome.NOTHING_UNCLEAR);
      if (after.cancelUntil === null) return toMessage(object, looked, ReconcileOutcome.SETTLED, 'found');
      const outcome = lookUp === undefined ? ReconcileOutcome.BEING_SENT : ReconcileOutcome.STILL_UNCLEAR;
      return toMessage(object, looked, outcome, lookUp);
    } catch (error) {
      log.warn({ err: error, objectId: id }, 'an unclear cancel could not be looked up');
      const errorClass = error instanceof ApiError ? error.code : 'failed';
      const looked = { before: { state: '' }, after: { state: '' } };
      return toMessage(object, looked, ReconcileOutcome.STILL_UNCLEAR, 'unanswered', errorClass);
    }
  }

  async function ownerOf(id: string): Promise<string> {
    const table = tables[id.slice(0, 3) as keyof typeof tables];
    const [row] = await database.read(statement(`SELECT partner_id FROM ${table} WHERE id = ?`, id));
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such object');
    return String(row.partner_id);
  }

  return { reconcileNow };
}

function toMessage(
  { kind, partnerId, id }: Wanted,
  { before, after }: Looked,
  outcome: ReconcileOutcome,
  lookUp = '',
  errorClass?: string | null,
): ReconciledObject {
  return create(ReconciledObjectSchema, {
    kind: kindWords.value(kind),
    partnerId,
    id,
    outcome,
    stateBefore: before.state,
    stateNow: after.state,
    lookUp,
    errorClass: errorClass ?? '',
  });
}

/** An order's cancel is told of only where there is something to tell. */
function withoutIdle(objects: readonly ReconciledObject[]): ReconciledObject[] {
  return objects.filter(
    ({ outcome }, index) => index === 0 || outcome !== ReconcileOutcome.NOTHING_UNCLEAR || objects.length === 1,
  );
}
