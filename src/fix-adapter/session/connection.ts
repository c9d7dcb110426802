import type { Duplex } from 'node:stream';
import { atMost } from '../../kit/at-most.ts';
import type { Logger } from '../../kit/log.ts';
import type { MessageTap } from '../messages/tap.ts';
import { type Framed, Framing } from '../wire/framing.ts';
import type { Field, FixMessage } from '../wire/message.ts';
import { wholeNumber } from '../wire/numbers.ts';
import { plain } from '../wire/plain.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import { Incoming } from './gap.ts';
import { Inbox } from './inbox.ts';
import { logonFields, readLogonAnswer } from './logon.ts';
import { askedAgain, headerFault, isAdministrative, isApplied, rejectReasons, withRefMsgType } from './messages.ts';
import { Noting } from './noting.ts';
import { Readiness } from './readiness.ts';
import { MessageSender } from './sender.ts';
import { Silence } from './silence.ts';
import type {
  Numbers,
  Outgoing,
  SessionEvents,
  SessionRecord,
  SessionSettings,
  SessionState,
  SessionTrouble,
} from './types.ts';

const tickMs = 100;
/** BusinessRejectReason (380). */
const unsupportedMessageType = '3';

export interface ConnectionOptions<Message> {
  readonly socket: Duplex;
  readonly settings: SessionSettings;
  readonly record: SessionRecord<Message>;
  readonly numbers: Numbers;
  /** The NewPassword of the Logon; undefined: it has none. */
  readonly newPassword?: string | undefined;
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
export class Disconnect extends Error {
  override readonly name: string = 'Disconnect';
  readonly #said: string;

  /** `said` is the other side's own text. It may be about a person, so no log line has it. */
  constructor(message: string, said = '') {
    super(message);
    this.#said = said;
  }

  /** The message with what the other side said, for operators. */
  get told(): string {
    return this.#said === '' ? this.message : `${this.message}: ${this.#said}`;
  }
}

/** One side refused the Logon of the other. */
export class LogonRefused extends Disconnect {
  override readonly name = 'LogonRefused';
}

/**
 * One connection of the session, from Logon to its end. It applies the other side's messages in the order of their numbers,
 * asks for what is missing, and counts as up once nothing is missing any more.
 */
export class FixConnection<Message extends Outgoing> {
  readonly #sender: MessageSender<Message>;
  readonly #framing = new Framing();
  readonly #incoming: Incoming;
  readonly #inbox: Inbox;
  readonly #readiness = new Readiness();
  readonly #noting: Noting;
  #isLoggedOn = false;
  #isUp = false;
  /** Whether a message of the application came since the Logon: the other side has accepted it. */
  #hasBusiness = false;
  #isLeaving = false;
  /** Our Logout is on its way: no order, and nothing else with a number, may follow it. */
  #isEnding = false;
  readonly #startedAt = performance.now();
  readonly #silence: Silence;
  #lastTestAt = performance.now();
  #loggedOut: () => void = () => {};
  #error: Error | undefined;

  constructor(private readonly options: ConnectionOptions<Message>) {
    const { socket, settings, record, numbers, now, mayWrite, events, tap } = options;
    const { resendChunk, gapQuietMs, gapTimeoutMs } = settings;
    this.#incoming = new Incoming(numbers.nextIn, {
      ...{ chunk: resendChunk, quietMs: gapQuietMs, timeoutMs: gapTimeoutMs },
    });
    this.#noting = new Noting(tap, settings.moreTypes);
    this.#silence = new Silence(settings.heartbeatMs, performance.now());
    this.#inbox = new Inbox(record, this.#noting, numbers.nextIn, options.hasMissed);
    this.#sender = new MessageSender<Message>({
      ...{ socket, settings, now, mayWrite, tap },
      record: {
        // The numbers of the Heartbeats that came since the last commit are stored too: if the process dies now, the next one need
        // not take them for those of reports that were lost.
        sending: (messages, nextOut) => record.sending(messages, nextOut, this.#inbox.storedTo(this.nextIn)),
        unwritten: (messages) => record.unwritten(messages),
      },
      nextOut: numbers.nextOut,
      gapFilled: (from, to) => {
        events.gapFilled(from, to, this.#isUp);
        if (this.#isUp) return;
        this.#readiness.testsPassedOver();
        this.#testLink();
      },
      failed: (error) => this.#end(error as Error),
    });
  }

  get isUp(): boolean {
    return this.#isUp && !this.#isEnding;
  }

  /** Whether messages were passed over, and `missed` was not called since. */
  get hasMissed(): boolean {
    return this.#inbox.hasMissed;
  }

  get nextOut(): number {
    return this.#sender.nextOut;
  }

  get nextIn(): number {
    return this.#incoming.next;
  }

  /** The connection's state, and the reason why it is not up. */
  get state(): { readonly state: SessionState; readonly reason: string; readonly logged?: string } {
    const { missing } = this.#incoming;
    if (this.#isEnding) return { state: 'logging_out', reason: 'the session logs out' };
    if (!this.#isLoggedOn) return { state: 'logging_on', reason: 'the Logon is not answered' };
    if (missing !== undefined) {
      return { state: 'receiving', reason: `messages ${missing.from} to ${missing.to} of the other side are missing` };
    }
    if (!this.#isUp) return { state: 'testing', reason: 'the TestRequest after the Logon is not answered' };
    return { state: 'up', reason: '' };
  }

  send(message: Message): void {
    if (this.isUp) this.#sender.send(message);
    else message.settled('unrecorded');
  }

  /** Logs on and works until the connection ends. Throws why it ended, unless `signal` was aborted or the session's time is over. */
  async run(signal: AbortSignal): Promise<void> {
    const { socket, events } = this.options;
    const leave = () => void this.#leave('').catch((error: unknown) => this.#end(error as Error));
    socket.on('error', (error) => this.#end(error));
    if (signal.aborted) {
      socket.destroy();
      return;
    }
    signal.addEventListener('abort', leave, { once: true });
    const ticking = setInterval(() => {
      try {
        this.#tick();
      } catch (error) {
        this.#end(error as Error);
      }
    }, tickMs);
    try {
      this.#logOn();
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
      this.#noting.notStored(this.#inbox.waiting);
      await this.#sender.close();
      await this.#storeNextIn();
    }
  }

  #logOn(): void {
    const { settings, resets, newPassword } = this.options;
    this.#answer(messageTypes.Logon, ...logonFields(settings, { resets, nextIn: this.nextIn }, newPassword));
  }

  /** Checks what is due: Logon, resent messages, tests, silence, heartbeats. */
  #tick(): void {
    const { settings, isInHours, mayWrite } = this.options;
    const now = performance.now();
    if (!mayWrite()) throw new Disconnect('another process has the session');
    if (!this.#isLoggedOn) {
      if (now - this.#startedAt > settings.logonTimeoutMs) throw new Disconnect('the Logon was not answered');
      return;
    }
    if (this.#incoming.isOverdue(now)) throw new Disconnect('what was missing was not sent again');
    this.#askForMissing(now);
    this.#checkSilence(now);
    // Some read nothing but the Logon at first.
    const isTesting = !this.#isUp && this.#incoming.missing === undefined;
    if (isTesting && now - this.#lastTestAt > settings.slowUpMs) this.#testLink();
    const isQuiet = now - this.#sender.lastWriteAt > settings.heartbeatMs && !this.#sender.isBusy;
    if (isQuiet) this.#answer(messageTypes.Heartbeat);
    if (!isInHours() && !this.#isLeaving) void this.#leave('the session is over').catch((error) => this.#end(error));
  }

  #checkSilence(now: number): void {
    const due = this.#silence.due(now);
    if (due === 'gone') {
      const length = this.#framing.passingLength;
      if (length !== undefined) this.#tooLong(`BodyLength is ${length}, and not all of it came`);
      this.options.events.trouble('silent');
      throw new Disconnect('the other side is silent');
    }
    if (due === 'test') this.#answer(messageTypes.TestRequest, [tags.TestReqID, `quiet-${Math.floor(now)}`]);
  }

  async #handleAll(framed: readonly Framed[]): Promise<void> {
    const { log, events } = this.options;
    for (const one of framed) {
      if ('tooLong' in one) {
        await this.#store();
        this.#tooLong(one.tooLong);
        throw new Disconnect('a message of the other side is too long');
      }
      if ('garbage' in one) {
        log.warn({ why: one.garbage }, 'bytes that are no FIX message');
        this.#noting.garbage(one.garbage);
        events.trouble('garbage');
        if (!this.#isLoggedOn) throw new Disconnect('bytes that are no FIX message, before the Logon');
      } else {
        this.#silence.read(performance.now());
        this.#noting.begins(one.message);
        try {
          await this.#handle(one.message, one.beginString);
        } finally {
          this.#noting.ends(one.message);
        }
        this.#askForMissing(performance.now());
      }
    }
    await this.#store();
  }

  /** Nothing behind such a message can be read over this connection. */
  #tooLong(why: string): void {
    this.options.log.error({ why }, 'a message of the other side is too long');
    this.#noting.garbage(why);
    this.options.events.trouble('too_long');
  }

  async #handle(message: FixMessage, beginString: string): Promise<void> {
    const { settings, now } = this.options;
    const fault = headerFault(message, beginString, settings, now());
    if (fault !== undefined) {
      if (fault.reject !== undefined) this.#reject(message, fault.reject);
      await this.#refuse(fault.text, 'not_ours');
    }
    const { type, number } = message;
    if (!this.#isLoggedOn) return this.#handleLogon(message);
    if (!isAdministrative(type)) this.#hasBusiness = true;
    if (type === messageTypes.SequenceReset && message.get(tags.GapFillFlag) !== 'Y') return this.#reset(message);
    if (number < this.nextIn) return this.#handleLow(message);
    if (number > this.nextIn) return this.#handleEarly(message);
    const next = wholeNumber(message.get(tags.NewSeqNo)) ?? 0;
    if (type === messageTypes.SequenceReset && message.isWhole && next > number) {
      this.#moveTo(message, next);
      return this.#becomeUp();
    }
    const isClosed = this.#incoming.take(performance.now());
    if (message.isWhole) await this.#handleNext(message);
    else this.#passOver(message);
    if (isClosed) this.#gapClosed();
    await this.#becomeUp();
  }

  /** A message with a number that was received. */
  async #handleLow(message: FixMessage): Promise<void> {
    if (!message.isPossDup) {
      const text = `MsgSeqNum too low, expecting ${this.nextIn} but received ${message.number}`;
      await this.#refuse(text, 'number_too_low');
    }
    this.#incoming.repeats(performance.now());
    this.#noting.is('duplicate');
    // A gap fill that begins before what is missing ends behind it.
    const next = wholeNumber(message.get(tags.NewSeqNo)) ?? 0;
    if (message.type !== messageTypes.SequenceReset || next <= this.nextIn) return;
    this.#moveTo(message, next);
    await this.#becomeUp();
  }

  /** A message before which others are missing. It comes again, with those. */
  async #handleEarly(message: FixMessage): Promise<void> {
    const { type, number } = message;
    this.#noting.is('gap');
    // Answered although it comes too early: both sides may be asking for something.
    if (type === messageTypes.ResendRequest) this.#resend(message);
    // It does not come again: a gap fill stands for it.
    if (type === messageTypes.TestRequest && message.isWhole) this.#answerTest(message);
    if (type === messageTypes.Logout) await this.#handleLogout(message);
    // A gap fill stands for other messages.
    this.#miss(number, isAdministrative(type) && type !== messageTypes.SequenceReset);
  }

  /** A message with the expected number. */
  async #handleNext(message: FixMessage): Promise<void> {
    const { type } = message;
    switch (type) {
      case messageTypes.Heartbeat:
        return this.#readiness.heartbeat(message.get(tags.TestReqID));
      case messageTypes.TestRequest:
        return this.#answerTest(message);
      case messageTypes.ResendRequest:
        return this.#resend(message);
      case messageTypes.SequenceReset:
        return this.#reject(message, rejectReasons.valueIsIncorrect);
      case messageTypes.Logout:
        return this.#handleLogout(message);
      case messageTypes.Logon:
        return;
      case messageTypes.Reject:
        return this.#handleReject(message);
      default:
        if (!isApplied(type, this.options.settings.moreTypes)) this.#rejectType(message);
        this.#give(message);
    }
  }

  #answerTest(message: FixMessage): void {
    const id = message.get(tags.TestReqID);
    this.#answer(messageTypes.Heartbeat, ...(id === undefined ? [] : [[tags.TestReqID, id] as const]));
  }

  /** A Reject of an order is the record's. It must not take a number of the session's own messages for that of an order. */
  #handleReject(message: FixMessage): void {
    const { log, events } = this.options;
    const reject = withRefMsgType(message, (number) => this.#sender.typeOf(number));
    const type = reject.get(tags.RefMsgType) ?? '';
    events.trouble('rejected');
    if (isAdministrative(type) || type === messageTypes.Reject) {
      const number = reject.get(tags.RefSeqNum);
      log.error(
        { number: plainOf(number), type, reason: plainOf(reject.get(tags.SessionRejectReason)) },
        'the other side rejects a message of the session',
      );
    }
    this.#give(message, reject);
  }

  /** Gives a message to the record with the next commit, perhaps as a copy with more fields. */
  #give(message: FixMessage, given = message): void {
    this.#noting.waits(message, given);
    this.#inbox.add(given);
  }

  /** A message that cannot be read would come the same again, so it is rejected, and passed over once. The record notes it. */
  #passOver(message: FixMessage): void {
    const { log, events } = this.options;
    this.#inbox.passOver();
    this.#give(message);
    log.error({ number: message.number, type: plain(message.type) }, 'a message of the other side cannot be read');
    events.trouble('garbage');
    this.#reject(message, rejectReasons.other);
  }

  /** Goes on with a higher number, as a SequenceReset demands. */
  #moveTo({ number, isPossDup }: Pick<FixMessage, 'number' | 'isPossDup'>, to: number): void {
    const { passesOver, isClosed } = this.#incoming.moveTo({ number, to, isPossDup }, performance.now());
    if (passesOver) this.#inbox.passOver();
    if (isClosed) this.#gapClosed();
  }

  async #handleLogon(message: FixMessage): Promise<void> {
    const { log, events, resets, settings, numbers } = this.options;
    const honoursNextExpected = settings.sendsNextExpected;
    const ownNumber = numbers.nextOut;
    const answer = readLogonAnswer(message, { resets, nextIn: this.nextIn, ownNumber, honoursNextExpected });
    if (answer.kind === 'unexpected') throw new Disconnect('the first message of the other side is no Logon');
    const sessionStatus = message.get(tags.SessionStatus);
    await settings.passwords?.answered({ isAccepted: answer.kind !== 'refused', sessionStatus });
    if (answer.kind === 'wrong') return this.#refuse(answer.text, answer.trouble);
    if (answer.kind === 'refused') {
      log.error({ sessionStatus: plainOf(sessionStatus) }, 'the other side refused the Logon');
      events.trouble('logon_refused');
      throw new LogonRefused('the Logon was refused', answer.text);
    }
    this.#isLoggedOn = true;
    const now = performance.now();
    if (answer.isEarly) {
      this.#miss(message.number, true);
      if (settings.sendsNextExpected) this.#incoming.isSentAlready(now);
    } else this.#incoming.take(now);
    // The other side does not repeat messages of an earlier connection that were not received.
    if (settings.resetsOnLogon) this.#inbox.passOver();
    // From now on the other side sends messages that another reset would lose.
    if (resets) await this.#inbox.commit(this.nextIn);
    if (answer.fillFrom !== undefined) this.#sender.fill(answer.fillFrom, Number.MAX_SAFE_INTEGER);
    this.#testLink();
  }

  async #handleLogout(message: FixMessage): Promise<void> {
    const text = message.get(tags.Text) ?? '';
    await this.#store();
    if (!this.#isLeaving) {
      const { log, events } = this.options;
      log.warn('the other side logs out');
      this.#answer(messageTypes.Logout);
      this.#isEnding = true;
      await atMost(this.options.settings.logoutTimeoutMs, this.#sender.drained());
      if (this.#isUp) throw new Disconnect('the other side logged out', text);
      // One that answers a ResendRequest with a Logout, or has sent messages again, has accepted the Logon.
      if (this.#incoming.missing !== undefined || this.#hasBusiness) {
        throw new Disconnect('the other side logged out while messages were asked for again', text);
      }
      // Some check the password after they have answered the Logon, and lock users who try on.
      events.trouble('logon_refused');
      throw new LogonRefused('the other side logged out before the session was up', text);
    }
    this.#loggedOut();
  }

  /** SequenceReset in reset mode: what was between is lost for good. */
  async #reset(message: FixMessage): Promise<void> {
    const next = wholeNumber(message.get(tags.NewSeqNo)) ?? 0;
    if (next < this.nextIn) return this.#reject(message, rejectReasons.valueIsIncorrect);
    this.options.log.error({ from: this.nextIn, to: next }, 'the other side passes over messages for good');
    this.options.events.trouble('numbers_reset');
    // Its own number counts for nothing.
    this.#moveTo({ number: message.number, isPossDup: true }, next);
    await this.#becomeUp();
  }

  /** A message shows that others before it are missing. It is asked for with them. */
  #miss(number: number, isOwn: boolean): void {
    if (!this.#incoming.comesEarly(number, isOwn, performance.now())) return;
    this.options.events.trouble('number_too_high');
    this.options.log.warn({ expected: this.nextIn, got: number }, 'messages are missing, and are asked for');
  }

  #askForMissing(now: number): void {
    if (this.#isEnding) return;
    const range = this.#incoming.request(now);
    if (range === undefined) return;
    this.options.log.info(range, 'messages are asked for again');
    this.#answer(
      messageTypes.ResendRequest,
      [tags.BeginSeqNo, String(range.begin)],
      [tags.EndSeqNo, String(range.end)],
    );
  }

  /** The answer to an earlier test may have been among what was passed over. */
  #gapClosed(): void {
    if (!this.#isUp && !this.#readiness.isProven) this.#testLink();
  }

  /** Answers that nothing comes again. */
  #resend(message: FixMessage): void {
    const asked = askedAgain(message);
    if (asked === undefined) {
      this.#reject(message, rejectReasons.valueIsIncorrect);
      return;
    }
    this.options.log.warn({ from: asked.from }, 'the other side asks for messages again');
    this.#sender.fill(asked.from, asked.to);
  }

  /** Asks for a Heartbeat, which comes after everything that the other side is sending now, its ResendRequest included. */
  #testLink(): void {
    this.#lastTestAt = performance.now();
    this.#answer(messageTypes.TestRequest, [tags.TestReqID, this.#readiness.nextTest()]);
  }

  async #becomeUp(): Promise<void> {
    const isReady = this.#readiness.isProven && this.#incoming.missing === undefined;
    if (this.#isUp || !isReady || this.#isEnding) return;
    await this.#inbox.store(this.nextIn);
    this.#isUp = true;
    this.options.events.up();
    this.#tellMissed();
  }

  /** Nobody asks about orders before nothing is missing any more. */
  #tellMissed(): void {
    if (!this.#inbox.hasMissed || !this.#isUp || this.#incoming.missing !== undefined) return;
    this.#inbox.told();
    this.options.events.missed();
  }

  /** Says that a message of the application is not of our business. The record notes it. */
  #rejectType(message: FixMessage): void {
    const { log, events } = this.options;
    log.error(
      { number: message.number, type: plain(message.type) },
      'a message of the other side has a type that is not supported',
    );
    events.trouble('unsupported');
    if (this.#isEnding) return;
    this.#sender.courtesy(
      messageTypes.BusinessMessageReject,
      [tags.RefSeqNum, String(message.number)],
      [tags.RefMsgType, message.type],
      [tags.BusinessRejectReason, unsupportedMessageType],
    );
  }

  #reject(message: FixMessage, reason: string): void {
    this.#noting.isRejected();
    if (this.#isEnding) return;
    this.#sender.courtesy(
      messageTypes.Reject,
      [tags.RefSeqNum, String(message.number)],
      [tags.RefMsgType, message.type],
      [tags.SessionRejectReason, reason],
    );
  }

  /** Sends a message of the session, unless our Logout is on its way: a number that is used then may not be written any more. */
  #answer(type: string, ...fields: readonly Field[]): void {
    if (!this.#isEnding) this.#sender.administrative(type, ...fields);
  }

  /** Logs out with a reason, and ends the connection: a person must look. */
  async #refuse(text: string, trouble: SessionTrouble): Promise<never> {
    const { log, events, settings } = this.options;
    this.#noting.is('refused');
    log.error({ text }, 'the session cannot go on');
    events.trouble(trouble);
    await this.#store();
    this.#answer(messageTypes.Logout, [tags.Text, text]);
    this.#isEnding = true;
    await atMost(settings.logoutTimeoutMs, this.#sender.drained());
    throw this.#isLoggedOn ? new Disconnect(text) : new LogonRefused(text);
  }

  /**
   * Logs out in order, in bounded time. The Logout is written behind everything that waits, also if our Logon was not answered
   * yet: the other side may have read it. The socket is closed when every number that was used up is written.
   */
  async #leave(text: string): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    const { settings, socket } = this.options;
    const answered = new Promise<void>((resolve) => {
      this.#loggedOut = resolve;
    });
    this.#answer(messageTypes.Logout, ...(text === '' ? [] : [[tags.Text, text] as const]));
    this.#isEnding = true;
    await atMost(settings.logoutTimeoutMs, this.#sender.drained());
    await atMost(settings.logoutTimeoutMs, answered);
    socket.destroy();
  }

  #end(error: Error): void {
    this.#error ??= error;
    this.options.socket.destroy();
  }

  async #store(): Promise<void> {
    await this.#inbox.store(this.nextIn);
    this.#tellMissed();
  }

  /** If this fails, administrative messages are asked for again. */
  async #storeNextIn(): Promise<void> {
    await this.#inbox.storeAtEnd(this.nextIn).catch((error: unknown) => {
      this.options.log.warn({ err: error }, "the number of the other side's next message was not stored");
    });
  }
}

function plainOf(value: string | undefined): string | undefined {
  return value === undefined ? undefined : plain(value);
}
