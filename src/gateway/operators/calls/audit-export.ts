import { status } from '@grpc/grpc-js';
import {
  type ExportEntriesRequest,
  ExportFormat,
  type VerifyEntriesRequest,
} from '../../../gen/marina/admin/v1/audit_pb.ts';
import { toMilliseconds } from '../../../kit/clock.ts';
import { csvLine } from '../../../kit/csv.ts';
import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import type { AuditSeals } from '../audit/seals.ts';
import { readLastBatch, type WalkedBatch } from '../audit/walk.ts';
import {
  AuditPeriod,
  type BatchedEntry,
  columnsOf,
  jsonOf,
  type Period,
  pageOf,
  type StoredEntry,
  toFault,
  walkProven,
} from './audit-period.ts';
import { type AdminCall, longestStreamMs, oneAtATime, oneStreamAtATime } from './call.ts';
import { AdminError, invalidField } from './errors.ts';

/** How many batches one call verifies. */
const maxBatches = 100;
const tooLong = 'the export takes too long: ask for a shorter period';

const columns = [
  ...(['id', 'at', 'operator', 'roles', 'key_id', 'action', 'partner_id', 'subject', 'request_id'] as const),
  ...(['client_address', 'detail', 'before', 'after', 'batch', 'batch_state'] as const),
] satisfies readonly (keyof ReturnType<typeof columnsOf>)[];

/** Lets one call of this replica at a time export the audit. */
export const oneAuditExport = () => oneStreamAtATime('another export is under way');

/** The operators' calls that prove the audit, and take it elsewhere. */
export function auditProofCalls(database: Database, seals: AuditSeals, exporting = oneAuditExport()) {
  const verifying = oneAtATime('another call verifies the audit');

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

  /** The entries, and then the faults of the period's batches. */
  async function* exportedParts(request: ExportEntriesRequest, period: Period, signal: AbortSignal) {
    const end = performance.now() + longestStreamMs;
    const isCsv = request.format !== ExportFormat.JSON_LINES;
    if (isCsv) yield { text: csvLine(columns) };
    const read = new AuditPeriod(database, seals, period);
    const filter = {
      page: (after: bigint, last: bigint) => entriesOf(request, after, last),
      wanted: (rows: readonly StoredEntry[]) => rows.filter((row) => isWanted(row, request)),
    };
    for await (const page of read.entries(filter, signal)) {
      if (performance.now() >= end) throw new AdminError(status.DEADLINE_EXCEEDED, tooLong);
      if (page.length > 0) yield { text: page.map(isCsv ? toCsvLine : toJsonLine).join('') };
    }
    yield { faults: read.faults, complete: true };
  }

  return {
    verifyEntries: (request: VerifyEntriesRequest) => verifying(() => verifyEntries(request)),

    async *exportEntries(request: ExportEntriesRequest, _: AdminCall, signal: AbortSignal) {
      if (!(request.format in ExportFormat)) throw invalidField('format', 'is not known.');
      const period = periodOf(request);
      yield* exporting(() => exportedParts(request, period, signal));
    },
  };
}

function periodOf(request: Pick<ExportEntriesRequest, 'from' | 'to'>): Period {
  const from = request.from && toMilliseconds(request.from);
  const to = request.to && toMilliseconds(request.to);
  if (from !== undefined && to !== undefined && to <= from) throw invalidField('to', 'must be after `from`.');
  return { from, to };
}

/**
 * A page of entries by the filter that finds the fewest, so that each reads at most a page of rows. `isWanted` decides about the
 * other filters.
 */
function entriesOf({ partnerId, subject, operator }: ExportEntriesRequest, after: bigint, last: bigint): Statement {
  const page = (index: string, ...conditions: readonly Statement[]) => pageOf(index, conditions, after, last);
  if (subject !== '') return page('audit_entries_subject', statement('subject = ?', subject));
  if (partnerId !== '') return page('audit_entries_partner_id', statement('partner_id = ?', partnerId));
  if (operator !== '') return page('audit_entries_operator', statement('operator = ?', operator));
  return page('PRIMARY');
}

/** Whether an entry fulfils each filter. */
function isWanted(row: StoredEntry, { partnerId, subject, operator, action }: ExportEntriesRequest): boolean {
  const isOf = (filter: string, value: string | null) => filter === '' || filter === value;
  return (
    isOf(partnerId, row.partnerId) &&
    isOf(subject, row.subject) &&
    isOf(operator, row.operator) &&
    isOf(action, row.action)
  );
}

function toCsvLine(entry: BatchedEntry): string {
  const values = columnsOf(entry);
  return csvLine(columns.map((name) => values[name]));
}

function toJsonLine(entry: BatchedEntry): string {
  return `${JSON.stringify(jsonOf(entry))}\n`;
}
