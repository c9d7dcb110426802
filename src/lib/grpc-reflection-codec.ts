import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/** What a client asks by reflection. */
export type ReflectionRequest = { readonly host: string; readonly bytes: Uint8Array } & (
  | { readonly kind: 'list_services' | 'unknown' }
  | {
      readonly kind: 'file_by_filename' | 'file_containing_symbol' | 'all_extension_numbers_of_type';
      readonly name: string;
    }
  | { readonly kind: 'file_containing_extension'; readonly name: string; readonly number: number }
);

/** What it is told. */
export type ReflectionAnswer =
  | { readonly kind: 'services'; readonly names: readonly string[] }
  | { readonly kind: 'files'; readonly files: readonly Uint8Array[] }
  | { readonly kind: 'extension_numbers'; readonly name: string; readonly numbers: readonly number[] }
  | { readonly kind: 'error'; readonly code: number; readonly message: string };

/**
 * Reads a ServerReflectionRequest. Written by hand: six small messages, the same on the wire in v1 and v1alpha, are not
 * worth a second copy of the reflection protos among our own.
 */
export function decodeReflectionRequest(bytes: Uint8Array): ReflectionRequest {
  const reader = new BinaryReader(bytes);
  let host = '';
  let request: ReflectionRequest = { kind: 'unknown', host, bytes };
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, field);
      continue;
    }
    if (field === 1) host = reader.string();
    else if (field === 3) request = { kind: 'file_by_filename', name: reader.string(), host, bytes };
    else if (field === 4) request = { kind: 'file_containing_symbol', name: reader.string(), host, bytes };
    else if (field === 5)
      request = { kind: 'file_containing_extension', ...readExtension(reader.bytes()), host, bytes };
    else if (field === 6) request = { kind: 'all_extension_numbers_of_type', name: reader.string(), host, bytes };
    else if (field === 7) {
      reader.string();
      request = { kind: 'list_services', host, bytes };
    } else reader.skip(wireType, field);
  }
  return { ...request, host };
}

/** Writes the ServerReflectionResponse to a request. */
export function encodeReflectionResponse(request: ReflectionRequest, answer: ReflectionAnswer): Buffer {
  const writer = new BinaryWriter();
  if (request.host !== '') text(writer, 1, request.host);
  writer.tag(2, WireType.LengthDelimited).bytes(request.bytes);
  switch (answer.kind) {
    case 'files':
      writer.tag(4, WireType.LengthDelimited).fork();
      for (const file of answer.files) writer.tag(1, WireType.LengthDelimited).bytes(file);
      break;
    case 'extension_numbers':
      writer.tag(5, WireType.LengthDelimited).fork();
      text(writer, 1, answer.name);
      for (const number of answer.numbers) writer.tag(2, WireType.Varint).int32(number);
      break;
    case 'services':
      writer.tag(6, WireType.LengthDelimited).fork();
      for (const name of answer.names) {
        writer.tag(1, WireType.LengthDelimited).fork();
        text(writer, 1, name);
        writer.join();
      }
      break;
    case 'error':
      writer.tag(7, WireType.LengthDelimited).fork();
      writer.tag(1, WireType.Varint).int32(answer.code);
      text(writer, 2, answer.message);
      break;
  }
  return Buffer.from(writer.join().finish());
}

function readExtension(bytes: Uint8Array): { name: string; number: number } {
  const reader = new BinaryReader(bytes);
  const extension = { name: '', number: 0 };
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1 && wireType === WireType.LengthDelimited) extension.name = reader.string();
    else if (field === 2 && wireType === WireType.Varint) extension.number = reader.int32();
    else reader.skip(wireType, field);
  }
  return extension;
}

function text(writer: BinaryWriter, field: number, value: string): void {
  writer.tag(field, WireType.LengthDelimited).string(value);
}
