import type { DescEnum } from '@bufbuild/protobuf';
import { noteUnknownName } from './unknown-names.ts';

/**
 * An enumeration's values as partners and the database write them: in lower case, without the enumeration's own name in
 * front, so that `ORDER_STATE_PENDING` is `pending`. The value 0 (`…_UNSPECIFIED`) has no name: it stands for "none".
 */
export function enumNames(desc: DescEnum): ReadonlyMap<number, string> {
  const prefix = `${desc.name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase()}_`;
  const names = new Map<number, string>();
  for (const { name, number } of desc.values) {
    if (!name.startsWith(prefix)) throw new Error(`${name} does not begin with ${prefix}`);
    if (number !== 0) names.set(number, name.slice(prefix.length).toLowerCase());
  }
  return names;
}

/** The two ways between an enumeration's numbers and its words. */
export interface EnumWords<Word extends string> {
  /** The word of a number. Throws on a number the proto does not have. */
  word(value: number): Word;
  /**
   * The number of a word. A word this version does not know comes from another version: it is logged once, and its number
   * is 0 (`…_UNSPECIFIED`). `withStoredNames` keeps the word for those who are shown words.
   */
  value(word: Word): number;
  /** Whether this version knows a word. One it does not know is logged once. */
  knows(word: string): boolean;
}

/** The words of an enumeration, as a type lists them. */
export function enumWords<Word extends string>(desc: DescEnum): EnumWords<Word> {
  const words = enumNames(desc);
  const numbers = new Map<string, number>([...words].map(([number, word]) => [word, number] as const));
  const numberOf = (word: string) => {
    const number = numbers.get(word);
    if (number === undefined) noteUnknownName(desc.typeName, word);
    return number;
  };
  return {
    word: (value) => {
      const word = words.get(value);
      if (word === undefined) throw new Error(`${desc.typeName} has no value ${value}`);
      return word as Word;
    },
    value: (word) => numberOf(word) ?? 0,
    knows: (word) => numberOf(word) !== undefined,
  };
}

/** What stands for a value that has no name here: a number that a later version of the broker has given a meaning. */
export const unnamed = 'unspecified';

/** Where a message keeps the names of its enumeration fields that this version has no number for. */
export const storedNames: unique symbol = Symbol('stored names');

/** Names by the fields' names in the message; of a list, in the order of its items. */
export type StoredNames = Readonly<Record<string, string | readonly string[] | null>>;

/**
 * Keeps stored names with a message for the fields that have no number for them. REST shows these names; gRPC and Connect
 * show `…_UNSPECIFIED`.
 */
export function withStoredNames<Shape extends object>(message: Shape, names: StoredNames): Shape {
  const fields = message as Record<string, unknown> & { [storedNames]?: StoredNames };
  for (const field in names) {
    const value = fields[field];
    const isUnknown = value === 0 || (Array.isArray(value) && value.includes(0));
    if (isUnknown) fields[storedNames] = { ...fields[storedNames], [field]: names[field] ?? null };
  }
  return message;
}
