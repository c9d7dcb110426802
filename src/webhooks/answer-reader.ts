import type { Socket } from 'node:net';
import { SendFailure } from './failures.ts';

/** Heads of informational answers, together. */
const mostInterimBytes = 8_192;
const startOfHead = 'HTTP/1.1 1';
const endOfHead = '\r\n\r\n';

const receivedBytes = new WeakMap<Socket, number>();

/** How many bytes of answers have come on a socket whose answers are limited, informational ones too. */
export function bytesReceivedOn(socket: Socket): number {
  return receivedBytes.get(socket) ?? 0;
}

/**
 * Changes what a socket gives its reader, who sends one request at a time: of each answer at most `mostBytes` come
 * through, framing included, whatever it is made of, and informational answers (1xx) do not come through at all. undici
 * breaks off a connection that says `100 Continue` unasked, and keeps no count of bytes that are neither headers nor body.
 */
export function limitAnswers(socket: Socket, mostBytes: number): void {
  const read = socket.read.bind(socket);
  let requestedBytes = -1;
  let answerBytes = 0;
  let isInterimPossible = true;
  let held: Buffer | undefined;

  socket.read = () => {
    for (;;) {
      const chunk = read() as Buffer | null;
      if (chunk === null) return null;
      // Whenever something was sent since, what comes belongs to a new answer.
      if (socket.bytesWritten !== requestedBytes) {
        requestedBytes = socket.bytesWritten;
        answerBytes = 0;
        isInterimPossible = true;
        held = undefined;
      }
      answerBytes += chunk.length;
      receivedBytes.set(socket, bytesReceivedOn(socket) + chunk.length);
      if (answerBytes > mostBytes) return fail('the answer is too long');
      if (!isInterimPossible) return chunk;
      const rest = skipInterim(held === undefined ? chunk : Buffer.concat([held, chunk]));
      if (rest.length > 0 && !mayBeInterim(rest)) {
        isInterimPossible = false;
        held = undefined;
        return rest;
      }
      held = rest;
      if (answerBytes > mostInterimBytes) return fail('informational answers do not end');
    }
  };

  function fail(message: string): null {
    socket.destroy(new SendFailure('invalid_response', message));
    return null;
  }
}

/** What follows whole informational heads. */
function skipInterim(bytes: Buffer): Buffer {
  let rest = bytes;
  while (rest.length > startOfHead.length && mayBeInterim(rest)) {
    const end = rest.indexOf(endOfHead);
    if (end < 0) break;
    rest = rest.subarray(end + endOfHead.length);
  }
  return rest;
}

/** Whether bytes are, or could become, an informational head. */
function mayBeInterim(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, Math.min(bytes.length, startOfHead.length));
  return startOfHead.startsWith(start.replace('HTTP/1.0', 'HTTP/1.1'));
}
