import type { Socket } from 'node:net';

/** Sends a reset and nothing else: Node's `resetAndDestroy` would send an orderly end first, and that is then seen. */
export function reset(socket: Socket): void {
  (socket as Socket & { resetAndClosing: boolean }).resetAndClosing = true;
  socket.destroy();
}
