/** Where a span is from. */
export type SpanKind = 'server' | 'client' | 'producer';

export type SpanAttributes = Readonly<Record<string, string | number | undefined>>;

/** Something that takes time and has a place in a trace. */
export interface Span {
  /** The place of what is done within it, as a W3C `traceparent`; null where there is no trace. */
  readonly traceParent: string | null;
  /** Ends it, once. `failed`: something is wrong that its caller is not to blame for. */
  end(result: { readonly name?: string; readonly failed: boolean; readonly attributes: SpanAttributes }): void;
}

/** Makes spans. */
export interface Tracer {
  /** Begins a span within the given place, or a trace of its own where there is none. */
  begin(span: { readonly name: string; readonly kind: SpanKind; readonly parent: string | null }): Span;
  /** Lets the last spans leave, in bounded time. */
  close(): Promise<void>;
}

/** Makes no spans: a trace that came in goes out as it is. */
export const passingTracer: Tracer = {
  begin: ({ parent }) => ({ traceParent: parent, end: () => undefined }),
  close: async () => undefined,
};

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const nowhere = { trace: '0'.repeat(32), span: '0'.repeat(16) };

/**
 * Reads a W3C `traceparent` header: null where it is none, which is as if it were not there. A later version than ours is
 * read as far as we know it, and goes on as ours.
 */
export function readTraceParent(header: string | undefined): string | null {
  if (header === undefined || header.length > 256) return null;
  const [, version, trace, span, flags, more] = form.exec(header) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (trace === nowhere.trace || span === nowhere.span) return null;
  const isSampled = (Number.parseInt(flags ?? '', 16) & 1) === 1;
  return `00-${trace}-${span}-${isSampled ? '01' : '00'}`;
}

/** The id of the trace a place is in, for logs. */
export function traceIdOf(traceParent: string | null): string | undefined {
  return traceParent?.slice(3, 35);
}
