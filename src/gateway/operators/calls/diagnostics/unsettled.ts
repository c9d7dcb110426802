import {
  type Diagnostics,
  UnsettledKind,
  UnsettledKindSchema,
} from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { enumWords } from '../../../../kit/enums.ts';
import { groupBy } from '../../../../kit/group.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { joined, milliseconds, type SqlRow, type Statement, statement } from '../../../store/statement.ts';
import { type StoredKind, storedKindOf, storedKinds } from '../../../trading/kinds.ts';
import type { KindName } from '../../../trading/submission/kind.ts';
import { type AdminCalls, usuallyListed } from '../call.ts';
import { readOpenProposals } from '../proposals/service.ts';

export type UnsettledWord = KindName | 'cancel' | 'document';

/** Kinds that can be unsettled, in the order of the list: each of the objects, then what belongs to it. */
export const unsettledKinds: readonly UnsettledWord[] = storedKinds.flatMap(({ name }) => {
  const belonging = { order: ['cancel'], application: ['document'] } as Partial<Record<KindName, UnsettledWord[]>>;
  return [name, ...(belonging[name] ?? [])];
});

const kindWords = enumWords<typeof UnsettledKind>(UnsettledKindSchema);

interface UnsettledFilter {
  readonly partnerId?: string | undefined;
  /** Stored at this instant or before. */
  readonly until?: number | undefined;
}

/** The evidence for an order's state: the detail of its last step. */
const lastStep = `COALESCE((SELECT s.detail FROM order_steps s WHERE s.partner_id = o.partner_id AND s.order_id = o.id
  ORDER BY s.sequence DESC LIMIT 1), '')`;

interface Source {
  /** Selects the unsettled objects. */
  readonly sql: string;
  readonly partner: string;
  readonly createdAt: string;
  /** An object's position among those of its kind. */
  readonly position: string;
}

/**
 * How each kind is found without a full scan: by the reconciler's index, which has only unsettled objects; documents by
 * partner and state. Without a hint a server may walk all ids, because the result is ordered by them.
 */
const sources: Record<UnsettledWord, Source> = {
  ...(Object.fromEntries(storedKinds.map((kind) => [kind.name, submissions(kind)])) as Record<KindName, Source>),
  cancel: {
    sql: `SELECT o.partner_id, o.id, o.id AS position, c.sent_at AS created_at, o.cancel_until AS until_at,
      ${lastStep} AS evidence
      FROM open_cancels c STRAIGHT_JOIN orders o ON o.partner_id = c.partner_id AND o.id = c.order_id
      WHERE o.cancel_until IS NOT NULL`,
    partner: 'c.partner_id',
    createdAt: 'c.sent_at',
    position: 'o.id',
  },
  document: {
    sql: `SELECT d.partner_id, d.application_id AS id, d.type, CONCAT(d.application_id, ' ', d.type) AS position, d.state,
      d.created_at, d.lease_until AS until_at, d.attempt AS sends
      FROM partners p STRAIGHT_JOIN (SELECT 'sending' AS state UNION ALL SELECT 'unconfirmed') states
      STRAIGHT_JOIN documents d FORCE INDEX (documents_under_way) ON d.partner_id = p.id AND d.state = states.state
      WHERE TRUE`,
    partner: 'p.id',
    createdAt: 'd.created_at',
    position: "CONCAT(d.application_id, ' ', d.type)",
  },
};

/** A table of objects that are stored before they are sent, and reconciled. */
function submissions({ name, table: { name: table } }: StoredKind): Source {
  const evidence = name === 'order' ? lastStep : 'o.evidence';
  return {
    sql: `SELECT o.partner_id, o.id, o.id AS position, o.state, o.created_at, o.not_after AS until_at, o.check_at,
      l.asked, l.last_at, l.outcome, l.error_class, ${evidence} AS evidence,
      a.acknowledged_by, a.reason AS acknowledged_reason, a.ends_at AS acknowledged_until
      FROM ${table} o FORCE INDEX (${table}_check_at)
      LEFT JOIN look_ups l ON l.partner_id = o.partner_id AND l.object_id = o.id
      LEFT JOIN acknowledgements a ON a.partner_id = o.partner_id AND a.object_id = o.id
      WHERE o.check_at IS NOT NULL`,
    partner: 'o.partner_id',
    createdAt: 'o.created_at',
    position: 'o.id',
  };
}

/** The unsettled objects of a kind after a position, oldest first. */
function findUnsettled(
  kind: UnsettledWord,
  { partnerId, until }: UnsettledFilter,
  after: string,
  most: number,
): Statement {
  const { sql, partner, createdAt, position } = sources[kind];
  const found = [
    statement(sql),
    ...(partnerId === undefined ? [] : [statement(`${partner} = ?`, partnerId)]),
    ...(until === undefined ? [] : [statement(`${createdAt} <= ?`, new Date(until))]),
    ...(after === '' ? [] : [statement(`${position} > ?`, after)]),
  ];
  return joined([joined(found, ' AND '), statement(`ORDER BY position LIMIT ${most}`)], ' ');
}

/** Counts the unsettled cancels or documents, at most so many, and finds the oldest. */
export function countUnsettled(kind: 'cancel' | 'document', most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count, MIN(created_at) AS oldest FROM (${sources[kind].sql} LIMIT ${most}) AS unsettled`,
  );
}

/** Unsettled objects of all kinds, in pages. */
export class UnsettledPages {
  constructor(
    private readonly database: Database,
    private readonly cursors: Cursors,
  ) {}

  /** Throws `invalid_request` for a cursor of another list, other kinds or another partner. */
  async read(list: string, kinds: readonly UnsettledWord[], filter: UnsettledFilter, cursor: string, most: number) {
    // `until` changes from page to page, so the cursor does not depend on it.
    const issuedFor = [list, kinds.join(), filter.partnerId ?? ''];
    // A kind and a position, which can have a space in it.
    const [from = '', ...position] = cursor === '' ? [] : this.cursors.read(issuedFor, cursor).split(' ');
    const found: { kind: UnsettledWord; row: SqlRow }[] = [];
    for (const kind of kinds.slice(Math.max(0, kinds.indexOf(from as UnsettledWord)))) {
      const wanted = most + 1 - found.length;
      if (wanted <= 0) break;
      const after = kind === from ? position.join(' ') : '';
      const [rows = []] = await this.database.readAll([findUnsettled(kind, filter, after, wanted)]);
      found.push(...rows.map((row) => ({ kind, row })));
    }
    return this.cursors.page(issuedFor, found, most, ({ kind, row }) => `${kind} ${row.position}`);
  }
}

/** The operators' call that lists unsettled objects. */
export function unsettledCalls(
  database: Database,
  pages: UnsettledPages,
  clock: Clock,
): Pick<AdminCalls<typeof Diagnostics>, 'listUnsettled'> {
  return {
    async listUnsettled({ kind, partnerId, olderThanSeconds, cursor, limit }) {
      const now = clock.now();
      const until = olderThanSeconds === 0n ? undefined : now - Number(olderThanSeconds) * 1_000;
      const filter = { partnerId: partnerId || undefined, until };
      const kinds = kind === UnsettledKind.UNSPECIFIED ? unsettledKinds : [kindWords.word(kind)];
      const { data, nextCursor } = await pages.read('unsettled', kinds, filter, cursor, limit || usuallyListed);
      const shown = await readShown(database, data);
      const owned = data.map(({ row }) => ({ partnerId: String(row.partner_id), id: String(row.id) }));
      const proposals = await readOpenProposals(database, owned, now);
      const objects = data.map((each) => ({
        ...toMessage(each.kind, each.row, now, clock.realNow()),
        object: shown.get(String(each.row.id)),
        openProposal: proposals.get(String(each.row.id)),
      }));
      return { objects, nextCursor };
    },
  };
}

/** The objects as their partners see them now, by their ids. */
async function readShown(database: Database, data: readonly { readonly row: SqlRow }[]) {
  const ids = [...new Set(data.map(({ row }) => String(row.id)))];
  const some = [...groupBy(ids, storedKindOf)].flatMap(([kind, id]) => (kind === undefined ? [] : [{ kind, id }]));
  const answers = await database.readAll(
    some.map(({ kind: { table, selection }, id }) => table.find({ id }, selection, undefined, `${table.name}_id`)),
  );
  return new Map(some.flatMap(({ kind }, at) => (answers[at] ?? []).map((row) => [String(row.id), kind.show(row)])));
}

function toMessage(kind: UnsettledWord, row: SqlRow, now: number, realNow: number) {
  const createdAt = milliseconds(row.created_at) ?? 0;
  // The state of these does not say whether they are still being sent or the send was cut off.
  const hasOwnState = kind !== 'cancel' && kind !== 'document';
  const isUnderWay = (milliseconds(row.until_at) ?? 0) > realNow && row.state !== 'unconfirmed';
  const instant = (value: unknown = null) => milliseconds(value);
  return {
    kind,
    partnerId: String(row.partner_id),
    id: String(row.id),
    documentType: String(row.type ?? ''),
    state: hasOwnState ? String(row.state) : isUnderWay ? 'sending' : 'unconfirmed',
    createdAt,
    ageMs: Math.max(0, now - createdAt),
    notAfter: instant(row.until_at),
    nextCheckAt: instant(row.check_at),
    sends: Number(row.sends ?? 1),
    lookUps: Number(row.asked ?? 0),
    lastLookUpAt: instant(row.last_at),
    lastLookUp: String(row.outcome ?? ''),
    errorClass: String(row.error_class ?? ''),
    evidence: String(row.evidence ?? ''),
    ...acknowledgementIn(row, realNow),
  };
}

/** Who acknowledged an object that is unsettled, while that is in force. */
function acknowledgementIn(row: SqlRow, realNow: number) {
  const until = milliseconds(row.acknowledged_until ?? null);
  if (until === null || until <= realNow) return {};
  return {
    acknowledgedBy: String(row.acknowledged_by),
    acknowledgedReason: String(row.acknowledged_reason),
    acknowledgedUntil: until,
  };
}
