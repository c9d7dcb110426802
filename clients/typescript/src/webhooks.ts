import { type Bytes, copyOfBytes, kindOf } from './bytes.ts';
import type { Event } from './contract.ts';
import { MarinaError, UnsafeIntegerError } from './errors.ts';
import { checkedMode, type IntegerMode, type WithIntegers } from './integers.ts';
import { parseJson } from './json.ts';
import { type HeaderReader, readerOf, type WebhookHeaders } from './webhook-headers.ts';

/** A webhook is not to be believed. Answer 400, and read nothing of it. */
export class WebhookVerificationError extends MarinaError {
  override readonly name = 'WebhookVerificationError';
}

export interface VerifyOptions<Mode extends IntegerMode = 'bigint'> {
  /** How far the time of the attempt may be from this clock, in seconds. */
  readonly toleranceSeconds?: number | undefined;
  /** Now, in milliseconds since 1970. For tests. */
  readonly now?: number | undefined;
  /** How the event's whole numbers are given; `bigint` if absent. */
  readonly integers?: Mode | undefined;
}

const fiveMinutes = 300;
/** HMAC with SHA-256. */
const signatureBytes = 32;

/**
 * Verifies a webhook and reads its event. `body` is the request's raw bytes, as they came: parsed and written again they have
 * another signature. Accepts if any of the signatures is right, which is so while a secret is being changed. Throws a
 * `WebhookVerificationError` otherwise, and a TypeError for a secret that is none and for a body that somebody parsed already.
 */
export async function verifyWebhook<Mode extends IntegerMode = 'bigint'>(
  secret: string,
  headers: WebhookHeaders | Promise<WebhookHeaders>,
  body: Bytes | string,
  { toleranceSeconds = fiveMinutes, now = Date.now(), integers }: VerifyOptions<Mode> = {},
): Promise<WithIntegers<Event, Mode>> {
  const mode = checkedMode(integers ?? 'bigint');
  const secretBytes = bytesOfSecret(secret);
  const bytes = bytesOfBody(body);
  const valuesOf = readerOf(await headers);
  const id = oneHeader(valuesOf, 'webhook-id');
  const timestamp = oneHeader(valuesOf, 'webhook-timestamp');
  const isInTime = /^\d{1,12}$/.test(timestamp) && Math.abs(now / 1_000 - Number(timestamp)) <= toleranceSeconds;
  if (!isInTime) throw new WebhookVerificationError('The webhook is too old, or its time is ahead of this clock.');
  const signatures = valuesOf('webhook-signature');
  if (signatures.length === 0) throw new WebhookVerificationError('The webhook has no webhook-signature.');
  const expected = await signatureOf(secretBytes, id, timestamp, bytes);
  if (!signaturesIn(signatures).some((signature) => isSame(signature, expected))) {
    throw new WebhookVerificationError('No signature of the webhook is right: the secret or the body is another.');
  }
  return eventOf(bytes, id, mode) as WithIntegers<Event, Mode>;
}

/** The headers of a webhook, signed. For tests of an endpoint. */
export async function signWebhook(
  secret: string,
  id: string,
  body: Bytes | string,
  now = Date.now(),
): Promise<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const timestamp = String(Math.floor(now / 1_000));
  const signature = await signatureOf(bytesOfSecret(secret), id, timestamp, bytesOfBody(body));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...signature))}`,
  };
}

function eventOf(body: Uint8Array, id: string, integers: IntegerMode): unknown {
  let event: unknown;
  try {
    event = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body), { integers });
  } catch (cause) {
    if (cause instanceof UnsafeIntegerError) throw cause;
    throw new WebhookVerificationError('The webhook is not JSON.', { cause });
  }
  const isEvent = typeof event === 'object' && event !== null && 'id' in event && event.id === id;
  if (!isEvent) throw new WebhookVerificationError('The webhook has the id of another event.');
  return event;
}

/** The one value of a header. Proxies may repeat a line; two values that differ prove nothing. */
function oneHeader(valuesOf: HeaderReader, name: string): string {
  const values = valuesOf(name).flatMap((value) => value.split(/\s*,\s*/));
  const [first, ...others] = new Set(values);
  if (first === undefined || first === '') throw new WebhookVerificationError(`The webhook has no ${name}.`);
  if (others.length > 0) throw new WebhookVerificationError(`The webhook has more than one ${name}.`);
  return first;
}

/** Returns the texts that may be signatures, of one header or several that a proxy joined with commas. */
function signaturesIn(values: readonly string[]): Uint8Array[] {
  // A signature can begin with `v1` too, and the comma before it is within an entry.
  const entries = values.flatMap((value) => value.split(/\s+|,(?=\s|v\d\w*,|$)/));
  return entries.flatMap((entry) => {
    const bytes = entry.startsWith('v1,') ? fromBase64(entry.slice('v1,'.length)) : undefined;
    return bytes?.length === signatureBytes ? [bytes] : [];
  });
}

/** Compares in constant time. Both have the length of a signature. */
function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.reduce((difference, byte, at) => difference | (byte ^ (other[at] ?? 0)), 0) === 0;
}

function bytesOfSecret(secret: string): Uint8Array<ArrayBuffer> {
  const isSecret = typeof secret === 'string' && secret.startsWith('whsec_');
  const bytes = isSecret ? fromBase64(secret.slice('whsec_'.length)) : undefined;
  if (bytes === undefined || bytes.length === 0) throw new TypeError('The secret has to be `whsec_` and base64.');
  return bytes;
}

function bytesOfBody(body: unknown): Uint8Array<ArrayBuffer> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : copyOfBytes(body);
  if (bytes !== undefined) return bytes;
  throw new TypeError(
    `Pass the raw bytes of the body, as they came, not ${kindOf(body)}: a Buffer, a Uint8Array, an ArrayBuffer or the text. ` +
      'A body that was parsed and written again has another signature.',
  );
}

async function signatureOf(
  secret: Uint8Array<ArrayBuffer>,
  id: string,
  timestamp: string,
  body: Uint8Array,
): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, content));
}

/** Undefined if the text is not base64. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}
