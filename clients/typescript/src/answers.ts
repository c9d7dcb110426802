import type { Operation } from './contract.ts';
import {
  type CallState,
  type ErrorDetails,
  errorAnswer,
  type MarinaError,
  NoAnswerError,
  UnsafeIntegerError,
} from './errors.ts';
import type { IntegerMode } from './integers.ts';
import { readJson } from './json-reader.ts';
import type { Answer } from './request.ts';
import type { Failure } from './retries.ts';

/** The outcome of one attempt: an answer, or how it failed. Without a `failure` it is final. */
export type Outcome =
  | { readonly answer: unknown }
  | { readonly failure: Failure | undefined; readonly error: (call: CallState) => MarinaError };

/** A check of an answer's form. */
export type Shape = (value: unknown) => boolean;

/** Reads what the gateway answered. `check` throws when the time of the attempt is over. */
export function outcomeOf(
  operation: Operation,
  { status, header, text }: Answer,
  { integers, isExpected, check }: { integers: IntegerMode; isExpected: Shape; check: () => void },
): Outcome {
  if (status < 200 || status > 299) return refusal(operation, status, header, text);
  try {
    const answer = readJson(text, integers, check);
    return isExpected(answer)
      ? { answer }
      : noAnswer(`What answered ${operation.name} is not the gateway's`, undefined);
  } catch (cause) {
    if (cause instanceof UnsafeIntegerError) {
      return { failure: undefined, error: (call) => new UnsafeIntegerError(cause.digits, call) };
    }
    const isJson = !(cause instanceof SyntaxError);
    return noAnswer(isJson ? `${operation.name} got no answer` : `What answered ${operation.name} is not JSON`, cause);
  }
}

/** Every answer is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A page of a list: its objects, and where the next page begins if there is one. */
export function isPage(value: unknown): boolean {
  if (!isObject(value) || !Array.isArray(value.data) || !value.data.every(isObject)) return false;
  const { has_more: hasMore, next_cursor: next } = value;
  return typeof hasMore === 'boolean' && (isCursor(next) || (!hasMore && (next === null || next === undefined)));
}

/** A page of the feed says where it goes on, also where nothing follows yet. */
export function isEventPage(value: unknown): boolean {
  return isPage(value) && isObject(value) && isCursor(value.next_cursor);
}

function isCursor(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** No answer came, or none that is the gateway's. */
export function noAnswer(message: string, cause: unknown): Outcome {
  return { failure: {}, error: (call) => new NoAnswerError(message, call, cause) };
}

/** Reads an error. A proxy before the gateway may answer with anything. */
function refusal(operation: Operation, status: number, header: Answer['header'], text: string): Outcome {
  const error = errorIn(text);
  const seconds = header('retry-after') ?? '';
  const member = (name: string) => (typeof error[name] === 'string' ? error[name] : undefined);
  const [code, sentence] = [member('code'), member('message')];
  const reason = [code, sentence].filter((part) => part !== undefined).join(': ');
  const details: ErrorDetails = {
    status,
    type: member('type'),
    code,
    message: `${operation.name} was answered ${status}${reason === '' ? '' : ` ${reason}`}`,
    docUrl: member('doc_url'),
    param: member('param'),
    rejectReason: member('reject_reason'),
    location: header('location'),
    requestId: header('x-request-id'),
    retryAfterSeconds: /^\d{1,5}$/.test(seconds) ? Number(seconds) : undefined,
  };
  return { failure: details, error: (call) => errorAnswer(details, call) };
}

function errorIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && isObject(body.error) ? body.error : {};
  } catch {
    return {};
  }
}
