import type { ServerResponse } from 'node:http';
import { ClientGone } from '../pipeline.ts';
import { deliver } from '../streams.ts';
import type { StreamAnswer } from './answer.ts';

/** How long the end of a stream may take to be written to a client that reads too slowly. */
const slowEndMs = 5_000;

/** Writes a stream's head at once, then its messages as the client takes them. Throws what ended it. */
export async function writeStream(
  response: ServerResponse,
  answer: StreamAnswer,
  headers: string[],
  ending: AbortController,
  slowMs: number | undefined,
): Promise<void> {
  const { socket } = response.req;
  // A client that ends its side of the connection ends its stream: nothing else shows that it has left.
  const leave = () => socket.destroy();
  if (socket.readableEnded) leave();
  socket.once('end', leave);
  response.once('close', () => {
    socket.off('end', leave);
    ending.abort(new ClientGone());
  });
  if (response.destroyed) ending.abort(new ClientGone());
  response.writeHead(answer.status, headers);
  response.flushHeaders();
  const write = (bytes: Buffer) => new Promise<void>((resolve) => response.write(bytes, () => resolve()));
  await deliver(answer.messages(ending), ending, write, slowMs);
}

/** Writes the end, and closes the connection if it was its last answer, or if the end cannot be got rid of. */
export function endStream(response: ServerResponse, end: Buffer, isLast: boolean): void {
  const { socket } = response.req;
  const timer = setTimeout(() => socket.destroy(), slowEndMs);
  response.once('close', () => clearTimeout(timer));
  response.end(end, () => {
    if (isLast) socket.destroySoon();
  });
}
