import { create, type DescEnum, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { enumNames } from '../lib/enums.ts';
import { JsonNumber, type JsonTree } from './strict-reader.ts';

/** What a field, or an element of a list, holds; as protobuf's descriptors say it. */
export interface ValueType {
  readonly scalar: ScalarType | undefined;
  readonly enum: DescEnum | undefined;
  readonly message: DescMessage | undefined;
}

/** Reads one value of one type. */
export interface TreeReader {
  /** What a value has to be, as in "must be a whole number". */
  readonly expected: string;
  /** The value a message field holds; undefined when the tree is none of this type. */
  readonly read: (tree: JsonTree) => unknown;
}

export interface ValueReader extends TreeReader {
  /** The same from a text outside JSON: a query parameter or a segment of a path. */
  readonly readText: (text: string) => unknown;
}

/** Makes the reader of a type; undefined when it is a message with members of its own. */
export function valueReader(type: ValueType): ValueReader | undefined {
  if (type.enum !== undefined) return enumReader(type.enum);
  if (type.scalar !== undefined) return scalarReader(type.scalar);
  return type.message?.typeName === TimestampSchema.typeName ? timestampReader : undefined;
}

const wholeNumber = /^-?(?:0|[1-9][0-9]{0,15})$/;

/** The exact integer a text writes, no further from zero than 2^53 - 1; undefined for anything else, -0 included. */
export function exactInteger(text: string): number | undefined {
  if (!wholeNumber.test(text) || text === '-0') return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

const loneSurrogate = /\p{Surrogate}/u;

/** Whether a text can be stored and sent on: no NUL, no half of a surrogate pair. */
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

function textReader(expected: string, readText: (text: string) => unknown): ValueReader {
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

/** Reads an RFC 3339 time with any offset; undefined when it is none, or lies outside the years 1 to 9999. */
function parseTimestamp(text: string): Timestamp | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  // A day the month does not have moves the date on.
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  const offset =
    sign === undefined ? 0 : Number(`${sign}1`) * (Number(offsetHours) * 3_600 + Number(offsetMinutes) * 60);
  const seconds = date.getTime() / 1_000 + Number(hour) * 3_600 + Number(minute) * 60 + Number(second) - offset;
  if (seconds < firstSecond || seconds > lastSecond) return undefined;
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Number(fraction.padEnd(9, '0')) });
}

/** Whether a timestamp from outside can be written as a date at all. */
export function isTimestampInRange({ seconds, nanos }: Timestamp): boolean {
  return seconds >= firstSecond && seconds <= lastSecond && nanos >= 0 && nanos <= 999_999_999;
}

let lastDay = Number.NaN;
let lastDayText = '';
const twoDigits = Array.from({ length: 60 }, (_, value) => String(value).padStart(2, '0'));

/** Writes a time in UTC to the second, as in `2026-11-20T17:12:33Z`; what is left of a second is cut off. */
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
