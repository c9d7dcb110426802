import type { ErrorClass, SendResult } from './rules.ts';

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
export function judgeStatus(status: number): Pick<SendResult, 'outcome' | 'errorClass'> {
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
