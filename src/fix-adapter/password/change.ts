import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { Database } from '../../gateway/store/database.ts';
import { fenced, type Lease } from '../../gateway/store/lease.ts';
import { type Statement, statement } from '../../gateway/store/statement.ts';
import type { Logger } from '../../kit/log.ts';
import type { Live } from '../../kit/watched-files.ts';
import { type LogonReply, outcomeOf, passwordNotices } from './outcome.ts';
import { fixPasswordChanges, type PasswordChangeRow, type PasswordOutcome } from './table.ts';

const digestOf = promisify(scrypt) as (password: string, salt: Buffer, length: number) => Promise<Buffer>;

export interface PasswordChangeOptions {
  readonly database: Database;
  readonly lease: Pick<Lease, 'name' | 'fence'>;
  /** The password of the Logon. */
  readonly password: Live<string | undefined>;
  /** The one that it should become; undefined: it stays. */
  readonly newPassword: Live<string | undefined>;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
}

/** More changes than brokers ask for in years. Each costs some milliseconds when an adapter starts. */
const maxRows = 50;

/** The facts about a new password. */
interface Known {
  readonly password: string;
  readonly id: bigint;
  outcome: PasswordOutcome;
  /** An operator was notified that no answer came. */
  isWarned?: boolean;
}

/**
 * Changes the session's password as brokers demand it: a Logon has the new one as NewPassword (925), once. That it is sent is
 * committed before a byte of it is written, so no process sends it again. From the answer on that says so, the new one is
 * the Password (554), also while the setting still has the former one.
 */
export class PasswordChange {
  #known: Known | undefined;
  /** The Logon of the present connection has it, and there was no answer. */
  #isSent = false;

  constructor(private readonly options: PasswordChangeOptions) {}

  /** The Password of a Logon. */
  current(): string | undefined {
    const { password, newPassword } = this.options;
    const wanted = newPassword.current;
    const isChanged = wanted !== undefined && this.#known?.password === wanted && this.#known.outcome === 'changed';
    return isChanged ? wanted : password.current;
  }

  /** Reads what became of the new password before. Throws if the database does not answer. */
  async load(): Promise<void> {
    const { database, newPassword } = this.options;
    const wanted = newPassword.current;
    if (wanted === undefined || this.#known?.password === wanted) return;
    const { list, read } = fixPasswordChanges.all;
    const newest = statement(`SELECT ${list} FROM fix_password_changes ORDER BY id DESC LIMIT ${maxRows}`);
    const row = await findPassword((await database.read(newest)).map(read), wanted);
    this.#known = row === undefined ? undefined : { password: wanted, id: row.id, outcome: row.outcome };
  }

  /** The NewPassword of the Logon that is about to be sent; undefined: it has none. Throws if it may not be committed. */
  async next(): Promise<string | undefined> {
    const { password, newPassword } = this.options;
    this.#isSent = false;
    await this.load();
    const wanted = newPassword.current;
    if (wanted === undefined || wanted === password.current) return undefined;
    if (this.#known?.password === wanted) {
      this.#warnUnanswered(this.#known);
      return undefined;
    }
    await this.#store(wanted);
    this.#isSent = true;
    return wanted;
  }

  #warnUnanswered(known: Known): void {
    if (known.outcome !== 'sent' || known.isWarned === true) return;
    known.isWarned = true;
    this.options.log.error('a new password was sent, and no answer came: ask the broker which password holds');
  }

  /** The other side answered the Logon. */
  async answered(reply: LogonReply): Promise<void> {
    const { log } = this.options;
    const known = this.#isSent ? this.#known : undefined;
    this.#isSent = false;
    const outcome = known === undefined ? undefined : outcomeOf(reply);
    for (const { level, line } of passwordNotices(reply, outcome)) log[level](line);
    if (known === undefined || outcome === undefined) return;
    // Also if it cannot be stored: the next Logon of this process has the right one.
    known.outcome = outcome;
    await this.#transaction(fixPasswordChanges.set({ id: known.id }, { outcome })).catch((error: unknown) => {
      log.warn({ err: error }, 'the outcome of a new password was not stored');
    });
  }

  async #store(wanted: string): Promise<void> {
    const { now } = this.options;
    const salt = randomBytes(16);
    const row = { id: 0n, salt, digest: await digestOf(wanted, salt, 32), sentAt: now(), outcome: 'sent' as const };
    await this.#transaction(fixPasswordChanges.insert(row));
    await this.load();
    if (this.#known?.password !== wanted) throw new Error('the new password was not stored');
  }

  /** Writes as the holder of the lease alone. */
  async #transaction(write: Statement): Promise<void> {
    const { database, lease } = this.options;
    await database.transaction([fenced(lease)], ([leases = []]) => {
      if (leases.length === 0) throw new Error('another process has the session');
      return { writes: [write], result: undefined };
    });
  }
}

async function findPassword(rows: readonly PasswordChangeRow[], password: string) {
  for (const row of rows) {
    if (timingSafeEqual(await digestOf(password, row.salt, 32), row.digest)) return row;
  }
  return undefined;
}
