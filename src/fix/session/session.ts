import type { Duplex } from 'node:stream';
import type { Logger } from '../../lib/log.ts';
import { pause } from '../../lib/worker.ts';
import type { MessageTap } from '../messages/tap.ts';
import { Connection } from './connection.ts';
import { type Schedule, sessionStartAt } from './schedule.ts';
import type { Outgoing, SessionEvents, SessionRecord, SessionSettings } from './types.ts';

export interface SessionOptions<Message> {
  readonly settings: SessionSettings;
  readonly schedule: Schedule;
  readonly record: SessionRecord<Message>;
  /** Opens a connection to the other side. Throws if it cannot in bounded time. */
  readonly connect: (signal: AbortSignal) => Promise<Duplex>;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  /** Whether this process is the one that has the session. */
  readonly mayWrite: () => boolean;
  readonly events: SessionEvents;
  readonly log: Logger;
  /** What notes the messages of a numbering, by its beginning, in milliseconds; absent: nobody does. */
  readonly tap?: ((startedAt: number) => MessageTap) | undefined;
}

const pollIntervalMs = 1_000;
/** A connection that lasted so long was good: the next one is tried at once. */
const goodAfterMs = 10_000;

/** A FIX session as its initiator: connects in the session's hours, and again whenever the connection ends. */
export class Session<Message extends Outgoing> {
  #connection: Connection<Message> | undefined;
  /** Messages were passed over on a connection that ended before this could be told. */
  #hasMissed = false;
  /** Whether the last connection was up before it ended. */
  #wasUp = false;

  constructor(private readonly options: SessionOptions<Message>) {}

  get isUp(): boolean {
    return this.#connection?.isUp ?? false;
  }

  /** Whether there should be a session now. */
  get isInHours(): boolean {
    return sessionStartAt(this.options.schedule, this.options.now()) !== undefined;
  }

  /** Sends a message once, or settles it as not written. */
  send(message: Message): void {
    if (this.#connection === undefined) message.settled('unrecorded');
    else this.#connection.send(message);
  }

  /** Keeps the session until `signal` is aborted, and then logs out, in bounded time. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, log } = this.options;
    let waitMs = settings.firstReconnectMs;
    while (!signal.aborted) {
      if (!this.isInHours) {
        await pause(pollIntervalMs, signal);
        continue;
      }
      const startedAt = performance.now();
      this.#wasUp = false;
      try {
        await this.#connect(signal);
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error }, 'the session with the exchange ended');
      }
      this.#connection = undefined;
      const wasGood = performance.now() - startedAt > goodAfterMs;
      // A session that comes up and breaks is no sign that the other side is away, and orders wait for it.
      const longestMs = this.#wasUp ? settings.longestReconnectAfterUpMs : settings.longestReconnectMs;
      waitMs = wasGood ? settings.firstReconnectMs : Math.min(waitMs * 2, longestMs);
      await pause(waitMs, signal);
    }
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { settings, record, connect, now, mayWrite, events, log, tap } = this.options;
    const started = sessionStartAt(this.options.schedule, now()) ?? now();
    const stored = await record.numbers();
    // A Logon that nobody answered may not have come: as nothing else was sent since, the numbering can begin again.
    const isUnanswered = settings.resetsByLogon && stored.nextIn === 1 && stored.nextOut > 1;
    const isNew = stored.startedAt < started || isUnanswered;
    const numbers = isNew ? await record.startDay(started) : stored;
    if (isNew) log.info({ startedAt: new Date(started).toISOString() }, 'the numbers of the session begin with 1');
    const socket = await connect(signal);
    const connection = new Connection({
      ...{ settings, record, numbers, now, mayWrite, log, socket },
      hasMissed: this.#hasMissed,
      tap: tap?.(numbers.startedAt),
      events: {
        ...events,
        up: () => {
          this.#wasUp = true;
          events.up();
        },
      },
      resets: settings.resetsByLogon && numbers.nextIn === 1,
      // A new session day is a new connection too.
      isInHours: () => sessionStartAt(this.options.schedule, now()) === started,
    });
    this.#connection = connection;
    try {
      await connection.run(signal);
    } finally {
      this.#hasMissed = connection.hasMissed;
    }
  }
}
