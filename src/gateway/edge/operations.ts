import {
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import { http } from '../../gen/google/api/annotations_pb.ts';
import {
  Feature,
  type FileRules,
  field as fieldOption,
  type OperationRules as OperationOption,
  operation as operationOption,
  Scope,
} from '../../gen/marina/options/v1/options_pb.ts';
import type { Handler, ReceivedFile, ServiceHandlers, StreamHandler } from './call.ts';
import { ApiError, catalogue, type ErrorCode } from './errors.ts';
import { compileFieldRules, type FieldCheck } from './field-rules.ts';

/** The limit of a request's body, or of its protobuf message. */
export const maxBodyBytes = 16_384;

export type ApiOperation = UnaryOperation | StreamOperation;

export interface UnaryOperation extends OperationRules {
  readonly kind: 'unary';
  readonly handler: Handler<Message, Message>;
}

/** An operation that answers with a stream of messages. REST does not serve it. */
export interface StreamOperation extends OperationRules {
  readonly kind: 'stream';
  readonly handler: StreamHandler<Message, Message>;
}

/** An operation's rules, from its proto. */
export interface OperationRules {
  /** Service and method, as in `Orders.CreateOrder`, for logs and metrics. */
  readonly name: string;
  readonly method: DescMethod;
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly scope: Scope;
  /** The feature that the partner needs; `UNSPECIFIED` for none. */
  readonly feature: Feature;
  /** Whether a call takes one of the partner's slots for requests in progress. */
  readonly takesSlot: boolean;
  readonly takesIdempotencyKey: boolean;
  /** Whether its messages hold secrets or describe a customer, so that they are kept nowhere. */
  readonly isConfidential: boolean;
  /** The path of the object it creates, as in `/v1/orders/{id}`. */
  readonly location: string | undefined;
  /** The id of the object that a request is about, if any. It is valid once the request's fields are checked. */
  readonly objectOf: (request: Message) => string | undefined;
  /** Whether that id is in the path, so that it is checked before the body. */
  readonly hasObjectInPath: boolean;
  readonly createdObjectOf: (answer: Message) => string | undefined;
  readonly file: FileBody | undefined;
  /** Undefined if REST does not serve it. */
  readonly http: HttpBinding | undefined;
  /** Every error code it can answer with once its path and method are found. */
  readonly errors: readonly ErrorCode[];
  /** In parts, because REST checks path and query before it reads a body, and the other protocols keep its order. */
  readonly checkPath: FieldCheck;
  readonly checkQuery: FieldCheck;
  readonly checkBody: FieldCheck;
}

/** An operation's path and method in REST, from its `google.api.http` annotation. */
export interface HttpBinding {
  readonly method: string;
  /** The path's segments: a fixed text, or the request field that the segment fills. */
  readonly segments: readonly (string | DescField)[];
  readonly pathFields: readonly DescField[];
  readonly queryFields: readonly DescField[];
  readonly bodyFields: readonly DescField[];
  /** A request's body: the fields as JSON, one field's bytes unchanged, or ignored. */
  readonly body: 'json' | 'file' | 'none';
}

/** Joins a service's descriptors with its handlers. Throws if no protocol could serve one. */
export function defineOperations<Shape extends GenServiceMethods>(
  service: GenService<Shape>,
  handlers: ServiceHandlers<Shape>,
): ApiOperation[] {
  const byName = handlers as unknown as Record<string, ApiOperation['handler'] | undefined>;
  return service.methods.map((method) => {
    const handler = byName[method.localName];
    if (handler === undefined) throw new Error(`${service.typeName}.${method.name} has no handler`);
    return defineOperation(method, handler);
  });
}

function defineOperation(method: DescMethod, handler: ApiOperation['handler']): ApiOperation {
  const rules = readRules(method);
  if (method.methodKind === 'unary') {
    return { ...rules, kind: 'unary', handler: handler as Handler<Message, Message> };
  }
  if (method.methodKind !== 'server_streaming') throw new Error(`${rules.name}: requests are no streams`);
  if (
    rules.http !== undefined ||
    rules.takesSlot ||
    rules.takesIdempotencyKey ||
    rules.location !== undefined ||
    rules.file !== undefined
  ) {
    throw new Error(`${rules.name}: a stream has no path, takes no slot, key or file, and creates nothing`);
  }
  return { ...rules, kind: 'stream', handler: handler as StreamHandler<Message, Message> };
}

/** Reads an operation's rules from its proto. Throws if no protocol could serve it. */
export function readRules(method: DescMethod): OperationRules {
  const { input, output } = method;
  const name = `${method.parent.name}.${method.name}`;
  const rules = getOption(method, operationOption);
  if (rules.scope === Scope.UNSPECIFIED) throw new Error(`${name} needs no scope`);
  const { location } = rules;
  if (location !== '' && !(location.includes('{id}') && output.fields.some((field) => field.name === 'id'))) {
    throw new Error(`${name}: ${location} is no path of an object with an id`);
  }
  const file = rules.file && fileBody(method, rules.file);
  const binding = readBinding(method, file);
  // In the order of the proto, not of the path.
  const check = (fields: readonly DescField[]) =>
    compileFieldRules(
      input,
      input.fields.filter((field) => fields.includes(field)),
    );
  return {
    name,
    method,
    input,
    output,
    scope: rules.scope,
    feature: rules.feature,
    takesSlot: rules.takesPlace,
    takesIdempotencyKey: rules.idempotencyKey,
    isConfidential: rules.confidential,
    location: location === '' ? undefined : location,
    objectOf: textField(input, 'id'),
    hasObjectInPath: binding?.pathFields.some(({ name: each }) => each === 'id') ?? false,
    createdObjectOf: textField(output, 'id'),
    file,
    http: binding,
    errors: possibleErrors(method, rules, binding, file),
    checkPath: check(binding?.pathFields ?? []),
    checkQuery: check(binding?.queryFields ?? []),
    checkBody: check(binding?.bodyFields ?? input.fields),
  };
}

/** Where gRPC and Connect serve a method. */
export function rpcPath({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

const idempotencyKeyName = 'Idempotency-Key';
const maxIdempotencyKeyBytes = 255;
const printableAscii = /^[ -~]*$/;

/**
 * A request's key from all values of the header; undefined on operations that take none. Spaces and tabs around it do not
 * count: HTTP/1.1 strips them. HTTP/2 has no such value (RFC 9113, 8.2.1), and nghttp2 leaves the header out.
 */
export function readIdempotencyKey(operation: ApiOperation, values: readonly string[]): string | undefined {
  if (!operation.takesIdempotencyKey) return undefined;
  const value = withoutBlanks(values[0] ?? '');
  const invalid = (problem: string, code: ErrorCode = 'invalid_request') =>
    new ApiError(code, { param: idempotencyKeyName, message: `The header \`${idempotencyKeyName}\` ${problem}` });
  if (values.length > 1) throw invalid('must not be repeated.');
  if (value === '') throw invalid('is required.', 'missing_required_field');
  if (value.length > maxIdempotencyKeyBytes || !printableAscii.test(value)) {
    throw invalid('must be 1 to 255 bytes of printable ASCII.');
  }
  return value;
}

/** The text without spaces and tabs at both ends. An expression for the end would take quadratic time. */
function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/**
 * Reads the annotation; undefined if there is none, so that REST does not serve the operation. Throws on unsupported
 * forms, so that such a proto stops the start instead of answering 404.
 */
function readBinding(method: DescMethod, file?: FileBody): HttpBinding | undefined {
  const rule = getOption(method, http);
  const verb = rule.pattern.case;
  if (verb === undefined) return undefined;
  const unsupported = (problem: string) => new Error(`${method.parent.name}.${method.name}: ${problem}`);
  if (verb === 'custom' || rule.additionalBindings.length > 0) throw unsupported('unsupported HTTP binding');
  if (rule.body !== (file?.content ?? (rule.body === '' ? '' : '*'))) {
    throw unsupported('a body is the whole message, a file or nothing');
  }
  const body = rule.body === '' ? 'none' : file === undefined ? 'json' : 'file';
  const [root, ...texts] = rule.pattern.value.split('/');
  if (root !== '') throw unsupported('a path begins with a slash');
  const segments = texts.map((text) => {
    if (!text.includes('{')) return text;
    const field = method.input.fields.find(({ name }) => text === `{${name}}`);
    if (field === undefined) throw unsupported(`${text} is not a field of ${method.input.typeName}`);
    return field;
  });
  const pathFields = segments.filter((segment) => typeof segment !== 'string');
  const others = method.input.fields.filter((field) => !pathFields.includes(field));
  const isRest = ({ localName }: DescField) => localName !== file?.contentKey && localName !== file?.mediaTypeKey;
  if (body === 'file' && others.some(isRest)) throw unsupported('together with a file there is only the path');
  return {
    method: verb.toUpperCase(),
    segments,
    pathFields,
    queryFields: body === 'none' ? others : [],
    bodyFields: body === 'json' ? others : [],
    body,
  };
}

const errorsOfAll: readonly ErrorCode[] = [
  'unauthorized',
  'insufficient_scope',
  'rate_limited',
  'invalid_request',
  'internal_error',
  'service_unavailable',
];

/**
 * An operation's possible codes, in the order of the catalogue: the general ones, those that follow from its inputs,
 * and those that its proto names. Throws on a code outside the catalogue.
 */
function possibleErrors(
  method: DescMethod,
  rules: OperationOption,
  binding: HttpBinding | undefined,
  file: FileBody | undefined,
): readonly ErrorCode[] {
  const codes = new Set<string>([...errorsOfAll, ...rules.errors]);
  if (rules.feature !== Feature.UNSPECIFIED) codes.add('feature_not_enabled');
  if (binding !== undefined && binding.body !== 'none') codes.add('unsupported_media_type');
  if (file !== undefined) codes.add(file.tooLargeCode);
  else if (binding?.body === 'json') codes.add('request_too_large');
  if (rules.idempotencyKey) codes.add('missing_required_field');
  for (const field of method.input.fields) {
    const { malformedCode, required, onlyWith } = getOption(field, fieldOption);
    if (malformedCode !== '') codes.add(malformedCode);
    if ((required || onlyWith !== '') && binding?.bodyFields.includes(field)) codes.add('missing_required_field');
  }
  const unknown = [...codes].filter((code) => !(code in catalogue));
  if (unknown.length > 0) throw new Error(`${method.name}: the catalogue has no ${unknown.join(', ')}`);
  return (Object.keys(catalogue) as ErrorCode[]).filter((code) => codes.has(code));
}

/** Reads a text field; undefined if the message has no such field. */
function textField(schema: DescMessage, name: string): (message: Message) => string | undefined {
  const key = schema.fields.find((each) => each.name === name)?.localName;
  if (key === undefined) return () => undefined;
  return (message) => {
    const value = (message as unknown as Record<string, unknown>)[key];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
}

/** The file in an operation's requests, from its proto. */
export interface FileBody {
  /** The name of the field that holds it. */
  readonly content: string;
  readonly contentKey: string;
  readonly mediaTypeKey: string;
  readonly mediaTypes: readonly string[];
  readonly maxBytes: number;
  readonly tooLargeCode: ErrorCode;
}

/** Reads the rules of an operation's file. Throws if no protocol could serve it. */
function fileBody(method: DescMethod, rules: FileRules): FileBody {
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

/** The file's media type without parameters. Throws `unsupported_media_type` if the operation does not take it. */
export function checkFileType({ mediaTypes }: FileBody, contentType: string | undefined): string {
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType !== undefined && mediaTypes.includes(mediaType)) return mediaType;
  const message = `The Content-Type must be ${mediaTypes.join(' or ')}, without Content-Encoding.`;
  throw new ApiError('unsupported_media_type', { message });
}

/** Checks that a file is neither empty nor too large. */
export function wholeFile(file: FileBody, mediaType: string, content: Buffer): ReceivedFile {
  if (content.length > file.maxBytes) throw new ApiError(file.tooLargeCode);
  if (content.length === 0) throw new ApiError('invalid_request', { message: 'The file is empty.' });
  return { mediaType, content };
}

/** Receives a file that is a field of its message. */
export async function receiveWithMessage(file: FileBody, message: Message): Promise<ReceivedFile> {
  const values = message as unknown as Record<string, unknown>;
  const mediaType = checkFileType(file, values[file.mediaTypeKey] as string | undefined);
  const content = (values[file.contentKey] as Uint8Array | undefined) ?? new Uint8Array();
  return wholeFile(file, mediaType, Buffer.from(content.buffer, content.byteOffset, content.byteLength));
}
