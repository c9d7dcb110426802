import { type DescEnum, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { enumNames } from '../lib/enums.ts';
import { JsonNumber, type JsonTree } from './strict-reader.ts';
import { parseTimestamp } from './timestamps.ts';

/** What a field, or an element of a list, holds; as protobuf's descriptors say it. */
export interface ValueType {
  readonly scalar: ScalarType | undefined;
  readonly enum: DescEnum | undefined;
  readonly message: DescMessage | undefined;
}

/** Reads one value of one type. */
export interface ValueReader {
  /** What a value has to be, as in "must be a whole number". */
  readonly expected: string;
  /** The value a message field holds; undefined when the tree is none of this type. */
  readonly read: (tree: JsonTree) => unknown;
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
