import { create, type DescEnum, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { toMilliseconds, toSecond } from '../../kit/clock.ts';
import { enumNames, enumNumbers, type StoredNames, storedNames } from '../../kit/enums.ts';

/** A field's value as in rows: instants in milliseconds, enumerations by name. */
type Shown<Value> = Value extends Timestamp
  ? number
  : Value extends readonly (infer Item)[]
    ? readonly Shown<Item>[]
    : Value extends number
      ? string
      : Value;

/** An object to show: every field of its message, null or undefined if it has none. */
export type ShownObject<Shape extends Message> = {
  readonly [Field in Exclude<keyof Shape, keyof Message>]-?: Shown<NonNullable<Shape[Field]>> | null | undefined;
};

/**
 * Makes the message that shows an object, from members of the same names in `more` or the object. A field that both lack
 * does not compile. The message keeps an unknown enumeration name for REST, and its number is 0.
 */
export function shownMessage<
  Desc extends DescMessage,
  More extends Partial<ShownObject<MessageShape<Desc>>> = Record<never, never>,
>(schema: Desc, object: Omit<ShownObject<MessageShape<Desc>>, keyof More>, more?: More): MessageShape<Desc> {
  const members = object as Readonly<Record<string, unknown>>;
  const others = more as Readonly<Record<string, unknown>> | undefined;
  const message = create(schema);
  const fields = message as unknown as Record<string, unknown> & { [storedNames]?: StoredNames };
  for (const { name, isInstant, numberOf } of fieldsOf(schema)) {
    const value = others !== undefined && name in others ? others[name] : members[name];
    if (value === null || value === undefined) continue;
    if (isInstant) fields[name] = toSecond(value as number);
    else if (numberOf === undefined) fields[name] = value;
    else {
      const number = Array.isArray(value) ? value.map(numberOf) : numberOf(value as string);
      const isUnknown = Array.isArray(number) ? number.includes(0) : number === 0;
      if (isUnknown) fields[storedNames] = { ...fields[storedNames], [name]: value as string | readonly string[] };
      fields[name] = number;
    }
  }
  return message;
}

/** The fields of a request as in rows: null if absent. */
export type StoredFields<Shape extends Message> = {
  readonly [Field in Exclude<keyof Shape, keyof Message>]-?: Shown<NonNullable<Shape[Field]>> | null;
};

/** Reads the fields of a message as in rows. Throws on an unknown number of an enumeration. */
export function storedFields<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): StoredFields<MessageShape<Desc>> {
  const given = message as unknown as Readonly<Record<string, unknown>>;
  const fields: Record<string, unknown> = {};
  for (const { name, isInstant, nameOf } of fieldsOf(schema)) {
    const value = given[name];
    if (value === undefined) fields[name] = null;
    else if (isInstant) fields[name] = toMilliseconds(value as Timestamp);
    else fields[name] = nameOf === undefined ? value : nameOf(value as number);
  }
  return fields as StoredFields<MessageShape<Desc>>;
}

interface ShownField {
  readonly name: string;
  readonly isInstant: boolean;
  /** Only for an enumeration. */
  readonly numberOf: ((name: string) => number) | undefined;
  readonly nameOf: ((number: number) => string) | undefined;
}

const known = new WeakMap<DescMessage, readonly ShownField[]>();

function fieldsOf(schema: DescMessage): readonly ShownField[] {
  let fields = known.get(schema);
  if (fields === undefined) {
    fields = schema.fields.map(({ localName: name, enum: names, message }) => ({
      name,
      isInstant: message?.typeName === TimestampSchema.typeName,
      numberOf: names && enumNumbers(names),
      nameOf: names && nameIn(names),
    }));
    known.set(schema, fields);
  }
  return fields;
}

function nameIn(desc: DescEnum): (number: number) => string {
  const names = enumNames(desc);
  return (number) => {
    const name = names.get(number);
    if (name === undefined) throw new Error(`${desc.typeName} has no value ${number}`);
    return name;
  };
}
