import type { Clock } from '../../../../kit/clock.ts';
import { auditEntries } from '../../../edge/auth/audit-store.ts';
import type { Database } from '../../../store/database.ts';
import { sql, statement } from '../../../store/statement.ts';
import { storedKindOf, storedKinds } from '../../../trading/kinds.ts';
import { keptBulkCancels } from '../../../trading/orders/bulk-cancels/retention.ts';
import { bulkCancels } from '../../../trading/orders/bulk-cancels/table.ts';
import { pageOf, parsedJson, type StoredEntry } from '../audit-period.ts';
import { proposalById, proposals } from '../proposals/table.ts';
import type { AccountLink } from './links.ts';
import { isStopOf } from './stops.ts';

/** How many orders of a job are looked through in one statement. */
const ordersTogether = 2_000;
/** Texts that people wrote. An id in them does not make an entry one about that object. */
const freeTexts: ReadonlySet<string> = new Set(['reason', 'evidence', 'reference']);
const objectId = /^(ord|app|alc|wdr)_[a-z2-7]{20}$/;
const ofStops: ReadonlySet<string> = new Set(['Trading.AddStop', 'Trading.EndStop']);
const ofPauses: ReadonlySet<string> = new Set(['Trading.PauseTrading', 'Trading.ResumeTrading']);
const ofJobs: ReadonlySet<string> = new Set(['Trading.CancelOpenOrders', 'Trading.StopBulkCancel']);

type Members = Readonly<Record<string, unknown>>;

/** Decides which entries of the audit are about an account, or about one of its objects. */
export class AccountEntries {
  readonly #partnerIds: readonly string[];

  constructor(
    private readonly parts: { readonly database: Database; readonly clock: Clock },
    private readonly account: string,
    private readonly links: readonly AccountLink[],
  ) {
    this.#partnerIds = [...new Set(links.map(({ partnerId }) => partnerId))];
  }

  /** All entries of the period are read, because an entry can name the account in its detail alone. */
  page(after: bigint, last: bigint) {
    return pageOf('PRIMARY', [], after, last);
  }

  async wanted(rows: readonly StoredEntry[]): Promise<StoredEntry[]> {
    const read = rows.map((row) => {
      const detail = membersOf(row.detail);
      const named = namedIn(detail);
      return { row, detail, named, ids: [row.subject ?? '', ...named.map(([, value]) => value)].filter(isObject) };
    });
    const own = await this.#ownObjects(new Set(read.flatMap(({ ids }) => ids)));
    const found: StoredEntry[] = [];
    for (const { row, detail, named, ids } of read) {
      const isNamed =
        this.#isAccount(row.subject) || named.some(([key, text]) => key === 'account' && this.#isAccount(text));
      if (isNamed || ids.some((id) => own.has(id)) || (await this.#isAffected(row, detail))) found.push(row);
    }
    return found;
  }

  /** Whether an entry that does not name the account is about it all the same. */
  async #isAffected({ action, subject, at }: StoredEntry, detail: Members): Promise<boolean> {
    if (ofPauses.has(action)) return true;
    if (ofStops.has(action)) {
      return isStopOf({ target: detail.target, value: detail.value }, this.account, this.links, at, at + 1);
    }
    if (action === 'gateway.ExpireProposal') return this.#isProposed(String(detail.proposal));
    return ofJobs.has(action) && subject !== null && this.#isOfJob(subject);
  }

  /** Whether a proposal is to link the account: the entry of its end does not say for which account it was. */
  async #isProposed(id: string): Promise<boolean> {
    const [row] = await this.parts.database.read(proposalById(id));
    const named = row === undefined ? [] : namedIn(membersOf(proposals.all.read(row).request));
    return named.some(([key, text]) => key === 'account' && this.#isAccount(text));
  }

  /** Whether a job took an order of the account. When its orders are removed, it is taken for one that did if its filters allow it. */
  async #isOfJob(id: string): Promise<boolean> {
    const { database, clock } = this.parts;
    const [row] = await database.read(bulkCancels.find({ id }));
    const job = row && bulkCancels.all.read(row);
    const { partnerId = null, account = null } = job ?? (await this.#filterOf(id));
    if (account !== null) return this.#isAccount(account);
    const partnerIds = this.#partnerIds.filter((each) => partnerId === null || each === partnerId);
    for (const each of partnerIds) if (await this.#hasOrder(each, id)) return true;
    const isRemoved = job === undefined || (job.endedAt !== null && job.endedAt < clock.now() - keptBulkCancels.keptMs);
    return isRemoved && partnerIds.length > 0;
  }

  /** The filters of a job that is removed, by the entry of its begin. */
  async #filterOf(id: string): Promise<{ readonly partnerId?: string | null; readonly account?: string | null }> {
    const { database } = this.parts;
    const oldest = statement('ORDER BY id LIMIT 1');
    const [row] = await database.read(
      auditEntries.find({ subject: id }, auditEntries.all, oldest, 'audit_entries_subject'),
    );
    return row === undefined ? {} : membersOf(auditEntries.all.read(row).detail);
  }

  async #hasOrder(partnerId: string, jobId: string): Promise<boolean> {
    for (let after = ''; ; ) {
      const [row] = await this.parts.database.read(
        sql`SELECT COUNT(*) AS count, MAX(page.order_id) AS last, COALESCE(SUM(o.account = ${this.account}), 0) AS found
          FROM (SELECT order_id FROM bulk_cancel_orders FORCE INDEX (PRIMARY) WHERE partner_id = ${partnerId}
              AND bulk_cancel_id = ${jobId} AND order_id > ${after} ORDER BY order_id ${statement(`LIMIT ${ordersTogether}`)}) AS page
            LEFT JOIN orders o FORCE INDEX (PRIMARY) ON o.partner_id = ${partnerId} AND o.id = page.order_id`,
      );
      if (Number(row?.found ?? 0) > 0) return true;
      if (Number(row?.count ?? 0) < ordersTogether) return false;
      after = String(row?.last);
    }
  }

  /** Those of some objects that are of the account. */
  async #ownObjects(ids: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const finds = storedKinds.flatMap(({ name, table }) => {
      const some = [...ids].filter((id) => storedKindOf(id)?.name === name);
      const columns = table.only('id', 'account');
      return some.length === 0 ? [] : [table.find({ id: some }, columns, statement(''), `${table.name}_id`)];
    });
    const rows = (await this.parts.database.readAll(finds)).flat();
    return new Set(rows.filter(({ account }) => account === this.account).map(({ id }) => String(id)));
  }

  /** Operators may write an account in any case. */
  #isAccount(text: string | null): boolean {
    return text?.toUpperCase() === this.account;
  }
}

function isObject(text: string): boolean {
  return objectId.test(text);
}

function membersOf(text: string): Members {
  const parsed = parsedJson(text);
  return typeof parsed === 'object' && parsed !== null ? (parsed as Members) : {};
}

/** The texts in a JSON value, at any depth, each with the name of its member. */
function namedIn(value: unknown, key = ''): [key: string, text: string][] {
  if (typeof value === 'string') return freeTexts.has(key) ? [] : [[key, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => namedIn(member, Array.isArray(value) ? key : name));
}
