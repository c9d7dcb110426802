import { type DescMethod, type Message, ScalarType } from '@bufbuild/protobuf';
import type { ReceivedFile } from '../auth/call.ts';
import type { FileRules } from '../gen/marina/options/v1/options_pb.ts';
import { ApiError, catalogue, type ErrorCode } from '../lib/errors.ts';

/** The file an operation's requests carry, as its proto says. */
export interface FileBody {
  /** The name of the field that holds it. */
  readonly content: string;
  readonly contentKey: string;
  readonly mediaTypeKey: string;
  readonly mediaTypes: readonly string[];
  readonly maxBytes: number;
  readonly tooLargeCode: ErrorCode;
}

/** Reads the rules of an operation's file. Throws on what no protocol could serve. */
export function fileBody(method: DescMethod, rules: FileRules): FileBody {
  const field = (name: string, scalar: ScalarType) => {
    const found = method.input.fields.find((candidate) => candidate.name === name && candidate.scalar === scalar);
    if (found === undefined) throw new Error(`${method.input.typeName} has no such field: ${name}`);
    return found.localName;
  };
  if (rules.mediaTypes.length === 0 || rules.maxBytes === 0 || !(rules.tooLargeCode in catalogue)) {
    throw new Error(`${method.name}: its file has no media types, no bound or no code`);
  }
  return {
    content: rules.content,
    contentKey: field(rules.content, ScalarType.BYTES),
    mediaTypeKey: field(rules.mediaType, ScalarType.STRING),
    mediaTypes: rules.mediaTypes,
    maxBytes: rules.maxBytes,
    tooLargeCode: rules.tooLargeCode as ErrorCode,
  };
}

/** The file's media type, without parameters. Throws `unsupported_media_type` for one the operation does not take. */
export function checkFileType({ mediaTypes }: FileBody, contentType: string | undefined): string {
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== undefined && mediaTypes.includes(mediaType)) return mediaType;
  const message = `The Content-Type must be ${mediaTypes.join(' or ')}, without Content-Encoding.`;
  throw new ApiError('unsupported_media_type', { message });
}

/** A file that arrived, if there is anything of it and not too much. */
export function wholeFile(file: FileBody, mediaType: string, content: Buffer): ReceivedFile {
  if (content.length > file.maxBytes) throw new ApiError(file.tooLargeCode);
  if (content.length === 0) throw new ApiError('invalid_request', { message: 'The file is empty.' });
  return { mediaType, content };
}

/** The file that came as a field of its message. */
export async function receiveWithMessage(file: FileBody, message: Message): Promise<ReceivedFile> {
  const values = message as unknown as Record<string, unknown>;
  const mediaType = checkFileType(file, values[file.mediaTypeKey] as string | undefined);
  const content = (values[file.contentKey] as Uint8Array | undefined) ?? new Uint8Array();
  return wholeFile(file, mediaType, Buffer.from(content.buffer, content.byteOffset, content.byteLength));
}
