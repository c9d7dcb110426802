import type { Duplex } from 'node:stream';
import { atMost } from '../../kit/at-most.ts';
import type { MessageTap } from '../messages/tap.ts';
import { canEncode, encode, type Field, isPrintable } from '../wire/message.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import { utcTimestamp } from '../wire/times.ts';
import type { NumberedMessage, Outgoing, SessionRecord, SessionSettings } from './types.ts';

/** More messages than wait in the busiest second. */
const maxWaiting = 5_000;
/** How many messages share a commit. */
const maxAtOnce = 500;
/** More answers than the other side can want while one commit lasts. */
const maxAdministrative = 1_000;
/** So that messages which are answered by a reject cannot use up the room for what must be answered. */
const maxCourtesies = 500;
/** Of how many of the session's own messages the type is known. A Reject comes soon after what it rejects. */
const maxTypes = 10_000;
/** How many bytes may wait for the other side to read them. */
const maxUnflushed = 1_048_576;
/** How long the other side may leave bytes unread before an order would come too late to be trusted. */
const longestFlushMs = 1_000;

type Waiting<Message> =
  | { readonly kind: 'own'; readonly message: Message }
  | { readonly kind: 'administrative'; readonly type: string; readonly fields: readonly Field[] }
  | { readonly kind: 'fill'; readonly from: number; readonly to: number };

type WithNumber<Message> = { readonly waiting: Waiting<Message>; readonly number: number };

export interface MessageSenderOptions<Message> {
  readonly socket: Duplex;
  readonly settings: SessionSettings;
  readonly record: Pick<SessionRecord<Message>, 'unwritten'> & {
    /** As of `SessionRecord`, with the numbers of one direction. */
    sending(messages: readonly NumberedMessage<Message>[], nextOut: number): Promise<readonly Message[]>;
  };
  readonly nextOut: number;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  /** Whether this process is still the one that has the session. */
  readonly mayWrite: () => boolean;
  readonly gapFilled: (from: number, to: number) => void;
  /** The record may not have what it was given: its numbers must be read again. */
  readonly failed: (error: unknown) => void;
  /** Notes each message; absent: nobody does. */
  readonly tap?: MessageTap | undefined;
}

/**
 * Writes all messages of a connection, in the order of their numbers. Each has its number in the record before a byte of it is
 * written, and is written once. A message that comes too late, and numbers that the other side asks for again, are passed over
 * by SequenceReset: nothing is ever sent a second time.
 */
export class MessageSender<Message extends Outgoing> {
  /** When something was written last, by the monotonic clock. */
  lastWriteAt = performance.now();
  #waiting: Waiting<Message>[] = [];
  #nextOut: number;
  /** The number of the next message that will be written. */
  #nextWritten: number;
  #isOpen = true;
  /** The other side left bytes unread for too long, and has not read them since. */
  #isStuck = false;
  #administrative = 0;
  #running: Promise<void> | undefined;
  /** The types of the session's own messages, by their numbers. */
  readonly #types = new Map<number, string>();

  constructor(private readonly options: MessageSenderOptions<Message>) {
    this.#nextOut = options.nextOut;
    this.#nextWritten = options.nextOut;
  }

  send(message: Message): void {
    const isFull = this.#waiting.length >= maxWaiting;
    if (!this.#isOpen || isFull || !isPrintable(message.fields)) message.settled('unrecorded');
    else this.#add({ kind: 'own', message });
  }

  administrative(type: string, ...fields: readonly Field[]): void {
    // Some echo what the other side sent, which may be empty.
    this.#answer({ kind: 'administrative', type, fields: fields.filter((field) => canEncode([field])) });
  }

  /** An answer that the other side can do without: it is left out while many others wait. */
  courtesy(type: string, ...fields: readonly Field[]): void {
    if (this.#administrative < maxCourtesies) this.administrative(type, ...fields);
  }

  /** Tells the other side that nothing of these numbers comes again. */
  fill(from: number, to: number): void {
    this.#answer({ kind: 'fill', from, to });
  }

  /** Writes nothing any more. Waiting messages are settled as unrecorded. Resolves when no commit is under way. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#running;
  }

  /** The number of the next message that is given one. */
  get nextOut(): number {
    return this.#nextOut;
  }

  /**
   * The type of the session's own message that was written last with this number. Undefined: it was an order, a cancel or a
   * question, or is not known any more.
   */
  typeOf(number: number): string | undefined {
    return this.#types.get(number);
  }

  /** Whether something waits to be written. */
  get isBusy(): boolean {
    return this.#running !== undefined;
  }

  /** Resolves when everything that waited has been written. */
  async drained(): Promise<void> {
    await this.#running;
  }

  #answer(waiting: Waiting<Message>): void {
    this.#administrative += 1;
    if (this.#administrative > maxAdministrative) this.#fail(new Error('the other side asks for too much'));
    else this.#add(waiting);
  }

  #fail(error: unknown): void {
    this.#isOpen = false;
    this.options.failed(error);
  }

  #add(waiting: Waiting<Message>): void {
    if (!this.#isOpen) return;
    this.#waiting.push(waiting);
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // So that messages of one turn of the event loop share a commit.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, maxAtOnce);
      this.#administrative -= some.filter(({ kind }) => kind !== 'own').length;
      if (!this.#isOpen) refuse(some);
      else await this.#sendSome(some);
    }
    // In the same turn as the last check, so that nothing can be added in between.
    this.#running = undefined;
  }

  async #sendSome(some: readonly Waiting<Message>[]): Promise<void> {
    const { record } = this.options;
    let number = this.#nextOut;
    const numbered = some.map((waiting) => ({ waiting, number: waiting.kind === 'fill' ? 0 : number++ }));
    const own = numbered.flatMap(({ waiting, number }): NumberedMessage<Message>[] =>
      waiting.kind === 'own' ? [{ message: waiting.message, number }] : [],
    );
    let refused: readonly Message[] = [];
    if (number > this.#nextOut) {
      try {
        refused = await record.sending(own, number);
      } catch (error) {
        for (const { message } of own) message.settled('unknown');
        return this.#fail(error);
      }
      this.#nextOut = number;
    }
    const unwritten: Message[] = [];
    for (const one of numbered) await this.#writeOne(one, refused, unwritten);
    for (const message of refused) message.settled('refused');
    if (unwritten.length === 0) return;
    try {
      await record.unwritten(unwritten);
    } catch (error) {
      this.#fail(error);
    }
    // Also where the record does not have it: that no byte was written is proven here.
    for (const message of unwritten) message.settled('unwritten');
  }

  async #writeOne(
    { waiting, number }: WithNumber<Message>,
    refused: readonly Message[],
    unwritten: Message[],
  ): Promise<void> {
    if (waiting.kind === 'fill') {
      if (this.#canWrite() && waiting.from < this.#nextWritten) {
        // The messages that follow may have been read, and must not be passed over.
        const next = Math.min(this.#nextWritten, waiting.to + 1);
        this.#writeOwn(waiting.from, messageTypes.SequenceReset, fillFields(next), true);
        this.options.gapFilled(waiting.from, next - 1);
      }
      return;
    }
    if (waiting.kind === 'administrative') {
      if (this.#canWrite()) this.#writeOwn(number, waiting.type, waiting.fields);
    } else if (!refused.includes(waiting.message) && (await this.#mayGo(waiting.message))) {
      this.#write(number, waiting.message.type, waiting.message.fields);
      waiting.message.settled('written');
    } else {
      if (!refused.includes(waiting.message)) unwritten.push(waiting.message);
      this.#tapUnwritten(number, waiting.message);
      // So that the other side does not ask for it.
      if (this.#canWrite()) this.#writeOwn(number, messageTypes.SequenceReset, fillFields(number + 1));
    }
    this.#nextWritten = number + 1;
  }

  /** The last check before an order is sent: nothing stands between it and the other side, and its time has not run out. */
  async #mayGo({ notAfterMs }: Message): Promise<boolean> {
    const { now } = this.options;
    const inTime = () => notAfterMs === undefined || now() <= notAfterMs;
    if (!this.#canWrite() || !inTime()) return false;
    if (!(await this.#isFlushed())) return false;
    return this.#canWrite() && inTime();
  }

  /** Whether everything was given to the kernel, waiting for it once. */
  async #isFlushed(): Promise<boolean> {
    const { socket } = this.options;
    if (socket.writableLength > 0 && !this.#isStuck) {
      // A write of nothing is done when all before it are, or the socket is closed.
      await atMost(longestFlushMs, new Promise<void>((resolve) => socket.write('', () => resolve())));
    }
    this.#isStuck = socket.writableLength > 0;
    return !this.#isStuck;
  }

  #canWrite(): boolean {
    const { socket, mayWrite } = this.options;
    return this.#isOpen && socket.writable && !socket.destroyed && mayWrite();
  }

  /** Writes a message of the session. */
  #writeOwn(number: number, type: string, fields: readonly Field[], isPossDup = false): void {
    this.#types.delete(number);
    this.#types.set(number, type);
    const [oldest] = this.#types.keys();
    if (this.#types.size > maxTypes && oldest !== undefined) this.#types.delete(oldest);
    this.#write(number, type, fields, isPossDup);
  }

  #write(number: number, type: string, fields: readonly Field[], isPossDup = false): void {
    const { socket, settings, now } = this.options;
    const sendingTime = utcTimestamp(now());
    const header: Field[] = [
      [tags.MsgType, type],
      [tags.SenderCompID, settings.senderCompId],
      [tags.TargetCompID, settings.targetCompId],
      [tags.MsgSeqNum, String(number)],
      ...(isPossDup ? [[tags.PossDupFlag, 'Y'] as const] : []),
      [tags.SendingTime, sendingTime],
      ...(isPossDup ? [[tags.OrigSendingTime, sendingTime] as const] : []),
    ];
    const all = [...header, ...fields];
    socket.write(encode(settings.beginString, all));
    this.lastWriteAt = performance.now();
    this.options.tap?.note({ direction: 'out', outcome: 'written', number, type, fields: all });
    if (socket.writableLength > maxUnflushed) this.#fail(new Error('the other side does not read'));
  }

  #tapUnwritten(number: number, { type, fields }: Message): void {
    const header: Field[] = [
      [tags.MsgType, type],
      [tags.MsgSeqNum, String(number)],
    ];
    this.options.tap?.note({ direction: 'out', outcome: 'not_written', number, type, fields: [...header, ...fields] });
  }
}

function fillFields(next: number): Field[] {
  return [
    [tags.GapFillFlag, 'Y'],
    [tags.NewSeqNo, String(next)],
  ];
}

function refuse<Message extends Outgoing>(some: readonly Waiting<Message>[]): void {
  for (const waiting of some) if (waiting.kind === 'own') waiting.message.settled('unrecorded');
}
