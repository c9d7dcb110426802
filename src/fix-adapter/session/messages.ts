import { FixMessage } from '../wire/message.ts';
import { wholeNumber } from '../wire/numbers.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import { readUtcTimestamp } from '../wire/times.ts';
import type { SessionSettings } from './types.ts';

/** SessionRejectReason (373). */
export const rejectReasons = {
  valueIsIncorrect: '5',
  compIdProblem: '9',
  sendingTimeAccuracy: '10',
  other: '99',
} as const;

/** How far the other side's clock may be from ours. */
const furthestClockMs = 120_000;

/** The messages of the application that the record applies. */
const appliedTypes: readonly string[] = [
  messageTypes.ExecutionReport,
  messageTypes.OrderCancelReject,
  messageTypes.BusinessMessageReject,
  messageTypes.Reject,
];

/** Whether a message of this type is the session's own, and carries nothing for the record. */
export function isAdministrative(type: string): boolean {
  return /^[0-5A]$/.test(type) && type !== messageTypes.Reject;
}

/** Whether the record can apply a message of this type. `moreTypes` are types besides those of an order session. */
export function isApplied(type: string, moreTypes: readonly string[] = []): boolean {
  return appliedTypes.includes(type) || moreTypes.includes(type);
}

/** The fault of a message's header: the session cannot go on. `reject` is the reason of a Reject before the Logout. */
export interface HeaderFault {
  readonly text: string;
  readonly reject: string | undefined;
}

/** Checks names, number and time of a message. `now` is real time in milliseconds. */
export function headerFault(
  message: FixMessage,
  beginString: string,
  settings: Pick<SessionSettings, 'beginString' | 'senderCompId' | 'targetCompId'>,
  now: number,
): HeaderFault | undefined {
  if (beginString !== settings.beginString) return { text: 'a wrong BeginString', reject: undefined };
  const isOurs =
    message.get(tags.SenderCompID) === settings.targetCompId &&
    message.get(tags.TargetCompID) === settings.senderCompId;
  if (!isOurs) return { text: 'CompID problem', reject: rejectReasons.compIdProblem };
  if (message.number < 1) return { text: 'MsgSeqNum is missing', reject: undefined };
  const sentAt = readUtcTimestamp(message.get(tags.SendingTime));
  if (sentAt === undefined || Math.abs(now - sentAt) > furthestClockMs) {
    return { text: 'SendingTime accuracy problem', reject: rejectReasons.sendingTimeAccuracy };
  }
  return undefined;
}

/** The numbers that a ResendRequest asks for; undefined if they are none. */
export function askedAgain(message: FixMessage): { readonly from: number; readonly to: number } | undefined {
  const from = wholeNumber(message.get(tags.BeginSeqNo)) ?? 0;
  const end = wholeNumber(message.get(tags.EndSeqNo)) ?? 0;
  if (from < 1 || (end !== 0 && end < from)) return undefined;
  // 0 is no end.
  return { from, to: end === 0 ? Number.MAX_SAFE_INTEGER : end };
}

/** A Reject that says of what type the rejected message was. `typeOf` knows the numbers of the session's own messages. */
export function withRefMsgType(reject: FixMessage, typeOf: (number: number) => string | undefined): FixMessage {
  if (reject.get(tags.RefMsgType) !== undefined) return reject;
  const type = typeOf(wholeNumber(reject.get(tags.RefSeqNum)) ?? 0);
  return type === undefined ? reject : new FixMessage([...reject.fields, [tags.RefMsgType, type]]);
}
