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
import { parseJson } from './json.ts';
import type { Failure } from './retries.ts';

/** What came of one attempt: an answer, or how it failed. Without a `failure` it is final. */
export type Outcome =
  | { readonly answer: unknown }
  | { readonly failure: Failure | undefined; readonly error: (call: CallState) => MarinaError };

/** Reads what the gateway answered. */
export function outcomeOf(operation: Operation, response: Response, text: string, integers: IntegerMode): Outcome {
  if (!response.ok) return refusal(operation, response, text);
  try {
    return { answer: parseJson(text, { integers }) };
  } catch (cause) {
    if (!(cause instanceof UnsafeIntegerError)) return noAnswer(`What answered ${operation.name} is not JSON`, cause);
    return { failure: undefined, error: (call) => new UnsafeIntegerError(cause.digits, call) };
  }
}

/** No answer came, or none that is the gateway's. */
export function noAnswer(message: string, cause: unknown): Outcome {
  return { failure: {}, error: (call) => new NoAnswerError(message, call, cause) };
}

/** Reads an error. What stands before the gateway may answer with anything. */
function refusal(operation: Operation, { status, headers }: Response, text: string): Outcome {
  const error = errorIn(text);
  const seconds = headers.get('retry-after') ?? '';
  const member = (name: string) => (typeof error[name] === 'string' ? error[name] : undefined);
  const details: ErrorDetails = {
    status,
    type: member('type'),
    code: member('code'),
    message: `${operation.name} was answered ${status}${error.code === undefined ? '' : ` ${error.code}: ${error.message}`}`,
    docUrl: member('doc_url'),
    param: member('param'),
    rejectReason: member('reject_reason'),
    location: headers.get('location') ?? undefined,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: /^\d{1,5}$/.test(seconds) ? Number(seconds) : undefined,
  };
  return { failure: details, error: (call) => errorAnswer(details, call) };
}

function errorIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const body = JSON.parse(text) as { error?: unknown } | null;
    const error = body?.error;
    return typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
