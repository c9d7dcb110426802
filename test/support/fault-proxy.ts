import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type Fault, OneWay } from './fault-one-way.ts';
import { reset } from './reset.ts';

export type { Fault } from './fault-one-way.ts';

export type Direction = 'toServer' | 'toClient';
/** Which connections a fault meets: those there are, those to come, or both. */
export type Scope = 'present' | 'new' | 'all';

const directions = ['toServer', 'toClient'] as const;

/** One connection through the proxy. */
export class Link {
  readonly toServer: OneWay;
  readonly toClient: OneWay;

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
  ) {
    const cut = () => this.reset();
    this.toServer = new OneWay(client, server, cut);
    this.toClient = new OneWay(server, client, cut);
    passOnEnd(client, server, this.toServer);
    passOnEnd(server, client, this.toClient);
  }

  set(which: Direction | 'both', fault: Fault): void {
    for (const direction of directions) if (which === direction || which === 'both') this[direction].set(fault);
  }

  /** Both sides see the connection reset. */
  reset(): void {
    reset(this.client);
    reset(this.server);
  }
}

/**
 * A TCP proxy that misbehaves as it is told, at any time: delays, holds, swallows, half-closes, cuts and resets
 * connections, and refuses new ones.
 */
export class FaultProxy {
  /** Sees all bytes on their way in, before a fault meets them; it may set one that does. */
  onBytes: ((link: Link, direction: Direction, bytes: Buffer) => void) | undefined;
  readonly #links = new Set<Link>();
  readonly #sockets = new Set<Socket>();
  readonly #faultsOfNew: Record<Direction, Fault> = { toServer: {}, toClient: {} };
  #server: Server | undefined;
  #port = 0;

  private constructor(private target: { readonly host: string; readonly port: number }) {}

  /** Starts a proxy on a free local port in front of `host:port`, or of a URL that names both. */
  static async start(target: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(parseTarget(target));
    await proxy.accept();
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get links(): readonly Link[] {
    return [...this.#links];
  }

  /** A URL that leads through the proxy to where it led before. */
  through(url: string): string {
    const led = new URL(url);
    led.hostname = '127.0.0.1';
    led.port = String(this.#port);
    return led.href;
  }

  /** Connects what comes from now on to another target. */
  retarget(target: string): void {
    this.target = parseTarget(target);
  }

  set(which: Direction | 'both', fault: Fault, scope: Scope = 'all'): void {
    if (scope !== 'new') for (const link of this.#links) link.set(which, fault);
    if (scope === 'present') return;
    for (const direction of directions) {
      if (which === direction || which === 'both') this.#faultsOfNew[direction] = fault;
    }
  }

  /** Lifts what can be lifted of present connections; new ones go through. */
  heal(): void {
    this.onBytes = undefined;
    this.set('both', {});
  }

  /** Resets all present connections. */
  reset(): void {
    for (const link of this.links) link.reset();
  }

  /** Takes no new connections: they are refused. Present ones stay. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    // The callback waits for present connections, and those stay; the port is let go at once.
    server?.close();
  }

  /** Takes new connections again, on the same port. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer({ allowHalfOpen: true }, (client) => this.#connect(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      if (this.#server === undefined) resolve();
      else this.#server.close(() => resolve());
    });
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #connect(client: Socket): void {
    const server = connect({ ...this.target, allowHalfOpen: true, noDelay: true });
    client.setNoDelay(true);
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined); // The handler that sees an end decides about it.
    }
    const link = new Link(client, server);
    for (const direction of directions) {
      const from = direction === 'toServer' ? client : server;
      // Before the listener of this direction, so that a fault set here meets these bytes.
      from.prependListener('data', (bytes: Buffer) => this.onBytes?.(link, direction, bytes));
      link[direction].set(this.#faultsOfNew[direction]);
    }
    this.#links.add(link);
    let open = 2;
    for (const socket of [client, server]) {
      socket.on('close', () => {
        open -= 1;
        if (open === 0) this.#links.delete(link);
      });
    }
  }
}

/** A side that is gone takes the other with it, unless the direction between them hides it. */
function passOnEnd(from: Socket, to: Socket, oneWay: OneWay): void {
  let broke = false;
  from.on('error', () => {
    broke = true;
  });
  // With the other side gone there is nobody left to half-close for.
  from.on('end', () => {
    if (to.destroyed) from.destroy();
  });
  from.on('close', () => {
    if (to.readableEnded) to.destroy();
    if (oneWay.isSevered || to.destroyed) return;
    if (broke) reset(to);
  });
}

function parseTarget(target: string): { host: string; port: number } {
  const { hostname, port } = new URL(target.includes('://') ? target : `tcp://${target}`);
  return { host: hostname, port: Number(port) };
}
