import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { LinkTls } from '../../kit/link.ts';

const connectTimeoutMs = 5_000;

/** Opens a connection to `host:port`, and proves who the other side is if it speaks TLS. */
export function openConnection(address: string, tls: LinkTls | undefined, signal: AbortSignal): Promise<Socket> {
  const [, host = '', port = ''] = /^(.+):(\d+)$/.exec(address) ?? [];
  const at = { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
  const serverName = tls?.serverName ?? at.host;
  const socket =
    tls === undefined
      ? connectPlain(at)
      : connectTls({
          ...at,
          ca: tls.ca,
          cert: tls.cert,
          key: tls.key,
          minVersion: 'TLSv1.2',
          ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
        });
  const ready = tls === undefined ? 'connect' : 'secureConnect';
  return new Promise((resolve, reject) => {
    const end = (error: Error) => {
      socket.destroy();
      done();
      reject(error);
    };
    const timer = setTimeout(() => end(new Error('no connection in time')), connectTimeoutMs);
    const aborted = () => end(new Error('stopping'));
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', aborted);
      socket.off('error', end);
    };
    socket.once('error', end);
    socket.once(ready, () => {
      done();
      // As options of a TLS connection they would have no effect.
      socket.setNoDelay(true).setKeepAlive(true);
      resolve(socket);
    });
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
  });
}
