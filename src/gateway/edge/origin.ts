/**
 * The request on whose behalf something is done. It ties together the request's lines, spans, calls to the broker and
 * events. An object keeps the origin of the request that created it.
 */
export interface Origin {
  readonly partnerId: string;
  /** The id in the request's answer; null in rows older than the column. */
  readonly requestId: string | null;
  /** The request's place in a trace, as a W3C `traceparent`; null if it has none. */
  readonly traceParent: string | null;
}
