export type SpanKind = 'server' | 'client' | 'producer';

export type SpanAttributes = Readonly<Record<string, string | number | undefined>>;

export interface Span {
  /** The context for child spans, as a W3C `traceparent`; null without a trace. */
  readonly traceParent: string | null;
  /** Ends it, once. `failed`: an error that is not the caller's fault. */
  end(result: { readonly name?: string; readonly failed: boolean; readonly attributes: SpanAttributes }): void;
}

/** Makes spans. */
export interface Tracer {
  /** Begins a span in the given context, or a new trace if there is none. */
  begin(span: {
    readonly name: string;
    readonly kind: SpanKind;
    readonly parent: string | null;
    /** When it began, in milliseconds since 1970; undefined: now. */
    readonly startedAt?: number;
  }): Span;
  /** Exports the last spans, in bounded time. */
  close(): Promise<void>;
}

/** Makes no spans: an incoming trace is passed on unchanged. */
export const passingTracer: Tracer = {
  begin: ({ parent }) => ({ traceParent: parent, end: () => undefined }),
  close: async () => undefined,
};

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const nowhere = { trace: '0'.repeat(32), span: '0'.repeat(16) };

/** Reads a W3C `traceparent` header; null if it is invalid. A later version of the format is passed on in ours. */
export function readTraceParent(header: string | undefined): string | null {
  if (header === undefined || header.length > 256) return null;
  const [, version, trace, span, flags, more] = form.exec(header) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null;
  if (trace === nowhere.trace || span === nowhere.span) return null;
  const isSampled = (Number.parseInt(flags ?? '', 16) & 1) === 1;
  return `00-${trace}-${span}-${isSampled ? '01' : '00'}`;
}

/** The trace id in a `traceparent`, for logs. */
export function traceIdOf(traceParent: string | null): string | undefined {
  return traceParent?.slice(3, 35);
}
