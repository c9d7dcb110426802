import { STATUS_CODES } from 'node:http';
import type { Reply } from '../pipeline.ts';
import type { Answer, AnswerHead } from './protocol.ts';

/** The headers of every answer that is whole. */
export function wholeHeaders(answer: Answer, requestId: string): string[] {
  const headers = commonHeaders(answer, requestId);
  // The answer that says that nothing changed has no body whose length could be told.
  return answer.status === 304 ? headers : [...headers, 'Content-Length', String(Buffer.byteLength(answer.body))];
}

/** The headers of every answer: what a cache may do with it, and a name by which our support finds it. */
export function commonHeaders({ contentType, cacheControl, headers }: AnswerHead, requestId: string): string[] {
  return [
    'Content-Type',
    contentType ?? 'application/json',
    'Cache-Control',
    cacheControl ?? 'no-store',
    'x-request-id',
    requestId,
    ...headers,
  ];
}

/** A whole answer as bytes, for a connection on which Node has no request to answer. It is the connection's last. */
export function rawAnswer(answer: Answer, requestId: string): string {
  const headers = [...wholeHeaders(answer, requestId), 'Connection', 'close', 'Date', new Date().toUTCString()];
  let text = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n`;
  for (let at = 0; at < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return `${text}\r\n${answer.body}`;
}

/** What an operation's answer says beside its body. */
export function replyHeaders({ location, replayed }: Reply): string[] {
  const headers = location === undefined ? [] : ['Location', location];
  if (replayed) headers.push('Idempotent-Replayed', 'true');
  return headers;
}
