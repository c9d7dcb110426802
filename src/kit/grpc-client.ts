import { create, type DescMethod, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientReadableStream,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { grpcMethod, type TypedService } from './grpc-service.ts';

interface StreamCallOptions {
  /** Cancels the call, which then fails with CANCELLED. If it is aborted before the call, its reason is thrown. */
  readonly signal?: AbortSignal;
  /** The call fails with DEADLINE_EXCEEDED after this time; absent: never. */
  readonly timeoutMs?: number;
  readonly metadata?: Metadata;
}

/** Options of one unary call. */
export interface UnaryCallOptions extends StreamCallOptions {
  /** Required, so that no call waits for ever. */
  readonly timeoutMs: number;
}

/**
 * A service's calls as promises and async iterables. A stream opens when its first message is requested. Errors are
 * grpc-js's `ServiceError`, unchanged.
 */
export type GrpcClient<S extends TypedService> = {
  readonly [K in keyof S['method']]: S['method'][K]['methodKind'] extends 'unary'
    ? UnaryCall<S['method'][K]>
    : S['method'][K]['methodKind'] extends 'server_streaming'
      ? StreamCall<S['method'][K]>
      : never;
} & {
  /** Closes the connection when no unary call is under way any more. No call may begin after it. */
  close(): void;
  /** The client below, to watch its channel's state. */
  readonly grpcClient: Client;
};

type UnaryCall<M extends DescMethod> = (
  request: MessageInitShape<M['input']>,
  options: UnaryCallOptions,
) => Promise<MessageShape<M['output']>>;

type StreamCall<M extends DescMethod> = (
  request: MessageInitShape<M['input']>,
  options?: StreamCallOptions,
) => AsyncIterable<MessageShape<M['output']>>;

/**
 * Defaults of every channel. Without them, grpc-js retries some failed calls, which can double an order. It also shares
 * connections between clients of one address, so one client's broken connection would break another's calls. And it connects
 * to a proxy that `http_proxy` names, so plain text to this machine would leave it, and takes settings from name servers.
 */
export const channelDefaults: ChannelOptions = {
  'grpc.enable_retries': 0,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  // Nobody here reads its call statistics.
  'grpc.enable_channelz': 0,
};

/** A client of one service at `address` (`host:port`), without TLS unless credentials say so. */
export function createGrpcClient<S extends TypedService>(
  service: S,
  address: string,
  channelOptions: ChannelOptions = {},
  channelCredentials: ChannelCredentials = credentials.createInsecure(),
): GrpcClient<S> {
  const client = new Client(address, channelCredentials, { ...channelDefaults, ...channelOptions });
  const underWay = new CallsUnderWay(client);
  const calls: Record<string, unknown> = { grpcClient: client, close: () => underWay.close() };
  for (const method of service.methods) {
    if (method.methodKind === 'unary') calls[method.localName] = unaryCall(client, underWay, method);
    if (method.methodKind === 'server_streaming') calls[method.localName] = streamCall(client, method);
  }
  return calls as GrpcClient<S>;
}

/** Whether a client is connected. It connects if it is not. */
export function isConnected(client: Client): boolean {
  return stateOf(client) === connectivityState.READY;
}

/** Waits until a client is connected. Throws at the deadline, and when the client is closed. */
export function untilConnected(client: Client, deadline: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const check = (error?: Error) => {
      if (error) return reject(error);
      const state = stateOf(client);
      if (state === connectivityState.READY) return resolve();
      if (state === connectivityState.SHUTDOWN) return reject(new Error('the client was closed'));
      // Later, so that a close that changes the state is complete by then.
      client.getChannel().watchConnectivityState(state, deadline, (late) => queueMicrotask(() => check(late)));
    };
    check();
  });
}

/** The state of a client's channel, which connects unless it is closed: grpc-js would open a closed one again. */
function stateOf(client: Client): connectivityState {
  const channel = client.getChannel();
  const isClosed = channel.getConnectivityState(false) === connectivityState.SHUTDOWN;
  if (!isClosed) channel.getConnectivityState(true);
  return channel.getConnectivityState(false);
}

/**
 * Closes a client after its last call. grpc-js fails a call that has no connection assigned yet when its client is closed,
 * and nobody could say then whether it was sent.
 */
class CallsUnderWay {
  #count = 0;
  #isClosing = false;

  constructor(private readonly client: Client) {}

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    this.#closeAfterLast();
  }

  close(): void {
    this.#isClosing = true;
    this.#closeAfterLast();
  }

  #closeAfterLast(): void {
    if (this.#isClosing && this.#count === 0) this.client.close();
  }
}

function unaryCall(client: Client, underWay: CallsUnderWay, method: DescMethod): UnaryCall<DescMethod> {
  const definition = grpcMethod(method);
  return (request, options) =>
    new Promise((resolve, reject) => {
      const { signal } = options;
      if (signal?.aborted) return reject(signal.reason);
      const cancel = () => call.cancel();
      const call = client.makeUnaryRequest(
        definition.path,
        definition.requestSerialize,
        definition.responseDeserialize,
        create(method.input, request),
        options.metadata ?? new Metadata(),
        { deadline: Date.now() + options.timeoutMs },
        (error, response) => {
          signal?.removeEventListener('abort', cancel);
          underWay.end();
          if (error) reject(error);
          else if (response === undefined) reject(new Error(`${definition.path} answered without a message`));
          else resolve(response);
        },
      );
      // Not before: the request can fail to be made.
      underWay.begin();
      signal?.addEventListener('abort', cancel, { once: true });
    });
}

function streamCall(client: Client, method: DescMethod): StreamCall<DescMethod> {
  const definition = grpcMethod(method);
  return async function* (request, { signal, timeoutMs, metadata = new Metadata() } = {}) {
    signal?.throwIfAborted();
    const call: ClientReadableStream<MessageShape<DescMethod['output']>> = client.makeServerStreamRequest(
      definition.path,
      definition.requestSerialize,
      definition.responseDeserialize,
      create(method.input, request),
      metadata,
      timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
    );
    const cancel = () => call.cancel();
    // A cancelled call emits an error even when nobody reads any more. Without a listener it would end the process.
    call.on('error', () => {});
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      yield* call;
    } finally {
      signal?.removeEventListener('abort', cancel);
      cancel();
    }
  };
}

/** The status of a failed call; undefined if the error is of no call. */
export function codeOf(error: unknown): status | undefined {
  return (error as Partial<ServiceError>).code;
}

/** The name of a failed call's status, in lower case; undefined if the error has none. */
export function statusOf(error: unknown): string | undefined {
  const code = codeOf(error);
  return code === undefined ? undefined : status[code]?.toLowerCase();
}
