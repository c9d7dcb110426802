import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  isMessage,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { enumNumbers } from '../../../kit/enums.ts';

/**
 * An answer as its handler has it, so that rows can be given as they are: an instant may be in milliseconds, a value of an
 * enumeration its name, a whole number of 64 bits a small one, and null is nothing.
 */
export type AnswerOf<Value> = Value extends Timestamp
  ? Value | { readonly seconds?: bigint; readonly nanos?: number } | number
  : Value extends bigint
    ? bigint | number
    : Value extends number
      ? number | string
      : Value extends readonly (infer Item)[]
        ? readonly AnswerOf<Item>[]
        : Value extends Message
          ? { readonly [Field in Exclude<keyof Value, keyof Message>]?: AnswerOf<Value[Field]> | null | undefined }
          : Value;

/** Makes the message of an answer. Members that the message does not have are left out. */
export function answerMessage(schema: DescMessage, answer: object): Message {
  if (isMessage(answer)) return answer;
  const given = answer as Readonly<Record<string, unknown>>;
  const members = schema.members.flatMap((member) => {
    const value = given[member.localName];
    if (value === null || value === undefined) return [];
    return [[member.localName, member.kind === 'oneof' ? value : fieldValue(member, value)] as const];
  });
  return create(schema, Object.fromEntries(members));
}

function fieldValue(field: DescField, value: unknown): unknown {
  if (field.fieldKind === 'list') return (value as readonly unknown[]).map((item) => oneValue(field, item));
  return oneValue(field, value);
}

function oneValue({ message, enum: names, scalar }: DescField, value: unknown): unknown {
  if (message?.typeName === TimestampSchema.typeName && typeof value === 'number') return timestampFromMs(value);
  if (message !== undefined) return answerMessage(message, value as object);
  if (names !== undefined && typeof value === 'string') return numbersOf(names)(value);
  return scalar === ScalarType.INT64 && typeof value === 'number' ? BigInt(value) : value;
}

const known = new Map<DescEnum, (name: string) => number>();

/** Finds the numbers of an enumeration's names. */
function numbersOf(names: DescEnum): (name: string) => number {
  const numbers = known.get(names) ?? enumNumbers(names);
  known.set(names, numbers);
  return numbers;
}
