import { create, type DescField, getOption, type Message } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { field as fieldOption } from '../../../gen/marina/options/v1/options_pb.ts';
import type { ReceivedFile } from '../call.ts';
import { ApiError, type ErrorCode, errorBody, invalidParam, refusalOf } from '../errors.ts';
import { jsonMediaType } from '../http/media-type.ts';
import { type Answer, errorHeaders, type HttpRequest, replyHeaders } from '../http/messages.ts';
import type { HttpProtocol } from '../http/server.ts';
import { compileDecoder, type JsonDecoder } from '../json/decoder.ts';
import { type ByteText, compileByteEncoder, type Encoder, toByteText } from '../json/encoder.ts';
import { valueReader } from '../json/reader.ts';
import {
  type ApiOperation,
  checkFileType,
  type FileBody,
  type HttpBinding,
  readIdempotencyKey,
  wholeFile,
} from '../operations.ts';
import type { ProtocolOptions } from '../pipeline.ts';
import type { RequestContext } from '../request.ts';

/** REST over the pipeline. */
export class RestProtocol implements HttpProtocol {
  readonly name = 'rest';
  readonly #options: ProtocolOptions;
  readonly #routes: Routes;

  constructor(options: ProtocolOptions) {
    this.#options = options;
    this.#routes = new Routes(options.operations);
  }

  /** HTTP's part of the decided order of checks. */
  async answer(request: HttpRequest, context: RequestContext): Promise<Answer> {
    const { pipeline } = this.#options;
    const { operation, route, pathTexts } = await pipeline.admit(context, request, () =>
      this.#routes.find(request.method, request.path),
    );
    const message = route.readTarget(pathTexts, request.query);
    const idempotencyKey = readIdempotencyKey(operation, request.idempotencyKeys);
    const { file } = operation;
    if (route.decode !== undefined) {
      checkMediaType(request);
      const body = await request.readBody();
      if (context.exchanged !== undefined) context.exchanged.body = body;
      route.decode(body, message);
    } else if (file === undefined) {
      request.passOver();
    }
    const receive = file && (() => receiveBody(file, request));
    const reply = await pipeline.call(context, message, idempotencyKey, receive);
    const status = reply.location === undefined ? 200 : 201;
    const body = route.encode(reply.message);
    if (context.exchanged !== undefined) context.exchanged.answer = body;
    return { status, headers: replyHeaders(reply), body };
  }

  refusal(error: ApiError): Answer {
    return errorAnswer(error, this.#options.baseUrl);
  }

  unknownMethod(path: string): ApiError {
    return refusalOf(() => this.#routes.find('', path));
  }
}

/** Maps an error of the catalogue to an HTTP answer. The only such place. */
export function errorAnswer(error: ApiError, baseUrl: string): Answer {
  return { status: error.status, headers: errorHeaders(error), body: toByteText(errorBody(error, baseUrl)) };
}

/** Refuses a body that is not uncompressed JSON in UTF-8. */
function checkMediaType({ contentType, isEncoded }: HttpRequest): void {
  if (isEncoded || jsonMediaType(contentType) !== 'application/json') throw new ApiError('unsupported_media_type');
}

/** Receives a file that is the body. */
async function receiveBody(file: FileBody, request: HttpRequest): Promise<ReceivedFile> {
  const mediaType = checkFileType(file, request.isEncoded ? undefined : request.contentType);
  const content = await request.readBody({ maxBytes: file.maxBytes, tooLarge: () => new ApiError(file.tooLargeCode) });
  return wholeFile(file, mediaType, content);
}

/** An operation with its compiled readers and writer. */
export interface Route {
  readonly operation: ApiOperation;
  /** Reads and checks the request's path and query. Throws the error for an invalid one. */
  readonly readTarget: (pathTexts: readonly string[], query: string) => Message;
  /** Reads a JSON body into the request; undefined on operations that take none. */
  readonly decode: JsonDecoder<Message> | undefined;
  readonly encode: Encoder<ByteText>;
}

/** The operation of a request, and the texts of its path's parameters. */
export interface Match {
  readonly operation: ApiOperation;
  readonly route: Route;
  readonly pathTexts: readonly string[];
}

/** The routing table, from the operations' annotations. */
class Routes {
  readonly #root = new Node();

  constructor(operations: readonly ApiOperation[]) {
    for (const operation of operations) {
      const { http, name } = operation;
      if (http === undefined) continue;
      const { methods } = http.segments.reduce((node, segment) => node.below(segment), this.#root);
      if (methods.has(http.method)) throw new Error(`${name}: its path and method are another's too`);
      methods.set(http.method, compileRoute(operation, http));
    }
  }

  /**
   * Finds the route of a method and path. A path must match exactly: no extra slash, dots, other case, or
   * percent-encoding in fixed parts. A fixed segment wins over a parameter. Throws `not_found` or `method_not_allowed`.
   */
  find(method: string, path: string): Match {
    const pathTexts: string[] = [];
    let node = path.startsWith('/') ? this.#root : undefined;
    for (let from = 1; node !== undefined && from > 0; ) {
      const slash = path.indexOf('/', from);
      const segment = slash === -1 ? path.slice(from) : path.slice(from, slash);
      node = node.literals.get(segment) ?? parameterBelow(node, segment, pathTexts);
      from = slash + 1;
    }
    if (node === undefined || node.methods.size === 0) throw new ApiError('not_found');
    const route = node.methods.get(method);
    if (route === undefined) throw new ApiError('method_not_allowed', { allow: [...node.methods.keys()] });
    return { operation: route.operation, route, pathTexts };
  }
}

class Node {
  readonly literals = new Map<string, Node>();
  readonly methods = new Map<string, Route>();
  parameter: Node | undefined;

  /** The child node of a segment, which is made if there is none. */
  below(segment: string | DescField): Node {
    const known = typeof segment === 'string' ? this.literals.get(segment) : this.parameter;
    if (known !== undefined) return known;
    const made = new Node();
    if (typeof segment === 'string') this.literals.set(segment, made);
    else this.parameter = made;
    return made;
  }
}

function parameterBelow({ parameter }: Node, segment: string, pathTexts: string[]): Node | undefined {
  if (parameter === undefined) return undefined;
  const text = segment.includes('%') ? decodeSegment(segment) : segment;
  if (text === '' || text === '.' || text === '..' || text.includes('/')) return undefined;
  pathTexts.push(text);
  return parameter;
}

/** An invalid segment stays as it is: no parameter accepts its percent sign. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return /%2f/i.test(segment) ? '/' : segment;
  }
}

function compileRoute(operation: ApiOperation, { pathFields, queryFields, bodyFields, body }: HttpBinding): Route {
  const { input, output } = operation;
  // In the order of the proto, not of the path.
  const parameters = input.fields
    .filter((field) => pathFields.includes(field))
    .map((field) => ({
      read: compileParameter(field, getOption(field, fieldOption).malformedCode),
      at: pathFields.indexOf(field),
    }));
  const readQuery = compileQuery(queryFields);
  return {
    operation,
    readTarget: (pathTexts, query) => {
      const message = create(input);
      for (const { read, at } of parameters) read(message, pathTexts[at] ?? '');
      operation.checkPath(message);
      if (query !== '') readQuery(message, query);
      operation.checkQuery(message);
      return message;
    },
    decode: body === 'json' ? compileDecoder(input, bodyFields) : undefined,
    encode: compileByteEncoder(output),
  };
}

/**
 * Compiles the reader of a query. It checks that every parameter is known and occurs once, in written order, then their
 * types in the order of the proto. Throws `invalid_request` with the parameter's name.
 */
function compileQuery(fields: readonly DescField[]): (message: Message, query: string) => void {
  const parameters = fields.map((field) => compileParameter(field, ''));
  const indexes = new Map(fields.map(({ name }, index) => [name, index]));
  return (message, query) => {
    const texts: string[] = [];
    for (const pair of query.split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const rawName = equals === -1 ? pair : pair.slice(0, equals);
      const name = decode(rawName) ?? rawName;
      const index = indexes.get(name);
      if (index === undefined) throw invalidParam(name, 'is not a parameter of this path.');
      if (texts[index] !== undefined) throw invalidParam(name, 'must not be repeated.');
      const text = equals === -1 ? '' : decode(pair.slice(equals + 1));
      if (text === undefined) throw invalidParam(name, 'is not properly percent-encoded UTF-8.');
      texts[index] = text;
    }
    for (const [index, read] of parameters.entries()) {
      const text = texts[index];
      if (text !== undefined) read(message, text);
    }
  };
}

/** As in forms, a plus is a space. The plus of a time's offset is restored below. */
function decode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** Reads one parameter of a path or query. An invalid one gets `malformedCode`, if given. */
function compileParameter(field: DescField, malformedCode: string): (message: Message, text: string) => void {
  const { name, localName } = field;
  const reader = field.fieldKind === 'list' ? undefined : valueReader(field);
  if (reader === undefined) throw new Error(`${field} has no form in a path or query`);
  const isTime = field.message?.typeName === TimestampSchema.typeName;
  return (message, text) => {
    const value = reader.readText(isTime ? text.replace(' ', '+') : text);
    if (value === undefined && malformedCode !== '') throw new ApiError(malformedCode as ErrorCode);
    if (value === undefined) throw invalidParam(name, `must be ${reader.expected}.`);
    (message as unknown as Record<string, unknown>)[localName] = value;
  };
}
