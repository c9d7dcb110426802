import { maxBodyBytes } from '../body-limit.ts';

/** The bounds of the REST door. Tests make the times short. */
export interface RestLimits {
  /** Of the request line and all headers together. */
  readonly headerBytes: number;
  readonly headersTimeoutMs: number;
  /** From the request's head to the last byte of its body. */
  readonly bodyTimeoutMs: number;
  /** How long a connection may rest between two requests. */
  readonly keepAliveMs: number;
  /** The same for a connection on which no good key was seen. */
  readonly strangersKeepAliveMs: number;
  /** How long a client may take to read a whole answer. */
  readonly answerTimeoutMs: number;
  /** How long a connection may pass no byte at all, in either direction; longer than any handler takes. */
  readonly idleMs: number;
  /** How long what a refused client still sends is taken off the wire. */
  readonly lingerMs: number;
  /**
   * The same for a client with a good key whose body is refused unread. Many clients read no answer before they have sent
   * the whole body, and on a slow line that takes longer than `lingerMs`.
   */
  readonly refusedBodyLingerMs: number;
  /** How often Node looks at the times of heads and requests. */
  readonly checkIntervalMs: number;
  readonly connections: number;
  /** The body of an operation that takes none: how much of it is passed over to keep the connection. */
  readonly passedOverBytes: number;
}

export const defaultRestLimits: RestLimits = {
  headerBytes: 16_384,
  headersTimeoutMs: 10_000,
  bodyTimeoutMs: 30_000,
  keepAliveMs: 65_000,
  strangersKeepAliveMs: 5_000,
  answerTimeoutMs: 30_000,
  idleMs: 120_000,
  lingerMs: 3_000,
  refusedBodyLingerMs: 120_000,
  checkIntervalMs: 1_000,
  connections: 10_000,
  passedOverBytes: maxBodyBytes,
};
