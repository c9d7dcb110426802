import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import {
  type AcknowledgeBreakRequest,
  BreakKind,
  BreakKindSchema,
  type ExportReconciliationBreaksRequest,
  type ListReconciliationBreaksRequest,
  type ListReconciliationsRequest,
  type ReconcileDayRequest,
} from '../../../../gen/marina/admin/v1/reconciliation_pb.ts';
import { type Clock, isDate, lagosDay } from '../../../../kit/clock.ts';
import { csvLine } from '../../../../kit/csv.ts';
import { enumWords } from '../../../../kit/enums.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { startRun } from '../../reconciliation/run-store.ts';
import {
  type BreakFilter,
  breaksById,
  firstPartner,
  listBreaks,
  listRuns,
  newestRun,
} from '../../reconciliation/store.ts';
import {
  reconciliationBreaks,
  reconciliationRuns,
  type StoredBreak,
  type StoredRun,
} from '../../reconciliation/table.ts';
import { audit } from '../audit.ts';
import { type AdminCall, longestStreamMs, oneStreamAtATime, usuallyListed } from '../call.ts';
import { AdminError, invalidField } from '../errors.ts';

const breakKinds = enumWords<typeof BreakKind>(BreakKindSchema);

/** How long a call waits for a day's result, and how often it asks. */
const longestWaitMs = 15_000;
const pollMs = 200;
/** A list with a kind looks at this many breaks of other kinds at most. */
const maxRead = 1_000;
const tooLong = 'the export takes too long: ask for one day, or for one partner';
/** How many breaks an export reads at a time. */
const rowsTogether = 200;
/** The columns of an export. */
const columns = [
  ...['id', 'day', 'kind', 'partner_id', 'object_id', 'account', 'symbol', 'ours', 'brokers', 'is_unsettled'],
  ...['first_seen_at', 'last_seen_at', 'gone_at', 'acknowledged_by', 'acknowledged_at', 'acknowledged_reason'],
];

/** The operators' calls about the reconciliation with the broker's statements. `wake` wakes the process that compares days. */
export function reconciliationCalls(database: Database, clock: Clock, cursors: Cursors, wake: () => void) {
  async function reconcileDay({ day, reason }: ReconcileDayRequest, call: AdminCall) {
    await checkDay(day);
    const now = clock.now();
    const entry = audit(call, now, { subject: day, detail: { day, reason } });
    const started = await startRun(database, { day }, { startedBy: call.operator, now }, [entry]);
    if (started === undefined) throw new Error(`no reconciliation of ${day} was started`);
    wake();
    return { reconciliation: toRun(await ended(started)) };
  }

  /** The run when its next try has ended, or as it is after the longest wait. */
  async function ended(started: StoredRun): Promise<StoredRun> {
    const end = performance.now() + longestWaitMs;
    let run = started;
    const isOver = () => run.number !== started.number || (run.tries > started.tries && run.state !== 'running');
    const isRunning = started.state === 'running';
    while (!(isOver() || (isRunning && run.state !== 'running')) && performance.now() < end) {
      await delay(pollMs);
      const [row] = await database.read(newestRun(started));
      if (row !== undefined) run = reconciliationRuns.all.read(row);
    }
    return run;
  }

  async function checkDay(day: string): Promise<void> {
    if (!isDate(day)) throw invalidField('day', 'must be a day, as in 2026-03-02.');
    if (day > lagosDay(clock.now())) throw invalidField('day', 'must not be after today.');
    const [first] = await database.read(firstPartner());
    const firstDay = first && lagosDay((first.created_at as Date).getTime());
    if (firstDay === undefined || day < firstDay) {
      throw invalidField('day', `must not be before the gateway's first${firstDay ? `, ${firstDay}` : ''}.`);
    }
  }

  async function listReconciliations({ day, limit, cursor }: ListReconciliationsRequest) {
    if (day !== '' && !isDate(day)) throw invalidField('day', 'must be a day, as in 2026-03-02.');
    const issuedFor = ['reconciliations', day];
    const before = cursor === '' ? undefined : cursors.read(issuedFor, cursor).split(' ');
    const most = limit || usuallyListed;
    const position = before && ([before[0] ?? '', Number(before[1])] as const);
    const rows = await database.read(listRuns(day, position, most + 1));
    const runs = rows.map(reconciliationRuns.all.read);
    const page = cursors.page(issuedFor, runs, most, (run) => `${run.day} ${run.number}`);
    return { reconciliations: page.data.map(toRun), nextCursor: page.nextCursor };
  }

  async function listReconciliationBreaks({ limit, cursor, kind, ...filter }: ListReconciliationBreaksRequest) {
    const word = wantedKind(kind, filter);
    const issuedFor = ['breaks', filter.day, filter.partnerId, String(filter.openOnly), word ?? ''];
    const most = limit || usuallyListed;
    let after = cursor === '' ? undefined : positionIn(cursors.read(issuedFor, cursor));
    const breaks: StoredBreak[] = [];
    for (let read = 0; read < maxRead; ) {
      const wanted = most - breaks.length + 1;
      const rows = (await database.read(listBreaks(filter, after, wanted))).map(reconciliationBreaks.all.read);
      for (const row of rows) {
        if (breaks.length === most) return { breaks, nextCursor: issue(issuedFor, after) };
        after = [row.day, row.id];
        if (word === undefined || row.kind === word) breaks.push(row);
      }
      if (rows.length < wanted) return { breaks, nextCursor: undefined };
      read += rows.length;
    }
    return { breaks, nextCursor: issue(issuedFor, after) };
  }

  function issue(issuedFor: readonly string[], after: readonly [string, string] | undefined): string | undefined {
    return after && cursors.issue(issuedFor, after.join(' '));
  }

  async function acknowledgeBreak({ id, reason, ours, brokers }: AcknowledgeBreakRequest, call: AdminCall) {
    if (reason.trim() === '') throw invalidField('reason', 'must say why.');
    const now = clock.now();
    const row = await database.transaction<StoredBreak | undefined>([breaksById([id])], ([rows = []]) => {
      const [found] = rows;
      const before = found && reconciliationBreaks.all.read(found);
      if (before === undefined) return { writes: [], result: undefined };
      if ((ours ?? before.ours) !== before.ours || (brokers ?? before.brokers) !== before.brokers) {
        throw new AdminError(status.FAILED_PRECONDITION, 'the break has other values by now: list it again');
      }
      if (before.acknowledgedAt !== null) return { writes: [], result: before };
      const by = { acknowledgedBy: call.operator, acknowledgedAt: now, acknowledgedReason: reason };
      const after = { ...before, ...by, isOpen: false };
      const { partnerId, kind, day, objectId, account } = before;
      const detail = { id, reason, kind, day, object_id: objectId, account };
      const entry = { ...(partnerId === '' ? {} : { partnerId }), subject: id, detail };
      return { writes: [...reconciliationBreaks.update(before, after), audit(call, now, entry)], result: after };
    });
    if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such break');
    return { break: row };
  }

  return { reconcileDay, listReconciliations, listReconciliationBreaks, acknowledgeBreak };
}

/** The operators' call that exports breaks as CSV. One export reads one page of breaks at a time. */
export function exportCalls(database: Database, longestMs = longestStreamMs) {
  const exporting = oneStreamAtATime('another export is under way');

  async function* exportedParts(filter: BreakFilter, word: string | undefined, signal: AbortSignal) {
    const end = performance.now() + longestMs;
    yield { csv: csvLine(columns) };
    let after: readonly [string, string] | undefined;
    while (!signal.aborted) {
      if (performance.now() >= end) throw new AdminError(status.DEADLINE_EXCEEDED, tooLong);
      const found = await database.read(listBreaks(filter, after, rowsTogether));
      const rows = found.map((row) => reconciliationBreaks.toJson(row));
      const wanted = rows.filter((row) => word === undefined || row.kind === word);
      const csv = wanted.map((row) => csvLine(columns.map((name) => String(row[name] ?? '')))).join('');
      if (csv !== '') yield { csv };
      const last = rows.at(-1);
      if (last === undefined || rows.length < rowsTogether) return;
      after = [String(last.day), String(last.id)];
    }
  }

  return {
    async *exportReconciliationBreaks(
      { kind, ...filter }: ExportReconciliationBreaksRequest,
      _call: AdminCall,
      signal: AbortSignal,
    ) {
      const word = wantedKind(kind, filter);
      yield* exporting(() => exportedParts(filter, word, signal));
    },
  };
}

/** The kind of breaks that a request names; undefined: it names none. Throws INVALID_ARGUMENT for what is no filter. */
function wantedKind(kind: BreakKind, { day }: Pick<BreakFilter, 'day'>) {
  if (day !== '' && !isDate(day)) throw invalidField('day', 'must be a day, as in 2026-03-02.');
  const word = kind === BreakKind.UNSPECIFIED ? undefined : breakKinds.find(kind);
  if (kind !== BreakKind.UNSPECIFIED && word === undefined) throw invalidField('kind', 'is not known.');
  return word;
}

function positionIn(text: string): readonly [day: string, id: string] {
  const [day = '', id = ''] = text.split(' ');
  return [day, id];
}

function toRun(run: StoredRun) {
  return { ...run, id: `${run.day}-${run.number}` };
}
