import { status } from '@grpc/grpc-js';
import {
  type ExportEntriesRequest,
  ExportFormat,
  type VerifyEntriesRequest,
} from '../../../gen/marina/admin/v1/audit_pb.ts';
import { toMilliseconds } from '../../../kit/clock.ts';
import { csvLine } from '../../../kit/csv.ts';
import { auditEntries } from '../../edge/auth/audit-store.ts';
import type { Database } from '../../store/database.ts';
import { joined, type Statement, sql, statement } from '../../store/statement.ts';
import type { RowOf } from '../../store/table.ts';
import type { AuditSeals } from '../audit/seals.ts';
import { batchBefore, type FaultyBatch, readLastBatch, type WalkedBatch, walkBatches } from '../audit/walk.ts';
import { type AdminCall, oneAtATime } from './call.ts';
import { AdminError, invalidField } from './errors.ts';

/** How many batches one call verifies. */
const maxBatches = 100;
/** How long an export may take, in real time: others wait for it, however slowly its client reads. */
const longestExportMs = 1_800_000;
const tooLong = 'the export takes too long: ask for a shorter period';
/** How many entries an export reads at a time. */
const together = 200;
/** The highest number that an entry can have. */
const maxId = 2n ** 63n - 1n;

const columns = [
  ...['id', 'at', 'operator', 'roles', 'key_id', 'action', 'partner_id', 'subject', 'request_id', 'client_address'],
  ...['detail', 'before', 'after', 'batch', 'batch_state'],
] as const;
type Line = Record<(typeof columns)[number], string>;

/** The operators' calls that prove the audit, and take it elsewhere. */
export function auditProofCalls(database: Database, seals: AuditSeals) {
  const verifying = oneAtATime('another call verifies the audit');
  let exporting = false;

  async function verifyEntries({ afterBatch }: VerifyEntriesRequest) {
    const end = await readLastBatch(database, seals);
    if (afterBatch > (end?.batch.number ?? 0n)) throw new AdminError(status.NOT_FOUND, 'there is no such batch');
    const walked: WalkedBatch[] = [];
    for await (const batch of walkProven(database, seals, afterBatch)) {
      walked.push(batch);
      if (walked.length === maxBatches) break;
    }
    const last = walked.at(-1);
    const [row] = await database.read(
      statement('SELECT COUNT(*) AS found FROM audit_entries WHERE id > ?', end?.batch.lastId ?? 0n),
    );
    return {
      faults: walked.flatMap(toFault),
      batches: walked.length,
      entries: walked.reduce((sum, { entries }) => sum + entries, 0),
      lastBatch: last?.number ?? afterBatch,
      lastId: last?.lastId,
      lastHash: last?.hash,
      complete: walked.length < maxBatches || last?.number === end?.batch.number,
      unsealed: Number(row?.found),
    };
  }

  async function* exportEntries(request: ExportEntriesRequest, _: AdminCall, signal: AbortSignal) {
    const { format } = request;
    if (!(format in ExportFormat)) throw invalidField('format', 'is not known.');
    const toText = format === ExportFormat.JSON_LINES ? toJsonLine : toCsvLine;
    const period = periodOf(request);
    if (exporting) throw new AdminError(status.RESOURCE_EXHAUSTED, 'another export is under way: call again');
    exporting = true;
    try {
      if (format !== ExportFormat.JSON_LINES) yield { text: csvLine(columns) };
      const end = performance.now() + longestExportMs;
      for await (const part of exportLines(database, seals, request, period, toText, signal)) {
        if (performance.now() >= end) throw new AdminError(status.DEADLINE_EXCEEDED, tooLong);
        yield part;
      }
    } finally {
      exporting = false;
    }
  }

  return { verifyEntries: (request: VerifyEntriesRequest) => verifying(() => verifyEntries(request)), exportEntries };
}

/** The entries, and then the faults of the period's batches. */
async function* exportLines(
  database: Database,
  seals: AuditSeals,
  request: ExportEntriesRequest,
  period: Period,
  toText: (line: Line) => string,
  signal: AbortSignal,
) {
  const [bounds] = await database.read(boundsOf(period));
  const [first, last] = [bounds?.first, bounds?.last].map((id) => (id == null ? undefined : BigInt(String(id))));
  const around = await entriesAround(database, period);
  const start = first !== undefined && first < around.before ? first : around.before;
  const batches = walkProven(database, seals, await batchBefore(database, start));
  const faults: FaultyBatch[] = [];
  const next = async () => {
    const { value: batch } = await batches.next();
    if (batch !== undefined) faults.push(...toFault(batch));
    return batch;
  };
  let batch = await next();
  if (first !== undefined && last !== undefined) {
    for (let after = first - 1n; !signal.aborted; ) {
      const rows = (await database.read(entriesOf(request, after, last))).map(auditEntries.all.read);
      let text = '';
      for (const row of rows.filter((each) => isWanted(each, request, period))) {
        while (batch !== undefined && batch.lastId < row.id) batch = await next();
        text += toText(lineOf(row, batch));
      }
      if (text !== '') yield { text };
      after = rows.at(-1)?.id ?? last;
      if (rows.length < together) break;
    }
  }
  // Batches whose entries are not exported can lack some that would be.
  while (batch !== undefined && batch.lastId < around.after && !signal.aborted) batch = await next();
  yield { faults, complete: true };
}

/** Walks batches, the last of which must be sealed with a secret of the ring. */
async function* walkProven(
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

interface Period {
  readonly from: number | undefined;
  readonly to: number | undefined;
}

function periodOf(request: Pick<ExportEntriesRequest, 'from' | 'to'>): Period {
  const from = request.from && toMilliseconds(request.from);
  const to = request.to && toMilliseconds(request.to);
  if (from !== undefined && to !== undefined && to <= from) throw invalidField('to', 'must be after `from`.');
  return { from, to };
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

/**
 * A page of entries by the filter that finds the fewest, so that each reads at most a page of rows. `isWanted` decides about the
 * other filters.
 */
function entriesOf({ partnerId, subject, operator }: ExportEntriesRequest, after: bigint, last: bigint): Statement {
  const page = (index: string, ...conditions: readonly Statement[]) =>
    sql`SELECT ${statement(auditEntries.all.list)} FROM audit_entries FORCE INDEX (${statement(index)})
      WHERE ${joined([...conditions, statement('id > ? AND id <= ?', after, last)], ' AND ')}
      ORDER BY id ${statement(`LIMIT ${together}`)}`;
  if (subject !== '') return page('audit_entries_subject', statement('subject = ?', subject));
  if (partnerId !== '') return page('audit_entries_partner_id', statement('partner_id = ?', partnerId));
  if (operator !== '') return page('audit_entries_operator', statement('operator = ?', operator));
  return page('PRIMARY');
}

/** Whether an entry is in the period and fulfils each filter. */
function isWanted(
  row: RowOf<typeof auditEntries>,
  { partnerId, subject, operator, action }: ExportEntriesRequest,
  { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY }: Period,
): boolean {
  const isOf = (filter: string, value: string | null) => filter === '' || filter === value;
  return (
    isOf(partnerId, row.partnerId) &&
    isOf(subject, row.subject) &&
    isOf(operator, row.operator) &&
    isOf(action, row.action) &&
    row.at >= from &&
    row.at < to
  );
}

function lineOf(row: RowOf<typeof auditEntries>, batch: WalkedBatch | undefined): Line {
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

function toCsvLine(line: Line): string {
  return csvLine(columns.map((name) => line[name]));
}

/** JSON in a column stays JSON: `detail`, `before` and `after`. */
function toJsonLine(line: Line): string {
  const { detail, before, after, ...texts } = line;
  const parsed = Object.entries({ detail, before, after }).filter(([, text]) => text !== '');
  const objects = Object.fromEntries(parsed.map(([name, text]) => [name, parsedJson(text)]));
  return `${JSON.stringify({ ...texts, ...objects })}\n`;
}

/** A text that is no JSON was written by somebody else. It stays as it is. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function toFault({ number, fault, firstId, lastId }: WalkedBatch): (FaultyBatch & { readonly kind: string })[] {
  return fault === undefined ? [] : [{ batch: number, kind: fault, firstId, lastId }];
}
