import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  type Message,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { message as messageOption } from '../../../gen/marina/options/v1/options_pb.ts';
import { storedBytes } from './encoder.ts';
import { JsonNumber, JsonObject, type JsonTree, readJson, type ValueType, valueReader } from './reader.ts';

/** A message with its stored JSON, which REST writes unchanged. Its fields are empty until `materialize`. */
export function storedMessage<Desc extends DescMessage>(schema: Desc, bytes: Buffer): MessageShape<Desc> {
  // Only its type and bytes, because a page of the feed makes many of these.
  return { $typeName: schema.typeName, [storedBytes]: bytes } as unknown as MessageShape<Desc>;
}

/** Decodes all stored messages in `message`, for protocols that write fields instead of JSON. */
export function materialize(schema: DescMessage, message: Message): void {
  const stored = message as { [storedBytes]?: Buffer | undefined };
  const bytes = stored[storedBytes];
  if (bytes !== undefined) {
    Object.assign(message, decodeStored(schema, bytes));
    stored[storedBytes] = undefined;
    return;
  }
  const values = message as unknown as Record<string, unknown>;
  for (const member of schema.members) {
    const value = values[member.localName];
    if (member.kind === 'oneof') {
      const choice = value as { case?: string; value?: Message };
      const field = member.fields.find(({ localName }) => localName === choice.case);
      if (field?.message !== undefined && choice.value !== undefined) materialize(field.message, choice.value);
    } else if (member.message !== undefined && value !== undefined) {
      const nested = member.message;
      if (member.fieldKind === 'message') materialize(nested, value as Message);
      if (member.fieldKind === 'list') for (const item of value as Message[]) materialize(nested, item);
    }
  }
}

/** Reads JSON of any release of ours. Ignores unknown members. Throws on a wrong type: the record is broken. */
export function decodeStored<Desc extends DescMessage>(schema: Desc, bytes: Buffer): MessageShape<Desc> {
  return fromTree(schema, readJson(bytes)) as MessageShape<Desc>;
}

function fromTree(schema: DescMessage, tree: JsonTree): Message {
  if (!(tree instanceof JsonObject)) throw new Error(`a stored ${schema.typeName} is not an object`);
  const message = create(schema);
  const values = message as unknown as Record<string, unknown>;
  for (const member of schema.members) {
    const value = memberOf(tree, member.name);
    if (value === undefined || value === null) continue;
    values[member.localName] = member.kind === 'oneof' ? toChoice(member, value) : toField(member, value);
  }
  return message;
}

/** The member of a oneof that `object` names; none if this release does not know it. */
function toChoice(oneof: DescOneof, tree: JsonTree): { case: string | undefined; value?: Message } {
  const object = tree instanceof JsonObject ? memberOf(tree, 'object') : undefined;
  for (const field of oneof.fields) {
    if (field.message === undefined || getOption(field.message, messageOption).object !== object) continue;
    return { case: field.localName, value: fromTree(field.message, tree) };
  }
  return { case: undefined };
}

function toField(field: DescField, tree: JsonTree): unknown {
  if (field.fieldKind !== 'list') return toValue(field, tree, field);
  if (!Array.isArray(tree)) throw new Error(`a stored ${field} is not a list`);
  return tree.map((item) => toValue(field, item, field));
}

function toValue(type: ValueType, tree: JsonTree, field: DescField): unknown {
  const reader = valueReader(type);
  if (reader === undefined && type.message !== undefined) return fromTree(type.message, tree);
  const value = isLong(type) && tree instanceof JsonNumber ? BigInt(tree.text) : reader?.read(tree);
  // A name of a later release has no number here.
  if (value === undefined && type.enum !== undefined && typeof tree === 'string') return 0;
  if (value === undefined) throw new Error(`a stored ${field} has the wrong type`);
  return value;
}

/** Our own answers write all digits of these, beyond the range of a request. */
function isLong({ scalar }: ValueType): boolean {
  return scalar === ScalarType.INT64 || scalar === ScalarType.UINT64;
}

function memberOf(object: JsonObject, name: string): JsonTree | undefined {
  const at = object.names.indexOf(name);
  return at === -1 ? undefined : object.values[at];
}
