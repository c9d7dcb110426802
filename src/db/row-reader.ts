import type { Database } from './database.ts';
import { type SqlRow, type Statement, statement } from './statement.ts';

/** How many rows one round trip reads at most. */
const mostTogether = 64;

interface Waiting {
  readonly resolve: (row: SqlRow | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads rows of one table by their partner and id. What is asked for in one turn of the event loop shares a round trip
 * for each partner: under load most of what a read costs is the round trip.
 */
export class RowReader {
  #waiting = new Map<string, Map<string, Waiting[]>>();

  /** `columns` must hold the id. */
  constructor(
    private readonly database: Database,
    private readonly table: string,
    private readonly columns: string,
  ) {}

  /** One row, or undefined where the partner has none of that id. */
  read(partnerId: string, id: string): Promise<SqlRow | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#readAll());
      const ids = this.#waiting.get(partnerId) ?? new Map<string, Waiting[]>();
      this.#waiting.set(partnerId, ids);
      ids.set(id, [...(ids.get(id) ?? []), { resolve, reject }]);
    });
  }

  #readAll(): void {
    const waiting = this.#waiting;
    this.#waiting = new Map();
    for (const [partnerId, ids] of waiting) {
      const wanted = [...ids];
      for (let at = 0; at < wanted.length; at += mostTogether) {
        void this.#readTogether(partnerId, new Map(wanted.slice(at, at + mostTogether)));
      }
    }
  }

  async #readTogether(partnerId: string, wanted: ReadonlyMap<string, readonly Waiting[]>): Promise<void> {
    try {
      const rows = await this.database.read(this.#query(partnerId, [...wanted.keys()]));
      const byId = new Map(rows.map((row) => [String(row.id), row]));
      for (const [id, waiting] of wanted) for (const { resolve } of waiting) resolve(byId.get(id));
    } catch (error) {
      for (const waiting of wanted.values()) for (const { reject } of waiting) reject(error);
    }
  }

  /** Places come in powers of two, the last id filling what is left, so that few statements need preparing. */
  #query(partnerId: string, ids: readonly string[]): Statement {
    const places = 2 ** Math.ceil(Math.log2(ids.length));
    const filled = Array.from({ length: places }, (_, at) => ids[Math.min(at, ids.length - 1)] ?? '');
    const marks = filled.map(() => '?').join(', ');
    const sql = `SELECT ${this.columns} FROM ${this.table} WHERE partner_id = ? AND id IN (${marks})`;
    return statement(sql, partnerId, ...filled);
  }
}
