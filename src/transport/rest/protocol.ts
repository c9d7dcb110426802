import type { IncomingMessage } from 'node:http';
import type { ApiError } from '../../lib/errors.ts';
import type { Door, Visit } from '../visit.ts';
import type { Incoming } from './incoming.ts';

/** One of the ways in which requests to the HTTP port are read and answered: REST's or Connect's. */
export interface Protocol {
  readonly door: Door;
  /** Reads a request, takes it through the pipeline, and returns its answer. Throws what `refusal` is then asked for. */
  answer(incoming: Incoming, visit: Visit): Promise<Answer | StreamAnswer>;
  /** An error as an answer. The request may be one that could not be read. */
  refusal(error: ApiError, request: IncomingMessage): Answer;
  /** What a method is answered that even HTTP does not know: that there is nothing at the path, or which methods it has. */
  unknownMethod(path: string): ApiError;
}

/** What stands before an answer's body, without the headers that every answer has. */
export interface AnswerHead {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** JSON when absent. */
  readonly contentType?: string;
  /** That nothing may keep it, when absent. */
  readonly cacheControl?: string;
}

/** A whole answer as HTTP carries it. */
export interface Answer extends AnswerHead {
  readonly body: string | Buffer;
}

/** An answer that goes on. */
export interface StreamAnswer extends AnswerHead {
  /** Its messages, until the controller given is aborted. */
  readonly messages: (ending: AbortController) => AsyncIterable<Buffer>;
  /** What is written last, about how it ended. */
  readonly end: (error?: ApiError) => Buffer;
}
