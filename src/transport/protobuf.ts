import { type DescField, type DescMessage, fromBinary, type Message, ScalarType, toBinary } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { materialize } from '../json/stored.ts';
import { ApiError } from '../lib/errors.ts';

/**
 * Reads a protobuf message from a client; fields we do not know are passed over. Throws `invalid_request` for bytes
 * that are not such a message.
 */
export function decodeProtobuf(schema: DescMessage, bytes: Uint8Array): Message {
  try {
    checkWire(schema, new BinaryReader(bytes), bytes.length, 0);
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch (error) {
    const message = `The message is not a ${schema.typeName} in protobuf's encoding.`;
    throw new ApiError('invalid_request', { message, cause: error });
  }
}

/** Writes an answer in protobuf's encoding. */
export function encodeProtobuf(schema: DescMessage, message: Message): Buffer {
  materialize(schema, message);
  const bytes = toBinary(schema, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const maxDepth = 32;

/**
 * Every known field has the wire type of its own type, and everything ends where it says. The library reads a field by
 * the type it should have, whatever the bytes say, so that a client with another proto could place an order with a
 * quantity it never wrote.
 */
function checkWire(schema: DescMessage, reader: BinaryReader, end: number, depth: number): void {
  if (depth > maxDepth) throw new Error('nested too deep');
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = schema.fields.find((candidate) => candidate.number === number);
    if (field !== undefined && !allows(field, wireType)) throw new Error(`${field} has wire type ${wireType}`);
    const inside = field?.message;
    if (inside === undefined) {
      reader.skip(wireType, number, maxDepth);
    } else {
      const length = reader.uint32();
      checkWire(inside, reader, reader.pos + length, depth + 1);
    }
  }
  if (reader.pos !== end || end > reader.len) throw new Error('a message does not end where it says');
}

function allows(field: DescField, wireType: WireType): boolean {
  const own = ownWireType(field);
  const isPackable = field.fieldKind === 'list' && own !== WireType.LengthDelimited;
  return wireType === own || (isPackable && wireType === WireType.LengthDelimited);
}

function ownWireType({ scalar, enum: enumeration }: DescField): WireType {
  if (enumeration !== undefined) return WireType.Varint;
  switch (scalar) {
    case undefined:
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
