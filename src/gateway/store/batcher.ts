import type { Database } from './database.ts';
import { type SqlRow, type Statement, statement } from './statement.ts';
import { forceIndex } from './table.ts';

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolvers: { readonly resolve: (answer: Answer) => void; readonly reject: (error: unknown) => void }[];
}

/**
 * Gathers the reads of one turn of the event loop, so that they share a round trip: under load, most of the cost of a
 * read is the round trip. The reads of one group go together, at most `most` at a time. Reads with the same name
 * within its group is asked for once.
 */
class Batcher<Asked, Answer> {
  #groups = new Map<string, Map<string, Waiting<Asked, Answer>>>();

  /** `answer` answers some of a group's questions, in their order. */
  constructor(
    private readonly most: number,
    private readonly answer: (group: string, asked: readonly Asked[]) => Promise<readonly Answer[]>,
  ) {}

  ask(group: string, name: string, asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#groups.size === 0) setImmediate(() => this.#askAll());
      const waiting = this.#groups.get(group) ?? new Map<string, Waiting<Asked, Answer>>();
      this.#groups.set(group, waiting);
      const known = waiting.get(name);
      if (known === undefined) waiting.set(name, { asked, resolvers: [{ resolve, reject }] });
      else known.resolvers.push({ resolve, reject });
    });
  }

  #askAll(): void {
    const groups = this.#groups;
    this.#groups = new Map();
    for (const [group, waiting] of groups) {
      const all = [...waiting.values()];
      for (let at = 0; at < all.length; at += this.most) void this.#askTogether(group, all.slice(at, at + this.most));
    }
  }

  async #askTogether(group: string, together: readonly Waiting<Asked, Answer>[]): Promise<void> {
    try {
      const answers = await this.answer(
        group,
        together.map(({ asked }) => asked),
      );
      for (const [index, { resolvers }] of together.entries()) {
        for (const { resolve } of resolvers) resolve(answers[index] as Answer);
      }
    } catch (error) {
      for (const { resolvers } of together) for (const { reject } of resolvers) reject(error);
    }
  }
}

/** Fills a list up to a power of two, so that few statements need preparing. */
function fillToPowerOfTwo<Item>(items: readonly Item[], filler: Item): Item[] {
  const length = 2 ** Math.ceil(Math.log2(items.length));
  return Array.from({ length }, (_, at) => items[at] ?? filler);
}

/** How many rows one round trip reads at most. */
const maxRows = 64;

/** Reads rows of one table by their partner and id. Concurrent reads of a partner share a round trip. */
export class RowReader {
  readonly #batcher: Batcher<string, SqlRow | undefined>;

  /** `columns` must hold the id. */
  constructor(
    database: Pick<Database, 'read'>,
    private readonly table: string,
    private readonly columns: string,
  ) {
    this.#batcher = new Batcher(maxRows, async (partnerId, ids) => {
      const rows = await database.read(this.#query(partnerId, ids));
      const byId = new Map(rows.map((row) => [String(row.id), row]));
      return ids.map((id) => byId.get(id));
    });
  }

  /** One row, or undefined if the partner has none with that id. */
  read(partnerId: string, id: string): Promise<SqlRow | undefined> {
    return this.#batcher.ask(partnerId, id, id);
  }

  #query(partnerId: string, ids: readonly string[]): Statement {
    const filled = fillToPowerOfTwo(ids, ids[0] ?? '');
    const marks = filled.map(() => '?').join(', ');
    // The server would guess how many rows the partner has, and may read them all. Choosing takes it time, too.
    const sql = `SELECT ${this.columns} FROM ${this.table}${forceIndex('PRIMARY')} WHERE partner_id = ? AND id IN (${marks})`;
    return statement(sql, partnerId, ...filled);
  }
}

/** How many pages one round trip reads at most. */
const maxPages = 16;

/** A page of a partner's rows: after a number, at most so many. */
interface Page {
  readonly partnerId: string;
  readonly after: string;
  readonly most: number;
}

/**
 * Reads pages of one table in the order of a column in which each partner's rows are numbered. Pages that are
 * asked for at the same time share a round trip, also those of different partners.
 */
export class PageReader {
  readonly #batcher: Batcher<Page, SqlRow[]>;

  constructor(
    database: Database,
    private readonly table: string,
    private readonly columns: string,
    private readonly order: string,
  ) {
    this.#batcher = new Batcher(maxPages, async (_, pages) => {
      const rows = await database.read(this.#query(pages));
      const byPage = pages.map((): SqlRow[] => []);
      for (const row of rows) byPage[Number(row.page)]?.push(row);
      return byPage;
    });
  }

  /** A partner's rows after a number, in order, and no more than `most`. */
  read(partnerId: string, after: string, most: number): Promise<SqlRow[]> {
    return this.#batcher.ask(String(most), `${partnerId} ${after}`, { partnerId, after, most });
  }

  #query(pages: readonly Page[]): Statement {
    const { table, columns, order } = this;
    const most = pages[0]?.most ?? 0;
    const filled = fillToPowerOfTwo(pages, { partnerId: '', after: '0', most });
    const parts = filled.map(
      (_, page) =>
        `(SELECT ${page} AS page, ${columns} FROM ${table}${forceIndex('PRIMARY')} WHERE partner_id = ? AND ${order} > ? ORDER BY ${order} LIMIT ${most})`,
    );
    return statement(parts.join(' UNION ALL '), ...filled.flatMap(({ partnerId, after }) => [partnerId, after]));
  }
}
