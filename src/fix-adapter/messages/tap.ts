import type { Field } from '../wire/message.ts';

/**
 * The outcome of a message. Of ours, `written`: its bytes were given to the socket; `not_written`: it had a number and
 * was not written. Of theirs, `applied`: it was handled, and what it changes is committed; `not_applied`: the
 * connection ended before that; `gap`: its number is higher than the expected one; `duplicate`: it came before;
 * `unreadable`: its bytes are no FIX message, or some of them no field; `refused`: the session cannot go on with it.
 */
export type MessageOutcome =
  | 'written'
  | 'not_written'
  | 'applied'
  | 'not_applied'
  | 'gap'
  | 'duplicate'
  | 'unreadable'
  | 'refused';

/** A message of the session, as the message log is given it. */
export interface TappedMessage {
  readonly direction: 'in' | 'out';
  readonly outcome: MessageOutcome;
  /** MsgSeqNum; 0 if it has none. */
  readonly number: number;
  readonly type: string;
  /** Header and body, as far as they can be read. */
  readonly fields: readonly Field[];
  /** Why its bytes are no message, or none of its fields follows. */
  readonly problem?: string;
}

/** Where a message stands among the others, and when it came. */
export interface MessagePlace {
  readonly nth: bigint;
  /** In milliseconds. */
  readonly at: number;
}

/** Takes each message of a connection, without waiting. It never throws. */
export interface MessageTap {
  /** The place of a message that comes now, and whose outcome is known later. */
  place(): MessagePlace;
  /** Notes a message; by default its place is the present one. */
  note(message: TappedMessage, place?: MessagePlace): void;
}
