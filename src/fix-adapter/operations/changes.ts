import { status } from '@grpc/grpc-js';
import type { AdminCall } from '../../gateway/operators/calls/call.ts';
import { AdminError } from '../../gateway/operators/calls/errors.ts';
import type { Database } from '../../gateway/store/database.ts';
import { hasNotRunOut, statement } from '../../gateway/store/statement.ts';
import { auditOf } from '../store/audit.ts';
import { markPassedOver } from '../store/marks.ts';
import { agreedNumbers, shownNumbers } from '../store/set-numbers.ts';
import { leaseName } from '../store/store.ts';
import { type FixNumbers, fixNumbers } from '../store/table.ts';
import { fixSession, type SessionRow, type Wish } from './table.ts';

/** An operator's call that changes something. */
export interface ChangeCall extends AdminCall {
  /** Why, in the operator's words. */
  readonly reason: string;
  /** Real time, in milliseconds. */
  readonly at: number;
}

const lockedSession = fixSession.find({ id: 1n }, fixSession.all, statement('FOR UPDATE'));
const lease = statement(
  `SELECT fence, ${hasNotRunOut('expires_at')} AS is_held FROM leases WHERE name = ? FOR UPDATE`,
  leaseName,
);

/**
 * Stores what operators want the session to be, and returns the number of the request. A wish to be on is always a request,
 * because it also ends the wait after refused Logons.
 */
export async function wishSession(
  database: Database,
  wish: Wish,
  call: ChangeCall,
): Promise<{ readonly changed: boolean; readonly request: bigint }> {
  return database.transaction([lockedSession], ([rows]) => {
    const before = sessionOf(rows?.[0]);
    const changed = before.wish !== wish;
    if (!changed && wish === 'out') return { writes: [], result: { changed, request: before.request } };
    const request = before.request + 1n;
    const writes = [
      ...fixSession.update(before, { ...before, wish, request }),
      auditOf(call, call.action, before.wish, wish),
    ];
    return { writes, result: { changed, request } };
  });
}

/** Sets the numbers of the session while it is logged out. Returns those before and after. */
export async function setNumbersLoggedOut(
  database: Database,
  numbers: { readonly nextOut: bigint; readonly nextIn: bigint },
  call: ChangeCall,
): Promise<{ readonly before: FixNumbers; readonly after: FixNumbers }> {
  // In the order in which the process that has the session locks them.
  const reads = [lease, fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE')), lockedSession];
  return database.transaction(reads, ([leases, rows, sessions]) => {
    const [row] = rows ?? [];
    if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
    checkLoggedOut(sessionOf(sessions?.[0]), leases?.[0]);
    const before = fixNumbers.all.read(row);
    const after = agreedNumbers(before, numbers);
    const writes = [
      ...fixNumbers.update(before, after),
      ...markPassedOver,
      auditOf(call, call.action, shownNumbers(before), shownNumbers(after)),
    ];
    return { writes, result: { before, after } };
  });
}

function checkLoggedOut(session: SessionRow, held: Record<string, unknown> | undefined): void {
  const isHeld = Number(held?.is_held ?? 0) !== 0;
  if (isLoggedOut(session, isHeld ? BigInt(String(held?.fence)) : undefined)) return;
  throw new AdminError(status.FAILED_PRECONDITION, 'the session is not logged out: call LogOut first, and wait for it');
}

/** The process that has the session, by its fence, must have ended it for the last request, and not only be asked to. */
export function isLoggedOut(
  { wish, state, obeyed, request, fence }: Pick<SessionRow, 'wish' | 'state' | 'obeyed' | 'request' | 'fence'>,
  holder: bigint | undefined,
): boolean {
  if (wish !== 'out') return false;
  return holder === undefined || (state === 'logged_out' && obeyed === request && fence === holder);
}

function sessionOf(row: Record<string, unknown> | undefined): SessionRow {
  if (row === undefined) throw new Error('the database has no row of the session: migrate it first');
  return fixSession.all.read(row);
}
