import { status } from '@grpc/grpc-js';
import type { ExportAccountRequest } from '../../../../gen/marina/admin/v1/audit_pb.ts';
import type { AuditSeals } from '../../audit/seals.ts';
import { AuditPeriod, jsonOf } from '../audit-period.ts';
import type { AdminCall, AdminParts, oneStreamAtATime } from '../call.ts';
import { AdminError } from '../errors.ts';
import { askedDays, type Days } from '../reports/days.ts';
import type { ReportsUnderWay } from '../reports/parts.ts';
import { AccountEntries } from './entries.ts';
import { type AccountLine, toText } from './lines.ts';
import { type AccountLink, linkLine, readLinks } from './links.ts';
import { objectLines } from './objects.ts';
import { pauseLines, stopLines } from './stops.ts';

/** More than a year is asked for in parts: an export reads all entries of the audit of its days. */
const maxDays = 366;
/** About as many lines as a message has. */
const linesTogether = 200;

type Parts = Pick<AdminParts, 'database' | 'clock'> & { readonly seals: AuditSeals };

/** The operators' call that exports everything about one account. It counts as an export of the audit and as a report. */
export function accountExportCalls(
  parts: Parts,
  underWay: ReportsUnderWay,
  exporting: ReturnType<typeof oneStreamAtATime>,
) {
  return {
    async *exportAccount(request: ExportAccountRequest, call: AdminCall, signal: AbortSignal) {
      const days = askedDays(request, maxDays);
      yield* exporting(() =>
        underWay.bounded(call.operator, (checkTime) => exportedParts(parts, request.account, days, signal, checkTime)),
      );
    },
  };
}

async function* exportedParts(parts: Parts, account: string, days: Days, signal: AbortSignal, checkTime: () => void) {
  const { database, seals } = parts;
  const links = await readLinks(database, account);
  if (links.length === 0) throw new AdminError(status.NOT_FOUND, 'no partner has this account, or had it');
  const audit = new AuditPeriod(database, seals, { from: days.from, to: days.until });
  const counts = new Map<AccountLine['line'], number>();
  let [unsealed, archivedSteps] = [0, 0];
  let waiting: AccountLine[] = [];
  for await (const page of pagesOf(parts, account, links, days, audit, signal)) {
    if (signal.aborted) return;
    checkTime();
    for (const { line, batch, archived_steps: archived = 0 } of page) {
      counts.set(line, (counts.get(line) ?? 0) + 1);
      if (line === 'entry' && batch === '') unsealed += 1;
      archivedSteps += Number(archived);
    }
    waiting.push(...page);
    if (waiting.length < linesTogether) continue;
    yield { text: toText(waiting) };
    waiting = [];
  }
  if (signal.aborted) return;
  if (waiting.length > 0) yield { text: toText(waiting) };
  const { number: lastBatch, lastId, hash: lastHash } = audit.lastBatch ?? {};
  yield {
    ...{ complete: true, faults: audit.faults, unsealed, archivedSteps, lastBatch, lastId, lastHash },
    counts: [...counts].map(([kind, count]) => ({ kind, count })),
  };
}

/** All lines, in the order of the export, a page at a time. */
async function* pagesOf(
  parts: Parts,
  account: string,
  links: readonly AccountLink[],
  days: Days,
  audit: AuditPeriod,
  signal: AbortSignal,
): AsyncGenerator<readonly AccountLine[]> {
  const { database } = parts;
  yield links.filter(({ from }) => from === null || from < days.until).map(linkLine);
  yield* stopLines(database, account, links, days);
  yield await pauseLines(database, days);
  for (const partnerId of new Set(links.map((link) => link.partnerId))) {
    yield* objectLines(database, partnerId, account, days);
  }
  for await (const page of audit.entries(new AccountEntries(parts, account, links), signal)) {
    yield page.map((entry) => ({ line: 'entry', ...jsonOf(entry) }));
  }
}
