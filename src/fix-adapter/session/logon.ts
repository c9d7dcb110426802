import type { Field, FixMessage } from '../wire/message.ts';
import { wholeNumber } from '../wire/numbers.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import type { SessionSettings, SessionTrouble } from './types.ts';

/** FIX50SP2, as DefaultApplVerID names it. */
const fix50Sp2 = '9';

/** A Logon's statement about the numbers. */
export interface LogonNumbers {
  /** Whether both directions begin with 1. */
  readonly resets: boolean;
  /** The number of the other side's next message, as we know it. */
  readonly nextIn: number;
}

/** The body of our Logon. `newPassword` is what its password shall become. */
export function logonFields(
  settings: SessionSettings,
  { resets, nextIn }: LogonNumbers,
  newPassword?: string,
): Field[] {
  const { username, heartbeatMs, beginString, sendsNextExpected } = settings;
  const password = settings.password();
  return [
    [tags.EncryptMethod, '0'],
    [tags.HeartBtInt, String(Math.ceil(heartbeatMs / 1_000))],
    ...(resets ? [[tags.ResetSeqNumFlag, 'Y'] as const] : []),
    ...(sendsNextExpected ? [[tags.NextExpectedMsgSeqNum, String(nextIn)] as const] : []),
    ...(username === undefined ? [] : [[tags.Username, username] as const]),
    ...(password === undefined ? [] : [[tags.Password, password] as const]),
    ...(newPassword === undefined ? [] : [[tags.NewPassword, newPassword] as const]),
    ...(beginString === 'FIXT.1.1' ? [[tags.DefaultApplVerID, fix50Sp2] as const] : []),
  ];
}

/**
 * The meaning of the other side's first message. `accepted`: there is a session; `fillFrom` is the first of our numbers
 * that it says it lacks. `refused`: it does not want our Logon. `wrong`: we do not want its one. `unexpected`: it is
 * neither.
 */
export type LogonAnswer =
  | { readonly kind: 'accepted'; readonly isEarly: boolean; readonly fillFrom: number | undefined }
  | { readonly kind: 'refused'; readonly text: string }
  | { readonly kind: 'wrong'; readonly text: string; readonly trouble: SessionTrouble }
  | { readonly kind: 'unexpected' };

/** Reads the answer to a Logon. `ownNumber` is the number of ours. */
export function readLogonAnswer(
  message: FixMessage,
  {
    resets,
    nextIn,
    ownNumber,
    honoursNextExpected,
  }: LogonNumbers & { ownNumber: number; honoursNextExpected: boolean },
): LogonAnswer {
  const { type, number, isWhole } = message;
  if (type === messageTypes.Logout || type === messageTypes.Reject) return { kind: 'refused', text: reasonOf(message) };
  if (type !== messageTypes.Logon) return { kind: 'unexpected' };
  const wrong = (text: string, trouble: SessionTrouble) => ({ kind: 'wrong', text, trouble }) as const;
  if (!isWhole) return wrong('the Logon cannot be read', 'garbage');
  if (message.get(tags.ResetSeqNumFlag) === 'Y' && !resets) {
    return wrong('ResetSeqNumFlag was not asked for', 'reset_not_asked_for');
  }
  if (number < nextIn) {
    return wrong(`MsgSeqNum too low, expecting ${nextIn} but received ${number}`, 'number_too_low');
  }
  const expected = honoursNextExpected ? wholeNumber(message.get(tags.NextExpectedMsgSeqNum)) : undefined;
  if (expected !== undefined && expected > ownNumber + 1) {
    const text = `NextExpectedMsgSeqNum too high, expecting ${ownNumber + 1} but received ${expected}`;
    return wrong(text, 'number_too_low');
  }
  // Some count the Logon that they answer, and some do not.
  const fillFrom = expected !== undefined && expected >= 1 && expected < ownNumber ? expected : undefined;
  return { kind: 'accepted', isEarly: number > nextIn, fillFrom };
}

/** The reason that a Logout or a Reject has. */
export function reasonOf(message: FixMessage): string {
  const text = message.get(tags.Text);
  const reason = message.get(tags.SessionRejectReason);
  const given = [...(text === undefined ? [] : [text]), ...(reason === undefined ? [] : [`reason ${reason}`])];
  return given.join(', ') || 'no reason was given';
}

/** The circumstances that make a further Logon worth trying. */
export interface Occasion {
  readonly password: string | undefined;
  /** When the session day began. */
  readonly startedAt: number;
}

/**
 * How often a Logon may be refused before no other one is sent: brokers lock users who try on. It begins again on the next
 * session day, with another password, and when an operator says so.
 */
export class LogonTries {
  #refusals = 0;
  #last: (Occasion & { readonly text: string }) | undefined;

  constructor(private readonly limit: number) {}

  /** How many Logons in a row were refused. */
  get refusals(): number {
    return this.#refusals;
  }

  /** Why the last one was. */
  get reason(): string {
    return this.#last?.text ?? '';
  }

  /** Whether the limit is reached. */
  get areUsedUp(): boolean {
    return this.#refusals >= this.limit;
  }

  /** A Logon was refused by either side. */
  refused(text: string, occasion: Occasion): void {
    this.#refusals += 1;
    this.#last = { ...occasion, text };
  }

  accepted(): void {
    this.#refusals = 0;
    this.#last = undefined;
  }

  /** An operator says that it should go on. */
  resume(): void {
    this.accepted();
  }

  /** Whether a Logon may be sent now. */
  mayTry({ password, startedAt }: Occasion): boolean {
    const last = this.#last;
    if (last !== undefined && (last.password !== password || last.startedAt !== startedAt)) this.resume();
    return !this.areUsedUp;
  }
}
