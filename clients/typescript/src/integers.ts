/** How whole numbers of answers and events are given: `bigint`, which is always exact, `number` or decimal `string`. */
export type IntegerMode = 'bigint' | 'number' | 'string';

interface IntegerTypes {
  readonly bigint: bigint;
  readonly number: number;
  readonly string: string;
}

/** A type of the contract, with its whole numbers as `Mode` says. */
export type WithIntegers<T, Mode extends IntegerMode> = Mode extends 'bigint' ? T : Replaced<T, IntegerTypes[Mode]>;

type Replaced<T, Integer> = T extends bigint
  ? Integer
  : T extends string | number | boolean | null | undefined
    ? T
    : { readonly [Name in keyof T]: Replaced<T[Name], Integer> };

const modes: readonly unknown[] = ['bigint', 'number', 'string'] satisfies IntegerMode[];

/** Throws a TypeError if a program that has no types asks for something else. */
export function checkedMode(mode: IntegerMode): IntegerMode {
  if (!modes.includes(mode)) throw new TypeError("`integers` has to be 'bigint', 'number' or 'string'.");
  return mode;
}
