import { RejectReason } from '../../gen/marina/broker/v1/orders_pb.ts';
import { tags } from '../wire/tags.ts';
import type { ExchangeMessage } from './execution.ts';

/** The name of a reason, as `RejectReason` has it in small letters. */
export type ReasonName = string;

/** A line of the file of reasons: what a message must say for its reason to hold. */
export interface ReasonRule {
  /** Values that fields must have, by their tags. */
  readonly values: ReadonlyMap<number, string>;
  /** The texts that Text (58) must match; undefined: it may be anything. */
  readonly text: readonly string[] | undefined;
  readonly reason: ReasonName;
}

const { UNKNOWN_SYMBOL, MARKET_CLOSED, ACCOUNT_NOT_AT_BROKER, REJECTED_BY_EXCHANGE } = RejectReason;
const { PRICE_OFF_TICK, PRICE_OUTSIDE_BAND, QUANTITY_OFF_LOT } = RejectReason;

/** The meaning of the values of OrdRejReason (103) for partners. All others are rejected by the exchange. */
const orderReasons: Readonly<Record<string, RejectReason | undefined>> = {
  '0': REJECTED_BY_EXCHANGE, // broker or exchange option
  '1': UNKNOWN_SYMBOL,
  '2': MARKET_CLOSED, // exchange closed
  '3': REJECTED_BY_EXCHANGE, // order exceeds limit
  '4': MARKET_CLOSED, // too late to enter
  '5': REJECTED_BY_EXCHANGE, // unknown order
  '6': REJECTED_BY_EXCHANGE, // duplicate order
  '7': REJECTED_BY_EXCHANGE, // duplicate of a verbally communicated order
  '8': REJECTED_BY_EXCHANGE, // stale order
  '9': REJECTED_BY_EXCHANGE, // trade along required
  '10': ACCOUNT_NOT_AT_BROKER, // invalid investor ID
  '11': REJECTED_BY_EXCHANGE, // unsupported order characteristic
  '12': REJECTED_BY_EXCHANGE, // surveillance option
  '13': QUANTITY_OFF_LOT, // incorrect quantity
  '14': REJECTED_BY_EXCHANGE, // incorrect allocated quantity
  '15': ACCOUNT_NOT_AT_BROKER, // unknown account
  '16': PRICE_OUTSIDE_BAND, // price exceeds the current price band
  '18': PRICE_OFF_TICK, // invalid price increment
  '99': REJECTED_BY_EXCHANGE, // other
};

/** The meaning of the values of BusinessRejectReason (380) for partners. */
const businessReasons: Readonly<Record<string, RejectReason | undefined>> = {
  '2': UNKNOWN_SYMBOL, // unknown security
};

/** Fields with an exchange's reason, by their names. */
const reasonTags = [
  ['OrdRejReason', tags.OrdRejReason],
  ['CxlRejReason', tags.CxlRejReason],
  ['BusinessRejectReason', tags.BusinessRejectReason],
  ['SessionRejectReason', tags.SessionRejectReason],
] as const;

const ruleTags: readonly number[] = [tags.OrdRejReason, tags.BusinessRejectReason];
const longestPattern = 200;
const maxRules = 500;

/** Every reason that partners can be given, by the names of the file. */
const reasonNames: readonly ReasonName[] = Object.entries(RejectReason)
  .filter(([name, value]) => typeof value === 'number' && value > 0 && /^[A-Z_]+$/.test(name))
  .map(([name]) => name.toLowerCase());

/**
 * Reads a file of reasons. Each line is conditions and a reason with `|` between them, such as
 * `103=99|58=*insufficient funds*|reason=insufficient_funds`. The first line that holds counts. Throws what is wrong, with the
 * number of the line.
 */
export function parseRejectReasons(text: string): ReasonRule[] {
  const rules = text.split('\n').flatMap((raw, at) => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) return [];
    try {
      return [parseRule(line)];
    } catch (error) {
      throw new Error(`line ${at + 1} ${(error as Error).message}`);
    }
  });
  if (rules.length > maxRules) throw new Error(`must have at most ${maxRules} lines`);
  return rules;
}

function parseRule(line: string): ReasonRule {
  const conditions = line.split('|');
  const reason = /^reason=(.+)$/.exec(conditions.pop() ?? '')?.[1] ?? '';
  if (!reasonNames.includes(reason)) throw new Error(`must end with |reason= and one of ${reasonNames.join(', ')}`);
  const values = new Map<number, string>();
  let text: readonly string[] | undefined;
  for (const condition of conditions) {
    const [, digits = '', value = ''] = /^(\d{1,5})=([ -~]+)$/.exec(condition) ?? [];
    const tag = Number(digits);
    if (tag === tags.Text && text === undefined && value.length <= longestPattern) text = piecesOf(value);
    else if (ruleTags.includes(tag) && !values.has(tag)) values.set(tag, value);
    else throw new Error('must have conditions on OrdRejReason 103, BusinessRejectReason 380 and Text 58, each once');
  }
  if (values.size === 0 && text === undefined) throw new Error('must have a condition before its reason');
  return { values, text, reason };
}

/** The reason of a message that rejects an order, by the first rule that holds and otherwise by its standard values. */
export function rejectReasonOf(message: ExchangeMessage, rules: readonly ReasonRule[]): ReasonName {
  const rule = rules.find(({ values, text }) => {
    const hasValues = [...values].every(([tag, value]) => message.get(tag) === value);
    return hasValues && (text === undefined || matches(message.get(tags.Text) ?? '', text));
  });
  if (rule !== undefined) return rule.reason;
  const standard =
    orderReasons[message.get(tags.OrdRejReason) ?? ''] ??
    businessReasons[message.get(tags.BusinessRejectReason) ?? ''] ??
    REJECTED_BY_EXCHANGE;
  return RejectReason[standard].toLowerCase();
}

/**
 * The exchange's words about a rejection, for operators: the field with its reason, and its text. Partners are never
 * shown it.
 */
export interface Said {
  readonly exchangeReason: string | null;
  readonly exchangeText: string | null;
}

export const saidNothing: Said = { exchangeReason: null, exchangeText: null };

/** Reads the exchange's words about a rejection or an end. */
export function saidIn(message: ExchangeMessage): Said {
  const given = reasonTags.find(([, tag]) => message.get(tag) !== undefined);
  const value = given === undefined ? undefined : `${given[0]}=${message.get(given[1])}`;
  return { exchangeReason: value ?? null, exchangeText: message.get(tags.Text) ?? null };
}

/** The texts between the `*` of a pattern, in small letters. */
function piecesOf(pattern: string): string[] {
  return pattern.toLowerCase().split('*');
}

/** Whether a text begins with the first piece, ends with the last, and has the others between them in their order. */
function matches(text: string, [first = '', ...others]: readonly string[]): boolean {
  const whole = text.toLowerCase();
  const last = others.pop();
  if (last === undefined) return whole === first;
  if (!whole.startsWith(first)) return false;
  let at = first.length;
  for (const piece of others) {
    const found = whole.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return whole.length - last.length >= at && whole.endsWith(last);
}
