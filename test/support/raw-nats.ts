import { once } from 'node:events';
import { createConnection } from 'node:net';

/** Bytes of headers that gateways do not take, by what is wrong with them. */
export const badHeaders: Readonly<Record<string, Buffer>> = {
  'a blank in a name': bytesOf(['a b:c']),
  'a control character in a name': bytesOf(['a\u0001:c']),
  'a letter beyond ASCII in a name': bytesOf(['é:c']),
  'a lone CR in a value': bytesOf(['a:b\rc']),
  'a lone LF in a value': bytesOf(['a:b\nc']),
  '60 KB of distinct names': manyHeaders(60 * 1024),
};

function bytesOf(lines: readonly string[]): Buffer {
  return Buffer.from(['NATS/1.0', ...lines, '', ''].join('\r\n'));
}

/** As many headers as fit into this many bytes, each with a name of its own. */
export function manyHeaders(size: number): Buffer {
  const lines: string[] = [];
  for (let left = size - 12; ; ) {
    const line = `${lines.length.toString(36)}:`;
    left -= line.length + 2;
    if (left < 0) return bytesOf(lines);
    lines.push(line);
  }
}

/** A client of NATS that sends every header as it is: nats.js makes no bad ones. */
export interface RawNats {
  /** Publishes a message of headers only. */
  publish(subject: string, headers: Buffer): void;
  close(): void;
}

export async function connectRawNats(port: number): Promise<RawNats> {
  const socket = createConnection(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.resume();
  socket.write('CONNECT {"verbose":false,"headers":true}\r\n');
  return {
    publish: (subject, headers) => {
      socket.write(Buffer.concat([head(subject, headers), headers, Buffer.from('\r\n')]));
    },
    close: () => socket.destroy(),
  };
}

function head(subject: string, { length }: Buffer): Buffer {
  return Buffer.from(`HPUB ${subject} ${length} ${length}\r\n`);
}
