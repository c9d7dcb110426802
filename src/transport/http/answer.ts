import { STATUS_CODES } from 'node:http';
import type { ApiError } from '../../lib/errors.ts';
import type { Reply } from '../pipeline.ts';

/** What stands before an answer's body, without the headers that every answer has. */
export interface AnswerHead {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** JSON when absent. */
  readonly contentType?: string;
  /** That nothing may keep it, when absent. */
  readonly cacheControl?: string;
}

/** A whole answer as HTTP carries it. */
export interface Answer extends AnswerHead {
  readonly body: string | Buffer;
}

/** An answer that goes on. */
export interface StreamAnswer extends AnswerHead {
  /** Its messages, until the controller given is aborted. */
  readonly messages: (ending: AbortController) => AsyncIterable<Buffer>;
  /** What is written last, about how it ended. */
  readonly end: (error?: ApiError) => Buffer;
}

/** The headers of every answer: what a cache may do with it, and a name by which our support finds it. */
export function answerHeaders(answer: Answer | StreamAnswer, requestId: string): string[] {
  const { contentType = 'application/json', cacheControl = 'no-store', headers } = answer;
  const all = ['Content-Type', contentType, 'Cache-Control', cacheControl, 'x-request-id', requestId, ...headers];
  // The answer that says that nothing changed has no body whose length could be told.
  if ('body' in answer && answer.status !== 304) all.push('Content-Length', String(Buffer.byteLength(answer.body)));
  return all;
}

/** A whole answer as bytes, for a connection on which Node has no request to answer. It is the connection's last. */
export function rawAnswer(answer: Answer, requestId: string): string {
  const headers = [...answerHeaders(answer, requestId), 'Connection', 'close', 'Date', new Date().toUTCString()];
  let text = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n`;
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return `${text}\r\n${answer.body}`;
}

/** What an operation's answer says in addition to its body. */
export function replyHeaders({ location, replayed }: Reply): string[] {
  const headers = location === undefined ? [] : ['Location', location];
  if (replayed) headers.push('Idempotent-Replayed', 'true');
  return headers;
}

/** What an error says in addition to its body. */
export function errorHeaders({ status, allow, retryAfterSeconds, location }: ApiError): string[] {
  const headers: string[] = [];
  if (status === 401) headers.push('WWW-Authenticate', 'Bearer realm="marina"');
  if (allow !== undefined) headers.push('Allow', allow.join(', '));
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  if (location !== undefined) headers.push('Location', location);
  return headers;
}
