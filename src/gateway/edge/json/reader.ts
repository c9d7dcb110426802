import { isUtf8 } from 'node:buffer';
import { create, type DescEnum, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { enumNames } from '../../../kit/enums.ts';

/** A JSON value: numbers keep their text, objects keep every member. */
export type JsonTree = string | boolean | null | JsonNumber | JsonObject | readonly JsonTree[];

/** A number's text, so that no digit is lost before its type is known. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

/** An object's members in written order, with repeated ones. */
export class JsonObject {
  readonly names: string[] = [];
  readonly values: JsonTree[] = [];
  /** The values by the index of their field in the message. */
  readonly bound: (JsonTree | undefined)[] = [];
}

/** The text is not JSON, not UTF-8, or nested too deep. */
export class MalformedJson extends Error {
  override readonly name = 'MalformedJson';
}

/** How deep values may be nested, so that no text can exhaust the stack. Requests need less than a tenth. */
export const maxDepth = 32;

/** Reads a JSON text exactly by RFC 8259: no byte order mark, nothing after the value. Throws MalformedJson. */
export function readJson(bytes: Buffer): JsonTree {
  if (!isUtf8(bytes)) throw new MalformedJson('not UTF-8');
  const reader = new Reader(bytes.toString('utf8'));
  const tree = reader.value(0);
  reader.end();
  return tree;
}

const quote = 0x22;
const backslash = 0x5c;
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

class Reader {
  #at = 0;

  constructor(readonly text: string) {}

  value(depth: number): JsonTree {
    this.#skipSpace();
    const code = this.text.charCodeAt(this.#at);
    if (code === quote) return this.#string();
    if (code === 0x7b) return this.#object(depth + 1);
    if (code === 0x5b) return this.#array(depth + 1);
    if (code === 0x74) return this.#word('true', true);
    if (code === 0x66) return this.#word('false', false);
    if (code === 0x6e) return this.#word('null', null);
    return this.#number();
  }

  end(): void {
    this.#skipSpace();
    if (this.#at !== this.text.length) throw this.#malformed();
  }

  #object(depth: number): JsonObject {
    this.#enter(depth);
    const object = new JsonObject();
    if (this.#skipSpace() === 0x7d) {
      this.#at += 1;
      return object;
    }
    for (;;) {
      if (this.#skipSpace() !== quote) throw this.#malformed();
      object.names.push(this.#string());
      if (this.#skipSpace() !== 0x3a) throw this.#malformed();
      this.#at += 1;
      object.values.push(this.value(depth));
      if (this.#another(0x7d)) continue;
      return object;
    }
  }

  #array(depth: number): JsonTree[] {
    this.#enter(depth);
    const items: JsonTree[] = [];
    if (this.#skipSpace() === 0x5d) {
      this.#at += 1;
      return items;
    }
    for (;;) {
      items.push(this.value(depth));
      if (this.#another(0x5d)) continue;
      return items;
    }
  }

  /** Skips the opening bracket. Throws if it is nested too deep. */
  #enter(depth: number): void {
    if (depth > maxDepth) throw new MalformedJson('nested too deep');
    this.#at += 1;
  }

  /** Skips a comma (true) or the closing bracket (false). */
  #another(closing: number): boolean {
    const code = this.#skipSpace();
    if (code !== 0x2c && code !== closing) throw this.#malformed();
    this.#at += 1;
    return code === 0x2c;
  }

  #string(): string {
    const { text } = this;
    const start = this.#at;
    let isPlain = true;
    let at = start + 1;
    for (let code = text.charCodeAt(at); code !== quote; code = text.charCodeAt(at)) {
      if (code < 0x20 || Number.isNaN(code)) throw this.#malformed();
      // A character after a backslash does not end the text.
      if (code === backslash) isPlain = false;
      at += code === backslash ? 2 : 1;
    }
    this.#at = at + 1;
    return isPlain ? text.slice(start + 1, at) : this.#unescaped(text.slice(start, at + 1));
  }

  #unescaped(literal: string): string {
    try {
      return JSON.parse(literal);
    } catch {
      throw this.#malformed();
    }
  }

  #number(): JsonNumber {
    number.lastIndex = this.#at;
    const match = number.exec(this.text);
    if (match === null) throw this.#malformed();
    this.#at += match[0].length;
    return new JsonNumber(match[0]);
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.text.startsWith(word, this.#at)) throw this.#malformed();
    this.#at += word.length;
    return value;
  }

  /** Skips white space and returns the next character's code, NaN at the end. */
  #skipSpace(): number {
    for (;;) {
      const code = this.text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
      this.#at += 1;
    }
  }

  #malformed(): MalformedJson {
    return new MalformedJson('not JSON');
  }
}

/** The type of a field or of a list's elements, as in protobuf's descriptors. */
export interface ValueType {
  readonly scalar: ScalarType | undefined;
  readonly enum: DescEnum | undefined;
  readonly message: DescMessage | undefined;
}

export interface TreeReader {
  /** The end of an error, as in "must be a whole number". */
  readonly expected: string;
  /** The value for the message's field; undefined if the tree has another type. */
  readonly read: (tree: JsonTree) => unknown;
}

export interface ValueReader extends TreeReader {
  /** The same for a text outside JSON: a query parameter or a path segment. */
  readonly readText: (text: string) => unknown;
}

/** Makes the reader of a type; undefined for a message with members of its own. */
export function valueReader(type: ValueType): ValueReader | undefined {
  if (type.enum !== undefined) return enumReader(type.enum);
  if (type.scalar !== undefined) return scalarReader(type.scalar);
  return type.message?.typeName === TimestampSchema.typeName ? timestampReader : undefined;
}

const wholeNumber = /^-?(?:0|[1-9][0-9]{0,15})$/;

/** An exact integer within ±(2^53 - 1); undefined for anything else, also for -0. */
function exactInteger(text: string): number | undefined {
  if (!wholeNumber.test(text) || text === '-0') return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

const loneSurrogate = /\p{Surrogate}/u;

/** Whether a text has no NUL and no half of a surrogate pair, so that it can be stored and sent. */
export function isWholeText(text: string): boolean {
  return !text.includes('\u0000') && !loneSurrogate.test(text);
}

const timestampReader: ValueReader = textReader('a time such as 2026-03-02T09:30:00Z', parseTimestamp);

const stringReader: ValueReader = textReader('a text without NUL or lone surrogates', (text) =>
  isWholeText(text) ? text : undefined,
);

const boolReader: ValueReader = {
  expected: 'true or false',
  read: (tree) => (typeof tree === 'boolean' ? tree : undefined),
  readText: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
};

/** Makes the reader of a type that JSON has as a text. */
export function textReader(expected: string, readText: (text: string) => unknown): ValueReader {
  return { expected, readText, read: (tree) => (typeof tree === 'string' ? readText(tree) : undefined) };
}

const enumReaders = new WeakMap<DescEnum, ValueReader>();

function enumReader(desc: DescEnum): ValueReader {
  const known = enumReaders.get(desc);
  if (known !== undefined) return known;
  const numbers = new Map([...enumNames(desc)].map(([number, name]) => [name, number]));
  const reader = textReader(`one of ${[...numbers.keys()].join(', ')}`, (text) => numbers.get(text));
  enumReaders.set(desc, reader);
  return reader;
}

function integerReader(convert: (value: number) => unknown): ValueReader {
  const readText = (text: string) => {
    const value = exactInteger(text);
    return value === undefined ? undefined : convert(value);
  };
  return {
    expected: 'a whole number written with digits only',
    readText,
    read: (tree) => (tree instanceof JsonNumber ? readText(tree.text) : undefined),
  };
}

function within(minimum: number, maximum: number): (value: number) => number | undefined {
  return (value) => (value >= minimum && value <= maximum ? value : undefined);
}

const scalarReaders: ReadonlyMap<ScalarType, ValueReader> = new Map([
  [ScalarType.STRING, stringReader],
  [ScalarType.BOOL, boolReader],
  [ScalarType.INT32, integerReader(within(-0x80000000, 0x7fffffff))],
  [ScalarType.UINT32, integerReader(within(0, 0xffffffff))],
  [ScalarType.INT64, integerReader(BigInt)],
  [ScalarType.UINT64, integerReader((value) => (value < 0 ? undefined : BigInt(value)))],
]);

function scalarReader(scalar: ScalarType): ValueReader {
  const reader = scalarReaders.get(scalar);
  if (reader === undefined) throw new Error(`${ScalarType[scalar]} has no form in JSON here`);
  return reader;
}

const rfc3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
const firstSecond = -62_135_596_800;
const lastSecond = 253_402_300_799;
const daySeconds = 86_400;

/** Reads an RFC 3339 time with any offset; undefined if it is none or is outside the years 1 to 9999. */
function parseTimestamp(text: string): Timestamp | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A day that the month does not have moves the date on.
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  const offset =
    sign === undefined ? 0 : Number(`${sign}1`) * (Number(offsetHours) * 3_600 + Number(offsetMinutes) * 60);
  const seconds = date.getTime() / 1_000 + Number(hour) * 3_600 + Number(minute) * 60 + Number(second) - offset;
  if (seconds < firstSecond || seconds > lastSecond) return undefined;
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Number(fraction.padEnd(9, '0')) });
}

/** Whether a timestamp from outside can be written as a date. */
export function isTimestampInRange({ seconds, nanos }: Timestamp): boolean {
  return seconds >= firstSecond && seconds <= lastSecond && nanos >= 0 && nanos <= 999_999_999;
}

let lastDay = Number.NaN;
let lastDayText = '';
const twoDigits = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));

/** Writes a time in UTC, as in `2026-11-20T17:12:33Z`. Fractions of a second are cut off. */
export function formatTimestamp(timestamp: Timestamp): string {
  if (!isTimestampInRange(timestamp)) throw new RangeError('a timestamp lies outside the years 1 to 9999');
  const seconds = Number(timestamp.seconds);
  const day = Math.floor(seconds / daySeconds);
  if (day !== lastDay) {
    lastDayText = new Date(day * daySeconds * 1_000).toISOString().slice(0, 11);
    lastDay = day;
  }
  const inDay = seconds - day * daySeconds;
  const hour = twoDigits[Math.floor(inDay / 3_600)];
  return `${lastDayText}${hour}:${twoDigits[Math.floor(inDay / 60) % 60]}:${twoDigits[inDay % 60]}Z`;
}
