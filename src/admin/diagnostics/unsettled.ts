import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Database } from '../../db/database.ts';
import {
  type ListUnsettledRequest,
  type ListUnsettledResponse,
  ListUnsettledResponseSchema,
  UnsettledKind,
  UnsettledKindSchema,
  type UnsettledObject,
  UnsettledObjectSchema,
} from '../../gen/marina/admin/v1/diagnostics_pb.ts';
import type { Clock } from '../../lib/clock.ts';
import { enumWords } from '../../lib/enums.ts';
import type { Cursors } from '../../lib/paging.ts';
import { pageSize } from '../call.ts';
import {
  findUnsettled,
  toUnsettled,
  type UnsettledFilter,
  type UnsettledRow,
  type UnsettledWord,
  unsettledKinds,
} from './unsettled-store.ts';

export const kindWords = enumWords<typeof UnsettledKind>(UnsettledKindSchema);

/** A part of what is unsettled, and where the next begins; undefined: there is none. */
export interface UnsettledPage {
  readonly rows: readonly UnsettledRow[];
  readonly next: string | undefined;
}

/** What is unsettled, in pages over all kinds. */
export class UnsettledPages {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
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
    const [from = '', after = ''] = cursor === '' ? [] : split(this.cursors.read(issuedFor, cursor));
    const first = from === '' ? 0 : kinds.indexOf(from as UnsettledWord);
    const found: UnsettledRow[] = [];
    for (const kind of kinds.slice(first)) {
      const wanted = most + 1 - found.length;
      if (wanted <= 0) break;
      const statement = findUnsettled(kind, filter, kind === from ? after : '', wanted);
      const [rows = []] = await this.database.readAll([statement]);
      found.push(...rows.map((row) => toUnsettled(kind, row, this.clock.realNow())));
    }
    const rows = found.slice(0, most);
    const last = rows.at(-1);
    const next =
      found.length > most && last !== undefined
        ? this.cursors.issue(issuedFor, `${last.kind} ${last.place}`)
        : undefined;
    return { rows, next };
  }
}

/** The operators' call that lists what is unsettled. */
export function unsettledHandlers(pages: UnsettledPages, clock: Clock) {
  async function listUnsettled(request: ListUnsettledRequest): Promise<ListUnsettledResponse> {
    const { kind, partnerId, olderThanSeconds, cursor } = request;
    const now = clock.now();
    const filter = {
      partnerId: partnerId || undefined,
      until: olderThanSeconds === 0n ? undefined : now - Number(olderThanSeconds) * 1_000,
    };
    const kinds = kind === UnsettledKind.UNSPECIFIED ? unsettledKinds : [kindWords.word(kind)];
    const { rows, next } = await pages.read('unsettled', kinds, filter, cursor, pageSize(request.limit));
    return create(ListUnsettledResponseSchema, {
      objects: rows.map((row) => toMessage(row, now)),
      nextCursor: next ?? '',
    });
  }
  return { listUnsettled };
}

function toMessage(row: UnsettledRow, now: number): UnsettledObject {
  return create(UnsettledObjectSchema, {
    kind: kindWords.value(row.kind),
    partnerId: row.partnerId,
    id: row.id,
    documentType: row.documentType,
    state: row.state,
    createdAt: timestampFromMs(row.createdAt),
    ageMs: BigInt(Math.max(0, now - row.createdAt)),
    notAfter: toTimestamp(row.until),
    nextCheckAt: toTimestamp(row.checkAt),
    sends: row.sends,
    lookUps: row.asked,
    lastLookUpAt: toTimestamp(row.lastAskedAt),
    lastLookUp: row.lastAnswer ?? '',
    errorClass: row.errorClass ?? '',
    evidence: row.evidence,
  });
}

function toTimestamp(ms: number | null): Timestamp | undefined {
  return ms === null ? undefined : timestampFromMs(ms);
}

/** A kind and a place, which can have spaces in it. */
function split(position: string): [string, string] {
  const space = position.indexOf(' ');
  return [position.slice(0, space), position.slice(space + 1)];
}
