import assert from 'node:assert/strict';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { create, toBinary, toJsonString } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import type { Identification } from '../../../src/gateway/edge/auth/caller.ts';
import type { StreamHandler } from '../../../src/gateway/edge/call.ts';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { compileEncoder } from '../../../src/gateway/edge/json/encoder.ts';
import { storedMessage } from '../../../src/gateway/edge/json/stored.ts';
import { ErrorSchema } from '../../../src/gen/marina/gateway/v1/errors_pb.ts';
import {
  EventSchema,
  Events,
  type WatchEventsRequest,
  WatchEventsRequestSchema,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from '../../../src/gen/marina/gateway/v1/events_pb.ts';
import { pause } from '../../../src/kit/worker.ts';
import { eventually } from '../../support/eventually.ts';
import { patient } from '../../support/patience.ts';
import {
  callerWith,
  identify,
  noLimits,
  order,
  RawConnection,
  requestText,
  type ServerSettings,
  type Servers,
  withServers,
} from './fixture.ts';

type Watch = StreamHandler<WatchEventsRequest, WatchEventsResponse>;

const transports: readonly (readonly [string, (own: Servers) => Transport])[] = [
  ['gRPC', ({ grpcPort }) => createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}` })],
  ...[true, false].map((useBinaryFormat) => {
    const name = `Connect ${useBinaryFormat ? 'binary' : 'JSON'}`;
    const make = ({ restPort }: Servers) =>
      createConnectTransport({ baseUrl: `http://127.0.0.1:${restPort}`, httpVersion: '1.1', useBinaryFormat });
    return [name, make] as const;
  }),
];

const saying = (nextCursor: string) => create(WatchEventsResponseSchema, { nextCursor });

/** Says one thing, then waits until it is ended. */
function waiting(ended: () => void = () => {}): Watch {
  return async function* watch(_request, _call, signal) {
    try {
      yield saying('first');
      while (!signal.aborted) await pause(1_000, signal);
    } finally {
      ended();
    }
  };
}

function watching(watchEvents: Watch, use: (own: Servers) => Promise<void>, settings: ServerSettings = {}) {
  return withServers({ ...settings, events: { watchEvents } }, use);
}

for (const [name, transport] of transports) {
  describe(`a stream over ${name}`, () => {
    const headers = { authorization: 'Bearer full' };
    const open = (own: Servers, options = {}) =>
      createClient(Events, transport(own)).watchEvents({ cursor: 'c' }, { headers, ...options });

    /** Reads to the end, and returns what was said and the error it ended with. */
    async function readAll(stream: AsyncIterable<WatchEventsResponse>) {
      const messages: WatchEventsResponse[] = [];
      try {
        for await (const message of stream) messages.push(message);
      } catch (error) {
        assert.ok(error instanceof ConnectError, String(error));
        return { messages, error, detail: error.findDetails(ErrorSchema)[0] };
      }
      return { messages, error: undefined, detail: undefined };
    }

    test('brings every message in order, and then ends', async () => {
      const event = create(EventSchema, { id: 'msg_1', version: 1n, data: { case: 'order', value: order } });
      const stored = Buffer.from(compileEncoder(EventSchema)(event));
      const seen: (string | undefined)[] = [];
      const watch: Watch = async function* many({ cursor }, { caller }) {
        seen.push(cursor, caller.partnerId);
        yield create(WatchEventsResponseSchema, { events: [storedMessage(EventSchema, stored)], nextCursor: '1' });
        for (let at = 2; at <= 300; at += 1) yield saying(String(at));
      };
      await watching(watch, async (own) => {
        let received = new Headers();
        const onHeader = (each: Headers) => {
          received = each;
        };
        const { messages, error } = await readAll(open(own, { onHeader }));
        assert.equal(error, undefined);
        assert.deepEqual(messages[0]?.events, [event]);
        assert.deepEqual(
          messages.map(({ nextCursor }) => Number(nextCursor)),
          Array.from({ length: 300 }, (_, at) => at + 1),
        );
        assert.deepEqual(seen, ['c', 'par_1']);
        assert.match(received.get('x-request-id') ?? '', /./);
        assert.deepEqual(
          own.finished.map(({ operation, status }) => [operation, status]),
          [['Events.WatchEvents', 200]],
        );
      });
    });

    const refused: readonly (readonly [string, Record<string, string>, { cursor?: string }, Code, string])[] = [
      ['no credential', {}, {}, Code.Unauthenticated, 'unauthorized'],
      ['a bad field', headers, { cursor: '' }, Code.InvalidArgument, 'invalid_request'],
    ];
    for (const [what, sent, request, code, word] of refused) {
      test(`${what} is answered ${word}`, async () => {
        await watching(waiting(), async (own) => {
          const stream = createClient(Events, transport(own)).watchEvents(request, { headers: sent });
          const { messages, error, detail } = await readAll(stream);
          assert.deepEqual([messages.length, error?.code, detail?.code], [0, code, word]);
        });
      });
    }

    test('ends with the error its handler throws', async () => {
      const watch: Watch = async function* failing() {
        yield saying('1');
        throw new ApiError('exchange_unavailable');
      };
      await watching(watch, async (own) => {
        const { messages, error, detail } = await readAll(open(own));
        assert.deepEqual([messages.length, error?.code, detail?.code], [1, Code.Unavailable, 'exchange_unavailable']);
        assert.equal(error?.message, `[unavailable] ${detail?.message}`);
      });
    });

    test('holds one of the places for streams, and gives it back', async () => {
      let held = 0;
      const takeStream = () => {
        if (held > 0) throw new ApiError('rate_limited');
        held += 1;
        return () => {
          held -= 1;
        };
      };
      const settings = { pipeline: { limits: { ...noLimits, takeStream } } };
      const run = async (own: Servers) => {
        const leaving = new AbortController();
        const first = open(own, { signal: leaving.signal })[Symbol.asyncIterator]();
        await first.next();
        const { detail } = await readAll(open(own));
        assert.equal(detail?.code, 'rate_limited');
        leaving.abort();
        await first.next().catch(() => {});
        await eventually(() => assert.equal(held, 0));
      };
      await watching(waiting(), run, settings);
    });

    test('ends for its handler when the client leaves', async () => {
      let isOver = false;
      const watch = waiting(() => {
        isOver = true;
      });
      await watching(watch, async (own) => {
        const leaving = new AbortController();
        const stream = open(own, { signal: leaving.signal })[Symbol.asyncIterator]();
        await stream.next();
        leaving.abort();
        await stream.next().catch(() => {});
        await eventually(() => assert.ok(isOver));
        await eventually(() => assert.deepEqual([own.finished[0]?.code, own.pipeline.underWay], ['client_gone', 0]));
      });
    });

    test('ends when the key is revoked', async () => {
      let found: Identification = { caller: callerWith(), refusal: undefined };
      const settings = { pipeline: { identify: async () => found, recheckMs: 20 } };
      const run = async (own: Servers) => {
        const stream = open(own)[Symbol.asyncIterator]();
        await stream.next();
        found = { ...found, refusal: 'revoked' };
        const { error, detail } = await readAll({ [Symbol.asyncIterator]: () => stream });
        assert.deepEqual([error?.code, detail?.code], [Code.Unauthenticated, 'unauthorized']);
      };
      await watching(waiting(), run, settings);
    });

    test('brings nothing after the key was revoked', async () => {
      let found: Identification = { caller: callerWith(), refusal: undefined };
      const watch: Watch = async function* talking() {
        yield saying('1');
        found = { ...found, refusal: 'revoked' };
        yield saying('2');
      };
      await watching(
        watch,
        async (own) => {
          const { messages, detail } = await readAll(open(own));
          assert.deepEqual([messages.map(({ nextCursor }) => nextCursor), detail?.code], [['1'], 'unauthorized']);
        },
        { pipeline: { identify: async () => found } },
      );
    });

    test('ends when the service begins to stop, which still serves', async () => {
      await watching(waiting(), async (own) => {
        const stream = open(own)[Symbol.asyncIterator]();
        await stream.next();
        own.http.drain();
        own.grpc.drain();
        const { error, detail } = await readAll({ [Symbol.asyncIterator]: () => stream });
        assert.deepEqual([error?.code, detail?.code], [Code.Unavailable, 'service_unavailable']);
        const next = await readAll(open(own));
        assert.equal(next.detail?.code, 'service_unavailable', 'it is told, and not refused a connection');
      });
    });

    test('ends when the service stops, which is not kept waiting', async () => {
      await watching(waiting(), async (own) => {
        const stream = open(own)[Symbol.asyncIterator]();
        await stream.next();
        const startedMs = performance.now();
        const closed = Promise.all([own.http.close(5_000), own.grpc.close(5_000)]);
        const { error, detail } = await readAll({ [Symbol.asyncIterator]: () => stream });
        assert.deepEqual([error?.code, detail?.code], [Code.Unavailable, 'service_unavailable']);
        assert.match(detail?.message ?? '', /last cursor/);
        await closed;
        assert.ok(performance.now() - startedMs < patient(2_000));
      });
    });
  });
}

describe('a stream that is read too slowly', () => {
  const long = 'x'.repeat(100_000);
  let said = 0;
  const endless: Watch = async function* talking() {
    for (said = 0; ; said += 1) yield saying(long);
  };
  const settings = { slowReaderMs: 300, pipeline: { identify } };

  test('over gRPC holds no more than the client has asked for, and ends with what to do', async () => {
    const run = async (own: Servers) => {
      const session = connectHttp2(`http://127.0.0.1:${own.grpcPort}`);
      const stream = session.request({
        ':method': 'POST',
        ':path': '/marina.gateway.v1.Events/WatchEvents',
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization: 'Bearer full',
      });
      stream.end(Buffer.alloc(5));
      await eventually(() => assert.equal(own.finished[0]?.code, 'service_unavailable'));
      assert.ok(said <= 2, `${said} messages of 100 KB were made for a window of 64 KB`);
      const trailers = new Promise<Record<string, unknown>>((resolve) => stream.once('trailers', resolve));
      stream.resume();
      const { 'grpc-status': status, 'grpc-message': message } = await trailers;
      assert.equal(Number(status), 14);
      assert.match(decodeURI(String(message)), /too slowly.*last cursor/);
      session.close();
    };
    await watching(endless, run, settings);
  });

  test('over Connect waits for the network, and ends with what to do', async () => {
    const run = async (own: Servers) => {
      const socket = connect(own.restPort, '127.0.0.1');
      socket.on('error', () => {});
      socket.pause();
      const body = Buffer.from('\0\0\0\0\x02{}', 'latin1');
      const contentType = { 'Content-Type': 'application/connect+json' };
      const target = '/marina.gateway.v1.Events/WatchEvents';
      socket.write(requestText({ target, headers: contentType, body }));
      await eventually(() => assert.equal(own.finished[0]?.code, 'service_unavailable'));
      const stoppedAt = said;
      await delay(100);
      assert.equal(said, stoppedAt);
      let text = '';
      socket.on('data', (chunk) => {
        text = (text + chunk.toString('latin1')).slice(-4_000);
      });
      socket.resume();
      await eventually(() => assert.match(text, /"code":"unavailable".*too slowly/));
      socket.destroy();
    };
    await watching(endless, run, settings);
  });

  test('over gRPC is cut when its end is not read either', { timeout: 20_000 }, async () => {
    const run = async (own: Servers) => {
      const session = connectHttp2(`http://127.0.0.1:${own.grpcPort}`);
      session.on('error', () => {});
      const stream = session.request({
        ':method': 'POST',
        ':path': '/marina.gateway.v1.Events/WatchEvents',
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization: 'Bearer full',
      });
      const cut = new Promise<number>((resolve) => stream.once('error', () => resolve(stream.rstCode)));
      stream.end(Buffer.alloc(5));
      assert.equal(await cut, 11); // ENHANCE_YOUR_CALM
      session.destroy();
    };
    await watching(endless, run, { ...settings, slowEndMs: 100 });
  });
});

test("Connect's stream is refused as HTTP has it when it is not asked for as a stream", async () => {
  await watching(waiting(), async (own) => {
    const target = '/marina.gateway.v1.Events/WatchEvents';
    const connection = new RawConnection(own.restPort);
    const { status, json } = await connection.send(requestText({ target, body: '{}' })).answer();
    connection.close();
    assert.deepEqual([status, (json as unknown as { code: string }).code], [415, 'invalid_argument']);
  });
});

test("Connect's stream takes one message in one envelope", async () => {
  const json = toJsonString(WatchEventsRequestSchema, create(WatchEventsRequestSchema, { cursor: 'c' }));
  const bytes = toBinary(WatchEventsRequestSchema, create(WatchEventsRequestSchema, { cursor: 'c' }));
  const head = (flags: number, length: number) => Buffer.from([flags, 0, 0, 0, length]);
  const bad: readonly Buffer[] = [
    Buffer.alloc(0),
    Buffer.alloc(4),
    Buffer.from(json),
    Buffer.concat([head(1, json.length), Buffer.from(json)]),
    Buffer.concat([head(0, json.length + 1), Buffer.from(json)]),
    Buffer.concat([head(0, bytes.length), bytes, head(0, bytes.length), bytes]),
  ];
  await watching(waiting(), async (own) => {
    for (const body of bad) {
      const connection = new RawConnection(own.restPort);
      const target = '/marina.gateway.v1.Events/WatchEvents';
      const headers = { 'Content-Type': 'application/connect+json' };
      const answer = await connection.send(requestText({ target, headers, body })).answer();
      connection.close();
      assert.equal(answer.status, 200);
      assert.equal(answer.body.charCodeAt(0), 2);
      // The first bit of an envelope says that its message is compressed.
      const isCompressed = body.length > 5 && body[0] === 1;
      assert.match(answer.body, isCompressed ? /"code":"unimplemented"/ : /"code":"invalid_argument"/);
    }
  });
});
