import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { type Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';

/** How many connections are served at once. */
const maxConnections = 2_000;

/**
 * The simulator's own listener in front of the gRPC server. It keeps each connection's socket, so that a fault can
 * reset the very connection a call came by, which the gRPC server itself offers no way to do.
 */
export class Front {
  readonly #listener: NetServer;
  readonly #sockets = new Map<string, Socket>();

  constructor(grpc: GrpcServer) {
    const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = createServer({ noDelay: true }, (socket) => {
      const peer = `${socket.remoteAddress}:${socket.remotePort}`;
      this.#sockets.set(peer, socket);
      socket.once('close', () => this.#sockets.delete(peer));
      socket.on('error', () => {});
      injector.injectConnection(socket);
    });
    this.#listener.maxConnections = maxConnections;
  }

  /** Starts to listen and gives the port. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#listener.once('error', reject);
      this.#listener.listen(port, host, () => {
        this.#listener.off('error', reject);
        // A connection that could not be accepted is its caller's failure and nobody else's.
        this.#listener.on('error', () => {});
        const address = this.#listener.address();
        if (address === null || typeof address === 'string') reject(new Error('The listener has no port'));
        else resolve(address.port);
      });
    });
  }

  /** Resets a peer's connection: with RST, so that it looks like a crash and not like an orderly end. */
  reset(peer: string): void {
    this.#sockets.get(peer)?.resetAndDestroy();
  }

  /** Resets every peer's connection but one, and says how many there were. */
  resetOthers(peer: string): number {
    const others = [...this.#sockets].filter(([each]) => each !== peer);
    for (const [each] of others) this.reset(each);
    return others.length;
  }

  /** Takes no more connections. */
  stopListening(): void {
    this.#listener.close();
  }

  /** Ends the connections that are left. */
  destroyConnections(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}
