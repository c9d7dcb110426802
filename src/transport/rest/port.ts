import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { atMost } from '../../lib/at-most.ts';
import { ApiError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { ConnectionLimits } from '../connection-limits.ts';
import { ClientGone, clientGoneStatus, type Pipeline } from '../pipeline.ts';
import { OpenStreams } from '../streams.ts';
import { takeOver } from '../take-over.ts';
import type { Visit } from '../visit.ts';
import { commonHeaders, rawAnswer, wholeHeaders } from './answer.ts';
import { malformedEvent } from './body.ts';
import { Connection, type Exchange } from './connection.ts';
import { errorAnswer, pathOfUnknownMethod, unreadable } from './errors.ts';
import { readHead, readTarget } from './head.ts';
import { Incoming } from './incoming.ts';
import type { RestLimits } from './limits.ts';
import type { Answer, Protocol, StreamAnswer } from './protocol.ts';
import { endStream, writeMessages } from './stream-writer.ts';

export interface HttpPortOptions {
  readonly pipeline: Pipeline;
  /** Where partners reach us, for links to the documentation. */
  readonly baseUrl: string;
  readonly log: Logger;
  /** Whose address a request counts for; by default the connection's other end. */
  readonly clientAddress?: (peer: string, forwardedFor: string | undefined) => string;
  /** How long a client may take over one message of a stream. */
  readonly slowReaderMs?: number;
  /** Bounds the connections of all partners' ports together. */
  readonly connectionLimits?: ConnectionLimits;
}

/** The HTTP port: requests on their connections, each read and answered by the protocol its path belongs to. */
export class HttpPort {
  readonly #connections = new Map<Socket, Connection>();
  /** What carries TLS connections, from before their handshakes on. */
  readonly #carriers = new Set<Socket>();
  readonly #streams = new OpenStreams();
  readonly #options: HttpPortOptions;
  readonly #connectionLimits: ConnectionLimits;
  #underWay = 0;
  #isDraining = false;
  #silentUntilMs = 0;
  #whenIdle: (() => void) | undefined;

  constructor(
    options: HttpPortOptions,
    private readonly limits: RestLimits,
    private readonly protocolOf: (path: string) => Protocol,
  ) {
    this.#options = options;
    this.#connectionLimits = options.connectionLimits ?? new ConnectionLimits();
  }

  attach(server: Server): void {
    const take = (awaitsContinue: boolean) => (request: IncomingMessage, response: ServerResponse) =>
      this.#connections
        .get(request.socket)
        ?.take({ request, response, awaitsContinue, hasUnreadBody: false, isMalformed: false });
    server.on('request', take(false));
    server.on('checkContinue', take(true));
    server.on('checkExpectation', take(false));
    const isSecure = server instanceof TlsServer;
    const connected = takeOver(server, 'connection');
    server.on('connection', (socket) => {
      if (!this.#connectionLimits.admit(socket)) {
        socket.destroy();
        this.#onDrop();
        return;
      }
      connected(socket);
      if (isSecure) {
        this.#carriers.add(socket);
        socket.once('close', () => this.#carriers.delete(socket));
      } else this.#open(socket);
    });
    if (isSecure) server.on('secureConnection', (socket) => this.#open(socket));
    server.on('clientError', (error, socket) => this.#onClientError(error, socket as Socket));
    server.on('connect', (_request, socket) => this.#onConnect(socket as Socket));
    server.on('drop', () => this.#onDrop());
  }

  /** Serves on, and makes each answer the last of its connection; streams end. */
  drain(): void {
    this.#isDraining = true;
    this.#streams.close();
  }

  async close(server: Server, graceMs: number): Promise<void> {
    this.drain();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
      if (this.#underWay === 0) resolve();
    });
    for (const connection of this.#connections.values()) connection.closeIfIdle();
    await atMost(graceMs, Promise.all([closed, idle]));
    server.closeAllConnections();
    for (const socket of [...this.#connections.keys(), ...this.#carriers]) socket.destroy();
    await closed;
  }

  #open(socket: Socket): void {
    const onFlood = () => this.#connectionLimits.blame(socket.remoteAddress ?? '');
    const serve = (connection: Connection, exchange: Exchange) => void this.#serve(connection, exchange);
    this.#connections.set(socket, new Connection(socket, serve, this.limits.lingerMs, onFlood));
    socket.once('close', () => this.#connections.delete(socket));
  }

  async #serve(connection: Connection, exchange: Exchange): Promise<void> {
    const { pipeline } = this.#options;
    const { request } = exchange;
    const protocol = this.protocolOf(readTarget(request).path);
    const visit = pipeline.begin(protocol.door, request.socket.remoteAddress);
    if (!exchange.response.destroyed) exchange.response.once('close', visit.leaves());
    this.#underWay += 1;
    try {
      const incoming = this.#read(connection, exchange);
      visit.clientAddress = incoming.clientAddress;
      const answer = await protocol.answer(incoming, visit);
      if ('messages' in answer) {
        await this.#writeStream(connection, exchange, visit, answer);
      } else {
        pipeline.finish(visit, answer.status);
        this.#write(connection, exchange, visit, answer);
      }
    } catch (error) {
      if (error instanceof ClientGone) {
        pipeline.finish(visit, clientGoneStatus, 'client_gone');
        connection.answered(true);
      } else {
        const refusal = pipeline.refusal(visit, error);
        pipeline.finish(visit, refusal.status, refusal.code);
        this.#write(connection, exchange, visit, protocol.refusal(refusal, request));
      }
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#whenIdle?.();
    }
  }

  /** What is no proper request ends its connection: where the next one would begin is not to be trusted. */
  #read(connection: Connection, exchange: Exchange): Incoming {
    const { clientAddress } = this.#options;
    const { request } = exchange;
    try {
      const head = readHead(request);
      exchange.hasUnreadBody = head.hasBody;
      const peer = request.socket.remoteAddress ?? '';
      return new Incoming(exchange, head, clientAddress?.(peer, head.forwardedFor) ?? peer, this.limits);
    } catch (error) {
      connection.isEnding = true;
      throw error;
    }
  }

  #write(connection: Connection, exchange: Exchange, visit: Visit, answer: Answer): void {
    const { request, response, hasUnreadBody } = exchange;
    if (!visit.isIdentified && !this.#connectionLimits.takeStranger(connection.socket.remoteAddress ?? '')) {
      connection.isEnding = true;
    }
    const isLast = this.#isLast(connection, exchange);
    if (hasUnreadBody && visit.isIdentified) connection.lingerMs = this.limits.refusedBodyLingerMs;
    if (!response.destroyed) {
      const headers = wholeHeaders(answer, visit.requestId);
      connection.isKnown ||= visit.isIdentified;
      if (isLast) headers.push('Connection', 'close');
      else if (this.#isStranger(connection))
        headers.push('Connection', 'keep-alive', 'Keep-Alive', this.#strangersTime);
      response.writeHead(answer.status, headers);
      response.end(answer.body);
      this.#limitAnswer(connection, exchange);
      if (hasUnreadBody) request.resume();
    }
    connection.answered(isLast || response.destroyed);
  }

  /** Cuts a client that does not read its answer, and does not wait long for the next request of a stranger. */
  #limitAnswer(connection: Connection, { response, request }: Exchange): void {
    const { answerTimeoutMs, strangersKeepAliveMs } = this.limits;
    const timer = setTimeout(() => request.socket.destroy(), answerTimeoutMs);
    response.once('close', () => {
      clearTimeout(timer);
      // After Node, which gives every connection the same time.
      const { socket } = request;
      if (this.#isStranger(connection) && connection.current === undefined && !socket.destroyed)
        socket.setTimeout(strangersKeepAliveMs);
    });
  }

  /** A proxy keeps connections for all its clients, and expects them to stay. */
  #isStranger({ isKnown, socket }: Connection): boolean {
    return !isKnown && !this.#connectionLimits.isProxy(socket.remoteAddress ?? '');
  }

  /** What tells a stranger how long its connection may rest. */
  get #strangersTime(): string {
    return `timeout=${Math.floor(this.limits.strangersKeepAliveMs / 1_000)}`;
  }

  async #writeStream(connection: Connection, exchange: Exchange, visit: Visit, answer: StreamAnswer): Promise<void> {
    const { pipeline, slowReaderMs } = this.#options;
    const { response } = exchange;
    const { socket } = connection;
    // A client that ends its side of the connection ends its stream: nothing else tells that it has left.
    const leave = () => socket.destroy();
    if (socket.readableEnded) leave();
    socket.once('end', leave);
    response.once('close', () => socket.off('end', leave));
    const headers = commonHeaders(answer, visit.requestId);
    if (this.#isLast(connection, exchange)) headers.push('Connection', 'close');
    const ending = this.#streams.open();
    let refusal: ApiError | undefined;
    try {
      await writeMessages(response, answer, headers, ending, slowReaderMs);
      pipeline.finish(visit, answer.status);
    } catch (error) {
      if (error instanceof ClientGone) throw error;
      refusal = pipeline.refusal(visit, error);
      pipeline.finish(visit, refusal.status, refusal.code);
    } finally {
      this.#streams.ended(ending);
    }
    const isLast = this.#isLast(connection, exchange);
    endStream(response, answer.end(refusal), isLast);
    connection.answered(isLast || response.destroyed);
  }

  /** What was not read stands between an answer and the next request. */
  #isLast(connection: Connection, { response, hasUnreadBody }: Exchange): boolean {
    const hasMore = !connection.socket.readableEnded || connection.hasWaiting;
    return connection.isEnding || this.#isDraining || hasUnreadBody || !hasMore || !response.shouldKeepAlive;
  }

  /** What Node could not read as a request, or waited for too long. */
  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.get(socket);
    // Node waits for the rest of a body that nobody reads. The connection has a time of its own by then.
    if (connection?.isLingering === true && error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return;
    if (connection === undefined || !socket.writable) {
      socket.destroy();
    } else if (connection.current !== undefined) {
      // An answer of its own would be taken for the answer to the request under way.
      connection.isEnding = true;
      const { current } = connection;
      if (!current.request.complete) {
        current.isMalformed = true;
        current.request.emit(malformedEvent);
      }
    } else if (connection.owesAnswer) {
      const path = pathOfUnknownMethod(error);
      this.#refuse(socket, path === undefined ? unreadable(error) : this.protocolOf(path).unknownMethod(path));
    } else if (!connection.isOver) {
      socket.destroy();
    }
  }

  /** Said once a minute at most: a flood of connections must not become one of lines. */
  #onDrop(): void {
    if (performance.now() < this.#silentUntilMs) return;
    this.#silentUntilMs = performance.now() + 60_000;
    this.#options.log.warn('connections are dropped: there are too many');
  }

  /** A request to become a tunnel: Node hands the connection over, its errors included. */
  #onConnect(socket: Socket): void {
    socket.on('error', () => {});
    const connection = this.#connections.get(socket);
    if (connection?.current === undefined) this.#refuse(socket, new ApiError('not_found'));
    else connection.isEnding = true;
  }

  /** Answers on a connection on which Node has no request. */
  #refuse(socket: Socket, refusal: ApiError): void {
    const { pipeline, baseUrl } = this.#options;
    const visit = pipeline.begin('rest', socket.remoteAddress);
    pipeline.finish(visit, refusal.status, refusal.code);
    this.#connections.get(socket)?.endWith(rawAnswer(errorAnswer(refusal, baseUrl), visit.requestId));
  }
}
