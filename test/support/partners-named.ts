import { shapesOf } from './statement-shapes.ts';

/** The id of a partner, in a value or a statement. */
const partnerId = /\bpar_[2-7a-z]{20}\b/g;
/** Locks one partner at the beginning of its transaction. */
const partnerLock = /^SELECT id FROM partners WHERE id = \? FOR UPDATE NOWAIT$/;
/** A transaction's name in the list begins with this: the shape of its first statement follows. */
export const transactionStart = 'TRANSACTION ';

interface SentStatement {
  /** With its values. */
  readonly text: string;
  readonly sql: string;
}

interface Open {
  first: string | undefined;
  readonly named: Set<string>;
  readonly locked: Set<string>;
  /** The statements that name several partners. */
  readonly several: string[];
}

/** Notes the statements and transactions in which the ids of several partners stand. */
export class PartnersNamed {
  /** Their shapes. A transaction is noted by that of its first statement. */
  readonly several = new Set<string>();
  readonly #open = new WeakMap<object, Open>();

  /** A connection sent these statements in one round trip, with further values. */
  sent(connection: object, statements: readonly SentStatement[], values: unknown): void {
    const given = statements.length === 1 && Array.isArray(values) ? values.flat(3).join(' ') : '';
    for (const { text, sql } of statements) {
      const bare = sql.trim();
      if (bare === 'START TRANSACTION') {
        this.#open.set(connection, { first: undefined, named: new Set(), locked: new Set(), several: [] });
      } else if (bare === 'COMMIT' || bare === 'ROLLBACK') {
        this.#ended(this.#open.get(connection));
        this.#open.delete(connection);
      } else this.#note(this.#open.get(connection), bare, new Set(`${text} ${given}`.match(partnerId)));
    }
  }

  #note(transaction: Open | undefined, sql: string, partners: ReadonlySet<string>): void {
    const shapes = shapesOf(sql);
    if (transaction === undefined) {
      if (partners.size > 1) for (const shape of shapes) this.several.add(shape);
      return;
    }
    transaction.first ??= shapes[0];
    for (const id of partners) transaction.named.add(id);
    if (partnerLock.test(sql)) for (const id of partners) transaction.locked.add(id);
    if (partners.size > 1) transaction.several.push(...shapes);
  }

  #ended(transaction: Open | undefined): void {
    if (transaction === undefined || transaction.named.size < 2) return;
    const { first, named, locked, several } = transaction;
    // Transactions of one partner each, committed as one: what several rows of them have in common is one statement.
    const isGroup = [...named].every((id) => locked.has(id));
    this.several.add(`${transactionStart}${isGroup ? 'of partners that are all locked' : first}`);
    if (!isGroup) for (const shape of several) this.several.add(shape);
  }
}
