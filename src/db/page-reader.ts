import type { Database } from './database.ts';
import { fillPlaces, Gathering } from './gathering.ts';
import { type SqlRow, type Statement, statement } from './statement.ts';

/** How many pages one round trip reads at most. */
const mostTogether = 16;

/** Which page: of whom, after what, and how long. */
interface Page {
  readonly partnerId: string;
  readonly after: string;
  readonly most: number;
}

/**
 * Reads pages of one table in the order of a column in which each partner's rows are numbered. Pages asked for at the
 * same time are read together, whoever's they are.
 */
export class PageReader {
  readonly #gathering: Gathering<Page, SqlRow[]>;

  constructor(
    database: Database,
    private readonly table: string,
    private readonly columns: string,
    private readonly order: string,
  ) {
    this.#gathering = new Gathering(mostTogether, async (_, pages) => {
      const rows = await database.read(this.#query(pages));
      const byPage = pages.map((): SqlRow[] => []);
      for (const row of rows) byPage[Number(row.page)]?.push(row);
      return byPage;
    });
  }

  /** A partner's rows after a number, in order, and no more than `most`. */
  read(partnerId: string, after: string, most: number): Promise<SqlRow[]> {
    return this.#gathering.ask(String(most), `${partnerId} ${after}`, { partnerId, after, most });
  }

  #query(pages: readonly Page[]): Statement {
    const { table, columns, order } = this;
    const most = pages[0]?.most ?? 0;
    const filled = fillPlaces(pages, { partnerId: '', after: '0', most });
    const parts = filled.map(
      (_, page) =>
        `(SELECT ${page} AS page, ${columns} FROM ${table} WHERE partner_id = ? AND ${order} > ? ORDER BY ${order} LIMIT ${most})`,
    );
    return statement(parts.join(' UNION ALL '), ...filled.flatMap(({ partnerId, after }) => [partnerId, after]));
  }
}
