import type { Database } from '../../gateway/store/database.ts';
import { statement } from '../../gateway/store/statement.ts';
import { pause, type Worker } from '../../kit/worker.ts';
import { fixMessages } from './table.ts';

/** How much of the message log is kept. */
export interface Retention {
  /** How long, in milliseconds. */
  readonly keptMs: number;
  /** How many characters of messages. */
  readonly keptCharacters: bigint;
}

export interface RetentionOptions extends Retention {
  readonly database: Database;
  /** Real time, in milliseconds. */
  readonly now: () => number;
}

/** Rows in a batch: a removal of so many takes some tens of milliseconds. */
const batchRows = 500;
/** How long the worker rests when nothing more is old. */
const restMs = 60_000;
/** It rests so many times as long as a batch took, so that it never takes more than a tenth of one connection's time. */
const restsFor = 9;

const shown = fixMessages.only('id', 'at', 'position');

/** Removes messages that are older than they are kept, or more than are kept, in small batches, oldest first. */
export function retentionWorker(options: RetentionOptions): Worker {
  return {
    name: 'message log retention',
    run: async (signal) => {
      while (!signal.aborted) {
        const startedAt = performance.now();
        const removed = await removeBatch(options);
        const tookMs = performance.now() - startedAt;
        await pause(removed < batchRows ? restMs : tookMs * restsFor, signal);
      }
    },
  };
}

/** Removes the oldest messages as far as they are not kept, at most one batch. Returns how many. */
export async function removeBatch({ database, now, keptMs, keptCharacters }: RetentionOptions): Promise<number> {
  const [oldest = [], newest = [], times = []] = await database.readAll([
    statement(`SELECT ${shown.list} FROM fix_messages ORDER BY id LIMIT ${batchRows}`),
    statement(`SELECT ${shown.list} FROM fix_messages ORDER BY id DESC LIMIT 1`),
    statement('SELECT UTC_TIMESTAMP(3) AS now'),
  ]);
  const [last] = newest.map((row) => shown.read(row));
  const serverNow = times[0]?.now;
  if (last === undefined || !(serverNow instanceof Date)) return 0;
  // By the earlier of two clocks: one that is wrongly ahead must not empty the log.
  const before = Math.min(now(), serverNow.getTime()) - keptMs;
  const rows = oldest.map((row) => shown.read(row));
  const isOld = ({ at, position }: (typeof rows)[number]) => at < before || position <= last.position - keptCharacters;
  const firstKept = rows.findIndex((row) => !isOld(row));
  const old = firstKept === -1 ? rows : rows.slice(0, firstKept);
  const end = old.at(-1);
  if (end === undefined) return 0;
  return database.write(statement('DELETE FROM fix_messages WHERE id <= ?', end.id));
}
