import type { Duplex } from 'node:stream';
import type { Logger } from '../../kit/log.ts';
import { pause } from '../../kit/worker.ts';
import type { MessageTap } from '../messages/tap.ts';
import { SessionAddresses } from './addresses.ts';
import { Disconnect, FixConnection, LogonRefused } from './connection.ts';
import { LogonTries } from './logon.ts';
import { nextNumbering } from './numbering.ts';
import { type Schedule, sessionStartAt } from './schedule.ts';
import type {
  Numbers,
  Outgoing,
  SessionEvents,
  SessionRecord,
  SessionSettings,
  SessionState,
  SessionStatus,
} from './types.ts';

export interface SessionOptions<Message> {
  readonly settings: SessionSettings;
  readonly schedule: Schedule;
  readonly record: SessionRecord<Message>;
  /** Where the other side listens: the usual address first. */
  readonly addresses: readonly string[];
  /** Opens a connection to an address. Throws if it cannot in bounded time. */
  readonly connect: (address: string, signal: AbortSignal) => Promise<Duplex>;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  /** Whether this process is the one that has the session. */
  readonly mayWrite: () => boolean;
  readonly events: SessionEvents;
  readonly log: Logger;
  /** Notes the messages of a numbering, by its beginning, in milliseconds; absent: nobody does. */
  readonly tap?: ((startedAt: number) => MessageTap) | undefined;
}

const pollIntervalMs = 1_000;
/** A connection that lasted so long was good: the next one is tried at once. */
const goodAfterMs = 10_000;
/** How often it is looked whether the session is up. */
const watchEveryMs = 200;
/** A warning is given again after so many times the time of the first. */
const warningsApart = 6;

/** A FIX session as its initiator: connects in the session's hours, and again whenever the connection ends. */
export class FixSession<Message extends Outgoing> {
  #connection: FixConnection<Message> | undefined;
  /** Messages were passed over on a connection that ended before this could be told. */
  #hasMissed = false;
  /** Whether the last connection was up before it ended. */
  #wasUp = false;
  readonly #tries: LogonTries;
  readonly #addresses: SessionAddresses;
  /** The state while there is no connection. */
  /** `logged` is the reason without what the other side said; absent: the reason has nothing of that. */
  #idle: { readonly state: SessionState; readonly reason: string; readonly logged?: string } = {
    state: 'waiting',
    reason: 'it begins',
  };
  #shown: { readonly state: SessionState; readonly reason: string; readonly since: number };
  #numbers: Numbers | undefined;
  #address: string | undefined;
  #resumed: AbortController | undefined;

  constructor(private readonly options: SessionOptions<Message>) {
    this.#tries = new LogonTries(options.settings.logonTries);
    this.#addresses = new SessionAddresses(options.addresses);
    this.#shown = { ...this.#idle, since: options.now() };
  }

  get isUp(): boolean {
    return this.#connection?.isUp ?? false;
  }

  /** When the present session day began, in milliseconds; undefined outside the session's hours. */
  get dayStartedAt(): number | undefined {
    return sessionStartAt(this.options.schedule, this.options.now());
  }

  /** Whether there should be a session now. */
  get isInHours(): boolean {
    return this.dayStartedAt !== undefined;
  }

  /** The session's state, and the reason why it is not up. */
  status(): SessionStatus {
    const { state, reason, logged = reason } = this.#connection?.state ?? this.#idle;
    if (state !== this.#shown.state) this.#shown = { state, reason, since: this.options.now() };
    return {
      ...{ state, reason, logged, since: this.#shown.since, address: this.#address, refusals: this.#tries.refusals },
      nextOut: this.#connection?.nextOut ?? this.#numbers?.nextOut,
      nextIn: this.#connection?.nextIn ?? this.#numbers?.nextIn,
    };
  }

  /** Logs on again although Logons were refused, at once. For an operator who has mended the reason. */
  resume(): void {
    this.#tries.resume();
    this.#resumed?.abort();
  }

  /** Sends a message once, or settles it as not written. */
  send(message: Message): void {
    if (this.#connection === undefined) message.settled('unrecorded');
    else this.#connection.send(message);
  }

  /** Keeps the session until `signal` is aborted, and then logs out, in bounded time. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, log } = this.options;
    const watching = this.#watch();
    let waitMs = settings.firstReconnectMs;
    try {
      while (!signal.aborted) {
        const startedAt = this.dayStartedAt;
        if (startedAt === undefined) {
          this.#idle = { state: 'outside_hours', reason: "it is outside the session's hours" };
          await pause(pollIntervalMs, signal);
          continue;
        }
        if (!this.#tries.mayTry({ password: settings.password(), startedAt })) {
          this.#stop();
          await this.#wait(pollIntervalMs, signal);
          continue;
        }
        const began = performance.now();
        this.#wasUp = false;
        let wasRefused = false;
        try {
          await this.#connect(startedAt, signal);
        } catch (error) {
          if (!signal.aborted) log.warn({ err: error }, 'the session with the exchange ended');
          wasRefused = error instanceof LogonRefused;
          const told = error instanceof Disconnect ? error.told : (error as Error).message;
          if (wasRefused) this.#refused(told, startedAt);
          this.#idle = { state: 'waiting', reason: told, logged: (error as Error).message };
          if (wasRefused && this.#tries.areUsedUp) this.#stop();
        }
        this.#connection = undefined;
        this.#addresses.ended(this.#wasUp);
        const wasGood = performance.now() - began > goodAfterMs;
        // A session that comes up and breaks is no sign that the other side is away, and orders wait for it.
        const longestMs = this.#wasUp ? settings.longestReconnectAfterUpMs : settings.longestReconnectMs;
        // Another password is tried at once.
        if (wasRefused && this.#tries.areUsedUp) continue;
        waitMs = wasGood ? settings.firstReconnectMs : Math.min(waitMs * 2, longestMs);
        await this.#wait(wasRefused ? Math.max(waitMs, settings.refusedWaitMs) : waitMs, signal);
      }
    } finally {
      clearInterval(watching);
    }
  }

  /** Waits for a time, until the signal is aborted, or until an operator says that it should go on. */
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#resumed = new AbortController();
    await pause(ms, AbortSignal.any([signal, this.#resumed.signal]));
    this.#resumed = undefined;
  }

  #stop(): void {
    const logged = 'no further Logon is sent';
    this.#idle = { state: 'stopped', reason: `${logged}: ${this.#tries.reason}`, logged };
  }

  #refused(text: string, startedAt: number): void {
    const { settings, log, events } = this.options;
    this.#tries.refused(text, { password: settings.password(), startedAt });
    if (!this.#tries.areUsedUp) return;
    log.error({ refusals: this.#tries.refusals }, 'no further Logon is sent');
    events.trouble('logon_stopped');
  }

  /** Warns while the session does not come up in its hours, at a bounded rate. */
  #watch(): NodeJS.Timeout {
    const { settings, log, events } = this.options;
    let downSince = performance.now();
    let warnedAt: number | undefined;
    return setInterval(() => {
      const { state, logged: reason, nextOut, nextIn, refusals } = this.status();
      const now = performance.now();
      if (state === 'up' || state === 'outside_hours') {
        downSince = now;
        warnedAt = undefined;
        return;
      }
      const isDue = warnedAt === undefined || now - warnedAt >= settings.slowUpMs * warningsApart;
      if (now - downSince < settings.slowUpMs || !isDue) return;
      warnedAt = now;
      log.warn({ state, reason, nextOut, nextIn, refusals }, 'the session does not come up');
      events.trouble(state === 'stopped' ? 'logon_stopped' : 'not_up');
    }, watchEveryMs);
  }

  async #connect(started: number, signal: AbortSignal): Promise<void> {
    const { settings, record, connect, now, mayWrite, events, log, tap } = this.options;
    this.#address = this.#addresses.next(started);
    this.#idle = { state: 'connecting', reason: 'the connection is being opened' };
    const socket = await connect(this.#address, signal);
    // An error before the connection listens for it ends the reads of it.
    socket.on('error', () => {});
    const { numbers, resets } = await this.#beginNumbering(started).catch((error: unknown) => {
      socket.destroy();
      throw error;
    });
    this.#numbers = numbers;
    const newPassword = await takeNewPassword(settings, socket);
    const connection = new FixConnection({
      ...{ settings, record, numbers, resets, now, mayWrite, log, socket, newPassword },
      hasMissed: this.#hasMissed,
      tap: tap?.(numbers.startedAt),
      events: {
        ...events,
        up: () => {
          this.#wasUp = true;
          this.#tries.accepted();
          events.up();
        },
      },
      // A new session day is a new connection too.
      isInHours: () => sessionStartAt(this.options.schedule, now()) === started,
    });
    this.#connection = connection;
    try {
      await connection.run(signal);
    } finally {
      this.#hasMissed = connection.hasMissed;
      this.#numbers = { ...numbers, nextOut: connection.nextOut, nextIn: connection.nextIn };
    }
  }

  /** The numbers of the next connection. They begin with 1 on a new session day, and where every Logon resets them. */
  async #beginNumbering(started: number): Promise<{ readonly numbers: Numbers; readonly resets: boolean }> {
    const { settings, record, now, log } = this.options;
    const stored = await record.numbers();
    const { startedAt, resets } = nextNumbering(stored, { dayStartedAt: started, now: now(), ...settings });
    if (startedAt === undefined) return { numbers: stored, resets };
    const numbers = await record.startDay(startedAt);
    log.info({ startedAt: new Date(startedAt).toISOString() }, 'the numbers of the session begin with 1');
    return { numbers, resets };
  }
}

/** Takes the new password that the Logon over an open connection shall set. */
async function takeNewPassword({ passwords }: SessionSettings, socket: Duplex): Promise<string | undefined> {
  try {
    return await passwords?.next();
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
