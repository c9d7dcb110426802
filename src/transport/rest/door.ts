import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { checkIdempotencyKey } from '../idempotency-key.ts';
import type { Operation } from '../operations.ts';
import { ClientGone, clientGoneStatus, type Pipeline } from '../pipeline.ts';
import type { Visit } from '../visit.ts';
import { commonHeaders, rawAnswer, replyHeaders } from './answer.ts';
import { checkMediaType, checkSize, discardBody, malformedEvent, readBody } from './body.ts';
import { Connection, type Exchange } from './connection.ts';
import { type Answer, errorAnswer, unreadable } from './errors.ts';
import { type RequestHead, readHead } from './head.ts';
import type { RestLimits } from './limits.ts';
import { Routes } from './routes.ts';

export interface RestDoorOptions {
  readonly pipeline: Pipeline;
  readonly operations: readonly Operation[];
  /** Where partners reach us, for links to the documentation. */
  readonly baseUrl: string;
  readonly log: Logger;
  /** Whose address a request counts for; by default the connection's other end. */
  readonly clientAddress?: (peer: string, forwardedFor: string | undefined) => string;
}

/** Takes requests through the pipeline, each on its connection. */
export class RestDoor {
  readonly #options: RestDoorOptions;
  readonly #limits: RestLimits;
  readonly #routes: Routes;
  readonly #connections = new Map<Socket, Connection>();
  #underWay = 0;
  #isClosing = false;
  #silentUntilMs = 0;
  #whenIdle: (() => void) | undefined;

  constructor(options: RestDoorOptions, limits: RestLimits) {
    this.#options = options;
    this.#limits = limits;
    this.#routes = new Routes(options.operations);
  }

  attach(server: Server): void {
    const take = (awaitsContinue: boolean) => (request: IncomingMessage, response: ServerResponse) =>
      this.#connections
        .get(request.socket)
        ?.take({ request, response, awaitsContinue, hasUnreadBody: false, isMalformed: false });
    server.on('request', take(false));
    server.on('checkContinue', take(true));
    server.on('checkExpectation', take(false));
    server.on('connection', (socket) => this.#open(socket));
    server.on('clientError', (error, socket) => this.#onClientError(error, socket as Socket));
    server.on('connect', (_request, socket) => this.#onConnect(socket as Socket));
    server.on('drop', () => this.#onDrop());
  }

  async close(server: Server, graceMs: number): Promise<void> {
    this.#isClosing = true;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
      if (this.#underWay === 0) resolve();
    });
    for (const connection of this.#connections.values()) connection.closeIfIdle();
    let timer: NodeJS.Timeout | undefined;
    const graceOver = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    await Promise.race([Promise.all([closed, idle]), graceOver]);
    clearTimeout(timer);
    server.closeAllConnections();
    for (const socket of this.#connections.keys()) socket.destroy();
    await closed;
  }

  #open(socket: Socket): void {
    const serve = (connection: Connection, exchange: Exchange) => void this.#serve(connection, exchange);
    this.#connections.set(socket, new Connection(socket, serve, this.#limits.lingerMs));
    socket.once('close', () => this.#connections.delete(socket));
  }

  async #serve(connection: Connection, exchange: Exchange): Promise<void> {
    const { pipeline, baseUrl } = this.#options;
    const visit = pipeline.begin('rest');
    this.#underWay += 1;
    try {
      const answer = await this.#answer(connection, exchange, visit);
      pipeline.finish(visit, answer.status);
      this.#write(connection, exchange, visit, answer);
    } catch (error) {
      if (error instanceof ClientGone) {
        pipeline.finish(visit, clientGoneStatus, 'client_gone');
        connection.answered(true);
      } else {
        const refusal = pipeline.refusal(visit, error);
        pipeline.finish(visit, refusal.status, refusal.code);
        this.#write(connection, exchange, visit, errorAnswer(refusal, baseUrl));
      }
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#whenIdle?.();
    }
  }

  /** The decided order of checks, as far as it is HTTP's. */
  async #answer(connection: Connection, exchange: Exchange, visit: Visit): Promise<Answer> {
    const { request, response, awaitsContinue } = exchange;
    const { pipeline, clientAddress } = this.#options;
    const head = this.#readHead(connection, request);
    exchange.hasUnreadBody = head.hasBody;
    const peer = request.socket.remoteAddress ?? '';
    const { route, pathTexts } = await pipeline.admit(visit, {
      authorization: head.authorization,
      clientAddress: clientAddress === undefined ? peer : clientAddress(peer, head.forwardedFor),
      route: () => this.#routes.find(request.method ?? '', head.path),
    });
    const message = route.readTarget(pathTexts, head.query);
    const idempotencyKey = checkIdempotencyKey(route.operation, head.idempotencyKeys);
    if (route.decode !== undefined) {
      checkMediaType(head);
      checkSize(head);
      if (awaitsContinue) response.writeContinue();
      const body = await readBody(exchange, this.#limits.bodyTimeoutMs);
      exchange.hasUnreadBody = false;
      route.decode(body, message);
    } else if (head.hasBody) {
      this.#passOver(exchange, head);
    }
    const reply = await pipeline.call(visit, message, idempotencyKey);
    return { status: reply.created ? 201 : 200, headers: replyHeaders(reply), body: route.encode(reply.message) };
  }

  /** What is no proper request ends its connection: where the next one would begin is not to be trusted. */
  #readHead(connection: Connection, request: IncomingMessage): RequestHead {
    try {
      return readHead(request);
    } catch (error) {
      connection.isEnding = true;
      throw error;
    }
  }

  /** A body where none belongs: taken off the connection if it is small, else the connection ends with the answer. */
  #passOver(exchange: Exchange, { contentLength }: RequestHead): void {
    if (exchange.awaitsContinue || (contentLength ?? 0) > this.#limits.passedOverBytes) return;
    exchange.hasUnreadBody = false;
    discardBody(exchange.request);
  }

  #write(connection: Connection, exchange: Exchange, visit: Visit, answer: Answer): void {
    const { request, response, hasUnreadBody } = exchange;
    // What was not read stands between this answer and the next request.
    const isLast = connection.isEnding || this.#isClosing || hasUnreadBody || !response.shouldKeepAlive;
    if (!response.destroyed) {
      const headers = commonHeaders(answer, visit.requestId);
      if (isLast) headers.push('Connection', 'close');
      response.writeHead(answer.status, headers);
      response.end(answer.body);
      if (hasUnreadBody) request.resume();
    }
    connection.answered(isLast || response.destroyed);
  }

  /** What Node could not read as a request, or waited for too long. */
  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.get(socket);
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
      this.#refuse(socket, unreadable(error));
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
    const visit = pipeline.begin('rest');
    pipeline.finish(visit, refusal.status, refusal.code);
    this.#connections.get(socket)?.endWith(rawAnswer(errorAnswer(refusal, baseUrl), visit.requestId));
  }
}
