/**
 * Why an attempt failed: no whole head of an answer in 10 seconds; no address; an address that may not be dialled; no
 * connection, or one that broke; TLS that failed; a URL that cannot be used; an answer that is no HTTP; a redirect; any
 * other status.
 */
export type ErrorClass =
  | 'timeout'
  | 'dns'
  | 'blocked_address'
  | 'unreachable'
  | 'tls'
  | 'invalid_url'
  | 'invalid_response'
  | 'redirect'
  | 'status';

/** What became of one attempt. */
export interface Attempt {
  /** Whether it was delivered, and if not, whether that speaks against the endpoint or only against the event. */
  readonly outcome: 'delivered' | 'endpoint-failed' | 'event-failed';
  /** The status of the answer; null when there was none. */
  readonly status: number | null;
  /** Null when it was delivered. */
  readonly errorClass: ErrorClass | null;
  /** From the start of the attempt until its outcome was known, in milliseconds. */
  readonly durationMs: number;
}

/** Something that kept an answer from coming. Its message is for logs and holds nothing the endpoint said. */
export class SendFailure extends Error {
  override readonly name = 'SendFailure';

  constructor(
    readonly errorClass: ErrorClass,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** What a status says. 408, 429, 5xx and redirects speak against the endpoint; any other 4xx against the event. */
export function judgeStatus(status: number): Pick<Attempt, 'outcome' | 'errorClass'> {
  if (status >= 200 && status < 300) return { outcome: 'delivered', errorClass: null };
  if (status >= 300 && status < 400) return { outcome: 'endpoint-failed', errorClass: 'redirect' };
  const isAboutEvent = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { outcome: isAboutEvent ? 'event-failed' : 'endpoint-failed', errorClass: 'status' };
}

/** What an error that came in place of an answer says. */
export function judgeError(error: Error): ErrorClass {
  if (error instanceof SendFailure) return error.errorClass;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'timeout';
  const isUnreadable = error.name === 'HTTPParserError' || invalidResponses.has(code);
  return isUnreadable ? 'invalid_response' : 'unreachable';
}

const invalidResponses = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
]);
