import { copyOfBytes } from './bytes.ts';

/** One header's value, or several of one name, as servers and gateways give them. */
type HeaderValue = string | readonly string[] | readonly { readonly value: string }[] | null | undefined;

/**
 * The headers of a request, whoever read it:
 *
 * - `request.headers` of `node:http`, Express, Fastify, Koa or Next's pages; of API Gateway and Lambda, also `multiValueHeaders`;
 *   of CloudFront
 * - a `Headers` of any `fetch`, as in Hono, Next's routes, Deno, Bun or a worker; also the promise that Next's `headers()` returns
 * - a `Map`, pairs of name and value, objects with a name or key and a value, or `rawHeaders` with names and values in turns
 * - a function that returns the value for a name, such as `(name) => context.req.header(name)`
 */
export type WebhookHeaders =
  | { get(name: string): string | null | undefined }
  | Iterable<readonly [string, HeaderValue]>
  | Iterable<{ readonly name: string; readonly value: string } | { readonly key: string; readonly value: string }>
  | readonly string[]
  | Readonly<Record<string, HeaderValue>>
  | ((name: string) => HeaderValue)
  | null
  | undefined;

/** Reads the values of a header, in order, without blanks around them. */
export type HeaderReader = (name: string) => string[];

/** Names are compared in any case. Throws a TypeError for what is no kind of headers. */
export function readerOf(headers: unknown): HeaderReader {
  const rawValues = rawReaderOf(headers);
  return (name) =>
    textsOf(rawValues(name))
      .map((value) => value.trim())
      .filter((value) => value !== '');
}

function rawReaderOf(headers: unknown): (name: string) => unknown {
  // Some gateways pass null for a request without headers.
  if (headers === null || headers === undefined) return () => undefined;
  if (typeof headers === 'function') return (name) => headers(name);
  if (typeof headers !== 'object') throw new TypeError('Pass the headers of the request.');
  if (isIterable(headers)) return readerOfPairs(pairsOf([...headers]));
  const { get } = headers as { get?: unknown };
  if (typeof get === 'function') return (name) => get.call(headers, name);
  return readerOfPairs(Object.entries(headers));
}

function isIterable(value: object): value is Iterable<unknown> {
  return typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function';
}

/** Pairs, also of names and values in turns, which are texts or bytes. */
function pairsOf(items: readonly unknown[]): [unknown, unknown][] {
  if (items.every((item) => typeof item === 'string' || ArrayBuffer.isView(item))) {
    return items.flatMap((item, at) => (at % 2 === 0 ? [[item, items[at + 1]] as [unknown, unknown]] : []));
  }
  return items.flatMap((item): [unknown, unknown][] => {
    if (Array.isArray(item)) return [[item[0], item[1]]];
    if (typeof item !== 'object' || item === null) return [];
    const { name, key, value } = item as Readonly<Record<string, unknown>>;
    return [[name ?? key, value]];
  });
}

function readerOfPairs(pairs: readonly (readonly [unknown, unknown])[]): (name: string) => unknown[] {
  return (name) => pairs.filter(([each]) => textsOf(each)[0]?.toLowerCase() === name).map(([, value]) => value);
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number') return [String(value)];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (ArrayBuffer.isView(value)) return [new TextDecoder('latin1').decode(copyOfBytes(value))];
  return typeof value === 'object' && value !== null && 'value' in value ? textsOf(value.value) : [];
}
