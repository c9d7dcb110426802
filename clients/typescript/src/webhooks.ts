import type { Event } from './contract.ts';
import { MarinaError } from './errors.ts';
import { parseJson } from './json.ts';

/** A webhook is not to be believed. Answer 400, and read nothing of it. */
export class WebhookVerificationError extends MarinaError {
  override readonly name = 'WebhookVerificationError';
}

/** The headers of a request: of `node:http`, of `fetch`, or a plain object. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How far the time of the attempt may be from this clock, in seconds. */
  readonly toleranceSeconds?: number | undefined;
  /** Now, in milliseconds since 1970. For tests. */
  readonly now?: number | undefined;
}

const fiveMinutes = 300;

/**
 * Verifies a webhook and reads its event. `body` is the request's raw bytes, as they came: parsed and written again they have
 * another signature. Accepts if any of the signatures is right, which is so while a secret is being changed. Throws a
 * `WebhookVerificationError` otherwise.
 */
export async function verifyWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: Uint8Array | string,
  { toleranceSeconds = fiveMinutes, now = Date.now() }: VerifyOptions = {},
): Promise<Event> {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1_000 - Number(timestamp)) > toleranceSeconds) {
    throw new WebhookVerificationError('The webhook is too old, or its time is ahead of this clock.');
  }
  const key = await signingKey(secret);
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = signedContent(id, timestamp, bytes);
  for (const entry of signatures.split(' ')) {
    const signature = entry.startsWith('v1,') ? fromBase64(entry.slice(3)) : undefined;
    // It compares in constant time.
    if (signature !== undefined && (await crypto.subtle.verify('HMAC', key, signature, signed)))
      return eventOf(bytes, id);
  }
  throw new WebhookVerificationError('No signature of the webhook is right: the secret or the body is another.');
}

/** The headers of a webhook, signed. For tests of an endpoint. */
export async function signWebhook(
  secret: string,
  id: string,
  body: Uint8Array | string,
  now = Date.now(),
): Promise<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const timestamp = String(Math.floor(now / 1_000));
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const key = await signingKey(secret);
  const signature = await crypto.subtle.sign('HMAC', key, signedContent(id, timestamp, bytes));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`,
  };
}

function eventOf(body: Uint8Array, id: string): Event {
  const event = parseJson(new TextDecoder().decode(body)) as Event;
  if (event.id !== id) throw new WebhookVerificationError('The webhook has the id of another event.');
  return event;
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  if (typeof value !== 'string' || value === '') throw new WebhookVerificationError(`The webhook has no ${name}.`);
  return value;
}

function signingKey(secret: string): ReturnType<typeof crypto.subtle.importKey> {
  const bytes = secret.startsWith('whsec_') ? fromBase64(secret.slice('whsec_'.length)) : undefined;
  if (bytes === undefined || bytes.length === 0) throw new TypeError('The secret has to be `whsec_` and base64.');
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
}

function signedContent(id: string, timestamp: string, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  return content;
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
