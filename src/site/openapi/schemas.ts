import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  ScalarType,
} from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { readCondition } from '../../gateway/edge/field-rules.ts';
import { field as fieldOption, message as messageOption } from '../../gen/marina/options/v1/options_pb.ts';
import { enumNames } from '../../kit/enums.ts';
import { groupBy } from '../../kit/group.ts';
import { type Comments, commentOf } from '../comments.ts';

/** A JSON Schema, or any other part of the document. */
export type Node = { [member: string]: unknown };

/**
 * The document's named schemas. What the gateway answers with is as the JSON encoder writes it: every member is there,
 * null where there is no value, and lists of values stay open. The schema of a request is what the strict reader takes.
 */
export class Schemas {
  readonly #schemas = new Map<string, Node>();

  constructor(private readonly comments: Comments) {}

  /** A reference to a message's schema, which is made with all that it holds. */
  message(desc: DescMessage): Node {
    if (!this.#schemas.has(desc.name)) {
      const schema: Node = {};
      this.#schemas.set(desc.name, schema);
      Object.assign(schema, this.#object(desc));
    }
    return { $ref: `#/components/schemas/${desc.name}` };
  }

  /** A reference to the schema of a request's body, which is made of some of a message's fields. */
  body(desc: DescMessage, fields: readonly DescField[]): Node {
    this.#schemas.set(desc.name, bodySchema(desc, fields, this.comments));
    return { $ref: `#/components/schemas/${desc.name}` };
  }

  /** Every schema that was referred to, by name. */
  get all(): Node {
    return Object.fromEntries([...this.#schemas].sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  #object(desc: DescMessage): Node {
    const { object } = getOption(desc, messageOption);
    const properties: Node = {};
    if (object !== '') properties.object = oneWord(object, 'The kind of this object.');
    for (const member of desc.members) {
      properties[member.name] = member.kind === 'oneof' ? this.#choice(member) : this.#member(member);
    }
    return {
      type: 'object',
      description: commentOf(this.comments, desc),
      properties,
      required: Object.keys(properties),
    };
  }

  #member(field: DescField): Node {
    const description = commentOf(this.comments, field);
    if (field.fieldKind === 'list') return { type: 'array', items: this.#value(field), description };
    const value = this.#value(field, description);
    if (!canBeNull(field)) return { ...value, description };
    if ('$ref' in value) return { anyOf: [value, { type: 'null' }], description };
    return { ...value, type: [value.type, 'null'], description };
  }

  #value(field: DescField, description = ''): Node {
    if (field.enum !== undefined) return this.#openEnum(field.enum);
    if (field.message !== undefined && !isTimestamp(field)) return this.message(field.message);
    return plainSchema(field, description);
  }

  /** A list of values that can grow: a text, with the values there are now. */
  #openEnum(desc: DescEnum): Node {
    if (!this.#schemas.has(desc.name)) {
      const values = enumValues(desc, this.comments);
      const words = values.map(({ word }) => word);
      this.#schemas.set(desc.name, {
        ...openList(words),
        description: [
          commentOf(this.comments, desc),
          values.map(({ word, meaning }) => `- \`${word}\`: ${meaning.replaceAll('\n', ' ')}`).join('\n'),
          'The list can grow: accept a value you do not know.',
        ].join('\n\n'),
      });
    }
    return { $ref: `#/components/schemas/${desc.name}` };
  }

  /** An object of a kind that a later version has. Generated readers would refuse it if the choice were closed. */
  #unknownObject(): Node {
    this.#schemas.set('UnknownObject', {
      type: 'object',
      description: 'An object of a kind that this document does not describe.',
      properties: { object: { type: 'string', description: 'What it is.' } },
      required: ['object'],
    });
    return { $ref: '#/components/schemas/UnknownObject' };
  }

  #choice(oneof: DescOneof): Node {
    const choices = oneof.fields.flatMap(({ message }) => message ?? []);
    const mapping = choices.map((choice) => [getOption(choice, messageOption).object, this.message(choice).$ref]);
    const known = {
      oneOf: choices.map((choice) => this.message(choice)),
      discriminator: { propertyName: 'object', mapping: Object.fromEntries(mapping) },
    };
    return {
      anyOf: [known, this.#unknownObject()],
      description: [
        ...choices.map((choice) => commentOf(this.comments, choice)),
        'Objects of other kinds may come: accept one that you do not know.',
      ].join('\n\n'),
    };
  }
}

/** A text that is one of these words, or of a later version's. */
export function openList(words: readonly string[]): Node {
  return { anyOf: [{ type: 'string', enum: words }, { type: 'string' }], 'x-extensible-enum': words };
}

/** A text that is this word. A list of one: many generators know no `const`, and read any text. */
export function oneWord(word: string, description?: string): Node {
  return { type: 'string', enum: [word], ...(description !== undefined && { description }) };
}

/** An enumeration's values as JSON has them, with what they mean. */
export function enumValues(desc: DescEnum, comments: Comments): { word: string; meaning: string }[] {
  const words = enumNames(desc);
  return desc.values.flatMap((value) => {
    const word = words.get(value.number);
    return word === undefined ? [] : [{ word, meaning: commentOf(comments, value) }];
  });
}

/** Whether an answer's field may be null: the proto says `optional`. A message that is always there says nothing. */
export function canBeNull(field: DescField): boolean {
  return field.proto.proto3Optional;
}

export function isTimestamp({ message }: DescField): boolean {
  return message?.typeName === TimestampSchema.typeName;
}

/** The schema of a value that is no enumeration and has no members. */
export function plainSchema(field: DescField, description: string): Node {
  if (isTimestamp(field)) return { type: 'string', format: 'date-time' };
  switch (field.scalar) {
    case ScalarType.BOOL:
      return { type: 'boolean' };
    case ScalarType.INT32:
    case ScalarType.UINT32:
      return { type: 'integer', format: 'int32' };
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return { type: 'integer', format: 'int64' };
    case ScalarType.STRING:
      if (field.name.endsWith('_decimal')) return { type: 'string', pattern: '^-?[0-9]+\\.[0-9]{1,12}$' };
      return /YYYY-MM-DD/.test(description) ? { type: 'string', format: 'date' } : { type: 'string' };
    default:
      throw new Error(`${field} has no schema`);
  }
}

/**
 * Makes the schema of the bodies that the strict reader and the field rules take, and of no others. Fields that go with
 * values of others make a schema for each case: with that value the field is required, with another it is absent or
 * null.
 */
function bodySchema(desc: DescMessage, fields: readonly DescField[], comments: Comments): Node {
  const conditions = new Map(fields.flatMap((field) => conditionsOf(field, desc)));
  const chained = [...conditions.values()].find(({ other }) => conditions.has(other));
  if (chained !== undefined) throw new Error(`${desc}: ${chained.other} goes with a field, and another goes with it`);
  const schemas = casesOf([...conditions.values()]).map((words) =>
    closedObject(fields, comments, (field, schema) => {
      const possible = words.get(field);
      if (possible !== undefined) return { schema: { ...schema, enum: possible } };
      const condition = conditions.get(field);
      if (condition === undefined) return { schema };
      const [word = ''] = words.get(condition.other) ?? [];
      return condition.needed.includes(word)
        ? { schema: requestValue(field, comments), isRequired: true }
        : { schema: onlyNull(field, comments) };
    }),
  );
  const description = commentOf(comments, desc);
  return { description, ...(schemas.length === 1 ? schemas[0] : { oneOf: schemas }) };
}

/** A field goes with another one that has one of the needed words, of all that it may have. */
export interface Condition<Field> {
  readonly other: Field;
  readonly needed: readonly string[];
  readonly words: readonly string[];
}

/** The cases that conditions part a message into. Each says which words the fields have that others go with. */
export function casesOf<Field>(conditions: readonly Condition<Field>[]): ReadonlyMap<Field, readonly string[]>[] {
  let cases: ReadonlyMap<Field, readonly string[]>[] = [new Map()];
  for (const [other, own] of groupBy(conditions, (condition) => condition.other)) {
    // Words with which the same fields go make one case. The words that no field needs come last.
    const needed = own.flatMap((condition) => condition.needed);
    const words = [...new Set([...needed, ...(own[0]?.words ?? [])])];
    const choices = [...groupBy(words, (word) => own.map((one) => one.needed.includes(word)).join()).values()];
    cases = cases.flatMap((known) => choices.map((words) => new Map([...known, [other, words]])));
  }
  return cases;
}

/** Null alone, said in a way of which openapi-fetch makes a member that can be given: of the type `null` it makes none. */
function onlyNull(field: DescField, comments: Comments): Node {
  const { type } = requestValue(field, comments);
  return { type: [type, 'null'], not: { type } };
}

type Change = (field: DescField, schema: Node) => { schema: Node; isRequired?: boolean };

function closedObject(
  fields: readonly DescField[],
  comments: Comments,
  change: Change = (_, schema) => ({ schema }),
): Node {
  const properties: Node = {};
  const required: string[] = [];
  for (const field of fields) {
    const rules = getOption(field, fieldOption);
    const { schema, isRequired = rules.required } = change(field, requestValue(field, comments, !rules.required));
    properties[field.name] = { ...schema, description: commentOf(comments, field) };
    if (isRequired) required.push(field.name);
  }
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false };
}

/** The field with what it goes with, if it goes with something. */
function conditionsOf(field: DescField, desc: DescMessage): [DescField, Condition<DescField>][] {
  const { onlyWith } = getOption(field, fieldOption);
  if (onlyWith === '') return [];
  const { field: other, words: needed } = readCondition(onlyWith, desc.fields);
  return [[field, { other, needed, words: other.enum === undefined ? [] : [...enumNames(other.enum).values()] }]];
}

/** The schema of one value of a request. Null counts as absent in a body, and has no form elsewhere. */
export function requestValue(field: DescField, comments: Comments, nullable = false): Node {
  const rules = getOption(field, fieldOption);
  const one = requestItem(field, commentOf(comments, field));
  if (field.fieldKind === 'list') {
    const bounds = { ...(rules.required && { minItems: 1 }), ...(rules.maxItems > 0 && { maxItems: rules.maxItems }) };
    return { type: nullable ? ['array', 'null'] : 'array', items: one, ...bounds };
  }
  if (rules.defaultValue !== undefined) {
    const words = field.enum && enumNames(field.enum);
    one.default = words?.get(Number(rules.defaultValue)) ?? Number(rules.defaultValue);
  }
  if (!nullable) return one;
  if (Array.isArray(one.enum)) one.enum = [...one.enum, null];
  return { ...one, type: [one.type, 'null'] };
}

function requestItem(field: DescField, description: string): Node {
  const rules = getOption(field, fieldOption);
  if (field.enum !== undefined) return { type: 'string', enum: [...enumNames(field.enum).values()] };
  const schema = plainSchema(field, description);
  if (field.scalar === ScalarType.STRING) {
    // A pattern that says what a date is stands for itself.
    if (rules.pattern !== '') schema.pattern = `^(?:${rules.pattern})$`;
    const least = Math.max(rules.minBytes, rules.required ? 1 : 0);
    if (least > 0) schema.minLength = least;
    // Bytes of UTF-8: never more characters than that.
    if (rules.maxBytes > 0) schema.maxLength = rules.maxBytes;
  }
  if (schema.type === 'integer') {
    schema.minimum = Number(rules.minimum ?? Number.MIN_SAFE_INTEGER);
    schema.maximum = Number(rules.maximum ?? Number.MAX_SAFE_INTEGER);
  }
  return schema;
}
