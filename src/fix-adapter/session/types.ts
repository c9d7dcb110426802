import type { Field, FixMessage } from '../wire/message.ts';

/** A message of the application. Header and trailer are the session's. */
export interface Outgoing {
  readonly type: string;
  /** The body, in its order. */
  readonly fields: readonly Field[];
  /** Real time, in milliseconds, after which it must not be written. */
  readonly notAfterMs?: number;
  /**
   * Called once. `written`: some of its bytes may have been. `unwritten`: none was and none will be, which is a proof.
   * `unrecorded`: the same, and it was never given to the record. `unknown`: the same, but whether the record has it is not
   * known. `refused`: the same, because the record has one with its name.
   */
  settled(outcome: 'written' | 'unwritten' | 'unrecorded' | 'unknown' | 'refused'): void;
}

/** A message with its number (MsgSeqNum). */
export interface NumberedMessage<Message> {
  readonly number: number;
  readonly message: Message;
}

/** The numbers of the next message in each direction, and when they began with 1, in milliseconds. */
export interface Numbers {
  readonly nextOut: number;
  readonly nextIn: number;
  readonly startedAt: number;
}

/** The record of a session. Each call commits before it returns, and throws if it may not have. */
export interface SessionRecord<Message> {
  numbers(): Promise<Numbers>;
  /**
   * Begins a numbering: both directions count from 1, and numbers of earlier ones mean nothing any more. `startedAt` names it:
   * the begin of the session day, or of a connection if each one begins a numbering.
   */
  startDay(startedAt: number): Promise<Numbers>;
  /**
   * Commits that these messages have their numbers, and what the next one has. Administrative ones are not named. Returns
   * those that the record refuses: their numbers are used up, and they must not be written.
   *
   * `nextIn`: nothing of the other side before this number is missing in the record, which may know a higher one.
   */
  sending(messages: readonly NumberedMessage<Message>[], nextOut: number, nextIn: number): Promise<readonly Message[]>;
  /** These were given numbers, and were not written. */
  unwritten(messages: readonly Message[]): Promise<void>;
  /**
   * Commits what messages of the other side change, and the number of the next one, in one transaction. Messages may come
   * again. A message that is not whole, and one of a type that the session does not support, are among them, so that the
   * record notes them.
   *
   * `passedOver`: some numbers between the last stored one and `nextIn` were passed over, and their messages were not applied.
   * This is so after a SequenceReset of either mode that covers a number besides its own, and after a message that cannot be
   * read or is too long. A gap fill with PossDupFlag stands for an earlier message, so its own number counts too. A number
   * whose message this connection has seen, and that was administrative, does not count.
   */
  received(messages: readonly FixMessage[], nextIn: number, passedOver: boolean): Promise<void>;
}

/** The passwords of Logons, and what became of a new one. */
export interface LogonPasswords {
  /** The NewPassword of the Logon that is about to be written; undefined: it has none. Commits that it is sent. */
  next(): Promise<string | undefined>;
  /** The other side answered the Logon. */
  answered(reply: { readonly isAccepted: boolean; readonly sessionStatus: string | undefined }): Promise<void>;
}

/** How the session is spoken. */
export interface SessionSettings {
  readonly beginString: 'FIXT.1.1' | 'FIX.4.4';
  readonly senderCompId: string;
  readonly targetCompId: string;
  readonly username: string | undefined;
  /** Read at each Logon, because it can change. */
  readonly password: () => string | undefined;
  /** Absent: the password never changes by a Logon. */
  readonly passwords?: LogonPasswords;
  readonly heartbeatMs: number;
  /** MsgTypes (35) that the record applies besides those of an order session; absent: none. */
  readonly moreTypes?: readonly string[];
  /** Whether the first Logon of a session day has ResetSeqNumFlag. */
  readonly resetsByLogon: boolean;
  /** Whether every Logon has ResetSeqNumFlag, and begins a numbering. */
  readonly resetsOnLogon: boolean;
  /** Whether a Logon says which number is expected next (NextExpectedMsgSeqNum), and that of the other side is honoured. */
  readonly sendsNextExpected: boolean;
  /** How many numbers a ResendRequest asks for; undefined: all that are missing. */
  readonly resendChunk: number | undefined;
  /** How many Logons in a row may be refused before no other one is sent. */
  readonly logonTries: number;
  /** The wait after a Logon that was refused. */
  readonly refusedWaitMs: number;
  readonly logonTimeoutMs: number;
  readonly logoutTimeoutMs: number;
  /** How long nothing may come of what the other side was asked to send again. */
  readonly gapTimeoutMs: number;
  /** After so long without a part of it, the rest is asked for again. */
  readonly gapQuietMs: number;
  /** How long a session may take to come up before a warning, which then comes again in such a time. */
  readonly slowUpMs: number;
  readonly firstReconnectMs: number;
  readonly longestReconnectMs: number;
  /** The same if the connection before it was up. */
  readonly longestReconnectAfterUpMs: number;
}

/** The events that a session notifies its owner of. */
export interface SessionEvents {
  /** It is logged on, and everything that the other side had sent before is known. */
  up(): void;
  down(): void;
  /**
   * The other side sent a ResendRequest for these numbers, and a gap fill answered it. `wasUp`: over a connection that had
   * come up, so that some may be on their way to it.
   */
  gapFilled(from: number, to: number, wasUp: boolean): void;
  /**
   * Messages of the other side were passed over (see `SessionRecord.received`), and some may have been reports. Called when
   * the record has that, nothing is missing any more and the session is up; right after `up` if it was not.
   */
  missed(): void;
  /** A fault that operators are notified of. */
  trouble(what: SessionTrouble): void;
}

/** A fault, as the metric `marina_fix_session_troubles_total` names it. */
export const sessionTroubles = [
  /** The other side refused a Logon. */
  'logon_refused',
  /** No further Logon is sent, because so many were refused. Again in every minute. */
  'logon_stopped',
  /** The session does not come up. Again in every minute. */
  'not_up',
  'number_too_low',
  'number_too_high',
  'reset_not_asked_for',
  'numbers_reset',
  'garbage',
  /** A message is longer than any that is read, or did not come to its end. */
  'too_long',
  'not_ours',
  'silent',
  /** The other side rejected a message. */
  'rejected',
  /** The other side sent a message of a type that is not supported. */
  'unsupported',
] as const;

export type SessionTrouble = (typeof sessionTroubles)[number];

/**
 * The state of a session. `outside_hours`: there is none now. `stopped`: Logons were refused, and no other one is sent.
 * `waiting`: until the next try. `connecting`, `logging_on`, `receiving` (what is missing), `testing` (whether anything
 * is on its way) come before `up`.
 */
export type SessionState =
  | 'outside_hours'
  | 'stopped'
  | 'waiting'
  | 'connecting'
  | 'logging_on'
  | 'receiving'
  | 'testing'
  | 'up'
  | 'logging_out';

/** A session as an operator sees it. */
export interface SessionStatus {
  readonly state: SessionState;
  /** Why it is not up, as a sentence; empty while it is. */
  readonly reason: string;
  /** The reason without what the other side said, which may be about a person: for log lines and `/readyz`. */
  readonly logged: string;
  /** Real time since when it is in this state, in milliseconds. */
  readonly since: number;
  /** The numbers of the next messages, as they are known; undefined before the first connection. */
  readonly nextOut: number | undefined;
  readonly nextIn: number | undefined;
  /** The address of the present or last try. */
  readonly address: string | undefined;
  /** How many Logons in a row were refused. */
  readonly refusals: number;
}
