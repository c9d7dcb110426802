import { messageTypes, tags } from '../wire/tags.ts';

/** Names of message types that are not sent from here. */
const otherTypes: Readonly<Record<string, string>> = {
  AE: 'TradeCaptureReport',
  AR: 'TradeCaptureReportAck',
  B: 'News',
  BE: 'UserRequest',
  BF: 'UserResponse',
  G: 'OrderCancelReplaceRequest',
  e: 'SecurityStatusRequest',
  f: 'SecurityStatus',
  g: 'TradingSessionStatusRequest',
  h: 'TradingSessionStatus',
};

/** Names of fields that are not read or written by their name. */
const otherTags: Readonly<Record<number, string>> = {
  20: 'ExecTransType',
  43: 'PossDupFlag',
  76: 'ExecBroker',
  97: 'PossResend',
  378: 'ExecRestatementReason',
  380: 'BusinessRejectReason',
  447: 'PartyIDSource',
  448: 'PartyID',
  452: 'PartyRole',
  453: 'NoPartyIDs',
  528: 'OrderCapacity',
  581: 'AccountType',
  789: 'NextExpectedMsgSeqNum',
  880: 'TrdMatchID',
};

const typeNames = new Map<string, string>([
  ...Object.entries(messageTypes).map(([name, type]): [string, string] => [type, name]),
  ...Object.entries(otherTypes),
]);
const tagNames = new Map<number, string>([
  ...Object.entries(otherTags).map(([tag, name]): [number, string] => [Number(tag), name]),
  ...Object.entries(tags).map(([name, tag]): [number, string] => [tag, name]),
]);

/** Names of values, for the fields of which an operator needs them. */
const valueNames: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  [tags.Side]: { 1: 'buy', 2: 'sell' },
  [tags.OrdType]: { 1: 'market', 2: 'limit' },
  [tags.TimeInForce]: { 0: 'day', 1: 'GTC', 3: 'IOC', 4: 'FOK', 6: 'GTD' },
  [tags.OrdStatus]: {
    ...{ 0: 'new', 1: 'partially filled', 2: 'filled', 3: 'done for day', 4: 'canceled', 5: 'replaced' },
    ...{ 6: 'pending cancel', 8: 'rejected', 9: 'suspended', A: 'pending new', C: 'expired', E: 'pending replace' },
  },
  [tags.ExecType]: {
    ...{ 0: 'new', 3: 'done for day', 4: 'canceled', 5: 'replaced', 6: 'pending cancel', 8: 'rejected' },
    ...{ A: 'pending new', C: 'expired', D: 'restated', F: 'trade', G: 'trade correct', H: 'trade cancel' },
    ...{ I: 'order status', E: 'pending replace' },
  },
};

/** The name of a message type; the type itself if it is not known. */
export function typeName(type: string): string {
  return typeNames.get(type) ?? type;
}

/** MsgType (35) by its own text or by its name, in any case; undefined if it is neither. */
export function typeOf(text: string): string | undefined {
  if (/^[0-9A-Za-z]{1,2}$/.test(text)) return text;
  const [found] = [...typeNames].find(([, name]) => name.toLowerCase() === text.toLowerCase()) ?? [];
  return found;
}

/** A field of a message's text for people, such as `Side=buy`. */
export function fieldText(field: string): string {
  const [, tag = '', value = ''] = /^(\d+)=(.*)$/s.exec(field) ?? [];
  if (tag === '') return field;
  const name = tagNames.get(Number(tag)) ?? tag;
  const known = valueNames[Number(tag)]?.[value] ?? value;
  return `${name}=${/ /.test(known) ? JSON.stringify(known) : known}`;
}

/** Fields that the other columns of a list show, or that are the same in each message. */
const inOtherColumns: ReadonlySet<number> = new Set([
  ...[tags.BeginString, tags.MsgType, tags.MsgSeqNum, tags.SenderCompID, tags.TargetCompID, tags.SendingTime],
]);

/** The fields of a message's text for people, without those that other columns show. */
export function fieldsText(text: string): string {
  return text
    .split('|')
    .filter((field) => !inOtherColumns.has(Number(/^(\d+)=/.exec(field)?.[1] ?? 0)))
    .map(fieldText)
    .join(' ');
}
