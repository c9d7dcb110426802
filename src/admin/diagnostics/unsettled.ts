import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Database } from '../../db/database.ts';
import { milliseconds, type SqlRow } from '../../db/statement.ts';
import {
  type Diagnostics,
  UnsettledKind,
  UnsettledKindSchema,
  type UnsettledObjectSchema,
} from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Clock } from '../../lib/clock.ts';
import { enumWords } from '../../lib/enums.ts';
import type { Cursors } from '../../lib/paging.ts';
import { type AdminCalls, pageSize } from '../call.ts';
import { findUnsettled, type UnsettledFilter, type UnsettledWord, unsettledKinds } from './unsettled-store.ts';

export const kindWords = enumWords<typeof UnsettledKind>(UnsettledKindSchema);

/** A part of what is unsettled, and where the next begins; undefined: there is none. */
export interface UnsettledPage {
  readonly rows: readonly { readonly kind: UnsettledWord; readonly row: SqlRow }[];
  readonly next: string | undefined;
}

/** What is unsettled, in pages over all kinds. */
export class UnsettledPages {
  constructor(
    private readonly database: Database,
    private readonly cursors: Cursors,
  ) {}

  /** Throws `invalid_request` for a cursor that was not issued for this list and these kinds and filters. */
  async read(
    list: string,
    kinds: readonly UnsettledWord[],
    filter: UnsettledFilter,
    cursor: string,
    most: number,
  ): Promise<UnsettledPage> {
    // What is old enough changes from page to page: it is no part of what a cursor is for.
    const issuedFor = [list, kinds.join(), filter.partnerId ?? ''];
    // A kind and a place, which can have a space in it.
    const [from = '', ...place] = cursor === '' ? [] : this.cursors.read(issuedFor, cursor).split(' ');
    const found: { kind: UnsettledWord; row: SqlRow }[] = [];
    for (const kind of kinds.slice(Math.max(0, kinds.indexOf(from as UnsettledWord)))) {
      const wanted = most + 1 - found.length;
      if (wanted <= 0) break;
      const after = kind === from ? place.join(' ') : '';
      const [rows = []] = await this.database.readAll([findUnsettled(kind, filter, after, wanted)]);
      found.push(...rows.map((row) => ({ kind, row })));
    }
    const rows = found.slice(0, most);
    const last = rows.at(-1);
    const hasMore = found.length > most && last !== undefined;
    return { rows, next: hasMore ? this.cursors.issue(issuedFor, `${last.kind} ${last.row.place}`) : undefined };
  }
}

/** The operators' call that lists what is unsettled. */
export function unsettledHandlers(
  pages: UnsettledPages,
  clock: Clock,
): Pick<AdminCalls<typeof Diagnostics>, 'listUnsettled'> {
  return {
    async listUnsettled({ kind, partnerId, olderThanSeconds, cursor, limit }) {
      const now = clock.now();
      const until = olderThanSeconds === 0n ? undefined : now - Number(olderThanSeconds) * 1_000;
      const filter = { partnerId: partnerId || undefined, until };
      const kinds = kind === UnsettledKind.UNSPECIFIED ? unsettledKinds : [kindWords.word(kind)];
      const { rows, next } = await pages.read('unsettled', kinds, filter, cursor, pageSize(limit));
      const objects = rows.map((each) => toMessage(each.kind, each.row, now, clock.realNow()));
      return { objects, nextCursor: next };
    },
  };
}

function toMessage(
  kind: UnsettledWord,
  row: SqlRow,
  now: number,
  realNow: number,
): MessageInitShape<typeof UnsettledObjectSchema> {
  const createdAt = row.created_at as Date;
  // These have no state that says whether they are still being sent, or the send was cut off.
  const hasOwnState = kind !== 'cancel' && kind !== 'document';
  const isUnderWay = (milliseconds(row.until_at) ?? 0) > realNow && row.state !== 'unconfirmed';
  return {
    kind: kindWords.value(kind),
    partnerId: String(row.partner_id),
    id: String(row.id),
    documentType: String(row.type),
    state: hasOwnState ? String(row.state) : isUnderWay ? 'sending' : 'unconfirmed',
    createdAt: timestampFromDate(createdAt),
    ageMs: BigInt(Math.max(0, now - createdAt.getTime())),
    notAfter: toTimestamp(row.until_at),
    nextCheckAt: toTimestamp(row.check_at),
    sends: Number(row.sends),
    lookUps: Number(row.asked ?? 0),
    lastLookUpAt: toTimestamp(row.last_at),
    lastLookUp: String(row.outcome ?? ''),
    errorClass: String(row.error_class ?? ''),
    evidence: String(row.evidence),
  };
}

function toTimestamp(instant: unknown) {
  const ms = milliseconds(instant);
  return ms === null ? undefined : timestampFromMs(ms);
}
