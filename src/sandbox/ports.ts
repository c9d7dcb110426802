import { connect, createServer } from 'node:net';

/** A port of 127.0.0.1 that nobody uses now. */
export async function freePort(): Promise<number> {
  return listenBriefly(0);
}

/** Whether something listens on a port of a host already, or nobody may. */
export async function isPortTaken(port: number, host = '127.0.0.1'): Promise<boolean> {
  return listenBriefly(port, host).then(
    () => false,
    () => true,
  );
}

/** The first bytes a server sends by itself, or undefined when it does not answer in time. */
export function readGreeting(port: number, timeoutMs: number, host = '127.0.0.1'): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    const finish = (greeting: Buffer | undefined) => {
      socket.destroy();
      resolve(greeting);
    };
    socket.setTimeout(timeoutMs, () => finish(undefined));
    socket.once('data', finish);
    socket.once('error', () => finish(undefined));
    socket.once('close', () => finish(undefined));
  });
}

function listenBriefly(port: number, host = '127.0.0.1'): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(address)));
    });
  });
}
