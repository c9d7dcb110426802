import { type DescEnum, ScalarType } from '@bufbuild/protobuf';
import type { JsonForm } from './decoder.ts';
import {
  JsonNumber,
  type JsonTree,
  type TreeReader,
  textReader,
  type ValueReader,
  type ValueType,
  valueReader,
} from './reader.ts';

/**
 * Protobuf's JSON as its clients write it: names in camelCase or as in the proto, enumerations by full name or number,
 * integers as numbers or texts. Otherwise as strict as our own JSON. The field rules reject values that protobuf's
 * binary encoding can carry too: a text with NUL, an unknown enumeration number.
 */
export const protobufForm: JsonForm = {
  namesOf: ({ name, jsonName }) => [jsonName, name],
  readerOf,
};

function readerOf(type: ValueType): TreeReader | undefined {
  if (type.enum !== undefined) return enumReader(type.enum);
  if (type.scalar === ScalarType.STRING) return anyText;
  if (type.scalar === ScalarType.BYTES) return base64;
  const reader = valueReader(type);
  return reader !== undefined && type.scalar !== undefined && integers.has(type.scalar) ? orText(reader) : reader;
}

const anyText = textReader('a text', (text) => text);

/** Both alphabets, padded or not, as protobuf's JSON allows. */
const base64 = textReader('bytes in base64', readBase64);

function readBase64(text: string): Uint8Array | undefined {
  const isBase64 = /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}$/.test(text);
  return isBase64 && text.replace(/=+$/, '').length % 4 !== 1 ? Buffer.from(text, 'base64') : undefined;
}

const integers: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT32,
  ScalarType.UINT32,
  ScalarType.INT64,
  ScalarType.UINT64,
]);

function orText(reader: ValueReader): TreeReader {
  return { ...reader, read: (tree) => (typeof tree === 'string' ? reader.readText(tree) : reader.read(tree)) };
}

function enumReader(desc: DescEnum): TreeReader {
  const numbers = new Map(desc.values.map(({ name, number }) => [name, number]));
  return {
    expected: `one of ${[...numbers.keys()].join(', ')}`,
    read: (tree: JsonTree) => {
      if (typeof tree === 'string') return numbers.get(tree);
      return tree instanceof JsonNumber && /^\d{1,9}$/.test(tree.text) ? Number(tree.text) : undefined;
    },
  };
}
