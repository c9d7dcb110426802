import { atMost } from '../../../kit/at-most.ts';
import type { Logger } from '../../../kit/log.ts';
import { periodic, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { isTableMissing, type WriteObstacle, writeObstacle } from '../../store/errors.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { defineTable, instant, text, whole } from '../../store/table.ts';

/** The trouble with writes: an obstacle that the database named, or no answer. */
export type WriteTrouble = WriteObstacle | 'silent';

/** A failed check that shows nothing about writes: this time, or always because the table is not writable. */
type NoAnswer = 'unknown' | 'unchecked';

const checkEveryMs = 1_000;
/** The longest write. A disk that is slow for a moment is not full. */
const answerWithinMs = 5_000;
/**
 * After a refused real write, checks must succeed for this long. Tables of a full disk still have some room; where a server
 * takes no writes at all, one that it takes is a proof, unless it was another server.
 */
const doubtMs: Readonly<Record<WriteObstacle, number>> = {
  'disk-full': 10_000,
  'read-only': 2_000,
  'not-writer': 2_000,
};
/** While writes are in doubt, a check stores two pages of 16 KiB. */
const filler = '-'.repeat(7_000);
const fillers = 4;

/**
 * Finds out whether the database takes writes: from refused real writes, and from a small write each second.
 *
 * On a full disk, a table takes rows until its own free pages are used up. So while writes are in doubt, each check
 * stores more and keeps it. Soon its table has no free page either, and the next success proves that the table could
 * grow.
 */
export class WriteProbe {
  readonly worker: Worker;
  #trouble: WriteTrouble | undefined;
  #doubtedUntil = 0;
  #isDenied = false;

  constructor(
    private readonly database: Database,
    private readonly holder: string,
    private readonly log: Logger,
  ) {
    this.worker = periodic('write-probe', checkEveryMs, () => this.#checkOnce());
  }

  /** The known trouble. */
  get trouble(): WriteTrouble | undefined {
    // A refused real write counts at once.
    return this.#trouble ?? this.database.refusedWrite;
  }

  async #checkOnce(): Promise<void> {
    this.#noteRefusedWrite();
    const found = await this.#check();
    if (found === 'unknown') return;
    if (found !== undefined && found !== 'unchecked') {
      // From now on a successful check is proof.
      this.#trouble = found;
      this.#doubtedUntil = 0;
      this.database.forgetRefusedWrite();
      return;
    }
    this.#noteRefusedWrite();
    // If checks are impossible, nothing proves that writes work again. So a refused real write counts only for its time.
    if (performance.now() > this.#doubtedUntil) this.#trouble = undefined;
  }

  #noteRefusedWrite(): void {
    const refused = this.database.refusedWrite;
    if (refused === undefined) return;
    this.#trouble = refused;
    this.#doubtedUntil = performance.now() + doubtMs[refused];
    this.database.forgetRefusedWrite();
  }

  /** Ends when the write ends, so that checks do not pile up. */
  async #check(): Promise<WriteTrouble | NoAnswer | undefined> {
    let found: WriteTrouble | NoAnswer | undefined;
    const written = this.#write().catch((error: unknown) => {
      found = this.#obstacleIn(error);
    });
    if (await atMost(answerWithinMs, written)) return found;
    this.#trouble = 'silent';
    await written;
    return found ?? 'silent';
  }

  async #write(): Promise<unknown> {
    if (this.#trouble !== undefined) return this.database.write(store(this.holder, Array(fillers).fill(filler)));
    const writes = [forget(this.holder), store(this.holder, [''])];
    return this.database.transaction([], () => ({ writes, result: undefined }));
  }

  #obstacleIn(error: unknown): WriteTrouble | NoAnswer {
    const cause = (error as Error).cause ?? error;
    const obstacle = writeObstacle(cause);
    if (obstacle !== undefined) return obstacle;
    const { errno } = cause as { errno?: number };
    // Another check holds the table, and its own write hangs.
    if (errno === lockWaitTimeout) return 'silent';
    if (errno !== accessDenied && !isTableMissing(cause)) return 'unknown';
    if (!this.#isDenied) this.log.warn({ err: error }, 'whether the database takes writes cannot be checked');
    this.#isDenied = true;
    return 'unchecked';
  }
}

const lockWaitTimeout = 1205;
const accessDenied = 1142;

/** Rows that gateways write only to check that writes work. Their time is the database's. */
export const writeChecks = defineTable({
  name: 'write_checks',
  columns: { id: whole(), holder: text(64), filler: text(7000), checkedAt: instant() },
  primary: ['id'],
  generated: 'id',
  indexes: { write_checks_holder: ['holder'] },
});

function store(holder: string, texts: readonly string[]): Statement {
  const rows = texts.map(() => '(?, ?, NOW(3))').join(', ');
  return statement(
    `INSERT INTO write_checks (holder, filler, checked_at) VALUES ${rows}`,
    ...texts.flatMap((text) => [holder, text]),
  );
}

/** Removes this process's rows, and those of processes that have ended. */
function forget(holder: string): Statement {
  return statement('DELETE FROM write_checks WHERE holder = ? OR checked_at < NOW(3) - INTERVAL 1 HOUR', holder);
}
