import type { Database } from './database.ts';
import { fillPlaces, Gathering } from './gathering.ts';
import { type SqlRow, type Statement, statement } from './statement.ts';

/** How many rows one round trip reads at most. */
const mostTogether = 64;

/** Reads rows of one table by their partner and id. What is asked for at the same time of a partner is read together. */
export class RowReader {
  readonly #gathering: Gathering<string, SqlRow | undefined>;

  /** `columns` must hold the id. */
  constructor(
    database: Database,
    private readonly table: string,
    private readonly columns: string,
  ) {
    this.#gathering = new Gathering(mostTogether, async (partnerId, ids) => {
      const rows = await database.read(this.#query(partnerId, ids));
      const byId = new Map(rows.map((row) => [String(row.id), row]));
      return ids.map((id) => byId.get(id));
    });
  }

  /** One row, or undefined where the partner has none of that id. */
  read(partnerId: string, id: string): Promise<SqlRow | undefined> {
    return this.#gathering.ask(partnerId, id, id);
  }

  #query(partnerId: string, ids: readonly string[]): Statement {
    const filled = fillPlaces(ids, ids[0] ?? '');
    const marks = filled.map(() => '?').join(', ');
    const sql = `SELECT ${this.columns} FROM ${this.table} WHERE partner_id = ? AND id IN (${marks})`;
    return statement(sql, partnerId, ...filled);
  }
}
