/**
 * The names (ClOrdID 11) under which the exchange has our orders and requests to cancel. Where it takes names of 30 characters or
 * more, an order has the gateway's id, and a cancel that id, `.c` and a number. Where it takes fewer, an order has the 20
 * characters after `ord_`, and a cancel `C` and 19 characters that hold the order's and its number. Each name shows which order it
 * is of, also after the setting has changed.
 */

/** The least that an exchange may take: engines with a limit have 20. */
export const minNameLength = 20;
/** The longest that the record keeps: an id of 64 characters and the mark of a cancel. */
export const maxNameLength = 70;

/** In the order of their values, as `gateway/edge/ids` makes ids. */
const idLetters = '234567abcdefghijklmnopqrstuvwxyz';
const nameLetters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const idPrefix = 'ord_';
const longCancelMark = /\.c\d+$/;
/** Room for the mark of a cancel: `.c` and up to four digits. */
const longMarkLength = 6;
const shortOrder = /^[a-z2-7]{20}$/;
const shortCancel = /^C[A-Za-z0-9_-]{19}$/;
const cancelBits = 14n;
/** The most requests to cancel that one order can have. */
export const maxCancels = 9_999;

/** The name of an order at an exchange that takes so many characters. Undefined: the order can have none. */
export function orderName(id: string, maxLength: number): string | undefined {
  if (!canBeOrderId(id)) return undefined;
  if (id.length + longMarkLength <= maxLength) return id;
  return shortPart(id);
}

/** The name of the nth request to cancel an order. Undefined: it can have none, or there were too many. */
export function cancelName(id: string, nth: number, maxLength: number): string | undefined {
  if (nth < 1 || nth > maxCancels) return undefined;
  if (id.length + longMarkLength <= maxLength) return `${id}.c${nth}`;
  const part = shortPart(id);
  if (part === undefined) return undefined;
  let value = 0n;
  for (const letter of part) value = (value << 5n) | BigInt(idLetters.indexOf(letter));
  value = (value << cancelBits) | BigInt(nth);
  let text = '';
  for (let shift = 108n; shift >= 0n; shift -= 6n) text += nameLetters[Number((value >> shift) & 63n)];
  return `C${text}`;
}

/** The id of the order that a name is of; the name itself if it is none of ours. */
export function orderIdOfName(name: string): string {
  if (shortOrder.test(name)) return `${idPrefix}${name}`;
  const cancel = readShortCancel(name);
  return cancel?.orderId ?? name.replace(longCancelMark, '');
}

/** Whether a name has the form of a request to cancel. */
export function isCancelName(name: string): boolean {
  return longCancelMark.test(name) || readShortCancel(name) !== undefined;
}

/** Whether an order can have this id: a name is never taken for that of another order. */
export function canBeOrderId(id: string): boolean {
  return orderIdOfName(id) === id;
}

function shortPart(id: string): string | undefined {
  const part = id.startsWith(idPrefix) ? id.slice(idPrefix.length) : '';
  return shortOrder.test(part) ? part : undefined;
}

function readShortCancel(name: string): { readonly orderId: string } | undefined {
  if (!shortCancel.test(name)) return undefined;
  let value = 0n;
  for (const letter of name.slice(1)) value = (value << 6n) | BigInt(nameLetters.indexOf(letter));
  const nth = value & ((1n << cancelBits) - 1n);
  if (nth < 1n || nth > BigInt(maxCancels)) return undefined;
  let part = '';
  for (let shift = 95n + cancelBits; shift >= cancelBits; shift -= 5n)
    part += idLetters[Number((value >> shift) & 31n)];
  return { orderId: `${idPrefix}${part}` };
}
