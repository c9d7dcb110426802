import type { Socket } from 'node:net';

/** How long a connection is read on after its last answer. */
export interface LingerRules {
  /** At least this long, whatever the client sends. */
  readonly leastMs: number;
  /** At most this long, and only while the client sends. */
  readonly mostMs: number;
  /** More bytes than these end the time at the next step. */
  readonly maxBytes: number;
  /** How often it is checked whether the client still sends. */
  readonly stepMs: number;
}

/** A client that sends less than this in one step, which is 5 KB/s, is not uploading. */
const minStepBytes = 16_384;
const lastChunk = Buffer.from('0\r\n\r\n');

/**
 * Reads on after a connection's last answer and then closes it, because a reset could cost the client its answer. The
 * caller ends our side of the connection when the request is complete. If the client stops sending before, or sends too
 * much, our side is ended at the next step, and the connection is closed one step later.
 */
export function lingerOn(socket: Socket, rules: LingerRules): void {
  const startedMs = performance.now();
  const firstBytes = socket.bytesRead;
  let seenBytes = firstBytes;
  const timer = setInterval(() => {
    const lastedMs = performance.now() - startedMs;
    const read = socket.bytesRead;
    const isSending = read - seenBytes >= minStepBytes;
    seenBytes = read;
    if (isSending && lastedMs < rules.mostMs && read - firstBytes <= rules.maxBytes) return;
    if (!socket.writableEnded) socket.end();
    else if (lastedMs >= rules.leastMs) socket.destroy();
  }, rules.stepMs);
  socket.once('close', () => clearInterval(timer));
}

/**
 * Calls `onEnd` when the dropped bytes may be the end of a chunked body. A body whose data looks like its end only loses
 * what `onEnd` does too early.
 */
export function watchLastChunk(socket: Socket, onEnd: () => void): void {
  let tail = Buffer.alloc(0);
  const onData = (bytes: Buffer) => {
    const last = bytes.subarray(-lastChunk.length);
    tail = Buffer.concat([tail, last]).subarray(-lastChunk.length);
    if (!tail.equals(lastChunk)) return;
    socket.off('data', onData);
    onEnd();
  };
  socket.on('data', onData);
}
