import { create, type DescField, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf';
import { ApiError, invalidParam } from '../errors.ts';
import {
  JsonObject,
  type JsonTree,
  MalformedJson,
  readJson,
  type TreeReader,
  type ValueType,
  valueReader,
} from './reader.ts';

/** Reads a body into a new message, or into `into`, which has its other fields already. Throws an ApiError. */
export type JsonDecoder<Shape extends Message> = (bytes: Buffer, into?: Shape) => Shape;

/** How names and values are written; the default is our own JSON. */
export interface JsonForm {
  readonly namesOf: (field: DescField) => readonly string[];
  readonly readerOf: (type: ValueType) => TreeReader | undefined;
}

const ownForm: JsonForm = { namesOf: ({ name }) => [name], readerOf: valueReader };

/**
 * Compiles the reader of a request's JSON. Names are the proto's own, and null counts as absent. The checks run in
 * stages, so that the reported error does not depend on positions: the JSON syntax, then unknown and repeated members
 * in written order, then types in the order of the proto's fields. `reader` has only the grammar and the reading of one value.
 */
export function compileDecoder<Desc extends DescMessage>(
  schema: Desc,
  fields: readonly DescField[] = schema.fields,
  form: JsonForm = ownForm,
): JsonDecoder<MessageShape<Desc>> {
  const shape = compileShape(schema, fields, form, new Map());
  return (bytes, into = create(schema)) => {
    const tree = parse(bytes);
    if (!(tree instanceof JsonObject)) {
      throw new ApiError('invalid_request', { message: 'The body must be a JSON object.' });
    }
    bind(shape, tree, '');
    fill(into as unknown as Record<string, unknown>, shape, tree, '');
    return into;
  };
}

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
  /** Reads its value, or an element of its list; undefined if `shape` describes it. */
  readonly reader: TreeReader | undefined;
  readonly shape: Shape | undefined;
}

function parse(bytes: Buffer): JsonTree {
  try {
    return readJson(bytes);
  } catch (error) {
    if (!(error instanceof MalformedJson)) throw error;
    throw new ApiError('invalid_request', { message: `The body is ${error.message}.` });
  }
}

/** Stage 1: every member is known and occurs once. Stores an object's values by their fields. */
function bind(shape: Shape, object: JsonObject, path: string): void {
  for (let at = 0; at < object.names.length; at += 1) {
    const name = object.names[at] as string;
    const member = shape.byName.get(name);
    if (member === undefined) throw invalidParam(`${path}${name}`, 'is not a field of this request.');
    const memberPath = `${path}${member.name}`;
    if (object.bound[member.index] !== undefined) throw invalidParam(memberPath, 'stands more than once.');
    const value = object.values[at] as JsonTree;
    object.bound[member.index] = value;
    if (member.shape !== undefined) bindValue(member.shape, member.isList, value, memberPath);
  }
}

/** A value that should be an object and is not is left to stage 2. */
function bindValue(shape: Shape, isList: boolean, value: JsonTree, path: string): void {
  if (isList && Array.isArray(value)) {
    for (const [index, item] of value.entries()) bindValue(shape, false, item, `${path}[${index}]`);
  } else if (!isList && value instanceof JsonObject) {
    bind(shape, value, `${path}.`);
  }
}

/** Stage 2: every value has its field's type. */
function fill(message: Record<string, unknown>, shape: Shape, object: JsonObject, path: string): void {
  for (const member of shape.members) {
    const value = object.bound[member.index];
    if (value === undefined || value === null) continue;
    const at = path === '' ? member.name : `${path}.${member.name}`;
    if (!member.isList) {
      message[member.key] = toValue(member, value, at);
    } else if (Array.isArray(value)) {
      message[member.key] = value.map((item, index) => toValue(member, item, `${at}[${index}]`));
    } else {
      throw invalidParam(at, 'must be a list.');
    }
  }
}

function toValue({ reader, shape }: Member, tree: JsonTree, path: string): unknown {
  if (shape !== undefined) {
    if (!(tree instanceof JsonObject)) throw invalidParam(path, 'must be an object.');
    const message = create(shape.schema);
    fill(message as unknown as Record<string, unknown>, shape, tree, path);
    return message;
  }
  const value = reader?.read(tree);
  if (value === undefined) throw invalidParam(path, `must be ${reader?.expected}.`);
  return value;
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
  // A body without the path's fields must not become the shape of nested messages of the same type.
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
