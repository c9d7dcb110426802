/**
 * A webhook receiver as a partner would run one, for a sandbox: https with the certificate it is given, every event
 * verified with the library partners use, and a line for each. Its parent sends it the partners and their secrets.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { ReceiverPartner, ReceiverSays } from './receiver.ts';

/** More than any event has. */
const maxBodyBytes = 1_048_576;
/** Partners there are; a sandbox has two. */
const maxPartners = 100;

const partners = new Map<string, ReceiverPartner>();
const identity = readFileSync(process.env.MARINA_RECEIVER_IDENTITY_FILE ?? '');
const server = createServer({ key: identity, cert: identity }, (request, response) => {
  receive(request, response).catch(() => response.destroy()); // The sender went away; it tries again.
});

// A log that cannot be written is no reason to refuse events.
process.stdout.on('error', () => undefined);
process.on('message', (partner: ReceiverPartner) => {
  if (partners.has(partner.id) || partners.size < maxPartners) partners.set(partner.id, partner);
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0));
process.on('disconnect', () => process.exit(0));
server.on('listening', () => tell({ type: 'ready', port: (server.address() as AddressInfo).port }));
server.on('error', (error: NodeJS.ErrnoException) => {
  // The port it had before is somebody else's by now; any other does.
  if (error.code !== 'EADDRINUSE') throw error;
  server.listen(0, '127.0.0.1');
});
server.listen(Number(process.env.MARINA_RECEIVER_PORT ?? 0), '127.0.0.1');

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBodyBytes) return void response.writeHead(413).end();
    chunks.push(chunk);
  }
  const partner = partners.get(request.url?.slice(1) ?? '');
  // An event that comes before the secret is known must come again.
  if (partner === undefined) return void response.writeHead(503).end();
  const line = verified(partner, request, Buffer.concat(chunks));
  response.writeHead(line === undefined ? 400 : 200).end();
  const text = line ?? 'something that its secret does not verify was refused';
  process.stdout.write(`${new Date().toISOString()} ${partner.name}: ${text}\n`);
  tell({ type: 'received', line: `${partner.name}: ${text}` });
}

/** Returns an event's short description; undefined when its signature is not good. */
function verified(partner: ReceiverPartner, request: IncomingMessage, body: Buffer): string | undefined {
  let event: { object?: string; type?: string; version?: number; data?: { id?: string; state?: string } };
  try {
    event = new Webhook(partner.secret).verify(body, request.headers as Record<string, string>) as typeof event;
  } catch {
    return undefined;
  }
  const id = request.headers['webhook-id'];
  if (event.object === 'webhook_test') return `a test (${id})`;
  return `event ${event.version} ${event.type} ${event.data?.id} (${id})`;
}

function tell(message: ReceiverSays): void {
  process.send?.(message);
}
