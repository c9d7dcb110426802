import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

type Answered = readonly string[] | 'silence';
/** The answer for a name, each time one family is asked for: addresses of both families, nothing, or no answer at all. */
export type Answer = (name: string, family: 4 | 6) => Answered | Promise<Answered>;

/** A name server on this machine. */
export interface NameServer {
  /** Its address and port. */
  readonly address: string;
  readonly asked: readonly string[];
  close(): void;
}

const typeA = 1;
const typeAaaa = 28;
const noSuchName = 3;

/** Starts a name server that answers as it is told, with a time to live of nothing. */
export async function startNameServer(answer: Answer): Promise<NameServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', async (query, from) => {
    const { name, type, end } = readQuestion(query);
    asked.push(name);
    const found = await answer(name, type === typeAaaa ? 6 : 4);
    if (found === 'silence') return;
    const addresses = found.filter((address) => type === (isIPv6(address) ? typeAaaa : typeA));
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180 | (found.length === 0 ? noSuchName : 0), 2);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt32BE(0, 8);
    socket.send(Buffer.concat([header, query.subarray(12, end), ...addresses.map(toRecord)]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, asked, close: () => socket.close() };
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function toRecord(address: string): Buffer {
  const bytes = Buffer.from(ipaddr.parse(address).toByteArray());
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0); // The name of the question.
  head.writeUInt16BE(isIPv6(address) ? typeAaaa : typeA, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(bytes.length, 10);
  return Buffer.concat([head, bytes]);
}
