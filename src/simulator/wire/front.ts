import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { type Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';

/** The most connections at once. */
const maxConnections = 2_000;

/** The listener in front of the gRPC server, which itself cannot reset the connection of a call. */
export class Front {
  readonly #listener: NetServer;
  readonly #sockets = new Map<string, Socket>();

  constructor(grpc: GrpcServer, credentials = ServerCredentials.createInsecure()) {
    const injector = grpc.createConnectionInjector(credentials);
    this.#listener = createServer({ noDelay: true }, (socket) => {
      const peer = `${socket.remoteAddress}:${socket.remotePort}`;
      this.#sockets.set(peer, socket);
      socket.once('close', () => this.#sockets.delete(peer));
      socket.on('error', () => {});
      injector.injectConnection(socket);
    });
    this.#listener.maxConnections = maxConnections;
  }

  /** Starts to listen and returns the port. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#listener.once('error', reject);
      this.#listener.listen(port, host, () => {
        this.#listener.off('error', reject);
        // A failed accept concerns only its caller.
        this.#listener.on('error', () => {});
        const address = this.#listener.address();
        if (address === null || typeof address === 'string') reject(new Error('The listener has no port'));
        else resolve(address.port);
      });
    });
  }

  /** Resets a peer's connection with RST, so that it looks like a crash and not like an orderly end. */
  reset(peer: string): void {
    this.#sockets.get(peer)?.resetAndDestroy();
  }

  /** Resets the connections of all peers but one, and returns their number. */
  resetOthers(peer: string): number {
    const others = [...this.#sockets].filter(([each]) => each !== peer);
    for (const [each] of others) this.reset(each);
    return others.length;
  }

  /** Accepts no more connections. */
  stopListening(): void {
    this.#listener.close();
  }

  destroyConnections(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}
