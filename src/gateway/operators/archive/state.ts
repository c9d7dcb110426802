import { randomUUID } from 'node:crypto';
import type { Database } from '../../store/database.ts';
import { joined, sql } from '../../store/statement.ts';
import { archiveState } from './table.ts';

/** The row with the database's name; the others are named by months. */
const databaseRow = 'database';

/**
 * What the database knows of its archive: its own name, which says whose archive a folder is, and the months whose steps may
 * have left it, which can be had from the folder only.
 */
export class ArchiveState {
  private constructor(
    private readonly database: Database,
    /** The same for the database's whole life, and after it was restored from a backup. */
    readonly databaseName: string,
    readonly months: ReadonlySet<string>,
  ) {}

  /** Only one process may do so at a time. */
  static async read(database: Database): Promise<ArchiveState> {
    await database.write(sql`INSERT IGNORE INTO archive_state (name, value) VALUES (${databaseRow}, ${randomUUID()})`);
    const rows = (await database.read(archiveState.find({}, archiveState.all, sql`1 = 1`))).map(archiveState.all.read);
    const own = rows.find(({ name }) => name === databaseRow);
    if (own === undefined) throw new Error('archive_state has no name of the database');
    return new ArchiveState(database, own.value, new Set(rows.filter((row) => row !== own).map(({ name }) => name)));
  }

  /** Notes a month before the first of its steps leaves the database. */
  async add(month: string): Promise<void> {
    await this.database.write(
      sql`INSERT IGNORE INTO archive_state (name, value) VALUES (${month}, ${new Date().toISOString()})`,
    );
  }

  /** Forgets months whose files are lost. */
  async forget(months: readonly string[]): Promise<void> {
    await this.database.write(
      sql`DELETE FROM archive_state WHERE ${joined(
        months.map((month) => sql`name = ${month}`),
        ' OR ',
      )}`,
    );
  }
}
