import type { Database } from '../../gateway/store/database.ts';
import { joined, type SqlRow, type Statement, statement } from '../../gateway/store/statement.ts';
import { fixMessages, type MessageSession, type StoredMessage } from './table.ts';

/** Which messages to find. All that is given must match. */
export interface MessageFilter {
  /** The gateway's id of the order, also of its cancels. */
  readonly orderId?: string | undefined;
  /** ClOrdID (11). */
  readonly clOrdId?: string | undefined;
  /** MsgSeqNum, from the first to the last. */
  readonly numbers?: { readonly from: bigint; readonly to: bigint } | undefined;
  /** Only messages of this session. */
  readonly session?: MessageSession | undefined;
  readonly direction?: 'in' | 'out' | undefined;
  /** MsgType (35). */
  readonly type?: string | undefined;
  /** In milliseconds; `since` is included, `until` is not. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Only messages with a lower id: the last one of the page before. */
  readonly beforeId?: bigint | undefined;
  /** Only messages with a higher id. */
  readonly afterId?: bigint | undefined;
}

/** A page of messages, newest first. */
export interface MessagePage {
  readonly messages: readonly StoredMessage[];
  readonly hasMore: boolean;
}

/** How many messages a page has at most. */
export const maxPage = 1_000;
/** How many numbers can be asked for at once. */
export const maxNumbers = 1_000n;
/** How far the clocks of two processes may differ, one of which wrote before the other. */
const clockSlackMs = 300_000;

/** Finds messages by the index of what is asked for, so that a page reads few rows however many there are. */
export async function findMessages(database: Database, filter: MessageFilter, limit: number): Promise<MessagePage> {
  const most = Math.min(limit, maxPage) + 1;
  const ids = await idsOfTimes(database, filter);
  if (ids === undefined) return { messages: [], hasMore: false };
  const pages = await database.readAll(readsOf(filter, ids).map((where) => pageOf(where, filter, most)));
  const rows = pages.flat().map((row) => fixMessages.all.read(row));
  rows.sort((one, other) => (one.id > other.id ? -1 : 1));
  return { messages: rows.slice(0, most - 1), hasMore: rows.length >= most };
}

/**
 * The conditions on ids by which the times that are asked for are found: ids grow with time, but for the difference of two
 * processes' clocks. Undefined: there is no message of that time.
 */
async function idsOfTimes(
  database: Database,
  { since, until, beforeId, afterId }: MessageFilter,
): Promise<Statement[] | undefined> {
  const conditions = [
    ...(beforeId === undefined ? [] : [statement('id < ?', beforeId)]),
    ...(afterId === undefined ? [] : [statement('id > ?', afterId)]),
    ...(since === undefined ? [] : [statement('at >= ?', new Date(since))]),
    ...(until === undefined ? [] : [statement('at < ?', new Date(until))]),
  ];
  const bounds = [
    ...(since === undefined ? [] : [edge('id >=', '>= ? ORDER BY at LIMIT 1', since - clockSlackMs)]),
    ...(until === undefined ? [] : [edge('id <=', '< ? ORDER BY at DESC LIMIT 1', until + clockSlackMs)]),
  ];
  const found = await database.readAll(bounds.map(({ read }) => read));
  for (const [at, { condition }] of bounds.entries()) {
    const id = found[at]?.[0]?.id;
    if (id === undefined) return undefined;
    conditions.push(statement(`${condition} ?`, BigInt(String(id))));
  }
  return conditions;
}

function edge(condition: string, tail: string, at: number): { condition: string; read: Statement } {
  const sql = `SELECT id FROM fix_messages FORCE INDEX (fix_messages_at) WHERE at ${tail}`;
  return { condition, read: statement(sql, new Date(at)) };
}

interface Where {
  readonly index: string;
  readonly conditions: readonly Statement[];
}

/** One read, or one of each direction, because their index has the direction before the id. */
function readsOf(filter: MessageFilter, ids: readonly Statement[]): Where[] {
  const { orderId, clOrdId, numbers, session, type, direction } = filter;
  if (orderId !== undefined) {
    return [{ index: 'fix_messages_order', conditions: [statement('order_id = ?', Buffer.from(orderId)), ...ids] }];
  }
  if (clOrdId !== undefined) {
    return [
      { index: 'fix_messages_cl_ord_id', conditions: [statement('cl_ord_id = ?', Buffer.from(clOrdId)), ...ids] },
    ];
  }
  if (numbers !== undefined) return [{ index: 'fix_messages_number', conditions: [...numbersWhere(numbers), ...ids] }];
  if (type === undefined) {
    return [{ index: session === undefined ? 'PRIMARY' : 'fix_messages_session', conditions: ids }];
  }
  const directions = direction === undefined ? ['in', 'out'] : [direction];
  return directions.map((one) => ({
    index: 'fix_messages_type',
    conditions: [statement('type = ?', type), statement('direction = ?', one), ...ids],
  }));
}

function numbersWhere({ from, to }: NonNullable<MessageFilter['numbers']>): Statement[] {
  return from === to ? [statement('number = ?', from)] : [statement('number >= ?', from), statement('number <= ?', to)];
}

function pageOf({ index, conditions }: Where, filter: MessageFilter, most: number): Statement {
  const { clOrdId, numbers, session, type, direction } = filter;
  const all = [
    ...conditions,
    ...(session === undefined ? [] : [statement('session = ?', session)]),
    ...(clOrdId === undefined ? [] : [statement('cl_ord_id = ?', Buffer.from(clOrdId))]),
    ...(numbers === undefined ? [] : numbersWhere(numbers)),
    ...(type === undefined ? [] : [statement('type = ?', type)]),
    ...(direction === undefined ? [] : [statement('direction = ?', direction)]),
  ];
  const where = all.length === 0 ? statement('1 = 1') : joined(all, ' AND ');
  const from = `FROM fix_messages FORCE INDEX (${index})`;
  return {
    sql: `SELECT ${fixMessages.all.list} ${from} WHERE ${where.sql} ORDER BY id DESC LIMIT ${most}`,
    values: where.values,
  };
}

/** The id of the newest message; 0 if there is none. */
export async function newestId(database: Database): Promise<bigint> {
  const [row]: SqlRow[] = await database.read(statement('SELECT id FROM fix_messages ORDER BY id DESC LIMIT 1'));
  return row === undefined ? 0n : BigInt(String(row.id));
}
