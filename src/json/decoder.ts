import { create, type DescField, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf';
import { ApiError } from '../lib/errors.ts';
import { JsonObject, type JsonTree, MalformedJson, readJson } from './strict-reader.ts';
import { type ValueReader, type ValueType, valueReader } from './values.ts';

/** Reads a body; `into` is a message that has its other fields already. Throws an ApiError. */
export type Decoder<Shape extends Message> = (bytes: Buffer, into?: Shape) => Shape;

/** How names and values are written: in our own JSON, unless said otherwise. */
export interface JsonForm {
  readonly namesOf: (field: DescField) => readonly string[];
  readonly readerOf: (type: ValueType) => ValueReader | undefined;
}

const ownForm: JsonForm = { namesOf: ({ name }) => [name], readerOf: valueReader };

/**
 * Compiles the reading of a request's JSON: names are the proto's own, null counts as absent. It looks at the whole
 * text in stages, so that which of several mistakes is reported does not depend on where they stand: first the JSON
 * itself, then unknown and repeated members in the order written, then types in the order of the proto's fields.
 */
export function compileDecoder<Desc extends DescMessage>(
  schema: Desc,
  fields: readonly DescField[] = schema.fields,
  form: JsonForm = ownForm,
): Decoder<MessageShape<Desc>> {
  const shape = compileShape(schema, fields, form, new Map());
  return (bytes, into = create(schema)) => {
    const tree = parse(bytes);
    if (!(tree instanceof JsonObject)) {
      throw new ApiError('invalid_request', { message: 'The body must be a JSON object.' });
    }
    fill(into as unknown as Record<string, unknown>, shape, bind(shape, tree, ''), '');
    return into;
  };
}

/** A message type as JSON sees it. */
interface Shape {
  readonly schema: DescMessage;
  readonly members: readonly Member[];
  readonly byName: ReadonlyMap<string, Member>;
}

interface Member {
  readonly name: string;
  readonly key: string;
  readonly index: number;
  readonly isList: boolean;
  /** How to read its value, or an element of its list; a message with members of its own has a shape instead. */
  readonly reader: ValueReader | undefined;
  readonly shape: Shape | undefined;
}

/** An object's values in their members' places. What has a shape is bound itself, if it is an object at all. */
class Bound {
  constructor(readonly values: (Slot | undefined)[]) {}
}
type Slot = JsonTree | Bound | readonly (JsonTree | Bound)[];

function parse(bytes: Buffer): JsonTree {
  try {
    return readJson(bytes);
  } catch (error) {
    if (!(error instanceof MalformedJson)) throw error;
    throw new ApiError('invalid_request', { message: `The body is ${error.message}.` });
  }
}

/** The first stage: every member is known and stands once. */
function bind(shape: Shape, object: JsonObject, path: string): Bound {
  const values: (Slot | undefined)[] = new Array(shape.members.length).fill(undefined);
  for (let at = 0; at < object.names.length; at += 1) {
    const name = object.names[at] as string;
    const member = shape.byName.get(name);
    if (member === undefined) throw invalid(`${path}${name}`, 'is not a field of this request.');
    const memberPath = `${path}${member.name}`;
    if (values[member.index] !== undefined) throw invalid(memberPath, 'stands more than once.');
    values[member.index] = bindValue(member, object.values[at] as JsonTree, memberPath);
  }
  return new Bound(values);
}

function bindValue({ shape, isList }: Member, tree: JsonTree, path: string): Slot {
  if (shape === undefined) return tree;
  if (!isList) return tree instanceof JsonObject ? bind(shape, tree, `${path}.`) : tree;
  if (!Array.isArray(tree)) return tree;
  return tree.map((item, index) => (item instanceof JsonObject ? bind(shape, item, `${path}[${index}].`) : item));
}

/** The second stage: every value is of its field's type. */
function fill(message: Record<string, unknown>, shape: Shape, bound: Bound, path: string): void {
  for (const member of shape.members) {
    const slot = bound.values[member.index];
    if (slot === undefined || slot === null) continue;
    const at = path === '' ? member.name : `${path}.${member.name}`;
    if (!member.isList) {
      message[member.key] = toValue(member, slot, at);
    } else if (Array.isArray(slot)) {
      message[member.key] = slot.map((item, index) => toValue(member, item, `${at}[${index}]`));
    } else {
      throw invalid(at, 'must be a list.');
    }
  }
}

function toValue({ reader, shape }: Member, slot: Slot, path: string): unknown {
  if (shape !== undefined) {
    if (!(slot instanceof Bound)) throw invalid(path, 'must be an object.');
    const message = create(shape.schema);
    fill(message as unknown as Record<string, unknown>, shape, slot, path);
    return message;
  }
  const value = slot instanceof Bound ? undefined : reader?.read(slot as JsonTree);
  if (value === undefined) throw invalid(path, `must be ${reader?.expected}.`);
  return value;
}

/** No name in our contract comes near it: a longer one is the caller's, and need not be repeated whole. */
const maxParamLength = 200;

function invalid(path: string, problem: string): ApiError {
  const param = path.slice(0, maxParamLength);
  return new ApiError('invalid_request', { param, message: `\`${param}\` ${problem}` });
}

function compileShape(
  schema: DescMessage,
  fields: readonly DescField[],
  form: JsonForm,
  known: Map<DescMessage, Shape>,
): Shape {
  const members: Member[] = [];
  const byName = new Map<string, Member>();
  const shape: Shape = { schema, members, byName };
  // A body that leaves out the path's fields is no form for the same message inside it.
  if (fields === schema.fields) known.set(schema, shape);
  for (const [index, field] of fields.entries()) {
    if (field.fieldKind === 'map' || field.oneof !== undefined) throw new Error(`${field}: no form in a request`);
    const reader = form.readerOf(field);
    const nested = field.message;
    const member: Member = {
      name: field.name,
      key: field.localName,
      index,
      isList: field.fieldKind === 'list',
      reader,
      shape:
        reader !== undefined || nested === undefined
          ? undefined
          : (known.get(nested) ?? compileShape(nested, nested.fields, form, known)),
    };
    members.push(member);
    for (const name of form.namesOf(field)) byName.set(name, member);
  }
  return shape;
}
