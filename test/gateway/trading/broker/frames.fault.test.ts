import assert from 'node:assert/strict';
import { createServer, type Http2Server, constants as http2, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { grpcOrders } from '../../../../src/gateway/trading/broker/grpc-orders.ts';
import { ReportKind, SubmitOrderResponseSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';

const order = {
  id: 'ord_22222222222222222222',
  account: 'A1',
  symbol: 'SIM-REST',
  side: 'buy',
  quantity: 100n,
  type: 'limit',
  timeInForce: 'day',
  priceKobo: 1000n,
  origin: { partnerId: 'par_1', requestId: null, traceParent: null },
  note: Buffer.alloc(0),
} as const;

const ok = { ':status': 200, 'content-type': 'application/grpc+proto' };

/** A gRPC message: a flag, a length, the bytes. */
function message(bytes: Uint8Array, { flag = 0, length = bytes.length } = {}): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

const accepted = toBinary(
  SubmitOrderResponseSchema,
  create(SubmitOrderResponseSchema, {
    report: {
      number: 1n,
      clientOrderId: order.id,
      exchangeOrderId: 'X1',
      kind: ReportKind.ACCEPTED,
      at: timestampFromMs(1_700_000_000_000),
    },
  }),
);

/** Answers as it should be, or with what is given in place of a part. */
function answer(
  stream: ServerHttp2Stream,
  { body = message(accepted), trailers = { 'grpc-status': '0' } as Record<string, string> | null } = {},
): void {
  stream.respond(ok, { waitForTrailers: trailers !== null });
  if (trailers !== null) stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(body);
}

/** A GOAWAY frame that says that no stream was processed; Node's own sender does not tell this lie. */
function nothingProcessed(code: number): Buffer {
  const frame = Buffer.alloc(17);
  frame.writeUIntBE(8, 0, 3);
  frame.writeUInt8(7, 3);
  frame.writeUInt32BE(code, 13);
  return frame;
}

type Behave = (stream: ServerHttp2Stream, socket: Socket) => void;

interface Case {
  readonly name: string;
  /** The exchange's behaviour before it reads the message. */
  readonly before?: Behave;
  /** The exchange's behaviour once it has taken the message. */
  readonly taken?: Behave;
  readonly outcome: 'answered' | 'unclear' | 'never-left';
}

const resets = [
  'NGHTTP2_NO_ERROR',
  'NGHTTP2_PROTOCOL_ERROR',
  'NGHTTP2_INTERNAL_ERROR',
  'NGHTTP2_FLOW_CONTROL_ERROR',
  'NGHTTP2_STREAM_CLOSED',
  'NGHTTP2_FRAME_SIZE_ERROR',
  'NGHTTP2_REFUSED_STREAM',
  'NGHTTP2_CANCEL',
  'NGHTTP2_COMPRESSION_ERROR',
  'NGHTTP2_CONNECT_ERROR',
  'NGHTTP2_ENHANCE_YOUR_CALM',
  'NGHTTP2_INADEQUATE_SECURITY',
  'NGHTTP2_HTTP_1_1_REQUIRED',
] as const;

/** Headers alone, which end the call. */
const trailersOnly: readonly { name: string; headers: Record<string, string | number> }[] = [
  { name: 'OK without a message', headers: { ...ok, 'grpc-status': '0' } },
  { name: 'UNAVAILABLE', headers: { ...ok, 'grpc-status': '14' } },
  { name: 'ALREADY_EXISTS', headers: { ...ok, 'grpc-status': '6' } },
  { name: 'RESOURCE_EXHAUSTED', headers: { ...ok, 'grpc-status': '8' } },
  { name: 'a status that is no number', headers: { ...ok, 'grpc-status': 'nonsense' } },
  { name: 'a status that does not exist', headers: { ...ok, 'grpc-status': '99' } },
  { name: 'no status', headers: { ...ok } },
  {
    name: 'a pushback that asks for another try',
    headers: { ...ok, 'grpc-status': '14', 'grpc-retry-pushback-ms': '0' },
  },
  { name: 'HTTP 502', headers: { ':status': 502, 'content-type': 'text/html' } },
  { name: 'HTTP 503', headers: { ':status': 503 } },
  { name: 'HTTP 429', headers: { ':status': 429 } },
  { name: 'HTTP 404', headers: { ':status': 404 } },
  { name: 'HTTP 200 of another kind', headers: { ':status': 200, 'content-type': 'text/html' } },
];

const cases: readonly Case[] = [
  { name: 'answers', taken: (stream) => answer(stream), outcome: 'answered' },
  ...resets.map(
    (code): Case => ({
      name: `resets the stream with ${code}`,
      taken: (stream) => stream.close(http2[code]),
      outcome: 'unclear',
    }),
  ),
  ...trailersOnly.map(
    ({ name, headers }): Case => ({
      name: `ends the call with headers alone: ${name}`,
      taken: (stream) => stream.respond(headers, { endStream: true }),
      outcome: 'unclear',
    }),
  ),
  {
    name: 'says that its time had passed',
    taken: (stream) => stream.respond({ ...ok, 'grpc-status': '9' }, { endStream: true }),
    outcome: 'never-left',
  },
  {
    name: 'announces that it goes away before it reads the message, and answers',
    before: (stream) => stream.session?.goaway(http2.NGHTTP2_NO_ERROR),
    taken: (stream) => answer(stream),
    outcome: 'answered',
  },
  {
    name: 'says before it reads the message that it processed nothing, and takes it',
    before: (_, socket) => void socket.write(nothingProcessed(http2.NGHTTP2_NO_ERROR)),
    taken: (stream) => answer(stream),
    outcome: 'unclear',
  },
  {
    name: 'says after it took the message that it processed nothing',
    taken: (_, socket) => void socket.write(nothingProcessed(http2.NGHTTP2_NO_ERROR)),
    outcome: 'unclear',
  },
  {
    name: 'goes away with an error before it reads the message, and takes it',
    before: (_, socket) => void socket.write(nothingProcessed(http2.NGHTTP2_ENHANCE_YOUR_CALM)),
    outcome: 'unclear',
  },
  {
    name: 'goes away with an error after it took the message',
    taken: (stream) => stream.session?.goaway(http2.NGHTTP2_INTERNAL_ERROR),
    outcome: 'unclear',
  },
  {
    name: 'goes away after it took the message, and answers',
    taken: (stream) => {
      stream.session?.goaway(http2.NGHTTP2_NO_ERROR);
      answer(stream);
    },
    outcome: 'answered',
  },
  {
    name: 'goes away after it took the message, and drops the session',
    taken: (stream) => {
      stream.session?.goaway(http2.NGHTTP2_NO_ERROR);
      stream.session?.destroy();
    },
    outcome: 'unclear',
  },
  { name: 'closes the connection', taken: (_, socket) => void socket.end(), outcome: 'unclear' },
  { name: 'drops the connection', taken: (_, socket) => void socket.destroy(), outcome: 'unclear' },
  { name: 'resets the connection', taken: (_, socket) => void socket.resetAndDestroy(), outcome: 'unclear' },
  { name: 'answers nothing', taken: () => undefined, outcome: 'unclear' },
  {
    name: 'answers without trailers',
    taken: (stream) => answer(stream, { trailers: null }),
    outcome: 'unclear',
  },
  {
    name: 'answers, and the trailers say UNKNOWN',
    taken: (stream) => answer(stream, { trailers: { 'grpc-status': '2' } }),
    outcome: 'unclear',
  },
  {
    name: 'sends the message, and resets the stream before the trailers',
    taken: (stream) => {
      stream.respond(ok);
      stream.write(message(accepted), () => stream.close(http2.NGHTTP2_INTERNAL_ERROR));
    },
    outcome: 'unclear',
  },
  {
    name: 'sends headers, and resets the connection',
    taken: (stream, socket) => {
      stream.respond(ok);
      setTimeout(() => socket.resetAndDestroy(), 50);
    },
    outcome: 'unclear',
  },
  {
    name: 'answers with half a message',
    taken: (stream) => answer(stream, { body: message(accepted).subarray(0, 12) }),
    outcome: 'unclear',
  },
  {
    name: 'answers with a message of another length than it says',
    taken: (stream) => answer(stream, { body: message(accepted, { length: accepted.length + 100 }) }),
    outcome: 'unclear',
  },
  {
    name: 'answers with a message larger than may be',
    taken: (stream) => answer(stream, { body: message(accepted, { length: 0x7fffffff }) }),
    outcome: 'unclear',
  },
  {
    name: 'answers with bytes that are no message',
    taken: (stream) => answer(stream, { body: message(Buffer.alloc(40, 0xff)) }),
    outcome: 'unclear',
  },
  {
    name: 'answers with a compressed message that is not',
    taken: (stream) => answer(stream, { body: message(accepted, { flag: 1 }) }),
    outcome: 'unclear',
  },
  {
    name: 'answers with an empty message',
    taken: (stream) => answer(stream, { body: message(Buffer.alloc(0)) }),
    outcome: 'unclear',
  },
  {
    name: 'answers with two messages',
    taken: (stream) => answer(stream, { body: Buffer.concat([message(accepted), message(accepted)]) }),
    outcome: 'unclear',
  },
];

/**
 * An exchange that takes every order it reads, and whose frames are then wrong in every way there is. Only a whole answer
 * is an answer; and whatever the protocol says a client may do, an order is never sent again.
 */
describe('an exchange that takes an order and', { concurrency: true }, () => {
  for (const { name, before: first, taken: then, outcome } of cases) {
    it(`${name}: ${outcome}, and it took the order once`, async () => {
      const exchange = await Exchange.start(first, then);
      // A good answer may take as long as a busy machine needs.
      const timeoutMs = outcome === 'answered' ? 20_000 : 700;
      const broker = grpcOrders({
        address: exchange.address,
        submitTimeoutMs: timeoutMs,
        readTimeoutMs: timeoutMs,
      });
      try {
        const sent = await broker.submitOrder(order, Date.now() + 1_300 + timeoutMs);
        assert.equal(
          sent.outcome,
          outcome,
          JSON.stringify(sent, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
        );
        await delay(300);
        assert.equal(exchange.taken, 1);
      } finally {
        broker.close();
        exchange.close();
      }
    });
  }
});

describe('an exchange that sends bytes that are no HTTP/2', () => {
  for (const greeting of ['HTTP/1.1 400 Bad Request\r\n\r\n', '\0\0\0\0\0\0\0\0\0\0\0\0', 'x'.repeat(100_000)]) {
    it(`such as ${JSON.stringify(greeting.slice(0, 12))}: nothing leaves, or it is unclear, and the process lives`, async () => {
      const raw = createTcpServer((socket) => {
        socket.on('error', () => undefined);
        socket.write(greeting);
      });
      await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
      const address = `127.0.0.1:${(raw.address() as AddressInfo).port}`;
      const broker = grpcOrders({ address, submitTimeoutMs: 700, readTimeoutMs: 700 });
      const sent = await broker.submitOrder(order, Date.now() + 5_000);
      assert.notEqual(sent.outcome, 'answered');
      broker.close();
      raw.close();
    });
  }
});

describe('after an exchange broke off', () => {
  let exchange: Exchange;
  let broker: ReturnType<typeof grpcOrders>;
  before(async () => {
    exchange = await Exchange.start(undefined, (stream, socket) => {
      if (exchange.taken % 2 === 1) socket.resetAndDestroy();
      else answer(stream);
    });
    broker = grpcOrders({ address: exchange.address, submitTimeoutMs: 700, readTimeoutMs: 700 });
  });
  after(() => {
    broker.close();
    exchange.close();
  });

  it('the next order goes through', async () => {
    for (let round = 0; round < 4; round += 1) {
      assert.equal((await broker.submitOrder(order, Date.now() + 2_000)).outcome, 'unclear');
      assert.equal((await broker.submitOrder(order, Date.now() + 2_000)).outcome, 'answered');
      assert.equal(exchange.taken, 2 * (round + 1));
    }
  });
});

/** A server of HTTP/2 that counts the messages it took. */
class Exchange {
  taken = 0;
  readonly #sockets = new Set<Socket>();

  private constructor(private readonly server: Http2Server) {}

  static async start(first: Behave | undefined, then: Behave | undefined): Promise<Exchange> {
    const server = createServer();
    const exchange = new Exchange(server);
    let socket: Socket; // There is one at a time. A session's own socket does not let itself be reset.
    server.on('connection', (accepted: Socket) => {
      socket = accepted;
      exchange.#sockets.add(socket);
      socket.on('error', () => undefined);
    });
    server.on('sessionError', () => undefined);
    server.on('stream', (stream) => {
      stream.on('error', () => undefined);
      first?.(stream, socket);
      stream.once('data', () => {
        exchange.taken += 1;
        then?.(stream, socket);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return exchange;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
