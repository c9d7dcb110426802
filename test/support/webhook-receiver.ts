import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { type Authority, makeAuthority } from '../../src/sandbox/certificates.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { temporaryFolder } from './folders.ts';

/** One request an endpoint received. */
export interface Received {
  readonly path: string;
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  /** When it came, on a clock that never goes back. */
  readonly at: number;
  /** The event's version; undefined for what is no event. */
  readonly version: number | undefined;
}

/** The answer of an endpoint: a status, or nothing at all. */
export type Reply = (received: Received) => number | 'hang';

/** An https server of a test with an endpoint for each path, which remembers all it received. */
export class WebhookReceiver {
  readonly received: Received[] = [];
  readonly #replies = new Map<string, Reply>();
  readonly #waitsMs = new Map<string, number>();
  /** How long the next new connections take until they are there, one after the other. */
  #dialMs: number[] = [];

  private constructor(
    private readonly server: Server,
    /** The settings that make a gateway trust this server and reach it. */
    readonly variables: Record<string, string>,
    /** Its certificate: good for every server of this machine. */
    readonly identity: { readonly cert: string; readonly key: string },
    private readonly port: number,
  ) {}

  static async start(): Promise<WebhookReceiver> {
    const authority = await sharedAuthority();
    const { cert, key } = await authority.issue(['localhost', '127.0.0.1']);
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const caFile = join(folder, 'authority.pem');
    writeFileSync(caFile, authority.cert);
    const server = createServer({ cert, key, keepAliveTimeout: 30_000 });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const variables = { MARINA_WEBHOOK_CA_FILE: caFile, MARINA_WEBHOOK_ALLOW_LOOPBACK: 'true' };
    const receiver = new WebhookReceiver(server, variables, { cert, key }, port);
    const [begin] = server.listeners('connection') as ((socket: Socket) => void)[];
    server.removeAllListeners('connection').on('connection', (socket: Socket) => {
      setTimeout(() => begin?.call(server, socket), receiver.#dialMs.shift() ?? 0);
    });
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('error', () => undefined);
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString('utf8');
        const headers = request.headers as Record<string, string>;
        const path = request.url ?? '';
        const { version } = JSON.parse(body) as { version?: number };
        const received = { path, id: headers['webhook-id'] ?? '', headers, body, at: performance.now(), version };
        receiver.received.push(received);
        const reply = receiver.#replies.get(path)?.(received) ?? 200;
        if (reply === 'hang') return;
        setTimeout(() => response.writeHead(reply).end('thanks'), receiver.#waitsMs.get(path) ?? 0);
      });
    });
    return receiver;
  }

  /** The URL of an endpoint, which answers with 200 unless told otherwise. */
  url(path: string): string {
    return `https://127.0.0.1:${this.port}${path}`;
  }

  /** Lets an endpoint answer by what it received. */
  reply(path: string, reply: Reply): void {
    this.#replies.set(path, reply);
  }

  /** Lets an endpoint take its time for each answer. */
  slow(path: string, waitMs: number): void {
    this.#waitsMs.set(path, waitMs);
  }

  /** Lets the next new connections take so long until they are there, the first first; further ones take none. */
  slowToDial(...waitsMs: number[]): void {
    this.#dialMs = waitsMs;
  }

  at(path: string): Received[] {
    return this.received.filter((each) => each.path === path);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }
}

/** Throws when a request was not signed under a secret. */
export function verify({ headers, body }: Received, secret: string): void {
  new Webhook(secret).verify(body, headers);
}

let authority: Promise<Authority> | undefined;

function sharedAuthority(): Promise<Authority> {
  authority ??= makeAuthority('Marina tests');
  return authority;
}
