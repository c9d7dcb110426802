import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type { JsonObject } from '@bufbuild/protobuf';
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { findInstalled } from '../../../src/sandbox/programs.ts';
import { ReflectedClient } from '../reflected.ts';

/** A PATH on which there is a grpcurl. */
export interface Grpcurl {
  readonly path: string;
  close(): void;
}

/** Hands what it was called with to the process that stands in, and says what comes back. */
const program = (socket: string) => `#!${process.execPath}
const socket = require('node:net').connect(${JSON.stringify(socket)});
socket.write(JSON.stringify(process.argv.slice(2)) + '\\n');
require('node:readline').createInterface({ input: socket }).on('line', (line) => {
  const { out = '', error = '', code = 0 } = JSON.parse(line);
  process.stdout.write(out);
  process.stderr.write(error);
  process.exitCode = code;
});
`;

/**
 * The grpcurl that is installed, or one that stands in: it knows the flags the pages use and no others, learns services and
 * messages from the server by reflection, and makes the real call. Debian 12 has no package of grpcurl.
 */
export async function findGrpcurl(folder: string): Promise<Grpcurl> {
  const path = process.env.PATH ?? '';
  if (findInstalled(['grpcurl']) !== undefined) return { path, close: () => undefined };
  const bin = join(folder, 'bin');
  const socketPath = join(folder, 'grpcurl.sock');
  mkdirSync(bin);
  writeFileSync(join(bin, 'grpcurl'), program(socketPath));
  chmodSync(join(bin, 'grpcurl'), 0o700);
  const clients = new Map<string, Promise<ReflectedClient>>();
  const clientOf = (address: string) => {
    const client = clients.get(address) ?? ReflectedClient.connect(address);
    clients.set(address, client);
    return client;
  };
  const server = createServer((socket) => void serve(socket, clientOf)).listen(socketPath);
  await once(server, 'listening');
  return {
    path: [bin, path].join(delimiter),
    close: () => {
      server.close();
      for (const client of clients.values()) client.then((each) => each.close()).catch(() => undefined);
    },
  };
}

async function serve(socket: Socket, clientOf: (address: string) => Promise<ReflectedClient>): Promise<void> {
  const say = (said: { out?: string; error?: string; code?: number }) => socket.write(`${JSON.stringify(said)}\n`);
  const left = new AbortController();
  socket.on('error', () => left.abort()).on('close', () => left.abort());
  try {
    for await (const line of createInterface({ input: socket })) {
      const { address, described, method, request, metadata, maxMs } = readCommand(JSON.parse(line) as string[]);
      const client = await clientOf(address);
      if (described !== undefined) {
        say({ out: `${client.describeService(described)}\n` });
        break;
      }
      const signal = AbortSignal.any([left.signal, AbortSignal.timeout(maxMs)]);
      for await (const answer of client.stream(method, request, metadata, signal, false)) {
        say({ out: `${JSON.stringify(answer, null, 2)}\n` });
      }
      break;
    }
  } catch (error) {
    const { code, details } = error as Partial<ServiceError>;
    if (typeof code !== 'number') say({ error: `${(error as Error).message}\n`, code: 1 });
    else say({ error: `ERROR:\n  Code: ${status[code]}\n  Message: ${details}\n`, code: 64 + code });
  }
  socket.end();
}

/**
 * Reads the request of a command line; one that the real grpcurl would not take, or that no page needs, is an error.
 */
function readCommand(args: readonly string[]) {
  const known = {
    plaintext: { type: 'boolean' },
    'max-time': { type: 'string' },
    H: { type: 'string', multiple: true, short: 'H' },
    d: { type: 'string', short: 'd' },
  } as const;
  const written = args.map((arg) => (arg === '-plaintext' || arg === '-max-time' ? `-${arg}` : arg));
  const { values, positionals } = parseArgs({ args: written, options: known, allowPositionals: true });
  const isDescription = positionals[1] === 'describe';
  const [address, symbol, ...more] = positionals.filter((_, index) => !(isDescription && index === 1));
  const maxSeconds = Number(values['max-time'] ?? 60);
  if (!(maxSeconds > 0)) throw new Error('-max-time is no number of seconds');
  if (values.plaintext !== true) throw new Error('without -plaintext it would speak TLS');
  if (address === undefined || symbol === undefined || more.length > 0)
    throw new Error('too few or too many arguments');
  const metadata = new Metadata();
  for (const header of values.H ?? []) {
    const [, name = '', value = ''] = /^([\w-]+): *(.*)$/.exec(header) ?? [];
    if (name === '') throw new Error(`no header: ${header}`);
    metadata.add(name, value);
  }
  if (isDescription && values.d !== undefined) throw new Error('-d is not for describe');
  const request = JSON.parse(values.d ?? '{}') as JsonObject;
  return {
    address,
    described: isDescription ? symbol : undefined,
    method: symbol.replace('/', '.'),
    request,
    metadata,
    maxMs: maxSeconds * 1000,
  };
}
