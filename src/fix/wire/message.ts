import { lengthOf, tags } from './tags.ts';

/** A field of a message. */
export type Field = readonly [tag: number, value: string];

const separator = '\x01';
const separatorByte = 1;
const equalsByte = 0x3d;

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

/** A whole number as FIX writes it; undefined if the text is none. */
export function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Whether all values are printable, so that none can end its field. */
export function canEncode(fields: readonly Field[]): boolean {
  return fields.every(([, value]) => /^[ -~]+$/.test(value));
}

/** A whole message with its length and sum. Throws if a value cannot be written. */
export function encode(beginString: string, fields: readonly Field[]): Buffer {
  if (!canEncode(fields)) throw new Error('a value is not printable');
  const body = fields.map(([tag, value]) => `${tag}=${value}${separator}`).join('');
  const message = `${tags.BeginString}=${beginString}${separator}${tags.BodyLength}=${body.length}${separator}${body}`;
  const sum = checkSum(Buffer.from(message, 'latin1'));
  return Buffer.from(`${message}${tags.CheckSum}=${sum}${separator}`, 'latin1');
}

/** The sum of all bytes, as CheckSum has it. */
export function checkSum(bytes: Buffer): string {
  let sum = 0;
  for (const byte of bytes) sum += byte;
  return String(sum % 256).padStart(3, '0');
}

/**
 * Reads the fields of a message whose length and sum are right, up to the first that is none. A field of bytes may hold
 * separators, so its length counts. A field without a value means nothing and is left out.
 */
export function decode(bytes: Buffer): FixMessage {
  const fields: Field[] = [];
  let at = 0;
  let data: { tag: number; length: number } | undefined;
  while (at < bytes.length) {
    const equals = bytes.indexOf(equalsByte, at);
    if (equals < 0) return new FixMessage(fields, false, firstBytes(bytes));
    const tag = wholeNumber(bytes.toString('latin1', at, Math.min(equals, at + 16)));
    if (tag === undefined || tag === 0) return new FixMessage(fields, false, firstBytes(bytes));
    const from = equals + 1;
    const end = data?.tag === tag ? from + data.length : bytes.indexOf(separatorByte, from);
    if (end < from || bytes[end] !== separatorByte) return new FixMessage(fields, false, firstBytes(bytes));
    const value = bytes.toString('latin1', from, end);
    const follows = lengthOf.get(tag);
    const length = wholeNumber(value);
    data = follows === undefined || length === undefined ? undefined : { tag: follows, length };
    if (value !== '') fields.push([tag, value]);
    at = end + 1;
  }
  return new FixMessage(fields);
}

/** A copy, so that it does not hold the memory of what was received with it. */
function firstBytes(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, maxKeptBytes));
}
