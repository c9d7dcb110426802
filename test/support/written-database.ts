import type { Fact } from '../../src/gateway/store/facts.ts';
import type { Decision, SqlRow, Statement } from '../../src/gateway/store/statement.ts';
import type { Table } from '../../src/gateway/store/table.ts';
import { RowsDatabase } from './rows-database.ts';

interface Work<Value, T> {
  readonly fact: Fact<Value>;
  decide(value: Value, partner: unknown): Decision<T>;
}

/** Conditions for TypeORM: rows with these values, or after one of them. */
type Found = Readonly<Record<string, unknown>>;

/** Rows in memory, and the statements that calls of operators write. They change no row. */
export class WrittenDatabase extends RowsDatabase {
  environment: 'sandbox' | 'live' = 'live';
  written: Statement[] = [];
  /** The error of the COMMIT of each partner's transaction. */
  failure: Error | undefined;
  /** The partner's shared values in a transaction. */
  partner: unknown = {};

  /** The tables that are written to, in order. */
  get tablesWritten(): (string | undefined)[] {
    return this.written.map(({ sql }) => /(?:INTO|UPDATE|FROM) (\w+)/.exec(sql)?.[1]);
  }

  async inPartnerTransaction<Value, T>(_partnerId: string, { fact, decide }: Work<Value, T>): Promise<T> {
    const decision = decide(fact.value(await this.readAll(fact.reads)), this.partner);
    if (this.failure !== undefined) throw this.failure;
    return this.#commit(decision);
  }

  override async transaction<T>(reads: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<T>): Promise<T> {
    return this.#commit(decide(await this.readAll(reads)));
  }

  async write(statement: Statement): Promise<number> {
    this.written.push(statement);
    return 1;
  }

  /** The part of TypeORM's manager that finds and counts rows of the given tables. */
  async manage<T>(work: (manager: unknown) => Promise<T>, ...known: readonly Table<never>[]): Promise<T> {
    const rowsOf = (name: string, where: Found) => {
      const table = known.find((each) => each.name === name) as unknown as Table<Found> | undefined;
      if (table === undefined) throw new Error(`no table ${name}`);
      return (this.tables[name] ?? [])
        .map(table.all.read)
        .filter((row) => Object.entries(where).every(([field, wanted]) => fits(row[field], wanted)));
    };
    return work({
      find: async (name: string, { where, order, take }: { where: Found; order: Found; take: number }) => {
        const [field = ''] = Object.keys(order);
        return rowsOf(name, where)
          .toSorted((one, other) => (String(one[field]) < String(other[field]) ? -1 : 1))
          .slice(0, take);
      },
      countBy: async (name: string, where: Found) => rowsOf(name, where).length,
    });
  }

  #commit<T>({ writes, result }: Decision<T>): T {
    this.written.push(...writes);
    return result;
  }
}

function fits(value: unknown, wanted: unknown): boolean {
  const { type, value: bound } = (wanted ?? {}) as { type?: string; value?: unknown };
  if (type === 'moreThan') return String(value) > String(bound);
  return type === 'isNull' ? value === null : value === wanted;
}
