import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { atMost } from '../../../kit/at-most.ts';
import type { Logger } from '../../../kit/log.ts';
import type { ServerIdentity } from '../../../kit/server-identity.ts';
import { ApiError } from '../errors.ts';
import { ClientGone, type Pipeline } from '../pipeline.ts';
import { isUnlogged, type ProtocolName, type RequestContext } from '../request.ts';
import { OpenStreams } from '../streams.ts';
import { endStream, HttpConnection, type HttpExchange, writeStream } from './connection.ts';
import {
  type Answer,
  answerHeaders,
  HttpRequest,
  malformedEvent,
  pathOfUnknownMethod,
  rawAnswer,
  readTarget,
  type StreamAnswer,
  unreadable,
} from './messages.ts';
import { createNodeServer, defaultHttpLimits, type HttpLimits, lingerRules } from './node-server.ts';

/** A protocol over HTTP: REST, Connect, or the pages. */
export interface HttpProtocol {
  readonly name: ProtocolName;
  /** The paths it answers, served or not; undefined for all paths of no other protocol. */
  readonly paths?: RegExp;
  /** Runs a request through the pipeline and returns its answer. Throws the error to pass to `refusal`. */
  answer(request: HttpRequest, context: RequestContext): Promise<Answer | StreamAnswer>;
  /** Turns an error into an answer. The request may have an invalid head, or be undefined if Node could read none. */
  refusal(error: ApiError, request: IncomingMessage | undefined): Answer;
  /** The error for a method unknown to HTTP: nothing is at the path, or the methods it has. */
  unknownMethod(path: string): ApiError;
}

export interface HttpServerOptions {
  readonly pipeline: Pipeline;
  readonly log: Logger;
  readonly limits?: Partial<HttpLimits>;
  /** Without it the server speaks plain text, for a proxy that ends TLS. */
  readonly identity?: ServerIdentity | undefined;
  readonly slowReaderMs?: number;
}

/** Serves requests over Node's HTTP server, each by the protocol of its path. */
export class HttpServer {
  readonly #connections = new Map<Socket, HttpConnection>();
  /** All admitted connections, also during their TLS handshake. */
  readonly #sockets = new Set<Socket>();
  readonly #streams = new OpenStreams();
  readonly #options: HttpServerOptions;
  readonly #limits: HttpLimits;
  readonly #server: Server;
  #isDraining = false;
  #silentUntilMs = 0;

  constructor(
    options: HttpServerOptions,
    private readonly protocols: readonly HttpProtocol[],
    /** Answers other paths, and unreadable requests. */
    private readonly mainProtocol: HttpProtocol,
  ) {
    this.#options = options;
    this.#limits = { ...defaultHttpLimits, ...options.limits };
    this.#server = createNodeServer(this.#limits, options.identity);
    this.#attach(this.#server, options.identity !== undefined);
  }

  listen(port: number, host: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  /** Ends streams and makes each answer its connection's last. Goes on serving. */
  drain(): void {
    this.#isDraining = true;
    this.#streams.close();
  }

  /** Accepts no more connections, answers running requests for at most `graceMs`, and closes. */
  async close(graceMs: number): Promise<void> {
    this.drain();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#connections.values()) connection.closeIfIdle();
    await atMost(graceMs, Promise.all([closed, this.#options.pipeline.idle()]));
    this.#server.closeAllConnections();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #attach(server: Server, isSecure: boolean): void {
    const take = (awaitsContinue: boolean) => (request: IncomingMessage, response: ServerResponse) =>
      this.#connections
        .get(request.socket)
        ?.take({ request, response, awaitsContinue, hasUnreadBody: false, isMalformed: false });
    server.on('request', take(false));
    server.on('checkContinue', take(true));
    server.on('checkExpectation', take(false));
    const onAdmitted = (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      if (!isSecure) this.#open(socket);
    };
    this.#options.pipeline.connectionLimits.guard(server, onAdmitted, () => this.#onDrop());
    if (isSecure) server.on('secureConnection', (socket: Socket) => this.#open(socket));
    server.on('clientError', (error, socket) => this.#onClientError(error, socket as Socket));
    server.on('connect', (_request, socket) => this.#onConnect(socket as Socket));
  }

  #open(socket: Socket): void {
    const onFlood = () => this.#options.pipeline.connectionLimits.blame(socket.remoteAddress ?? '');
    const serve = (connection: HttpConnection, exchange: HttpExchange) => void this.#serve(connection, exchange);
    this.#connections.set(socket, new HttpConnection(socket, serve, lingerRules(this.#limits, false), onFlood));
    socket.once('close', () => this.#connections.delete(socket));
  }

  #protocolOf(path: string): HttpProtocol {
    return this.protocols.find(({ paths }) => paths?.test(path)) ?? this.mainProtocol;
  }

  async #serve(connection: HttpConnection, exchange: HttpExchange): Promise<void> {
    const { pipeline } = this.#options;
    const { request, response } = exchange;
    const protocol = this.#protocolOf(readTarget(request).path);
    const peer = request.socket.remoteAddress ?? '';
    const context = pipeline.begin(protocol.name, peer);
    if (!response.destroyed) response.once('close', context.leaves());
    try {
      const read = this.#read(connection, exchange);
      context.clientAddress = pipeline.connectionLimits.clientOf(peer, read.forwardedFor);
      if (pipeline.keepsRequests) {
        const { method, path, query } = read;
        context.exchanged = { method, path, query, isUnlogged: isUnlogged((name) => request.headers[name]) };
      }
      const answer = await protocol.answer(read, context);
      if ('messages' in answer) {
        await this.#writeStream(connection, exchange, context, answer);
      } else {
        pipeline.finish(context, answer.status);
        this.#write(connection, exchange, context, answer);
      }
    } catch (error) {
      const refusal = pipeline.refuse(context, error);
      if (refusal === undefined) connection.answered(true);
      else this.#write(connection, exchange, context, protocol.refusal(refusal, request));
    }
  }

  /** An invalid request ends its connection, because the start of the next one cannot be trusted. */
  #read(connection: HttpConnection, exchange: HttpExchange): HttpRequest {
    try {
      return new HttpRequest(exchange, this.#limits);
    } catch (error) {
      connection.isEnding = true;
      throw error;
    }
  }

  #write(connection: HttpConnection, exchange: HttpExchange, context: RequestContext, answer: Answer): void {
    const { request, response, hasUnreadBody } = exchange;
    const { strangersKeepAliveMs } = this.#limits;
    if (
      !context.isIdentified &&
      !this.#options.pipeline.connectionLimits.takeStranger(connection.socket.remoteAddress ?? '')
    ) {
      connection.isEnding = true;
    }
    const isLast = this.#isLast(connection, exchange);
    if (hasUnreadBody && context.isIdentified) connection.lingers = lingerRules(this.#limits, true);
    if (!response.destroyed) {
      const headers = answerHeaders(answer, context.requestId);
      connection.isKnown ||= context.isIdentified;
      if (isLast) headers.push('Connection', 'close');
      else if (this.#isStranger(connection)) {
        const seconds = Math.floor(strangersKeepAliveMs / 1_000);
        headers.push('Connection', 'keep-alive', 'Keep-Alive', `timeout=${seconds}`);
      }
      response.writeHead(answer.status, headers);
      response.end(answer.body, 'latin1');
      this.#limitAnswer(connection, exchange);
      if (hasUnreadBody) request.resume();
    }
    connection.answered(isLast || response.destroyed);
  }

  /** Cuts a client that does not read its answer. Without a valid key, it also waits less for the next request. */
  #limitAnswer(connection: HttpConnection, { response }: HttpExchange): void {
    const { answerTimeoutMs, strangersKeepAliveMs } = this.#limits;
    const { socket } = connection;
    const timer = setTimeout(() => socket.destroy(), answerTimeoutMs);
    response.once('close', () => {
      clearTimeout(timer);
      // After Node, which sets the same time for all connections.
      if (this.#isStranger(connection) && connection.current === undefined && !socket.destroyed)
        socket.setTimeout(strangersKeepAliveMs);
    });
  }

  /** A connection without a valid key. A proxy's does not count, because the proxy keeps it for all its clients. */
  #isStranger({ isKnown, socket }: HttpConnection): boolean {
    return !isKnown && !this.#options.pipeline.connectionLimits.isProxy(socket.remoteAddress ?? '');
  }

  async #writeStream(
    connection: HttpConnection,
    exchange: HttpExchange,
    context: RequestContext,
    answer: StreamAnswer,
  ): Promise<void> {
    const { pipeline, slowReaderMs } = this.#options;
    const { response } = exchange;
    const headers = answerHeaders(answer, context.requestId);
    if (this.#isLast(connection, exchange)) headers.push('Connection', 'close');
    const ending = this.#streams.open();
    let refusal: ApiError | undefined;
    try {
      await writeStream(response, answer, headers, ending, slowReaderMs);
      pipeline.finish(context, answer.status);
    } catch (error) {
      if (error instanceof ClientGone) throw error;
      refusal = pipeline.refuse(context, error);
    } finally {
      this.#streams.ended(ending);
    }
    const isLast = this.#isLast(connection, exchange);
    endStream(response, answer.end(refusal), isLast);
    connection.answered(isLast || response.destroyed);
  }

  /** An unread body makes this the connection's last answer, because it stands before the next request. */
  #isLast(connection: HttpConnection, { response, hasUnreadBody }: HttpExchange): boolean {
    const hasMore = !connection.socket.readableEnded || connection.hasWaiting;
    return connection.isEnding || this.#isDraining || hasUnreadBody || !hasMore || !response.shouldKeepAlive;
  }

  /** A request that Node could not read, or that took too long. */
  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.get(socket);
    // Node still waits for a body that nobody reads. The connection has its own timer by then.
    if (connection?.isLingering === true && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return;
    if (connection === undefined || !socket.writable) {
      socket.destroy();
    } else if (connection.current !== undefined) {
      // An extra answer would be taken for the answer to the request in progress.
      connection.isEnding = true;
      const { current } = connection;
      if (!current.request.complete) {
        current.isMalformed = true;
        current.request.emit(malformedEvent);
      }
    } else if (connection.owesAnswer) {
      const path = pathOfUnknownMethod(error);
      this.#refuse(socket, path === undefined ? unreadable(error) : this.#protocolOf(path).unknownMethod(path));
    } else if (!connection.isOver) {
      socket.destroy();
    }
  }

  /** Logged at most once a minute, so that a flood of connections does not flood the log. */
  #onDrop(): void {
    if (performance.now() < this.#silentUntilMs) return;
    this.#silentUntilMs = performance.now() + 60_000;
    this.#options.log.warn('connections are dropped: there are too many');
  }

  /** A CONNECT request. Node hands over the connection, with its errors. */
  #onConnect(socket: Socket): void {
    socket.on('error', () => {});
    const connection = this.#connections.get(socket);
    if (connection?.current === undefined) this.#refuse(socket, new ApiError('not_found'));
    else connection.isEnding = true;
  }

  /** Answers on a connection on which Node has no request. */
  #refuse(socket: Socket, refusal: ApiError): void {
    const { pipeline } = this.#options;
    const context = pipeline.begin(this.mainProtocol.name, socket.remoteAddress);
    pipeline.finish(context, refusal.status, refusal.code);
    const answer = this.mainProtocol.refusal(refusal, undefined);
    this.#connections.get(socket)?.endWith(rawAnswer(answer, context.requestId));
  }
}
