import { status } from '@grpc/grpc-js';
import type { AcknowledgeContradictionRequest } from '../../../../gen/marina/admin/v1/contradictions_pb.ts';
import type { Diagnostics } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { groupBy } from '../../../../kit/group.ts';
import { maxPartnersNamed } from '../../../edge/metrics.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { queryFact } from '../../../store/facts.ts';
import { type Decision, joined, type SqlRow, type Statement, statement } from '../../../store/statement.ts';
import { storedKinds } from '../../../trading/kinds.ts';
import {
  acknowledgeContradictions,
  contradictions,
  type StoredContradiction,
} from '../../../trading/submission/contradictions.ts';
import type { Kinds } from '../../../trading/submission/kind.ts';
import { audit } from '../audit.ts';
import { type AdminCall, type AdminCalls, type AdminParts, requirePartner, usuallyListed } from '../call.ts';
import { AdminError, invalidField } from '../errors.ts';
import { findObject, readOpenProposals } from '../proposals/service.ts';

/** The operators' calls about contradictions. */
export function contradictionCalls(
  parts: Pick<AdminParts, 'database' | 'clock'>,
  cursors: Cursors,
  kinds: Kinds,
): Pick<AdminCalls<typeof Diagnostics>, 'listContradictions' | 'acknowledgeContradiction'> {
  const { database, clock } = parts;
  return {
    async listContradictions({ partnerId, objectId, includeEnded, limit, cursor }) {
      if (partnerId !== '' && objectId !== '') {
        throw invalidField('partner_id', 'must not be given together with `object_id`.');
      }
      if (partnerId !== '') await requirePartner(database, partnerId);
      const owner = objectId === '' ? partnerId : await ownerOf(database, kinds, objectId);
      const issuedFor = ['contradictions', partnerId, objectId, String(includeEnded)];
      const before = cursor === '' ? undefined : BigInt(cursors.read(issuedFor, cursor));
      const most = limit || usuallyListed;
      const wanted = { partnerId: owner, objectId, includeEnded, before };
      const rows = (await database.read(pageOfContradictions(wanted, most + 1))).map(contradictions.all.read);
      const page = cursors.page(issuedFor, rows, most, ({ number }) => String(number));
      const objects = page.data.map(({ partnerId: ofPartner, objectId: id }) => ({ partnerId: ofPartner, id }));
      const proposals = await readOpenProposals(database, objects, clock.now());
      return {
        contradictions: page.data.map((row) => ({ ...toMessage(row), openProposal: proposals.get(row.objectId) })),
        nextCursor: page.nextCursor,
      };
    },

    async acknowledgeContradiction(request, call) {
      if (request.reason.trim() === '') throw invalidField('reason', 'must say why.');
      return acknowledge(parts, await ownerOf(database, kinds, request.objectId), request, call);
    },
  };
}

/** Ends those that are open about an object, up to a step. False if none was. */
function acknowledge(
  { database, clock }: Pick<AdminParts, 'database' | 'clock'>,
  partnerId: string,
  { objectId, upToStep, reason }: AcknowledgeContradictionRequest,
  call: AdminCall,
): Promise<{ changed: boolean }> {
  return database.inPartnerTransaction(partnerId, {
    touches: [objectId],
    fact: queryFact(countUpTo(partnerId, objectId, upToStep), ([row]) => row),
    decide: (row): Decision<{ changed: boolean }> => {
      const open = Number(row?.open ?? 0);
      if (Number(row?.last ?? 0) !== upToStep)
        throw new AdminError(status.NOT_FOUND, `step ${upToStep} of its history is no contradiction`);
      if (open === 0) return { writes: [], result: { changed: false } };
      const now = clock.now();
      const end = { endedAt: now, endedBy: call.operator, endReason: reason, proposalId: null };
      const detail = { up_to_step: upToStep, contradictions: open, reason };
      return {
        writes: [
          acknowledgeContradictions(partnerId, objectId, end, upToStep),
          audit(call, now, { partnerId, subject: objectId, detail }),
        ],
        result: { changed: true },
      };
    },
  });
}

/** The partner of an object. Throws NOT_FOUND if there is no such object. */
async function ownerOf(database: Database, kinds: Kinds, objectId: string): Promise<string> {
  const object = await findObject(database, kinds, objectId);
  if (object === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such object');
  return object.partnerId;
}

interface Wanted {
  /** Empty: of all partners. */
  readonly partnerId: string;
  /** Empty: about all objects. */
  readonly objectId: string;
  readonly includeEnded: boolean;
  /** Only those with a lower number. */
  readonly before: bigint | undefined;
}

/** A page of contradictions, newest first. */
function pageOfContradictions({ partnerId, objectId, includeEnded, before }: Wanted, most: number): Statement {
  const equal = {
    ...(partnerId === '' ? {} : { partnerId }),
    ...(objectId === '' ? {} : { objectId }),
    ...(includeEnded ? {} : { endedAt: null }),
  };
  const index =
    objectId !== ''
      ? 'contradictions_object'
      : `contradictions${partnerId === '' ? '' : '_partner'}${includeEnded ? '' : '_ended_at'}`;
  const conditions = [
    ...(Object.keys(equal).length === 0 ? [] : [contradictions.where(equal)]),
    // So that there is always a condition.
    statement('number < ?', String(before ?? 2n ** 63n - 1n)),
  ];
  const { sql, values } = joined(conditions, ' AND ');
  return statement(
    `SELECT ${contradictions.all.list} FROM contradictions FORCE INDEX (${index === 'contradictions' ? 'PRIMARY' : index})
      WHERE ${sql} ORDER BY number DESC LIMIT ${most}`,
    ...values,
  );
}

/** Counts the open ones about an object up to a step, and finds the last one up to there. */
function countUpTo(partnerId: string, objectId: string, step: number): Statement {
  return statement(
    `SELECT SUM(ended_at IS NULL) AS open, MAX(step) AS last FROM contradictions FORCE INDEX (contradictions_object)
      WHERE partner_id = ? AND object_id = ? AND step <= ?`,
    ...[partnerId, objectId, step],
  );
}

/** A contradiction as operators see it. A trade that does not count is shown as a settlement takes it. */
function toMessage(row: StoredContradiction) {
  const { step, quantity, priceKobo, upstreamAt, isCounted } = row;
  const trade = quantity === null || isCounted ? undefined : { step, quantity, priceKobo, at: upstreamAt };
  return { ...row, trade };
}

/** Counts the open contradictions of each partner and kind of object, at most so many in all, and finds the oldest. */
export function countOpenContradictions(most: number): Statement {
  return statement(
    `SELECT partner_id, LEFT(object_id, 3) AS prefix, COUNT(*) AS count, MIN(at) AS oldest FROM (
      SELECT partner_id, object_id, at FROM contradictions FORCE INDEX (contradictions_ended_at)
      WHERE ended_at IS NULL ORDER BY number LIMIT ${most}) AS waiting
      GROUP BY partner_id, prefix ORDER BY count DESC, partner_id`,
  );
}

/** The open contradictions. `now` is business time. */
export function openContradictions(rows: readonly SqlRow[], now: number) {
  const figures = rows.map((row) => ({
    partner: String(row.partner_id),
    kind: storedKinds.find(({ prefix }) => prefix === row.prefix)?.name ?? 'other',
    count: Number(row.count),
    oldest: (row.oldest as Date).getTime(),
  }));
  const named = [...new Set(figures.map(({ partner }) => partner))].slice(0, maxPartnersNamed);
  const others = groupBy(
    figures.filter(({ partner }) => !named.includes(partner)),
    ({ kind }) => kind,
  );
  const sum = (some: readonly { readonly count: number }[]) => some.reduce((total, { count }) => total + count, 0);
  return {
    count: sum(figures),
    oldestMs: figures.length === 0 ? 0 : Math.max(0, now - Math.min(...figures.map(({ oldest }) => oldest))),
    /** By kind and partner: those of 20 partners by their ids, the others together as `other`, also if there are none. */
    byPartner: [
      ...figures.filter(({ partner }) => named.includes(partner)),
      ...storedKinds.map(({ name }) => ({ kind: name, partner: 'other', count: sum(others.get(name) ?? []) })),
    ],
  };
}
