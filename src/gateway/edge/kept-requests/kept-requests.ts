import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '../../../gen/marina/gateway/v1/orders_pb.ts';
import type { Clock } from '../../../kit/clock.ts';
import { ApiError, errorBody } from '../errors.ts';
import { compileEncoder } from '../json/encoder.ts';
import type { ApiOperation } from '../operations.ts';
import { leftOut } from '../personal-text.ts';
import type { EndCode, ExchangedParts, ProtocolName, RequestContext } from '../request.ts';
import {
  type LeftOutNumbers,
  shownAnswer,
  shownBody,
  shownFieldPath,
  shownName,
  shownSegment,
  shownText,
} from './shown-parts.ts';
import { withoutSecrets } from './shown-secrets.ts';

/** A request that is kept for its partner. Nothing in it is secret or describes a customer. */
export interface KeptRequest {
  /** Grows with each request of the partner, so that a cursor tells nothing of others. It begins anew when none is kept. */
  readonly number: number;
  readonly requestId: string;
  /** When it was answered, in business time. */
  readonly at: number;
  readonly protocol: ProtocolName;
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly operation: string | undefined;
  readonly keyId: string;
  readonly status: number;
  readonly code: string | undefined;
  readonly objectId: string | undefined;
  readonly durationMs: number;
  readonly requestBody: string | undefined;
  readonly answerBody: string | undefined;
}

export interface KeptRequestsOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly baseUrl: () => string;
  readonly mostEach?: number;
  readonly mostBytes?: number;
  readonly keptMs?: number;
}

const hourMs = 3_600_000;
const usualMostEach = 200;
const usualMostBytes = 64 * 1024 * 1024;
/** What a request takes in memory in addition to its texts, at most. */
const entryBytes = 1_024;
const maxBodyBytes = 4_096;
/** How much of an answer is read: more than is kept, so that a value at the end is whole. */
const readBytes = maxBodyBytes + 512;
const maxPathCharacters = 500;

interface Entry {
  readonly request: KeptRequest;
  readonly partnerId: string;
  readonly bytes: number;
  /** In real time that is never set back. */
  readonly endedMs: number;
}

/**
 * The requests of a sandbox's partners in the last hour, with their answers, in the memory of this process: at most 200 of
 * a partner and 64 MiB of all. The oldest are dropped first. What must not be shown is left out before it is kept.
 */
export class KeptRequests {
  /** All of them in the order in which they ended. */
  readonly #all = new Set<Entry>();
  readonly #byPartner = new Map<string, Entry[]>();
  readonly #options: Required<KeptRequestsOptions>;
  #bytes = 0;

  constructor(options: KeptRequestsOptions) {
    this.#options = { mostEach: usualMostEach, mostBytes: usualMostBytes, keptMs: hourMs, ...options };
  }

  /** The memory they take, by an upper estimate. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The requests of a partner before the one with this number, the newest first. */
  list(partnerId: string, before: number | undefined, most: number): readonly KeptRequest[] {
    this.#dropOld();
    const own = this.#byPartner.get(partnerId) ?? [];
    const found = own.filter(({ request }) => before === undefined || request.number < before);
    return found
      .slice(-most)
      .reverse()
      .map(({ request }) => request);
  }

  /** Keeps a request that has ended with a HTTP status, if its caller was identified and it is not to be left out. */
  keep(context: RequestContext, status: number, code: EndCode | undefined): void {
    const { exchanged, caller, isIdentified } = context;
    if (exchanged === undefined || caller === undefined || !isIdentified || exchanged.isUnlogged) return;
    const { operation, requestId, protocol, objectId } = context;
    const numbers: LeftOutNumbers = new Set();
    const requestBody = shownRequest(exchanged, protocol, operation, numbers);
    const request: KeptRequest = {
      number: (this.#byPartner.get(caller.partnerId)?.at(-1)?.request.number ?? 0) + 1,
      requestId,
      at: this.#options.clock.now(),
      protocol,
      method: exchanged.method,
      path: withoutSecrets(shownTarget(exchanged, operation, protocol).slice(0, maxPathCharacters)),
      operation: operation?.name,
      keyId: caller.keyId,
      status,
      code,
      objectId,
      durationMs: performance.now() - context.startedMs,
      requestBody,
      answerBody: shownReply(exchanged, operation, this.#options.baseUrl(), numbers),
    };
    this.#add(caller.partnerId, request);
  }

  #add(partnerId: string, request: KeptRequest): void {
    const { requestBody = '', answerBody = '', path } = request;
    // A character takes two bytes as soon as one of the text is beyond Latin.
    const bytes = entryBytes + 2 * (requestBody.length + answerBody.length + path.length);
    const entry: Entry = { request, partnerId, bytes, endedMs: performance.now() };
    let own = this.#byPartner.get(partnerId);
    if (own === undefined) {
      own = [];
      this.#byPartner.set(partnerId, own);
    }
    own.push(entry);
    this.#all.add(entry);
    this.#bytes += bytes;
    if (own.length > this.#options.mostEach) this.#dropFirst(own);
    this.#dropOld();
  }

  #dropOld(): void {
    const { mostBytes, keptMs } = this.#options;
    const oldestMs = performance.now() - keptMs;
    for (const { partnerId, endedMs } of this.#all) {
      if (endedMs >= oldestMs && this.#bytes <= mostBytes) return;
      // Of its partner's it is the first, because both are in the order in which they ended.
      this.#dropFirst(this.#byPartner.get(partnerId) ?? []);
    }
  }

  #dropFirst(own: Entry[]): void {
    const dropped = own.shift();
    if (dropped === undefined) return;
    this.#all.delete(dropped);
    this.#bytes -= dropped.bytes;
    if (own.length === 0) this.#byPartner.delete(dropped.partnerId);
  }
}

/** A path with its query, and those parts only that may be shown. */
function shownTarget(
  { path, query }: ExchangedParts,
  operation: ApiOperation | undefined,
  protocol: ProtocolName,
): string {
  // First of all, because a secret may have a slash in it.
  const shown = shownPath(withoutSecrets(path), operation, protocol);
  return query === ''
    ? shown
    : `${shown}?${query
        .split('&')
        .map((pair) => shownPair(pair, operation))
        .join('&')}`;
}

function shownPath(path: string, operation: ApiOperation | undefined, protocol: ProtocolName): string {
  if (operation !== undefined && protocol !== 'rest') return path;
  const shown = path.split('/').map((segment, at) => {
    const known = at === 0 ? undefined : operation?.http?.segments[at - 1];
    return known === undefined || typeof known === 'string'
      ? shownSegment(decoded(segment))
      : shownPart(known, segment);
  });
  return shown.join('/');
}

/** A parameter of a query: its name, and its value if it belongs to the operation. */
function shownPair(pair: string, operation: ApiOperation | undefined): string {
  const equals = pair.indexOf('=');
  const name = decoded(equals === -1 ? pair : pair.slice(0, equals));
  const field = operation?.http?.queryFields.find((each) => each.name === name);
  const shown = field === undefined ? shownName(name) : name;
  return equals === -1 ? shown : `${shown}=${shownPart(field, pair.slice(equals + 1))}`;
}

/** A value of a path or query as it was written, if it may be shown. */
function shownPart(field: DescField | undefined, written: string): string {
  const text = decoded(written);
  const shown = shownText(field, text);
  return shown === text ? written : shown;
}

function decoded(written: string): string {
  try {
    return decodeURIComponent(written.replaceAll('+', ' '));
  } catch {
    return written;
  }
}

function shownRequest(
  { body, message }: ExchangedParts,
  protocol: ProtocolName,
  operation: ApiOperation | undefined,
  numbers: LeftOutNumbers,
): string | undefined {
  if (operation === undefined || operation.isConfidential || operation.file !== undefined) return undefined;
  const json = protocol === 'rest' ? body : message && jsonOf(operation.input, message);
  const text = json && shownBody(operation.input, Buffer.from(json), numbers);
  return text === undefined ? undefined : withoutSecrets(cut(text));
}

function shownReply(
  { answer, reply, error }: ExchangedParts,
  operation: ApiOperation | undefined,
  baseUrl: string,
  numbers: LeftOutNumbers,
): string | undefined {
  let text: string | undefined;
  if (error !== undefined) text = errorBody(shownError(error), baseUrl);
  else if (operation === undefined || operation.isConfidential) return undefined;
  // The copy lets go of the whole answer.
  else if (answer !== undefined) text = Buffer.from(answer.slice(0, readBytes), 'latin1').toString();
  else if (reply !== undefined) text = compileEncoder(operation.output)(reply);
  if (text === undefined) return undefined;
  const shown = shownAnswer(text.slice(0, readBytes), numbers, freeTexts);
  return withoutSecrets(cut(text.length < readBytes ? shown : `${shown}${leftOut}`));
}

/** An error that names a member or a parameter by what may be shown of the name. */
function shownError(error: ApiError): ApiError {
  const { code, param, rejectReason } = error;
  const shown = shownFieldPath(param ?? '');
  if (param === undefined || shown === param) return error;
  const message = error.message.replaceAll(param, shown);
  return new ApiError(code, { message, param: shown, ...(rejectReason !== undefined && { rejectReason }) });
}

/** The members of answers that have a partner's own text, which may be anything. */
export const freeTexts: ReadonlyMap<string, DescField> = new Map(
  [CreateOrderRequestSchema.field.clientReference].map((field) => [JSON.stringify(field.name), field]),
);

/** A message as REST would write it; undefined if an instant of the client's is no time, which has no form in JSON. */
function jsonOf(schema: DescMessage, message: Message): string | undefined {
  try {
    return compileEncoder(schema)(message);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** A text of at most so many bytes. What is longer is cut and ends with `…`. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBodyBytes) return bytes.toString();
  // A character that the cut parts becomes U+FFFD.
  return `${bytes
    .subarray(0, maxBodyBytes)
    .toString()
    .replace(/\uFFFD$/, '')}${leftOut}`;
}
