import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { BrokerOptions } from '../../src/gateway/trading/broker/grpc-connection.ts';

const headers = { ':status': 200, 'content-type': 'application/grpc' };

/** A broker that answers each call as `answer` does, its open connections, and how a gateway connects to it. */
export async function startRawBroker(answer: (stream: ServerHttp2Stream) => void, port = 0) {
  const open = new Set<Socket>();
  const server = createServer();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  server.on('stream', answer);
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const options: BrokerOptions = {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    access: { current: { tls: undefined }, onChange: () => undefined },
    ...{ submitTimeoutMs: 5_000, readTimeoutMs: 5_000 },
  };
  return { open, options, stop: () => server.close() };
}

/** Ends a call with a status of gRPC, without a message. */
export function refuseCall(stream: ServerHttp2Stream, code: number): void {
  stream.respond({ ...headers, 'grpc-status': String(code) }, { endStream: true });
}

/** Ends a call with one message. */
export function answerCall(stream: ServerHttp2Stream, message: Uint8Array): void {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  stream.respond(headers, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.concat([head, message]));
}
