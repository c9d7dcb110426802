import type { DescEnum } from '@bufbuild/protobuf';

/** The two ways between an enumeration's numbers and the words partners and the database use for them. */
export interface EnumWords {
  /** The word of a number: lower-case, without the enumeration's prefix. Throws on a number the proto does not have. */
  word(value: number): string;
  /** The number of a word. Throws on a word the proto does not have. */
  value(word: string): number;
}

/** The words of an enumeration: `ORDER_STATE_PENDING` of `OrderState` is `pending`. */
export function enumWords(descriptor: DescEnum): EnumWords {
  const prefix = descriptor.sharedPrefix ?? '';
  const words = new Map(
    descriptor.values.map((value) => [value.number, value.name.toLowerCase().slice(prefix.length)] as const),
  );
  const numbers = new Map([...words].map(([number, word]) => [word, number] as const));
  return {
    word: (value) => known(words.get(value), descriptor, value),
    value: (word) => known(numbers.get(word), descriptor, word),
  };
}

function known<T>(found: T | undefined, descriptor: DescEnum, wanted: number | string): T {
  if (found === undefined) throw new Error(`${descriptor.typeName} has no value ${wanted}`);
  return found;
}
