import type { Duplex } from 'node:stream';
import { atMost } from '../../lib/at-most.ts';
import type { Logger } from '../../lib/log.ts';
import type { MessageOutcome, MessagePlace, MessageTap } from '../messages/tap.ts';
import { type Framed, Framing } from '../wire/framing.ts';
import { type Field, type FixMessage, wholeNumber } from '../wire/message.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import { readUtcTimestamp } from '../wire/times.ts';
import { PassedOver } from './gap.ts';
import { Sender } from './sender.ts';
import type { Numbers, Outgoing, SessionEvents, SessionRecord, SessionSettings } from './types.ts';

const tickMs = 100;
/** How far the other side's clock may be from ours. */
const furthestClockMs = 120_000;
/** FIX50SP2, as DefaultApplVerID names it. */
const fix50Sp2 = '9';
/** BusinessRejectReason (380). */
const unsupportedMessageType = '3';
/** The messages that the record applies. */
const appliedTypes: readonly string[] = [
  messageTypes.ExecutionReport,
  messageTypes.OrderCancelReject,
  messageTypes.BusinessMessageReject,
  messageTypes.Reject,
];
/** SessionRejectReason (373). */
const rejectReasons = { valueIsIncorrect: '5', compIdProblem: '9', sendingTimeAccuracy: '10', other: '99' } as const;

export interface ConnectionOptions<Message> {
  readonly socket: Duplex;
  readonly settings: SessionSettings;
  readonly record: SessionRecord<Message>;
  readonly numbers: Numbers;
  /** Whether the Logon says that both directions begin with 1. */
  readonly resets: boolean;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  readonly mayWrite: () => boolean;
  /** Whether there should be a session now. */
  readonly isInHours: () => boolean;
  /** Whether an earlier connection ended before `missed` could be called. */
  readonly hasMissed: boolean;
  readonly events: SessionEvents;
  readonly log: Logger;
  /** Notes each message in both directions; absent: nobody does. */
  readonly tap?: MessageTap | undefined;
}

/** Ends the connection. Every message was applied, or is asked for again. */
class Disconnect extends Error {
  override readonly name = 'Disconnect';
}

/**
 * One connection of the session, from Logon to its end. It applies the other side's messages in the order of their numbers,
 * asks for what is missing, and counts as up once nothing is missing any more.
 */
export class Connection<Message extends Outgoing> {
  readonly #sender: Sender<Message>;
  readonly #framing = new Framing();
  #nextIn: number;
  #storedNextIn: number;
  #batch: FixMessage[] = [];
  readonly #skipped = new PassedOver();
  /** Messages between the last stored number and `#nextIn` were passed over, and the record does not have that yet. */
  #hasPassedOver = false;
  /** The record has it, and `missed` was not called since. */
  #hasMissed: boolean;
  #isLoggedOn = false;
  #isUp = false;
  #isLeaving = false;
  /** Our Logout is on its way: no order may follow it. */
  #isEnding = false;
  #lastReadAt = performance.now();
  #testedAt: number | undefined;
  /** The number that showed a gap, and when it was found. Undefined: nothing is missing. */
  #gap: { readonly to: number; readonly sinceMs: number } | undefined;
  /** The number of the last TestRequest. Its Heartbeat shows that all older messages were received. */
  #barrier = 0;
  #loggedOut: () => void = () => {};
  /** What becomes of the message that is being handled, for the tap. Undefined: it waits for its commit. */
  #outcome: MessageOutcome | undefined;
  readonly #places = new WeakMap<FixMessage, MessagePlace>();
  #error: Error | undefined;

  constructor(private readonly options: ConnectionOptions<Message>) {
    const { socket, settings, record, numbers, now, mayWrite, events, tap } = options;
    this.#nextIn = numbers.nextIn;
    this.#storedNextIn = numbers.nextIn;
    this.#hasMissed = options.hasMissed;
    this.#sender = new Sender<Message>({
      ...{ socket, settings, record, now, mayWrite, tap },
      nextOut: numbers.nextOut,
      gapFilled: (from, to) => {
        events.gapFilled(from, to, this.#isUp);
        // The test was among what was passed over.
        if (!this.#isUp) this.#testLink();
      },
      failed: (error) => this.#end(error as Error),
    });
  }

  get isUp(): boolean {
    return this.#isUp && !this.#isEnding;
  }

  /** Whether messages were passed over, and `missed` was not called since. */
  get hasMissed(): boolean {
    return this.#hasMissed;
  }

  send(message: Message): void {
    if (this.isUp) this.#sender.send(message);
    else message.settled('unrecorded');
  }

  /** Logs on and works until the connection ends. Throws why it ended, unless `signal` was aborted or the session's time is over. */
  async run(signal: AbortSignal): Promise<void> {
    const { socket, events } = this.options;
    const startedAt = performance.now();
    const leave = () => void this.#leave('').catch((error: unknown) => this.#end(error as Error));
    signal.addEventListener('abort', leave, { once: true });
    socket.on('error', (error) => this.#end(error));
    const ticking = setInterval(() => {
      try {
        this.#tick(startedAt);
      } catch (error) {
        this.#end(error as Error);
      }
    }, tickMs);
    try {
      this.#sender.administrative(messageTypes.Logon, ...this.#logonFields());
      if (signal.aborted) leave();
      for await (const chunk of socket) {
        await this.#handleAll(this.#framing.push(chunk as Buffer));
      }
      if (this.#error !== undefined) throw this.#error;
      if (!this.#isLeaving) throw new Disconnect('the other side closed the connection');
    } catch (error) {
      if (!this.#isLeaving || this.#error !== undefined) throw this.#error ?? error;
    } finally {
      clearInterval(ticking);
      signal.removeEventListener('abort', leave);
      const wasUp = this.#isUp;
      this.#isUp = false;
      socket.destroy();
      this.#loggedOut();
      if (wasUp) events.down();
      for (const message of this.#batch) this.#tap(message, 'not_applied');
      await this.#sender.close();
      await this.#storeNextIn();
    }
  }

  #logonFields(): Field[] {
    const { settings, resets } = this.options;
    const { username, heartbeatMs, beginString } = settings;
    const password = settings.password();
    return [
      [tags.EncryptMethod, '0'],
      [tags.HeartBtInt, String(Math.ceil(heartbeatMs / 1_000))],
      ...(resets ? [[tags.ResetSeqNumFlag, 'Y'] as const] : []),
      ...(username === undefined ? [] : [[tags.Username, username] as const]),
      ...(password === undefined ? [] : [[tags.Password, password] as const]),
      ...(beginString === 'FIXT.1.1' ? [[tags.DefaultApplVerID, fix50Sp2] as const] : []),
    ];
  }

  /** Checks what is due: Logon, resent messages, silence, heartbeats. */
  #tick(startedAt: number): void {
    const { settings, isInHours, mayWrite } = this.options;
    const now = performance.now();
    if (!mayWrite()) throw new Disconnect('another process has the session');
    if (!this.#isLoggedOn) {
      if (now - startedAt > settings.logonTimeoutMs) throw new Disconnect('the Logon was not answered');
      return;
    }
    if (this.#gap !== undefined && now - this.#gap.sinceMs > settings.gapTimeoutMs) {
      throw new Disconnect('what was missing was not sent again');
    }
    const silentMs = now - this.#lastReadAt;
    if (silentMs > settings.heartbeatMs * 2.4) {
      this.options.events.trouble('silent');
      throw new Disconnect('the other side is silent');
    }
    if (silentMs > settings.heartbeatMs * 1.2 && this.#testedAt === undefined) {
      this.#testedAt = now;
      this.#sender.administrative(messageTypes.TestRequest, [tags.TestReqID, `quiet-${Math.floor(now)}`]);
    }
    const isQuiet = now - this.#sender.lastWriteAt > settings.heartbeatMs && !this.#sender.isBusy;
    if (isQuiet) this.#sender.administrative(messageTypes.Heartbeat);
    if (!isInHours() && !this.#isLeaving) void this.#leave('the session is over').catch((error) => this.#end(error));
  }

  async #handleAll(framed: readonly Framed[]): Promise<void> {
    for (const one of framed) {
      if ('garbage' in one) {
        this.options.log.warn({ why: one.garbage }, 'bytes that are no FIX message');
        this.#tapGarbage(one.garbage);
        this.options.events.trouble('garbage');
        if (!this.#isLoggedOn) throw new Disconnect('bytes that are no FIX message, before the Logon');
      } else {
        // Bytes alone are no sign of life: a wrong length makes all that follows a part of one message.
        this.#lastReadAt = performance.now();
        this.#testedAt = undefined;
        this.#outcome = 'applied';
        const { tap } = this.options;
        if (tap !== undefined) this.#places.set(one.message, tap.place());
        try {
          await this.#handle(one.message, one.beginString);
        } finally {
          this.#tap(one.message, this.#outcome);
        }
      }
    }
    await this.#storeBatch();
  }

  #tap(message: FixMessage, outcome: MessageOutcome | undefined): void {
    if (outcome === undefined) return;
    const { number, type, fields, isWhole } = message;
    const problem = isWhole ? {} : { problem: 'what follows cannot be read' };
    const tapped = { direction: 'in', outcome, number, type, fields, ...problem } as const;
    this.options.tap?.note(tapped, this.#places.get(message));
  }

  #tapGarbage(problem: string): void {
    this.options.tap?.note({ direction: 'in', outcome: 'unreadable', number: 0, type: '', fields: [], problem });
  }

  async #handle(message: FixMessage, beginString: string): Promise<void> {
    if (beginString !== this.options.settings.beginString) await this.#refuse('a wrong BeginString', 'not_ours');
    await this.#checkHeader(message);
    const { type, number, isWhole } = message;
    if (!this.#isLoggedOn) return this.#handleLogon(message);
    if (type === messageTypes.SequenceReset && message.get(tags.GapFillFlag) !== 'Y') return this.#reset(message);
    if (number < this.#nextIn) {
      // A gap fill that begins before what is missing ends behind it.
      if (message.isPossDup && type === messageTypes.SequenceReset) return this.#fillGap(message);
      if (message.isPossDup) {
        this.#outcome = 'duplicate';
        return;
      }
      await this.#refuse(`MsgSeqNum too low, expecting ${this.#nextIn} but received ${number}`, 'number_too_low');
    }
    if (number > this.#nextIn) {
      this.#outcome = 'gap';
      // Answered although it comes too early: both sides may be asking for something.
      if (type === messageTypes.ResendRequest) this.#resend(message);
      if (type === messageTypes.Logout) await this.#handleLogout(message);
      if (isAdministrative(type)) this.#skipped.see(number);
      return this.#miss(number);
    }
    if (isWhole) await this.#handleNext(message);
    else this.#passOver(message);
    this.#closeGap();
  }

  /** A message with the expected number. */
  async #handleNext(message: FixMessage): Promise<void> {
    this.#nextIn += 1;
    switch (message.type) {
      case messageTypes.Heartbeat:
        if (message.get(tags.TestReqID) === this.#barrierName()) await this.#becomeUp();
        return;
      case messageTypes.TestRequest:
        this.#sender.administrative(messageTypes.Heartbeat, [tags.TestReqID, message.get(tags.TestReqID) ?? '0']);
        return;
      case messageTypes.ResendRequest:
        return this.#resend(message);
      case messageTypes.SequenceReset: {
        const next = wholeNumber(message.get(tags.NewSeqNo)) ?? 0;
        if (next < this.#nextIn) return this.#reject(message, rejectReasons.valueIsIncorrect);
        return this.#moveTo(message, message.number, next);
      }
      case messageTypes.Logout:
        return this.#handleLogout(message);
      case messageTypes.Logon:
        return;
      default:
        if (message.type === messageTypes.Reject) this.options.events.trouble('rejected');
        if (!appliedTypes.includes(message.type)) this.#rejectType(message);
        this.#outcome = undefined;
        this.#batch.push(message);
    }
  }

  /** A message that cannot be read would come the same again, so it is rejected, and passed over once. The record notes it. */
  #passOver(message: FixMessage): void {
    const { log, events } = this.options;
    this.#outcome = undefined;
    this.#nextIn += 1;
    this.#hasPassedOver = true;
    this.#batch.push(message);
    log.error({ number: message.number, type: message.type }, 'a message of the other side cannot be read');
    events.trouble('garbage');
    this.#reject(message, rejectReasons.other);
  }

  /** A gap fill that was asked for, from a number that was received. */
  #fillGap(message: FixMessage): void {
    const next = wholeNumber(message.get(tags.NewSeqNo)) ?? 0;
    if (next <= this.#nextIn) return;
    this.#moveTo(message, this.#nextIn, next);
    this.#closeGap();
  }

  /** Goes on with a number, as a SequenceReset demands. */
  #moveTo({ number, isPossDup }: FixMessage, from: number, to: number): void {
    this.#hasPassedOver ||= this.#skipped.isBy({ number, from, to, isPossDup });
    this.#nextIn = to;
  }

  async #handleLogon(message: FixMessage): Promise<void> {
    const { log, events, resets } = this.options;
    const { type, number, isWhole } = message;
    const text = message.get(tags.Text) ?? '';
    if (type !== messageTypes.Logon) {
      log.error({ text }, 'the other side refused the Logon');
      events.trouble('logon_refused');
      throw new Disconnect(`the Logon was refused: ${text}`);
    }
    if (!isWhole) await this.#refuse('the Logon cannot be read', 'garbage');
    const isReset = message.get(tags.ResetSeqNumFlag) === 'Y';
    if (isReset && !resets) await this.#refuse('ResetSeqNumFlag was not asked for', 'reset_not_asked_for');
    if (number < this.#nextIn) {
      await this.#refuse(`MsgSeqNum too low, expecting ${this.#nextIn} but received ${number}`, 'number_too_low');
    }
    this.#isLoggedOn = true;
    this.#skipped.see(number);
    if (number > this.#nextIn) this.#miss(number + 1);
    else this.#nextIn += 1;
    // From now on the other side sends messages that another reset would lose.
    if (resets) await this.#commit();
    this.#testLink();
  }

  async #handleLogout(message: FixMessage): Promise<void> {
    const text = message.get(tags.Text) ?? '';
    await this.#storeBatch();
    if (!this.#isLeaving) {
      this.#isEnding = true;
      this.options.log.warn({ text }, 'the other side logs out');
      this.#sender.administrative(messageTypes.Logout);
      await atMost(this.options.settings.logoutTimeoutMs, this.#sender.drained());
      throw new Disconnect(`the other side logged out: ${text}`);
    }
    this.#loggedOut();
  }

  /** SequenceReset in reset mode: what was between is lost for good. */
  async #reset(message: FixMessage): Promise<void> {
    const next = wholeNumber(message.get(tags.NewSeqNo)) ?? 0;
    if (next < this.#nextIn) {
      this.#reject(message, rejectReasons.valueIsIncorrect);
      return;
    }
    this.options.log.error({ from: this.#nextIn, to: next }, 'the other side passes over messages for good');
    this.options.events.trouble('numbers_reset');
    this.#moveTo(message, this.#nextIn, next);
    this.#closeGap();
  }

  /** Asks for what is missing before a number, once. What comes meanwhile with later numbers comes again. */
  #miss(number: number): void {
    if (this.#gap !== undefined) return;
    this.options.events.trouble('number_too_high');
    this.options.log.warn({ expected: this.#nextIn, got: number }, 'messages are missing, and are asked for');
    this.#gap = { to: number, sinceMs: performance.now() };
    this.#sender.administrative(
      messageTypes.ResendRequest,
      [tags.BeginSeqNo, String(this.#nextIn)],
      [tags.EndSeqNo, '0'],
    );
  }

  #closeGap(): void {
    if (this.#gap === undefined || this.#nextIn < this.#gap.to) return;
    this.#gap = undefined;
    if (!this.#isUp) this.#testLink();
  }

  /** Answers that nothing comes again. */
  #resend(message: FixMessage): void {
    const from = wholeNumber(message.get(tags.BeginSeqNo)) ?? 0;
    if (from < 1) {
      this.#reject(message, rejectReasons.valueIsIncorrect);
      return;
    }
    // 0 is no end.
    const end = wholeNumber(message.get(tags.EndSeqNo)) ?? 0;
    if (end !== 0 && end < from) {
      this.#reject(message, rejectReasons.valueIsIncorrect);
      return;
    }
    this.options.log.warn({ from }, 'the other side asks for messages again');
    this.#sender.fill(from, end === 0 ? Number.MAX_SAFE_INTEGER : end);
  }

  /** Asks for a Heartbeat, which comes after everything that the other side is sending now, its ResendRequest included. */
  #testLink(): void {
    this.#barrier += 1;
    this.#sender.administrative(messageTypes.TestRequest, [tags.TestReqID, this.#barrierName()]);
  }

  #barrierName(): string {
    return `ready-${this.#barrier}`;
  }

  async #becomeUp(): Promise<void> {
    if (this.#isUp || this.#gap !== undefined || this.#isLeaving) return;
    await this.#storeBatch();
    this.#isUp = true;
    this.options.events.up();
    this.#tellMissed();
  }

  /** Nobody asks about orders before nothing is missing any more. */
  #tellMissed(): void {
    if (!this.#hasMissed || !this.#isUp || this.#gap !== undefined) return;
    this.#hasMissed = false;
    this.options.events.missed();
  }

  async #checkHeader(message: FixMessage): Promise<void> {
    const { settings, now } = this.options;
    const isOurs =
      message.get(tags.SenderCompID) === settings.targetCompId &&
      message.get(tags.TargetCompID) === settings.senderCompId;
    if (!isOurs) {
      this.#reject(message, rejectReasons.compIdProblem);
      await this.#refuse('CompID problem', 'not_ours');
    }
    if (message.number < 1) await this.#refuse('MsgSeqNum is missing', 'not_ours');
    const sentAt = readUtcTimestamp(message.get(tags.SendingTime));
    if (sentAt === undefined || Math.abs(now() - sentAt) > furthestClockMs) {
      this.#reject(message, rejectReasons.sendingTimeAccuracy);
      await this.#refuse('SendingTime accuracy problem', 'not_ours');
    }
  }

  /** Says that a message of the application is not of our business. The record notes it. */
  #rejectType(message: FixMessage): void {
    const { log, events } = this.options;
    log.error(
      { number: message.number, type: message.type },
      'a message of the other side has a type that is not supported',
    );
    events.trouble('unsupported');
    this.#sender.courtesy(
      messageTypes.BusinessMessageReject,
      [tags.RefSeqNum, String(message.number)],
      [tags.RefMsgType, message.type],
      [tags.BusinessRejectReason, unsupportedMessageType],
    );
  }

  #reject(message: FixMessage, reason: string): void {
    if (this.#outcome === 'applied') this.#outcome = 'refused';
    this.#sender.courtesy(
      messageTypes.Reject,
      [tags.RefSeqNum, String(message.number)],
      [tags.RefMsgType, message.type],
      [tags.SessionRejectReason, reason],
    );
  }

  /** Logs out with a reason, and ends the connection: a person must look. */
  async #refuse(text: string, trouble: Parameters<SessionEvents['trouble']>[0]): Promise<never> {
    const { log, events, settings } = this.options;
    this.#outcome = 'refused';
    log.error({ text }, 'the session cannot go on');
    events.trouble(trouble);
    this.#isEnding = true;
    await this.#storeBatch();
    this.#sender.administrative(messageTypes.Logout, [tags.Text, text]);
    await atMost(settings.logoutTimeoutMs, this.#sender.drained());
    throw new Disconnect(text);
  }

  /** Logs out in order, in bounded time. */
  async #leave(text: string): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#isEnding = true;
    const { settings, socket } = this.options;
    if (this.#isLoggedOn) {
      const answered = new Promise<void>((resolve) => {
        this.#loggedOut = resolve;
      });
      this.#sender.administrative(messageTypes.Logout, ...(text === '' ? [] : [[tags.Text, text] as const]));
      await atMost(settings.logoutTimeoutMs, answered);
    }
    socket.destroy();
  }

  #end(error: Error): void {
    this.#error ??= error;
    this.options.socket.destroy();
  }

  async #storeBatch(): Promise<void> {
    if (this.#batch.length > 0 || this.#hasPassedOver) await this.#commit();
    this.#tellMissed();
  }

  /** If this fails, the messages stay, and the number of the next one is not stored without them. */
  async #commit(): Promise<void> {
    const hadPassedOver = this.#hasPassedOver;
    await this.options.record.received(this.#batch, this.#nextIn, hadPassedOver);
    for (const message of this.#batch) this.#tap(message, committedOutcome(message));
    this.#batch = [];
    this.#storedNextIn = this.#nextIn;
    this.#hasPassedOver = false;
    this.#hasMissed ||= hadPassedOver;
  }

  /** Administrative messages are not stored one by one. If this fails, they are asked for again. */
  async #storeNextIn(): Promise<void> {
    if (this.#batch.length > 0 || this.#storedNextIn === this.#nextIn) return;
    await this.#commit().catch((error: unknown) => {
      this.options.log.warn({ err: error }, "the number of the other side's next message was not stored");
    });
  }
}

/** Whether a message is of the session, and not of the application. */
function isAdministrative(type: string): boolean {
  return /^[0-5A]$/.test(type) && type !== messageTypes.Reject;
}

/** What became of a message that was given to the record. */
function committedOutcome({ isWhole, type }: FixMessage): MessageOutcome {
  if (!isWhole) return 'unreadable';
  return appliedTypes.includes(type) ? 'applied' : 'refused';
}
