/**
 * On whose behalf something is done: what ties the lines, spans, calls to the broker and events of one request together.
 * An object keeps that of the request that created it, so that what becomes of it later is found by the same id.
 */
export interface Origin {
  readonly partnerId: string;
  /** The id the request was answered with; null of what was stored before it was kept. */
  readonly requestId: string | null;
  /** The request's place in a trace, as a W3C `traceparent`; null where it has none. */
  readonly traceParent: string | null;
}
