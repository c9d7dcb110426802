import { auditEntries } from '../../../edge/auth/audit-store.ts';
import type { Database } from '../../../store/database.ts';
import { statement } from '../../../store/statement.ts';
import { accounts } from '../../../trading/accounts/store.ts';
import { readUpToDate } from '../../../trading/submission/table.ts';
import { entriesTogether, pageOf, parsedJson, type StoredEntry } from '../audit-period.ts';
import { type AccountLine, timeText } from './lines.ts';

/** The time in which a partner had an account. */
export interface AccountLink {
  readonly partnerId: string;
  /** Null: not known, because its entry of the audit is missing. */
  readonly from: number | null;
  /** Null: the partner has it now. */
  readonly until: number | null;
  /** The application that opened it; null: an operator linked it. */
  readonly application: string | null;
  readonly linkedBy: string | null;
  readonly unlinkedBy: string | null;
}

/** The numbers of all entries. */
const [firstId, lastId] = [0n, 2n ** 63n - 1n];

/**
 * The partners that had an account, the first one first. The audit has who linked and unlinked it; the table of accounts has the
 * partner that has it now, also where an application opened it.
 */
export async function readLinks(database: Database, account: string): Promise<AccountLink[]> {
  const links: AccountLink[] = [];
  let open: AccountLink | undefined;
  for await (const entry of entriesAbout(database, account)) {
    const { partnerId, at, operator } = entry;
    if (partnerId === null) continue;
    if (entry.action === 'Accounts.LinkAccount') {
      // Without an entry of its end, the link before is shown as it began.
      if (open !== undefined) links.push(open);
      open = { partnerId, from: at, until: null, application: null, linkedBy: operator, unlinkedBy: null };
    } else if (entry.action === 'Accounts.UnlinkAccount') {
      const begun = open?.partnerId === partnerId ? open : undefined;
      if (open !== undefined && begun === undefined) links.push(open);
      const { createdAt, application } = before(entry);
      const from = createdAt ?? begun?.from ?? null;
      links.push({ partnerId, from, application, linkedBy: begun?.linkedBy ?? null, until: at, unlinkedBy: operator });
      open = undefined;
    }
  }
  const [row] = await readUpToDate(database, accounts.find({ account }));
  if (row === undefined) return open === undefined ? links : [...links, open];
  const { partnerId, applicationId: application, createdAt: from } = accounts.all.read(row);
  const begun = open?.partnerId === partnerId ? open : undefined;
  if (open !== undefined && begun === undefined) links.push(open);
  return [...links, { partnerId, from, until: null, application, linkedBy: begun?.linkedBy ?? null, unlinkedBy: null }];
}

/** Whether a partner had the account at some time from an instant on and before another one. */
export function hadIt(links: readonly AccountLink[], partnerId: string, from: number, until: number): boolean {
  return links.some(
    (link) =>
      link.partnerId === partnerId && (link.from ?? 0) < until && (link.until ?? Number.POSITIVE_INFINITY) > from,
  );
}

export function linkLine({ partnerId, from, until, application, linkedBy, unlinkedBy }: AccountLink): AccountLine {
  return {
    ...{ line: 'partner', partner_id: partnerId, from: timeText(from), until: timeText(until) },
    ...{ application, linked_by: linkedBy, unlinked_by: unlinkedBy },
  };
}

/** The entries whose subject is the account: links, and reads by operators. */
async function* entriesAbout(database: Database, account: string): AsyncGenerator<StoredEntry> {
  const isAbout = [statement('subject = ?', account)];
  for (let after = firstId; ; ) {
    const rows = await database.read(pageOf('audit_entries_subject', isAbout, after, lastId));
    const entries = rows.map(auditEntries.all.read);
    yield* entries;
    const last = entries.at(-1);
    if (last === undefined || entries.length < entriesTogether) return;
    after = last.id;
  }
}

/** The link that an entry ended, as far as it says. */
function before({ was }: StoredEntry): { readonly createdAt: number | null; readonly application: string | null } {
  const { createdAt, application } = (was === null ? {} : parsedJson(was)) as Readonly<Record<string, unknown>>;
  const at = Date.parse(String(createdAt));
  return { createdAt: Number.isNaN(at) ? null : at, application: typeof application === 'string' ? application : null };
}
