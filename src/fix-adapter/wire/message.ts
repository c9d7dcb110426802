import { lengthOf } from './data-fields.ts';
import { wholeNumber } from './numbers.ts';
import { tags } from './tags.ts';

/** A field of a message. */
export type Field = readonly [tag: number, value: string];

const separator = '\x01';
const separatorByte = 1;
const equalsByte = 0x3d;
/** Tags have up to five digits; some engines put zeros before them. */
const longestTag = 32;

/** How many bytes of an unreadable message are kept: more than a report has, and few enough to store. */
export const maxKeptBytes = 4_096;

const noBytes = Buffer.alloc(0);

/** A message as it was received: its fields in their order, and nothing interpreted. */
export class FixMessage {
  constructor(
    readonly fields: readonly Field[],
    /** False: some of its bytes are no field, or are not kept. It must not be applied. */
    readonly isWhole = true,
    /** The first bytes of a message that is not whole, at most 4,096; empty for a whole one. */
    readonly bytes: Buffer = noBytes,
  ) {}

  /** The value of the first field with this tag. */
  get(tag: number): string | undefined {
    return this.fields.find(([each]) => each === tag)?.[1];
  }

  /** MsgType. */
  get type(): string {
    return this.get(tags.MsgType) ?? '';
  }

  /** MsgSeqNum; 0 if it has none. */
  get number(): number {
    return wholeNumber(this.get(tags.MsgSeqNum)) ?? 0;
  }

  get isPossDup(): boolean {
    return this.get(tags.PossDupFlag) === 'Y';
  }
}

/** Whether all values are printable, as those of our orders are. */
export function isPrintable(fields: readonly Field[]): boolean {
  return fields.every(([, value]) => /^[ -~]+$/.test(value));
}

/** Whether all values can be written. An echo of the other side's bytes can: it has one character for each. */
export function canEncode(fields: readonly Field[]): boolean {
  const isBytes = (value: string) => Buffer.from(value, 'latin1').toString('latin1') === value;
  return fields.every(([, value]) => value !== '' && !value.includes(separator) && isBytes(value));
}

/** A whole message with its length and sum. Throws if a value cannot be written. */
export function encode(beginString: string, fields: readonly Field[]): Buffer {
  if (!canEncode(fields)) throw new Error('a value would end its field, or is no bytes');
  const body = fields.map(([tag, value]) => `${tag}=${value}${separator}`).join('');
  const message = `${tags.BeginString}=${beginString}${separator}${tags.BodyLength}=${body.length}${separator}${body}`;
  const sum = checkSum(Buffer.from(message, 'latin1'));
  return Buffer.from(`${message}${tags.CheckSum}=${sum}${separator}`, 'latin1');
}

/** The sum of all bytes, as CheckSum has it. */
export function checkSum(bytes: Buffer): string {
  return sumText(sumOf(bytes));
}

/** The sum of all bytes, which goes on from that of the bytes before them. */
export function sumOf(bytes: Buffer, before = 0): number {
  let sum = before;
  for (const byte of bytes) sum += byte;
  return sum % 256;
}

/** A sum as CheckSum has it. */
export function sumText(sum: number): string {
  return String(sum).padStart(3, '0');
}

/**
 * Reads the fields of a message whose length and sum are right. What is no field makes it not whole; the fields behind it are
 * read all the same, so that the order is known. A field of bytes may hold separators, so its stated length counts if it ends
 * at a separator; if it does not, as where characters were counted, the field ends at the next separator. A field without a
 * value means nothing and is left out.
 */
export function decode(bytes: Buffer): FixMessage {
  const fields: Field[] = [];
  let isWhole = true;
  let equals = -1;
  let data: { readonly tag: number; readonly length: number } | undefined;
  for (let at = 0; at < bytes.length; ) {
    const next = bytes.indexOf(separatorByte, at);
    const end = endIfNone(next, bytes);
    // Searched for once, so that the time grows with the bytes.
    if (equals < at) equals = endIfNone(bytes.indexOf(equalsByte, at), bytes);
    const tag = equals < end ? wholeNumber(bytes.toString('latin1', at, Math.min(equals, at + longestTag))) : undefined;
    if (tag === undefined || tag === 0 || next < 0) {
      isWhole = false;
      at = end + 1;
      continue;
    }
    const from = equals + 1;
    const stated = data?.tag === tag ? from + data.length : end;
    const to = stated > end && bytes[stated] === separatorByte ? stated : end;
    const value = bytes.toString('latin1', from, to);
    const follows = lengthOf.get(tag);
    const length = wholeNumber(value);
    data = follows === undefined || length === undefined ? undefined : { tag: follows, length };
    if (value !== '') fields.push([tag, value]);
    at = to + 1;
  }
  return isWhole ? new FixMessage(fields) : new FixMessage(fields, false, firstBytes(bytes));
}

function endIfNone(at: number, bytes: Buffer): number {
  return at < 0 ? bytes.length : at;
}

/** A copy, so that it does not hold the memory of what was received with it. */
export function firstBytes(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, maxKeptBytes));
}
