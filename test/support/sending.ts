import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { after, before } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { WebhookSender, type WebhookSenderOptions } from '../../src/gateway/delivery/webhooks/attempt/sender.ts';
import { makeSecret, parseSecret } from '../../src/gateway/delivery/webhooks/attempt/signature.ts';
import type { SendResult } from '../../src/gateway/delivery/webhooks/rules.ts';
import { SystemClock } from '../../src/kit/clock.ts';
import { type Authority, type Identity, makeAuthority } from '../../src/sandbox/certificates.ts';

export const secret = makeSecret();
export const key = parseSecret(secret) ?? Buffer.alloc(0);
export const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
export const kib = 1_024;

export let authority: Authority;
export let identity: Identity;
/** Functions that close something after the tests. */
export const closing: (() => unknown)[] = [];

/** Makes certificates before the tests of a file, and closes all that they started after them. */
export function prepareSending(): void {
  before(async () => {
    authority = await makeAuthority('Test');
    identity = await authority.issue(['127.0.0.1', 'localhost', 'hooks.partner.test', 'moving.partner.test']);
  });
  after(async () => {
    // Several files may share a process, and this list with it: each closes its own.
    for (const close of closing.splice(0).reverse()) await close();
  });
}

export function newSender(options: Partial<WebhookSenderOptions> = {}): WebhookSender {
  const clock = new SystemClock();
  const sender = new WebhookSender({ clock, allowLoopback: true, extraAuthorities: authority.cert, ...options });
  closing.push(() => sender.close());
  return sender;
}

export function delivery(
  port: number,
  changes: { host?: string; url?: string; endpointId?: string; body?: string } = {},
) {
  return {
    endpointId: changes.endpointId ?? `to-${port}`,
    url: changes.url ?? `https://${changes.host ?? '127.0.0.1'}:${port}/hooks`,
    id: `msg_${randomBytes(12).toString('hex')}`,
    body: Buffer.from(changes.body ?? '{"object":"event"}'),
    keys: [key],
  };
}

/** The TCP connections below TLS, by the port they come from. */
const carriers = new Map<number, Socket>();

export function reset(socket: TLSSocket): void {
  carriers.get(socket.remotePort ?? 0)?.resetAndDestroy();
}

/** An endpoint that does as it likes with a connection once it has been sent something. */
export async function startEndpoint(
  onRequest: (socket: TLSSocket, request: string) => void,
  own: Identity = identity,
): Promise<{ port: number; connections: () => number; open: () => number; requests: () => number }> {
  let connections = 0;
  let requests = 0;
  const open = new Set<TLSSocket>();
  const server = createServer(own, (socket) => {
    connections += 1;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    socket.on('data', (bytes) => {
      requests += 1;
      onRequest(socket, bytes.toString());
    });
  });
  server.on('tlsClientError', () => undefined);
  server.on('connection', (socket) => carriers.set(socket.remotePort ?? 0, socket));
  const port = await listening(server);
  closing.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { port, connections: () => connections, open: () => open.size, requests: () => requests };
}

export async function listening(server: {
  listen(port: number, host: string): unknown;
  address(): unknown;
}): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server as HttpsServer, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Writes again and again until the other side is gone; answers with how many bytes it took. */
export function flood(socket: TLSSocket, piece: string | Buffer, everyMs = 0): () => number {
  const startedAt = socket.bytesWritten;
  const go = () => {
    if (socket.destroyed) return;
    const isTaken = socket.write(piece);
    if (everyMs > 0) setTimeout(go, everyMs).unref();
    else if (isTaken) setImmediate(go);
    else socket.once('drain', go);
  };
  go();
  return () => socket.bytesWritten - startedAt;
}

export function outcomeOf({ outcome, status, errorClass }: SendResult) {
  return { outcome, status, errorClass };
}

export const delivered = { outcome: 'delivered', status: 200, errorClass: null } as const;
export const failed = (errorClass: SendResult['errorClass'], status: number | null = null) =>
  ({ outcome: 'endpoint-failed', status, errorClass }) as const;

/** Writes letter by letter. */
export async function writeInPieces(socket: TLSSocket, text: string): Promise<void> {
  for (const letter of text) {
    if (socket.destroyed) return;
    await new Promise<void>((resolve) => socket.write(letter, () => setImmediate(resolve)));
  }
}
