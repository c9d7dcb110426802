import type { Database } from '../../gateway/store/database.ts';
import { hasNotRunOut, type SqlRow, statement } from '../../gateway/store/statement.ts';
import { leaseName } from '../store/store.ts';
import { type FixNumbers, fixNumbers } from '../store/table.ts';
import { type AuditRow, fixAudit, fixSession, type SessionRow } from './table.ts';

/** Among how many of the newest findings the open ones are counted. */
const maxFindings = 1_000;

/** The session and what is around it, as the database has it. */
export interface Overview {
  /** `none`: no process has the session. */
  readonly state: string;
  /** Why it is not up; empty while it is. */
  readonly reason: string;
  readonly since: number | undefined;
  /** The holder of the lease; empty: none. */
  readonly process: string;
  readonly session: SessionRow;
  readonly numbers: FixNumbers;
  readonly open: number;
  readonly inDoubt: number;
  readonly oldestInDoubtAt: number | undefined;
  /** How many of the newest findings nobody has settled. */
  readonly findings: number;
  readonly newestFindingAt: number | undefined;
  readonly lastChange: AuditRow | undefined;
}

/** Reads the session and what is around it, in one round trip. */
export async function readOverview(database: Database): Promise<Overview> {
  const [sessions = [], leases = [], numbers = [], orders = [], findings = [], changes = []] = await database.readAll([
    fixSession.find({ id: 1n }),
    statement(`SELECT holder, fence, ${hasNotRunOut('expires_at')} AS is_held FROM leases WHERE name = ?`, leaseName),
    fixNumbers.find({ id: 1n }),
    statement(
      `SELECT state, COUNT(*) AS orders, MIN(received_at) AS oldest FROM fix_orders
       WHERE state IN ('sending', 'open') GROUP BY state`,
    ),
    statement(
      `SELECT COUNT(*) AS findings, MAX(at) AS newest FROM
       (SELECT id, at FROM fix_findings ORDER BY id DESC LIMIT ${maxFindings}) AS some
       WHERE id NOT IN (SELECT finding_id FROM fix_finding_settlements)`,
    ),
    statement(`SELECT ${fixAudit.all.list} FROM fix_audit ORDER BY id DESC LIMIT 1`),
  ]);
  const [session, number] = [sessions[0], numbers[0]];
  if (session === undefined || number === undefined) throw new Error('the database has no session: migrate it first');
  const row = fixSession.all.read(session);
  const of = (state: string) => orders.find((one) => one.state === state);
  return {
    ...stateOf(row, leases[0]),
    session: row,
    numbers: fixNumbers.all.read(number),
    open: Number(of('open')?.orders ?? 0),
    inDoubt: Number(of('sending')?.orders ?? 0),
    oldestInDoubtAt: timeOf(of('sending')?.oldest),
    findings: Number(findings[0]?.findings ?? 0),
    newestFindingAt: timeOf(findings[0]?.newest),
    lastChange: changes[0] === undefined ? undefined : fixAudit.all.read(changes[0]),
  };
}

/** A process's report of the session counts only while that process has it. */
function stateOf(row: SessionRow, lease: SqlRow | undefined) {
  const isHeld = Number(lease?.is_held ?? 0) !== 0;
  if (!isHeld) return { state: 'none', reason: 'no process has the session', since: undefined, process: '' };
  const process = String(lease?.holder ?? '');
  if (row.fence !== BigInt(String(lease?.fence))) {
    return { state: 'waiting', reason: 'a process has just taken the session', since: undefined, process };
  }
  return { state: row.state, reason: row.state === 'up' ? '' : row.reason, since: row.since, process };
}

function timeOf(value: unknown): number | undefined {
  return value instanceof Date ? value.getTime() : undefined;
}
