import type { IncomingMessage } from 'node:http';
import type { Message } from '@bufbuild/protobuf';
import { ApiError, refusalOf } from '../../lib/errors.ts';
import { type Operation, rpcPath } from '../operations.ts';
import type { Pipeline } from '../pipeline.ts';
import { replyHeaders } from '../rest/answer.ts';
import { readTarget } from '../rest/head.ts';
import type { Incoming } from '../rest/incoming.ts';
import type { Answer, Protocol, StreamAnswer } from '../rest/protocol.ts';
import { checkParameters, orRefusal } from '../rpc-request.ts';
import type { Visit } from '../visit.ts';
import { Codec, type MediaType, readMediaType } from './codec.ts';
import { streamEnd, unaryRefusal } from './errors.ts';

export interface ConnectDoorOptions {
  readonly pipeline: Pipeline;
  readonly operations: readonly Operation[];
  /** Where partners reach us, for links to the documentation. */
  readonly baseUrl: string;
}

interface Route {
  readonly operation: Operation;
  readonly codec: Codec;
}

/**
 * Takes the calls of Connect's protocol through the pipeline: POST only, uncompressed. The library's own handlers decode
 * a message before they tell of the call, which our order of checks does not allow; so it lends its forms (envelopes,
 * errors, the end of a stream), and the request is read as REST's is. Connect-Timeout-Ms is the client's own affair, as a
 * client that leaves is: what was begun is brought to its end.
 */
export class ConnectDoor implements Protocol {
  readonly door = 'connect';
  readonly #options: ConnectDoorOptions;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #prefixes: readonly string[];

  constructor(options: ConnectDoorOptions) {
    const { operations } = options;
    this.#options = options;
    this.#routes = new Map(
      operations.map((operation) => [rpcPath(operation), { operation, codec: new Codec(operation) }]),
    );
    this.#prefixes = [...new Set(operations.map(({ method }) => `/${method.parent.file.proto.package}.`))];
  }

  /** Whether a path is one of this protocol's, served or not. */
  owns(path: string): boolean {
    return this.#prefixes.some((prefix) => path.startsWith(prefix));
  }

  /** The decided order of checks: as in gRPC, the message is looked at after the head. */
  async answer(incoming: Incoming, visit: Visit): Promise<Answer | StreamAnswer> {
    const { pipeline, baseUrl } = this.#options;
    const { head, clientAddress } = incoming;
    const { operation, codec } = await pipeline.admit(visit, {
      authorization: head.authorization,
      clientAddress,
      traceParent: head.traceParent,
      route: () => this.#find(incoming.method, head.path),
    });
    const decoded = await orRefusal(async () => {
      const mediaType = codec.mediaType(head);
      return codec.decode(mediaType, await incoming.readBody(codec.bound(mediaType)));
    });
    const { message, idempotencyKey } = checkParameters(operation, decoded, head.idempotencyKeys);
    const mediaType = codec.mediaType(head);
    const contentType = mediaType.name;
    if (operation.kind === 'stream') {
      const messages = (ending: AbortController) => encoded(codec, mediaType, pipeline.stream(visit, message, ending));
      return { status: 200, headers: [], contentType, messages, end: (error) => streamEnd(error, baseUrl) };
    }
    const reply = await pipeline.call(visit, message, idempotencyKey);
    return { status: 200, headers: replyHeaders(reply), contentType, body: codec.encode(mediaType, reply.message) };
  }

  /** Who asks for a stream looks for the error in the stream's end; who does not speak of one gets it whole. */
  refusal(error: ApiError, request: IncomingMessage): Answer {
    const { baseUrl } = this.#options;
    const mediaType = readMediaType(request.headers['content-type']);
    const route = this.#routes.get(readTarget(request).path);
    if (mediaType?.isStream !== true || route?.operation.kind !== 'stream' || request.method !== 'POST') {
      return unaryRefusal(error, baseUrl);
    }
    return { status: 200, headers: [], contentType: mediaType.name, body: streamEnd(error, baseUrl) };
  }

  unknownMethod(path: string): ApiError {
    return refusalOf(() => this.#find('', path));
  }

  #find(method: string, path: string): Route {
    const route = this.#routes.get(path);
    if (route === undefined) throw new ApiError('not_found');
    if (method !== 'POST') throw new ApiError('method_not_allowed', { allow: ['POST'] });
    return route;
  }
}

async function* encoded(codec: Codec, mediaType: MediaType, messages: AsyncIterable<Message>): AsyncGenerator<Buffer> {
  for await (const message of messages) yield codec.encode(mediaType, message);
}
