import { type ApiError, refusalOf } from '../../lib/errors.ts';
import { checkIdempotencyKey } from '../idempotency-key.ts';
import type { Operation } from '../operations.ts';
import type { Pipeline, Reply } from '../pipeline.ts';
import type { Visit } from '../visit.ts';
import { replyHeaders } from './answer.ts';
import { checkMediaType, receiveBody } from './body.ts';
import { errorAnswer } from './errors.ts';
import type { Incoming } from './incoming.ts';
import type { Answer, Protocol } from './protocol.ts';
import type { Route } from './route.ts';
import { Routes } from './routes.ts';

export interface RestDoorOptions {
  readonly pipeline: Pipeline;
  readonly operations: readonly Operation[];
  /** Where partners reach us, for links to the documentation. */
  readonly baseUrl: string;
}

/** Takes the requests of REST through the pipeline. */
export class RestDoor implements Protocol {
  readonly door = 'rest';
  readonly #options: RestDoorOptions;
  readonly #routes: Routes;

  constructor(options: RestDoorOptions) {
    this.#options = options;
    this.#routes = new Routes(options.operations);
  }

  /** The decided order of checks, as far as it is HTTP's. */
  async answer(incoming: Incoming, visit: Visit): Promise<Answer> {
    const { pipeline } = this.#options;
    const { head, clientAddress } = incoming;
    const { route, pathTexts } = await pipeline.admit(visit, {
      authorization: head.authorization,
      clientAddress,
      traceParent: head.traceParent,
      route: () => this.#routes.find(incoming.method, head.path),
    });
    const message = route.readTarget(pathTexts, head.query);
    const idempotencyKey = checkIdempotencyKey(route.operation, head.idempotencyKeys);
    const { file } = route.operation;
    if (file !== undefined) {
      const reply = await pipeline.call(visit, message, idempotencyKey, () => receiveBody(file, incoming));
      return this.#answer(route, reply);
    }
    if (route.decode !== undefined) {
      checkMediaType(head);
      route.decode(await incoming.readBody(), message);
    } else {
      incoming.passOver();
    }
    return this.#answer(route, await pipeline.call(visit, message, idempotencyKey));
  }

  #answer({ encode }: Route, reply: Reply): Answer {
    return { status: reply.created ? 201 : 200, headers: replyHeaders(reply), body: encode(reply.message) };
  }

  refusal(error: Parameters<typeof errorAnswer>[0]): Answer {
    return errorAnswer(error, this.#options.baseUrl);
  }

  unknownMethod(path: string): ApiError {
    return refusalOf(() => this.#routes.find('', path));
  }
}
