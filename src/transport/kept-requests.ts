import type { DescMessage, Message } from '@bufbuild/protobuf';
import { compileEncoder } from '../json/encoder.ts';
import type { Clock } from '../lib/clock.ts';
import { errorBody } from '../lib/errors.ts';
import type { Operation } from './operations.ts';
import type { EndCode, ExchangedParts, ProtocolName, RequestContext } from './request.ts';

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
const mostBodyBytes = 4_096;
const mostPathCharacters = 500;

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

  /** Keeps a request that has ended, if its caller was identified and it is not to be left out. */
  keep(context: RequestContext, status: number, code: EndCode | undefined): void {
    const { exchanged, caller, isIdentified } = context;
    if (exchanged === undefined || caller === undefined || !isIdentified || exchanged.isUnlisted) return;
    const { operation, requestId, protocol, objectId } = context;
    const request: KeptRequest = {
      number: (this.#byPartner.get(caller.partnerId)?.at(-1)?.request.number ?? 0) + 1,
      requestId,
      at: this.#options.clock.now(),
      protocol,
      method: exchanged.method,
      path: withoutSecrets(shownPath(exchanged, operation).slice(0, mostPathCharacters)),
      operation: operation?.name,
      keyId: caller.keyId,
      status,
      code,
      objectId,
      durationMs: performance.now() - context.startedMs,
      requestBody: shownRequest(exchanged, protocol, operation),
      answerBody: shownAnswer(exchanged, operation, this.#options.baseUrl()),
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

/** A path with its query. The value of what is no parameter of the operation may be anything, so it is left out. */
function shownPath({ path, query }: ExchangedParts, operation: Operation | undefined): string {
  if (query === '') return path;
  const known = new Set(operation?.http?.queryFields.map(({ name }) => name));
  const pairs = query.split('&').map((pair) => {
    const [name = '', value] = pair.split('=', 2);
    return value === undefined || known.has(name) ? pair : `${name}=${hidden}`;
  });
  return `${path}?${pairs.join('&')}`;
}

function shownRequest(
  { body, message }: ExchangedParts,
  protocol: ProtocolName,
  operation: Operation | undefined,
): string | undefined {
  if (operation === undefined || operation.isConfidential || operation.file !== undefined) return undefined;
  let text: string | undefined;
  if (protocol === 'rest') text = body && knownMembers(body.toString(), operation);
  else text = message && jsonOf(operation.input, message);
  return text === undefined ? undefined : withoutSecrets(cut(text));
}

function shownAnswer(
  { answer, reply, error }: ExchangedParts,
  operation: Operation | undefined,
  baseUrl: string,
): string | undefined {
  if (error !== undefined) return withoutSecrets(cut(errorBody(error, baseUrl)));
  if (operation === undefined || operation.isConfidential) return undefined;
  // One more byte than is kept shows that there were more. The copy lets go of the whole answer.
  if (answer !== undefined)
    return withoutSecrets(cut(Buffer.from(answer.slice(0, mostBodyBytes + 1), 'latin1').toString()));
  if (reply !== undefined) return withoutSecrets(cut(compileEncoder(operation.output)(reply)));
  return undefined;
}

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
  if (bytes.length <= mostBodyBytes) return bytes.toString();
  // A character that the cut parts becomes U+FFFD.
  return `${bytes
    .subarray(0, mostBodyBytes)
    .toString()
    .replace(/\uFFFD$/, '')}…`;
}

const hidden = '…';
const jsonToken = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^"{}[\],:\s]+/g;

/**
 * A request's JSON with the values of those members only that the operation has, with their own digits. Undefined unless it is a
 * JSON object.
 */
function knownMembers(text: string, operation: Operation): string | undefined {
  if (!isJsonObject(text)) return undefined;
  const known = new Set(operation.input.fields.map(({ name }) => JSON.stringify(name)));
  let shown = '';
  let depth = 0;
  let isKnown = false;
  let previous = '';
  for (const [token] of text.matchAll(jsonToken)) {
    if (token === '}' || token === ']') depth -= 1;
    const isName = depth === 1 && (previous === '{' || previous === ',');
    if (isName) isKnown = known.has(token);
    const isFrame = depth === 0 || isName || (depth === 1 && (token === ':' || token === ','));
    if (isFrame || isKnown) shown += token;
    if (depth === 1 && token === ':' && !isKnown) shown += `"${hidden}"`;
    if (token === '{' || token === '[') depth += 1;
    previous = token;
  }
  return shown;
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Keys and signing secrets, wherever somebody wrote one. */
const secrets = /(marina_(?:test|live)_|whsec_)[\w+/=-]+/g;
/** A character by its code, as in a URL (also encoded several times) or in JSON, or an escaped slash; or any character. */
const written = /%(?:25)*([0-9a-f]{2})|\\+u00([0-9a-f]{2})|\\+(\/)|[\s\S]/gi;
const anyEscape = /%[0-9a-f]{2}|\\u00|\\\//i;

/** A text with the secrets hidden that it has, also those that are written with escapes. */
function withoutSecrets(text: string): string {
  if (!anyEscape.test(text)) return text.replace(secrets, `$1${hidden}`);
  let plain = '';
  /** Where each character of `plain` begins in the text. */
  const starts: number[] = [];
  for (const { 0: whole, 1: inUrl, 2: inJson, 3: slash, index } of text.matchAll(written)) {
    const code = inUrl ?? inJson;
    plain += code === undefined ? (slash ?? whole) : String.fromCharCode(Number.parseInt(code, 16));
    starts.push(index);
  }
  let shown = '';
  let shownTo = 0;
  for (const { 0: secret, 1: prefix, index } of plain.matchAll(secrets)) {
    shown += `${text.slice(shownTo, starts[index])}${prefix}${hidden}`;
    shownTo = starts[index + secret.length] ?? text.length;
  }
  return shown + text.slice(shownTo);
}
