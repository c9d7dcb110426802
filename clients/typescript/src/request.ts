import { copyOfBytes, kindOf } from './bytes.ts';
import type { Operation } from './contract.ts';
import { writeJson } from './json.ts';

/** A request that can be sent any number of times. */
export interface PreparedRequest {
  readonly url: string;
  readonly init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: string | Uint8Array<ArrayBuffer>;
  };
}

interface Where {
  readonly baseUrl: string;
  readonly key: string;
  readonly idempotencyKey: string | undefined;
}

/** No answer is longer: a page has at most 100 items, the longest of them requests with two bodies of 4,096 characters. */
const maxAnswerBytes = 8 * 1024 * 1024;

/** Puts what an operation takes where it belongs: into the path, the query or the body. */
export function makeRequest(
  operation: Operation,
  input: object,
  { baseUrl, key, idempotencyKey }: Where,
): PreparedRequest {
  const values = new Map<string, unknown>(Object.entries(input));
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => pathSegment(operation, name, values));
  const query = new URLSearchParams();
  for (const name of operation.queryNames) {
    const value = values.get(name);
    if (value !== undefined && value !== null) query.set(name, String(value));
    values.delete(name);
  }
  const headers: Record<string, string> = { authorization: `Bearer ${key}`, accept: 'application/json' };
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  const url = `${baseUrl}${path}${query.size === 0 ? '' : `?${query}`}`;
  const { method } = operation;
  switch (operation.body) {
    case 'none':
      return { url, init: { method, headers } };
    case 'file':
      headers['content-type'] = mediaType(operation, values.get('media_type'));
      return { url, init: { method, headers, body: fileBytes(operation, values.get('file')) } };
    case 'json':
      headers['content-type'] = 'application/json';
      return { url, init: { method, headers, body: writeJson(Object.fromEntries(values)) } };
  }
}

function pathSegment(operation: Operation, name: string, values: Map<string, unknown>): string {
  const value = values.get(name);
  values.delete(name);
  // An empty segment or one of dots would make another path.
  if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) throw new TypeError(`${operation.name} needs \`${name}\`.`);
  return encodeURIComponent(value);
}

function mediaType({ name }: Operation, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new TypeError(`${name} needs \`media_type\`.`);
  return value;
}

/** The bytes of a file: a copy, which nobody can change between two attempts. */
function fileBytes({ name }: Operation, value: unknown): Uint8Array<ArrayBuffer> {
  const bytes = copyOfBytes(value);
  if (bytes === undefined) {
    throw new TypeError(
      `The \`file\` of ${name} has to be its bytes, in a Buffer, a Uint8Array or an ArrayBuffer, not ${kindOf(value)}.`,
    );
  }
  if (bytes.length === 0) throw new TypeError(`The \`file\` of ${name} is empty.`);
  return bytes;
}

/** Reads a whole body, and refuses one that cannot be the gateway's. */
export async function readText(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  // Leaving the loop closes the body.
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxAnswerBytes) throw new Error(`the answer is longer than ${maxAnswerBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** The answer to a request, read whole. */
export interface Answer {
  readonly status: number;
  /** The value of a header by its name in small letters. */
  readonly header: (name: string) => string | undefined;
  readonly text: string;
}
