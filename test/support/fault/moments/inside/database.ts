import { endAfter, type Watch } from './watch.ts';

type Callback = (error: unknown, ...rest: unknown[]) => void;
type Send = (this: object, ...given: unknown[]) => unknown;

/** The parts of the driver that are wrapped. */
export interface Driver {
  readonly Connection: { readonly prototype: object };
}

/** The server's answers to a statement that somebody ended, and to a deadlock. */
const interrupted = { errno: 1317, code: 'ER_QUERY_INTERRUPTED', sqlState: '70100' };
const deadlock = { errno: 1213, code: 'ER_LOCK_DEADLOCK', sqlState: '40001' };
const lost = { code: 'PROTOCOL_CONNECTION_LOST', fatal: true };

/** Tables without a promise: a lease proves nothing, a guard stores nothing, and a probe writes from time to time. */
const ignored = new Set(['leases', 'guards', 'writer', 'writer_guards', 'write_checks']);

/**
 * Watches each round trip that makes something durable: one with a COMMIT behind a write, or with a write outside of a
 * transaction.
 */
export function watchDatabase(driver: Driver, watch: Watch): void {
  let prototype = driver.Connection.prototype;
  while (!Object.hasOwn(prototype, 'execute')) prototype = Object.getPrototypeOf(prototype);
  const methods = prototype as Record<'query' | 'execute', Send>;
  const transactions = new WeakMap<object, Transaction>();
  for (const name of ['query', 'execute'] as const) {
    const send = methods[name];
    methods[name] = function (...given) {
      const [first] = given;
      const sql = typeof first === 'string' ? first : String((first as { sql?: unknown }).sql);
      const transaction = transactions.get(this) ?? new Transaction();
      transactions.set(this, transaction);
      const label = transaction.add(sql);
      const done = given.at(-1);
      const fate = label === undefined ? undefined : watch.meet('commit', label);
      if (fate === undefined || typeof done !== 'function') return send.apply(this, given);
      const answer = done as Callback;
      if (fate === 'refused' || fate === 'deadlock') {
        transaction.undone();
        const why = fate === 'deadlock' ? deadlock : interrupted;
        return void setImmediate(() => answer(Object.assign(new Error('refused by a test'), why)));
      }
      const answered: Callback = (error, ...rest) => {
        endAfter(fate);
        if (error || fate === 'frozen') answer(error, ...rest);
        else answer(Object.assign(new Error('the answer was lost by a test'), lost));
      };
      return send.apply(this, [...given.slice(0, -1), answered]);
    };
  }
}

/** The writes of one connection that are not committed. */
class Transaction {
  #isOpen = false;
  #writes: string[] = [];

  /** Follows a round trip. Returns the writes that it makes durable if it succeeds; undefined: none. */
  add(sql: string): string | undefined {
    const durable: string[] = [];
    for (const text of sql.split(';\n')) {
      const write = writeOf(text);
      const change = changeOf(text);
      if (change !== undefined) durable.push(...this.#end(), change);
      else if (/^\s*(START TRANSACTION|SAVEPOINT)\b/i.test(text)) this.#begin();
      else if (/^\s*COMMIT\b/i.test(text)) durable.push(...this.#end());
      else if (/^\s*ROLLBACK\b/i.test(text)) this.#end();
      else if (write !== undefined) (this.#isOpen ? this.#writes : durable).push(write);
    }
    return durable.length === 0 ? undefined : [...new Set(durable)].join(', ');
  }

  /** The server undid it. */
  undone(): void {
    this.#end();
  }

  #begin(): void {
    this.#isOpen = true;
    this.#writes = [];
  }

  #end(): string[] {
    const writes = this.#writes;
    this.#isOpen = false;
    this.#writes = [];
    return writes;
  }
}

/** A change of tables, as in `alter orders`, which the server commits by itself; undefined for any other statement. */
function changeOf(text: string): string | undefined {
  const [, verb, table] =
    /^\s*(CREATE|ALTER|DROP|RENAME|TRUNCATE)\s+(?:TABLE\s+)?(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:`?\w+`?\.)?`?(\w+)/i.exec(
      text,
    ) ?? [];
  return verb === undefined ? undefined : `${verb.toLowerCase()} ${table}`;
}

/** A statement's verb and table, as in `insert orders`; undefined for a read. */
function writeOf(text: string): string | undefined {
  const found =
    /^\s*(INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+(?:`?\w+`?\.)?`?(\w+)/i.exec(text) ??
    /^\s*(UPDATE)\s+`?(\w+)/i.exec(text) ??
    /^\s*(DELETE)\s+(?:\w+\s+)?FROM\s+(?:\(SELECT\s[^()]*?\sFROM\s+)?`?(\w+)/i.exec(text);
  const [, verb = '', table = ''] = found ?? [];
  return table === '' || ignored.has(table) ? undefined : `${verb.toLowerCase()} ${table}`;
}
