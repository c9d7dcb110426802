import type { DescEnum } from '@bufbuild/protobuf';

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
  /** The number of a word. Throws on a word the proto does not have. */
  value(word: Word): number;
}

/** The words of an enumeration, as a type lists them. */
export function enumWords<Word extends string>(desc: DescEnum): EnumWords<Word> {
  const words = enumNames(desc);
  const numbers = new Map([...words].map(([number, word]) => [word, number] as const));
  return {
    word: (value) => known(words.get(value), desc, value) as Word,
    value: (word) => known(numbers.get(word), desc, word),
  };
}

function known<T>(found: T | undefined, desc: DescEnum, wanted: number | string): T {
  if (found === undefined) throw new Error(`${desc.typeName} has no value ${wanted}`);
  return found;
}
