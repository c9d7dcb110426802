import type { Database } from '../../gateway/store/database.ts';
import { statement } from '../../gateway/store/statement.ts';
import type { Logger } from '../../kit/log.ts';
import { pause, Wakeup, type Worker } from '../../kit/worker.ts';
import { fixSession, type SessionRow, type Wish } from './table.ts';

/** How often the wish of operators is read and the state of the session is written, if they changed. */
const everyMs = 250;

/** The session, as far as operators have to do with it. */
export interface ControlledSession {
  /** Keeps the session until `signal` is aborted, and then logs out, in bounded time. */
  run(signal: AbortSignal): Promise<void>;
  /** The session's state, and the reason why it is not up. */
  status(): { readonly state: string; readonly reason: string };
  /** Logs on again at once, also after refused Logons. */
  resume(): void;
}

export interface SessionControlOptions {
  readonly database: Database;
  /** The fence of the lease under which this process has the session. */
  readonly fence: bigint;
  readonly session: ControlledSession;
  /** Makes a text of the other side fit to be stored. */
  readonly show: (text: string) => string;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
}

type Report = Pick<SessionRow, 'obeyed' | 'state' | 'reason'>;

/**
 * Keeps the session as operators want it. Their wish is in the database, so that it outlives this process, and this process
 * writes there what became of it.
 */
export class SessionControl {
  readonly worker: Worker = { name: 'session control', run: (signal) => this.#watch(signal) };
  readonly #changed = new Wakeup();
  #wish: Wish = 'on';
  #request = -1n;
  #obeyed = -1n;
  /** Whether the session has ended because operators want so. */
  #isOut = false;
  #leaving = new AbortController();
  #reported: Report | undefined;

  constructor(private readonly options: SessionControlOptions) {}

  /** Whether operators want the session to be logged out. */
  get isLoggedOut(): boolean {
    return this.#wish === 'out';
  }

  /** Learns what operators want. Throws if the database does not answer: then nobody knows whether to log on. */
  async open(): Promise<void> {
    await this.#learn();
  }

  /** Keeps the session until `signal` is aborted, except while operators want it to be logged out. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#isOut = this.#wish === 'out';
      if (this.#isOut) {
        await this.#changed.wait(everyMs, signal);
      } else {
        this.#leaving = new AbortController();
        await this.options.session.run(AbortSignal.any([signal, this.#leaving.signal]));
      }
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#learn();
        await this.#report();
      } catch (error) {
        // The session stays as it is. It is tried again.
        this.options.log.debug({ err: error }, 'the wish of operators could not be read');
      }
      await pause(everyMs, signal);
    }
  }

  async #learn(): Promise<void> {
    const selection = fixSession.only('wish', 'request');
    const [row] = await this.options.database.read(fixSession.find({ id: 1n }, selection));
    if (row === undefined) throw new Error('the database has no row of the session: migrate it first');
    const { wish, request } = selection.read(row);
    if (request === this.#request) return;
    const isFirst = this.#request === -1n;
    this.#request = request;
    this.#wish = wish;
    if (isFirst) return;
    this.options.log.warn({ wish }, 'an operator changes the session');
    if (wish === 'out') this.#leaving.abort();
    else this.options.session.resume();
    this.#changed.wake();
  }

  async #report(): Promise<void> {
    const { database, fence, show, now } = this.options;
    if (this.#wish === 'on' || this.#isOut) this.#obeyed = this.#request;
    const report = { obeyed: this.#obeyed, ...this.#state() };
    const before = this.#reported;
    const isSame = before?.state === report.state && before.reason === report.reason;
    if (isSame && before.obeyed === report.obeyed) return;
    const since = before?.state === report.state ? '' : ', since = ?';
    const times = since === '' ? [] : [new Date(now())];
    // A later holder of the lease has said what is so now.
    await database.write(
      statement(
        `UPDATE fix_session SET fence = ?, obeyed = ?, state = ?, reason = ?${since} WHERE id = 1 AND fence <= ?`,
        fence,
        report.obeyed,
        report.state.slice(0, 16),
        show(report.reason).slice(0, 500),
        ...times,
        fence,
      ),
    );
    this.#reported = report;
  }

  #state(): { readonly state: string; readonly reason: string } {
    if (this.#wish === 'on') return this.options.session.status();
    if (this.#isOut) return { state: 'logged_out', reason: 'an operator has logged it out' };
    return { state: 'logging_out', reason: 'an operator logs it out' };
  }
}
