import type { DescEnum } from '@bufbuild/protobuf';
import type { GenEnum } from '@bufbuild/protobuf/codegenv2';
import type { Logger } from './log.ts';

/**
 * The names of an enumeration: `EnumName<typeof OrderState>` is 'sending' | 'pending' and so on. A table by name does not
 * compile when the proto gains a value.
 */
export type EnumName<Enum> = Lowercase<Exclude<keyof Enum & string, 'UNSPECIFIED'>>;

/** The numbers of an enumeration: `NumberOf<typeof OrderState>` is `OrderState`. */
type NumberOf<Enum> = Enum[keyof Enum & string] & number;

/** An enumeration's names for partners and the database, without `UNSPECIFIED`, which means "none". */
export function enumNames(desc: DescEnum): ReadonlyMap<number, string> {
  const named = desc.values.filter(({ number }) => number !== 0);
  return new Map(named.map(({ number, localName }) => [number, localName.toLowerCase()]));
}

/** Finds the number of a name. A name of another version has 0 and is logged once. */
export function enumNumbers(desc: DescEnum): (name: string) => number {
  const numbers = new Map([...enumNames(desc)].map(([number, name]) => [name, number]));
  return (name) => {
    const number = numbers.get(name);
    if (number === undefined) noteUnknownName(desc.typeName, name);
    return number ?? 0;
  };
}

/**
 * Translates between an enumeration's numbers and names, as in `enumWords<typeof OrderState>(OrderStateSchema)`. An
 * unknown name comes from another version: it is logged once, and its number is 0 (`…_UNSPECIFIED`). `withStoredNames`
 * keeps such a name for REST.
 */
export function enumWords<Enum extends object>(desc: GenEnum<NumberOf<Enum>>) {
  const names = enumNames(desc) as ReadonlyMap<number, EnumName<Enum>>;
  const numberOf = enumNumbers(desc);
  return {
    /** Throws on a number the proto does not have. */
    word: (value: number): EnumName<Enum> => {
      const name = names.get(value);
      if (name === undefined) throw new Error(`${desc.typeName} has no value ${value}`);
      return name;
    },
    /** The name of another system's number; undefined for 0 and for a number of a later version. */
    find: (value: number): EnumName<Enum> | undefined => names.get(value),
    value: (name: string): NumberOf<Enum> => numberOf(name) as NumberOf<Enum>,
    knows: (name: string): boolean => numberOf(name) !== 0,
  };
}

/**
 * Translates the numbers of one enumeration to those of another with the same names. 0, nothing and a number of a later
 * version become 0; with `sent`, the sender's enumeration, such a number is logged once. Does not compile if a name is
 * missing.
 */
export function translateEnum<From extends object, To extends { readonly [Name in keyof From & string]: number }>(
  from: From,
  to: To,
  sent?: DescEnum,
): (value: NumberOf<From> | undefined) => NumberOf<To> {
  const names = from as { readonly [number: number]: keyof From & string };
  return (value) => {
    const name = value === undefined ? undefined : names[value];
    const known = name === undefined ? 0 : to[name];
    if (known === 0 && sent !== undefined) noteUnknownName(sent.typeName, String(value));
    return known as NumberOf<To>;
  };
}

/** The name shown for a value without one here, such as a number from a later version of the broker. */
export const unnamed = 'unspecified';

/** The member of a message that holds the names of enumeration values without a number in this version. */
export const storedNames: unique symbol = Symbol('stored names');

/** Names by the message's field names; for a list, in the order of its items. */
export type StoredNames = Readonly<Record<string, string | readonly string[] | null>>;

/**
 * Keeps the names of enumeration values without a number here. REST shows them; gRPC and Connect show `…_UNSPECIFIED`.
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

/** How many names a process logs in its life, and the longest name in a log line. */
const maxNames = 100;
const maxCharacters = 40;

type UnknownNameListener = (enumeration: string, name: string) => void;

const listeners = new Set<UnknownNameListener>();

function noteUnknownName(enumeration: string, name: string): void {
  for (const listener of listeners) listener(enumeration, name);
}

/** Logs each unknown name once, until the returned function is called. Memory is bounded. */
export function logUnknownNames(log: Logger): () => void {
  const logged = new Set<string>();
  const listener: UnknownNameListener = (enumeration, name) => {
    const shown = name.slice(0, maxCharacters);
    const both = `${enumeration} ${shown}`;
    if (logged.has(both) || logged.size >= maxNames) return;
    logged.add(both);
    log.warn(
      { enumeration, name: shown, isLast: logged.size === maxNames },
      'a value is not known to this version: its object is shown as it is stored, and left alone',
    );
  };
  listeners.add(listener);
  return () => listeners.delete(listener);
}
