import { auditEntries } from '../../edge/auth/audit-store.ts';
import type { Database } from '../../store/database.ts';
import { joined, type Statement, sql, statement } from '../../store/statement.ts';
import type { RowOf } from '../../store/table.ts';
import type { AuditSeals } from '../audit/seals.ts';
import { batchBefore, type FaultyBatch, readLastBatch, type WalkedBatch, walkBatches } from '../audit/walk.ts';

export type StoredEntry = RowOf<typeof auditEntries>;

/** A period from an instant on, before another one. Undefined: from the first entry on, up to the last. */
export interface Period {
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/** An entry with its batch; undefined: it is not sealed yet. */
export interface BatchedEntry {
  readonly row: StoredEntry;
  readonly batch: WalkedBatch | undefined;
}

/** How the entries of a period are found. */
interface EntryFilter {
  /** A page of at most `entriesTogether` entries with numbers above the first and up to the last one, in their order. */
  page(after: bigint, last: bigint): Statement;
  /** Those of a page that are wanted. */
  wanted(rows: readonly StoredEntry[]): readonly StoredEntry[] | Promise<readonly StoredEntry[]>;
}

/** How many entries are read at a time. */
export const entriesTogether = 200;
/** The highest number that an entry can have. */
const maxId = 2n ** 63n - 1n;

/** The entries of a period, read once. After that it has the batches of the period. */
export class AuditPeriod {
  /** The batches that do not match their seals. */
  readonly faults: FaultyBatch[] = [];
  /** The last batch that was compared; undefined: none is sealed. */
  lastBatch: WalkedBatch | undefined;

  constructor(
    private readonly database: Database,
    private readonly seals: AuditSeals,
    private readonly period: Period,
  ) {}

  /** The wanted entries, oldest first, a page at a time. */
  async *entries(filter: EntryFilter, signal: AbortSignal): AsyncGenerator<readonly BatchedEntry[], undefined> {
    const [bounds] = await this.database.read(boundsOf(this.period));
    const [first, last] = [bounds?.first, bounds?.last].map((id) => (id == null ? undefined : BigInt(String(id))));
    const around = await entriesAround(this.database, this.period);
    const start = first !== undefined && first < around.before ? first : around.before;
    const batches = walkProven(this.database, this.seals, await batchBefore(this.database, start));
    let batch = await this.#next(batches);
    if (first !== undefined && last !== undefined) {
      for (let after = first - 1n; !signal.aborted; ) {
        const rows = (await this.database.read(filter.page(after, last))).map(auditEntries.all.read);
        const page: BatchedEntry[] = [];
        for (const row of await filter.wanted(rows.filter(({ at }) => this.#has(at)))) {
          while (batch !== undefined && batch.lastId < row.id) batch = await this.#next(batches);
          page.push({ row, batch });
        }
        yield page;
        after = rows.at(-1)?.id ?? last;
        if (rows.length < entriesTogether) break;
      }
    }
    // Batches whose entries are not wanted can lack some that would be.
    while (batch !== undefined && batch.lastId < around.after && !signal.aborted) batch = await this.#next(batches);
    return undefined;
  }

  async #next(batches: AsyncGenerator<WalkedBatch, undefined>): Promise<WalkedBatch | undefined> {
    const { value: batch } = await batches.next();
    if (batch === undefined) return undefined;
    this.lastBatch = batch;
    this.faults.push(...toFault(batch));
    return batch;
  }

  #has(at: number): boolean {
    const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = this.period;
    return at >= from && at < to;
  }
}

/** Walks batches, the last of which must be sealed with a secret of the ring. */
export async function* walkProven(
  database: Database,
  seals: AuditSeals,
  after: bigint,
): AsyncGenerator<WalkedBatch, undefined> {
  const end = await readLastBatch(database, seals);
  for await (const batch of walkBatches(database, seals, after)) {
    const isUnproven = batch.number === end?.batch.number && end.proof !== 'right';
    yield isUnproven ? { ...batch, fault: 'unsealed' } : batch;
  }
  return undefined;
}

/** A batch's fault, as answers have it; none if it matches. */
export function toFault({ number, fault, firstId, lastId }: WalkedBatch): readonly FaultyBatch[] {
  return fault === undefined ? [] : [{ batch: number, kind: fault, firstId, lastId }];
}

/** A page of entries by an index that has them in the order of their numbers. */
export function pageOf(index: string, conditions: readonly Statement[], after: bigint, last: bigint): Statement {
  return sql`SELECT ${statement(auditEntries.all.list)} FROM audit_entries FORCE INDEX (${statement(index)})
      WHERE ${joined([...conditions, statement('id > ? AND id <= ?', after, last)], ' AND ')}
      ORDER BY id ${statement(`LIMIT ${entriesTogether}`)}`;
}

/** An entry as exports have it: the columns of CSV, in their order, with its batch. */
export function columnsOf({ row, batch }: BatchedEntry) {
  return {
    id: String(row.id),
    at: new Date(row.at).toISOString(),
    operator: row.operator,
    roles: row.roles ?? '',
    key_id: row.keyId ?? '',
    action: row.action,
    partner_id: row.partnerId ?? '',
    subject: row.subject ?? '',
    request_id: row.requestId ?? '',
    client_address: row.clientAddress ?? '',
    detail: row.detail,
    before: row.was ?? '',
    after: row.became ?? '',
    batch: batch === undefined ? '' : String(batch.number),
    batch_state: batch === undefined ? 'not sealed yet' : (batch.fault ?? 'right'),
  };
}

/** The same as JSON. JSON in a column stays JSON: `detail`, `before` and `after`. */
export function jsonOf(entry: BatchedEntry): Readonly<Record<string, unknown>> {
  const { detail, before, after, ...texts } = columnsOf(entry);
  const parsed = Object.entries({ detail, before, after }).filter(([, text]) => text !== '');
  return { ...texts, ...Object.fromEntries(parsed.map(([name, text]) => [name, parsedJson(text)])) };
}

/** A text that is no JSON was written by somebody else. It stays as it is. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The conditions of a period. Without one there is always a condition. */
function within({ from, to }: Period): Statement[] {
  return [
    ...(from === undefined ? [] : [statement('at >= ?', new Date(from))]),
    ...(to === undefined ? [] : [statement('at < ?', new Date(to))]),
  ];
}

/** The numbers of the first and the last entry of a period. */
function boundsOf(period: Period): Statement {
  const conditions = within(period);
  if (conditions.length === 0) return statement('SELECT MIN(id) AS first, MAX(id) AS last FROM audit_entries');
  return sql`SELECT MIN(id) AS first, MAX(id) AS last FROM audit_entries FORCE INDEX (audit_entries_at)
    WHERE ${joined(conditions, ' AND ')}`;
}

/**
 * The numbers of the entries before and after a period: entries that are gone from its begin or its end are in the batches between.
 * Without an entry after it, all batches are meant.
 */
async function entriesAround(database: Database, { from, to }: Period): Promise<{ before: bigint; after: bigint }> {
  const read = async (condition: string, at: number | undefined) => {
    if (at === undefined) return undefined;
    const find = `SELECT id FROM audit_entries FORCE INDEX (audit_entries_at) WHERE ${condition} LIMIT 1`;
    const [row] = await database.read(statement(find, new Date(at)));
    return row && BigInt(String(row.id));
  };
  const before = await read('at < ? ORDER BY at DESC, id DESC', from);
  const after = await read('at >= ? ORDER BY at, id', to);
  return { before: before ?? 0n, after: after ?? maxId };
}
