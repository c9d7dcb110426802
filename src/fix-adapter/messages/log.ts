import type { Database } from '../../gateway/store/database.ts';
import type { Statement } from '../../gateway/store/statement.ts';
import { atMost } from '../../kit/at-most.ts';
import type { Logger } from '../../kit/log.ts';
import { pause, Wakeup, type Worker } from '../../kit/worker.ts';
import { messageTypes } from '../wire/tags.ts';
import type { Masking } from './masking.ts';
import { subjectOf } from './subject.ts';
import { fixMessages, type MessageSession, messageId, type StoredMessage } from './table.ts';
import type { MessagePlace, MessageTap, TappedMessage } from './tap.ts';

/** How often messages are written, if there are any. A crash loses those of this time and of one write. */
const writeEveryMs = 250;
/**
 * The messages that may wait while the database does not answer: some seconds of the busiest session, in a bounded part
 * of the memory.
 */
const usualMaxWaiting = { messages: 10_000, characters: 16_777_216 };
/** The rows of one INSERT. It stays far below the packets that a server takes. */
const maxBatch = { messages: 1_000, characters: 1_048_576 };
/** How long a write that failed rests before it is tried again. */
const restMs = 1_000;
/** How long the last write may take at a stop. */
const lastWriteMs = 1_000;
/** The size of a row besides its text, indexes included. */
const rowCharacters = 300;

const livenessTypes: readonly string[] = [messageTypes.Heartbeat, messageTypes.TestRequest];

/** The numbering that a message's number is of. */
type Numbering = Pick<StoredMessage, 'startedAt' | 'session'>;

/** A row whose place among those that are kept is not known yet. */
type Waiting = Omit<StoredMessage, 'position'>;

export interface MessageLogOptions {
  readonly database: Database;
  /** The fence of the lease under which this process has the session. */
  readonly fence: bigint;
  readonly masking: Masking;
  /** Whether Heartbeats and TestRequests are logged of which nothing special became. */
  readonly logsHeartbeats: boolean;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
  /** Called with how many messages were left out because the database did not keep up. */
  readonly onDropped: (count: number) => void;
  /** How much may wait; absent: as much as usual. */
  readonly maxWaiting?: { readonly messages: number; readonly characters: number };
}

/**
 * Keeps the messages of the sessions in the database, for operators. It waits for nothing: messages stand in a bounded buffer
 * that a worker writes, and those that find it full are left out and counted. Orders never depend on it.
 */
export class MessageLog {
  readonly worker: Worker = { name: 'message log', run: (signal) => this.#run(signal) };
  readonly #wakeup = new Wakeup();
  #waiting: Waiting[] = [];
  #characters = 0;
  #count = 0n;
  /** Left out since the buffer was full for the first time. */
  #dropped = 0;
  #position: bigint | undefined;
  #isFailing = false;
  readonly #written: (() => void)[] = [];

  constructor(private readonly options: MessageLogOptions) {}

  /** Returns the function that notes the messages of a session's numbering that began then, in milliseconds. */
  tap(startedAt: number, session: MessageSession = 'order'): MessageTap {
    return {
      place: () => this.#place(),
      note: (message, place = this.#place()) => this.#note(message, place, { startedAt, session }),
    };
  }

  #place(): MessagePlace {
    this.#count += 1n;
    return { nth: this.#count, at: this.options.now() };
  }

  /** Never throws, because a fault of the log must not become one of the session. */
  #note(message: TappedMessage, place: MessagePlace, numbering: Numbering): void {
    try {
      this.#add(message, place, numbering);
    } catch (error) {
      this.options.log.error({ err: error }, 'a message could not be logged');
      this.options.onDropped(1);
    }
  }

  /** Resolves when everything that was added before is written, at most after the given time. */
  async written(timeoutMs: number): Promise<void> {
    if (this.#waiting.length === 0) return;
    const done = new Promise<void>((resolve) => this.#written.push(resolve));
    this.#wakeup.wake();
    await atMost(timeoutMs, done);
  }

  #add(message: TappedMessage, { nth, at }: MessagePlace, numbering: Numbering): void {
    const { direction, outcome, number, type, fields, problem } = message;
    const { fence, masking, logsHeartbeats } = this.options;
    const isUsual = outcome === 'applied' || outcome === 'written';
    if (!logsHeartbeats && isUsual && livenessTypes.includes(type)) return;
    if (this.#isFull()) {
      this.#drop();
      return;
    }
    const { orderId, clOrdId } = subjectOf(fields);
    const text = masking.text(fields, problem);
    this.#waiting.push({
      id: messageId(fence, nth),
      at,
      ...numbering,
      direction,
      number: BigInt(number),
      type: masking.value(type).slice(0, 8),
      orderId: masking.value(orderId).slice(0, 64),
      clOrdId: masking.value(clOrdId).slice(0, 70),
      outcome,
      text,
    });
    this.#characters += text.length + rowCharacters;
    if (this.#waiting.length >= maxBatch.messages) this.#wakeup.wake();
  }

  #isFull(): boolean {
    const { maxWaiting = usualMaxWaiting } = this.options;
    return this.#waiting.length >= maxWaiting.messages || this.#characters >= maxWaiting.characters;
  }

  #drop(): void {
    if (this.#dropped === 0) this.options.log.warn('messages are left out of the message log');
    this.#dropped += 1;
    this.options.onDropped(1);
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#wakeup.wait(writeEveryMs, signal);
      if (!(await this.#writeAll())) await pause(restMs, signal);
    }
    await atMost(lastWriteMs, this.#writeAll());
  }

  /** Writes what waits. False: the database did not take it, and it waits again. */
  async #writeAll(): Promise<boolean> {
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch();
      try {
        await this.#write(batch);
      } catch (error) {
        if (!this.#isFailing) this.options.log.warn({ err: error }, 'the message log could not be written');
        this.#isFailing = true;
        return false;
      }
      this.#waiting.splice(0, batch.length);
      this.#characters -= batch.reduce((sum, { text }) => sum + text.length + rowCharacters, 0);
    }
    this.#recovered();
    return true;
  }

  #recovered(): void {
    for (const resolve of this.#written.splice(0)) resolve();
    this.#isFailing = false;
    if (this.#dropped === 0) return;
    this.options.log.warn({ messages: this.#dropped }, 'messages were left out of the message log');
    this.#dropped = 0;
  }

  #nextBatch(): Waiting[] {
    let characters = 0;
    const end = this.#waiting.findIndex((one, at) => {
      characters += one.text.length + rowCharacters;
      return at > 0 && (at >= maxBatch.messages || characters > maxBatch.characters);
    });
    return this.#waiting.slice(0, end === -1 ? undefined : end);
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    let position = this.#position ?? (await this.#lastPosition());
    const rows = batch.map((one) => {
      position += BigInt(one.text.length + rowCharacters);
      return { ...one, position };
    });
    await this.options.database.write(ignoring(fixMessages.insert(...rows)));
    this.#position = position;
  }

  /** Where an earlier process ended. */
  async #lastPosition(): Promise<bigint> {
    const { list, read } = fixMessages.only('position');
    const [row] = await this.options.database.read({
      sql: `SELECT ${list} FROM fix_messages ORDER BY id DESC LIMIT 1`,
      values: [],
    });
    return row === undefined ? 0n : read(row).position;
  }
}

/** Rows that are there were written by a try whose answer was lost. */
function ignoring({ sql, ...rest }: Statement): Statement {
  return { ...rest, sql: sql.replace(/^INSERT /, 'INSERT IGNORE ') };
}
