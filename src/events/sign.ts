import type { Database } from '../db/database.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';

/** Which event: its partner and its number among the partner's events. */
export interface EventKey {
  readonly partnerId: string;
  readonly version: bigint;
}

/** Those who take events from the outbox, each by its bit in a row's signatures. */
const takers = { feed: 1, webhooks: 2 } as const;

export type TakerName = keyof typeof takers;

export const takerNames = Object.keys(takers) as readonly TakerName[];

const signedByAll = Object.values(takers).reduce<number>((sum, bit) => sum | bit, 0);

/** An event that was taken. */
export interface TakenEvent extends EventKey {
  /** When its change was committed, in real time. */
  readonly committedAt: number;
}

/**
 * Lets a taker take events from the outbox: the rows it has not signed yet are locked, what it makes of them is written
 * and they are signed, in one transaction. So an event that comes twice, or whose row is gone, changes nothing: each
 * taker takes each once. A row that all have signed is removed.
 */
export async function takeFromOutbox(
  database: Database,
  taker: TakerName,
  events: readonly EventKey[],
  work: {
    /** What else is read, after the rows are locked. */
    readonly reads?: readonly Statement[];
    readonly writes: (taken: readonly EventKey[], rows: SqlRow[][]) => readonly Statement[];
  },
): Promise<readonly TakenEvent[]> {
  const bit = takers[taker];
  return database.transaction<readonly TakenEvent[]>(
    [lockRows(events), ...(work.reads ?? [])],
    ([rows = [], ...more]) => {
      const found = rows.map((row) => ({
        partnerId: String(row.partner_id),
        version: toBigInt(row.version),
        signed: Number(row.signed),
        committedAt: (row.publish_at as Date).getTime(),
      }));
      const taken = found.filter(({ signed }) => (signed & bit) === 0);
      if (taken.length === 0) return { writes: [], result: [] };
      // Another version may have more consumers, whose bits say nothing of ours.
      const isLast = ({ signed }: { signed: number }) => ((signed | bit) & signedByAll) === signedByAll;
      const last = taken.filter(isLast);
      const first = taken.filter((row) => !isLast(row));
      const writes = [...work.writes(taken, more)];
      if (last.length > 0) writes.push(onOutbox('DELETE FROM outbox WHERE', last));
      if (first.length > 0) writes.push(onOutbox(`UPDATE outbox SET signed = signed | ${bit} WHERE`, first));
      return { writes, result: taken };
    },
  );
}

/** Counts the events a taker has not taken, at most so many of them, and finds when the oldest was committed. */
export function findUnsigned(taker: TakerName, most: number): Statement {
  return statement(
    `SELECT COUNT(*) AS count, MIN(publish_at) AS oldest FROM
      (SELECT publish_at FROM outbox WHERE signed & ${takers[taker]} = 0 ORDER BY publish_at LIMIT ${most}) AS waiting`,
  );
}

/** A statement on the outbox rows of some events. */
export function onOutbox(sql: string, events: readonly EventKey[], end = ''): Statement {
  return statement(
    `${sql} (partner_id, version) IN (${events.map(() => '(?, ?)').join(', ')})${end}`,
    ...events.flatMap(({ partnerId, version }) => [partnerId, version]),
  );
}

function lockRows(events: readonly EventKey[]): Statement {
  return onOutbox('SELECT partner_id, version, signed, publish_at FROM outbox WHERE', events, ' FOR UPDATE');
}
