import { connect, type Socket } from 'node:net';
import { create, type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import type { Caller, Identify } from '../../../src/gateway/edge/auth/caller.ts';
import type { Call, HandlersOf } from '../../../src/gateway/edge/call.ts';
import { ConnectProtocol } from '../../../src/gateway/edge/connect/protocol.ts';
import { GrpcProtocol } from '../../../src/gateway/edge/grpc/protocol.ts';
import type { HttpLimits } from '../../../src/gateway/edge/http/node-server.ts';
import { HttpServer } from '../../../src/gateway/edge/http/server.ts';
import { defineOperations } from '../../../src/gateway/edge/operations.ts';
import { type CallLimits, Pipeline, type PipelineOptions } from '../../../src/gateway/edge/pipeline.ts';
import { RestProtocol } from '../../../src/gateway/edge/rest/protocol.ts';
import { type RetryInfo, RetryInfoSchema } from '../../../src/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../../src/gen/google/rpc/status_pb.ts';
import { Applications } from '../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { type Error as ErrorDetail, ErrorSchema } from '../../../src/gen/marina/gateway/v1/errors_pb.ts';
import {
  Events,
  ListEventsResponseSchema,
  ListObjectEventsResponseSchema,
  WatchEventsResponseSchema,
} from '../../../src/gen/marina/gateway/v1/events_pb.ts';
import {
  GetOrderHistoryResponseSchema,
  ListOrdersResponseSchema,
  OrderEstimateSchema,
  OrderSchema,
  OrderSide,
  OrderState,
  Orders,
  OrderType,
  TimeInForce,
} from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Feature, Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { createLogger } from '../../../src/kit/log.ts';

export const orderId = 'ord_abcdefghijklmnopqrst';
export const baseUrl = 'https://api.marina.example';

export const order = create(OrderSchema, {
  id: orderId,
  state: OrderState.PENDING,
  account: 'ABC123',
  symbol: 'DANGCEM',
  side: OrderSide.BUY,
  quantity: 100n,
  type: OrderType.LIMIT,
  timeInForce: TimeInForce.DAY,
  priceKobo: 25_000n,
  createdAt: { seconds: 1_795_000_000n },
  updatedAt: { seconds: 1_795_000_000n },
});

/** A body of POST /v1/orders that nothing is wrong with. */
export const goodOrder = {
  account: 'abc123',
  symbol: 'dangcem',
  side: 'buy',
  quantity: 100,
  type: 'limit',
  price_kobo: 25_000,
};

const everyScope = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.KEYS];

export function callerWith(
  scopes: readonly Scope[] = everyScope,
  features: readonly Feature[] = [Feature.ACCOUNT_OPENING],
): Caller {
  const limits = {
    requestsPerSecond: 20,
    requestsBurst: 40,
    requestsUnderWay: 5,
    ordersKoboPerDay: 1n,
    allocationsKoboPerDay: 1n,
  };
  return { partnerId: 'par_1', keyId: 'key_1', scopes: new Set(scopes), features: new Set(features), limits };
}

/** `Bearer full` may do everything, `Bearer reader` only read, `Bearer revoked` is known and refused. */
export const identify: Identify = async (authorization) => {
  if (authorization === 'Bearer full') return { caller: callerWith(), refusal: undefined };
  if (authorization === 'Bearer reader') return { caller: callerWith([Scope.READ]), refusal: undefined };
  if (authorization === 'Bearer revoked') return { caller: callerWith(), refusal: 'revoked' };
  return { caller: undefined, refusal: 'unknown' };
};

export const noLimits: CallLimits = {
  takeRequest: () => undefined,
  acquireSlot: async () => () => {},
  takeStream: () => () => {},
  takeFile: () => () => {},
};

/** A handler's call, as it was recorded. */
export interface Recorded {
  readonly name: string;
  readonly request: Message;
  readonly call: Call;
}

/** Handlers of both services which record what they are called with and answer with something empty. */
export function recordingHandlers(recorded: Recorded[]): {
  orders: HandlersOf<typeof Orders>;
  events: HandlersOf<typeof Events>;
} {
  const record = <Answer>(name: string, answer: Answer) => {
    return async (request: Message, call: Call) => {
      recorded.push({ name, request, call });
      return answer;
    };
  };
  return {
    orders: {
      createOrder: record('createOrder', order),
      estimateOrder: record('estimateOrder', create(OrderEstimateSchema)),
      listOrders: record('listOrders', create(ListOrdersResponseSchema)),
      getOrder: record('getOrder', order),
      getOrderHistory: record('getOrderHistory', create(GetOrderHistoryResponseSchema)),
      cancelOrder: record('cancelOrder', order),
    },
    events: {
      listEvents: record('listEvents', create(ListEventsResponseSchema)),
      listOrderEvents: record('listOrderEvents', create(ListObjectEventsResponseSchema)),
      listApplicationEvents: record('listApplicationEvents', create(ListObjectEventsResponseSchema)),
      listAllocationEvents: record('listAllocationEvents', create(ListObjectEventsResponseSchema)),
      listWithdrawalEvents: record('listWithdrawalEvents', create(ListObjectEventsResponseSchema)),
      async *watchEvents(request, call) {
        recorded.push({ name: 'watchEvents', request, call });
        yield create(WatchEventsResponseSchema, { nextCursor: 'c' });
      },
    },
  };
}

/** Handlers of applications for the tests that bring none of their own. */
const notUsed = Object.fromEntries(
  Applications.methods.map(({ localName }) => [localName, () => Promise.reject(new Error('not used'))]),
);

/** The line of the log about a request that ended. */
export interface Finished {
  readonly protocol: string;
  readonly operation?: string;
  readonly clientAddress: string;
  readonly status: number;
  readonly code?: string;
}

export interface Servers {
  readonly recorded: Recorded[];
  readonly finished: Finished[];
  readonly logLines: string[];
  readonly pipeline: Pipeline;
  readonly http: HttpServer;
  readonly grpc: GrpcProtocol;
  readonly restPort: number;
  readonly grpcPort: number;
  close(): Promise<void>;
}

export interface ServerSettings {
  readonly orders?: Partial<HandlersOf<typeof Orders>>;
  readonly events?: Partial<HandlersOf<typeof Events>>;
  readonly applications?: Partial<HandlersOf<typeof Applications>>;
  readonly pipeline?: Partial<PipelineOptions>;
  readonly onFinished?: (finished: Finished) => void;
  readonly limits?: Partial<HttpLimits>;
  readonly messageTimeoutMs?: number;
  readonly slowReaderMs?: number;
  readonly slowEndMs?: number;
}

/** The servers of all protocols on free ports over one pipeline. */
export async function openServers(settings: ServerSettings = {}): Promise<Servers> {
  const recorded: Recorded[] = [];
  const finished: Finished[] = [];
  const logLines: string[] = [];
  const write = (text: string) => {
    logLines.push(text);
    const line = JSON.parse(text);
    if (line.msg !== 'request') return;
    finished.push(line);
    settings.onFinished?.(line);
  };
  const log = createLogger({ name: 'test', level: 'info', destination: { write } });
  const pipeline = new Pipeline({ identify, limits: noLimits, log, ...settings.pipeline });
  const handlers = recordingHandlers(recorded);
  const operations = [
    ...defineOperations(Orders, { ...handlers.orders, ...settings.orders }),
    ...defineOperations(Events, { ...handlers.events, ...settings.events }),
    ...defineOperations(Applications, { ...notUsed, ...settings.applications } as HandlersOf<typeof Applications>),
  ];
  const { messageTimeoutMs, slowReaderMs, slowEndMs } = settings;
  const shared = {
    pipeline,
    operations,
    baseUrl,
    ...(slowReaderMs && { slowReaderMs }),
  };
  const limits = { lingerMs: 200, ...settings.limits };
  const http = new HttpServer({ ...shared, log, limits }, [new ConnectProtocol(shared)], new RestProtocol(shared));
  const grpc = new GrpcProtocol({
    ...shared,
    ...(messageTimeoutMs && { messageTimeoutMs }),
    ...(slowEndMs && { slowEndMs }),
  });
  const [restPort, grpcPort] = await Promise.all([http.listen(0, '127.0.0.1'), grpc.listen(0, '127.0.0.1')]);
  const close = async () => {
    await Promise.all([http.close(100), grpc.close(100)]);
  };
  return { recorded, finished, logLines, pipeline, http, grpc, restPort, grpcPort, close };
}

/** Opens servers, uses them and closes them. */
export async function withServers<Outcome>(
  settings: ServerSettings,
  use: (servers: Servers) => Promise<Outcome>,
): Promise<Outcome> {
  const servers = await openServers(settings);
  try {
    return await use(servers);
  } finally {
    await servers.close();
  }
}

/** Something to wait for, and what makes it happen. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** An order whose handler waits, with what the test needs to see and steer it. */
export function slowOrder() {
  const entered = gate();
  const release = gate();
  const ended = gate();
  const createOrder = async () => {
    entered.open();
    await release.opened;
    ended.open();
    return order;
  };
  return { createOrder, entered: entered.opened, release: release.open, ended: ended.opened };
}

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  readonly statusLine: string;
  /** By lower-case name; of a repeated one the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  readonly json: AnswerJson;
}

/** The members of a body that tests look at; the answer decides which of them are there. */
export interface AnswerJson {
  readonly object?: string;
  readonly price_kobo?: number | null;
  readonly error: {
    readonly type: string;
    readonly code: string;
    readonly message: string;
    readonly doc_url: string;
    readonly param?: string;
    readonly reject_reason?: string;
  };
}

/** A connection on which a test writes bytes as it likes. */
export class RawConnection {
  readonly socket: Socket;
  readonly ended: Promise<void>;
  #received = '';
  #waiting: (() => void) | undefined;
  #isOver = false;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk) => {
      this.#received += chunk.toString('latin1');
      this.#waiting?.();
    });
    this.ended = new Promise((resolve) => {
      const over = () => {
        this.#isOver = true;
        this.#waiting?.();
        resolve();
      };
      this.socket.once('end', over).once('close', over);
    });
  }

  send(text: string | Buffer): this {
    this.socket.write(text);
    return this;
  }

  /** The next answer; `isHead`: it has no body, whatever its Content-Length says. */
  async answer(isHead = false): Promise<RawAnswer> {
    for (;;) {
      const headEnd = this.#received.indexOf('\r\n\r\n');
      if (headEnd !== -1) {
        const [statusLine = '', ...lines] = this.#received.slice(0, headEnd).split('\r\n');
        const headers = new Map(
          lines.map((line): [string, string] => [
            line.slice(0, line.indexOf(':')).toLowerCase(),
            line.slice(line.indexOf(':') + 1).trim(),
          ]),
        );
        const status = Number(statusLine.split(' ')[1]);
        const length = isHead || status === 100 ? 0 : Number(headers.get('content-length'));
        const end = headEnd + 4 + length;
        if (this.#received.length >= end) {
          const body = Buffer.from(this.#received.slice(headEnd + 4, end), 'latin1').toString('utf8');
          this.#received = this.#received.slice(end);
          const isJson = body !== '' && headers.get('content-type') === 'application/json';
          return { status, statusLine, headers, body, json: isJson ? JSON.parse(body) : undefined };
        }
      }
      if (this.#isOver) throw new Error(`the connection ended; received: ${JSON.stringify(this.#received)}`);
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  close(): void {
    this.socket.destroy();
  }
}

export interface RestRequest {
  readonly method?: string;
  readonly target?: string;
  /** Replaces the default headers of the same names; null leaves one out. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly body?: string | Buffer;
}

/** Opens a connection, uses it and closes it. */
export async function withConnection<Outcome>(
  port: number,
  use: (connection: RawConnection) => Promise<Outcome>,
): Promise<Outcome> {
  const connection = new RawConnection(port);
  try {
    return await use(connection);
  } finally {
    connection.close();
  }
}

/** The bytes of a request: POST /v1/orders with a proper head unless said otherwise. */
export function requestText({ method = 'POST', target = '/v1/orders', headers = {}, body }: RestRequest): Buffer {
  const bytes = Buffer.from(body ?? '');
  const all: Record<string, string | readonly string[] | null> = {
    Host: 'localhost',
    Authorization: 'Bearer full',
    ...(method === 'POST' && { 'Content-Type': 'application/json', 'Idempotency-Key': 'key-1' }),
    ...(body !== undefined && { 'Content-Length': String(bytes.length) }),
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : (typeof value === 'string' ? [value] : value).map((each) => `${name}: ${each}\r\n`),
  );
  return Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), bytes]);
}

/** Sends one request on a connection of its own. */
export async function send(port: number, request: RestRequest): Promise<RawAnswer> {
  const connection = new RawConnection(port);
  try {
    return await connection.send(requestText(request)).answer(request.method === 'HEAD');
  } finally {
    connection.close();
  }
}

/** The outcome of a gRPC call. */
export interface GrpcOutcome {
  readonly code: number;
  readonly details: string;
  readonly message: Message | undefined;
  readonly error: ErrorDetail | undefined;
  readonly retry: RetryInfo | undefined;
  /** Of the answer's beginning when it succeeded, of its end when it did not. */
  readonly metadata: Metadata;
}

/** Calls a method with a message, or with bytes as they are. */
export function callGrpc(
  port: number,
  method: DescMethod,
  request: Message | Buffer,
  metadata: Record<string, string> = { authorization: 'Bearer full', 'idempotency-key': 'key-1' },
): Promise<GrpcOutcome> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const sent = new Metadata();
  for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
  const bytes = Buffer.isBuffer(request) ? request : Buffer.from(toBinary(method.input, request));
  return new Promise((resolve) => {
    let begin = new Metadata();
    const call = client.makeUnaryRequest(
      `/${method.parent.typeName}/${method.name}`,
      (each: Buffer) => each,
      (each: Buffer) => each,
      bytes,
      sent,
      { deadline: Date.now() + 10_000 },
      (error, answer) => {
        client.close();
        const message = answer && fromBinary(method.output, answer);
        resolve(
          error === null
            ? { code: 0, details: '', message, error: undefined, retry: undefined, metadata: begin }
            : outcomeOf(error),
        );
      },
    );
    call.on('metadata', (received) => {
      begin = received;
    });
  });
}

function outcomeOf({ code, details, metadata }: ServiceError): GrpcOutcome {
  const [rich] = metadata.get('grpc-status-details-bin');
  const packed = rich === undefined ? [] : fromBinary(StatusSchema, rich as Buffer).details;
  const error = packed.map((each) => anyUnpack(each, ErrorSchema)).find((each) => each !== undefined);
  const retry = packed.map((each) => anyUnpack(each, RetryInfoSchema)).find((each) => each !== undefined);
  return { code, details, message: undefined, error, retry, metadata };
}
