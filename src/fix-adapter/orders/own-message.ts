import type { Outgoing } from '../session/types.ts';
import type { Kept } from '../store/store.ts';
import type { Field } from '../wire/message.ts';

/** The outcome of sending a message. */
export type SendOutcome = Parameters<Outgoing['settled']>[0];

/** A message for the session to send, with what the record keeps of it. */
export interface OwnMessage {
  readonly type: string;
  readonly fields: readonly Field[];
  readonly notAfterMs?: number;
  readonly kept: Kept;
  settled(outcome: SendOutcome): void;
}

/** The session, as those who send see it. */
export interface SendingSession {
  readonly isUp: boolean;
  send(message: OwnMessage): void;
}

/** Sends a message, and resolves with what it came to. `onWritten` is called in the turn in which it was written. */
export function send(
  session: SendingSession,
  message: Omit<OwnMessage, 'settled'>,
  onWritten = () => {},
): Promise<SendOutcome> {
  return new Promise((resolve) => {
    session.send({
      ...message,
      settled: (outcome) => {
        if (outcome === 'written') onWritten();
        resolve(outcome);
      },
    });
  });
}
