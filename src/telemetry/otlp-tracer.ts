import { SpanKind as ApiSpanKind, type Context, ROOT_CONTEXT, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import { atMost } from '../lib/at-most.ts';
import type { Logger } from '../lib/log.ts';
import type { SpanKind, Tracer } from '../lib/trace.ts';

const exportTimeoutMs = 5_000;
const exportEveryMs = 1_000;
/** Spans that wait to be exported, and that go together. What is beyond them is dropped: a trace is not a record. */
const mostWaiting = 4_096;
const mostTogether = 512;
/** How often it is logged that spans cannot be exported. */
const logEveryMs = 60_000;
/** How long a stop waits for the last spans to leave. */
const closeWithinMs = 2_000;

const kinds: Readonly<Record<SpanKind, ApiSpanKind>> = {
  server: ApiSpanKind.SERVER,
  client: ApiSpanKind.CLIENT,
  producer: ApiSpanKind.PRODUCER,
};

/**
 * Makes spans and exports them to an OpenTelemetry collector. Imported where that is configured, and only then: what it
 * needs takes time and memory to load.
 *
 * @param url Where spans go, by OTLP over HTTP: `/v1/traces` is appended.
 * @param ratio Of how many traces that begin here spans are made, 0 to 1. Those that come in decide for themselves.
 * @param resource What the spans are of: the service's version, its environment, this process.
 */
export function otlpTracer(url: string, ratio: number, resource: Record<string, string>, log: Logger): Tracer {
  const exporter = new OTLPTraceExporter({ url: `${url}/v1/traces`, timeoutMillis: exportTimeoutMs });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes(resource),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [
      new BatchSpanProcessor(loggingFailures(exporter, log), {
        maxQueueSize: mostWaiting,
        maxExportBatchSize: mostTogether,
        scheduledDelayMillis: exportEveryMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  const tracer = provider.getTracer('marina');
  return {
    begin: ({ name, kind, parent }) => {
      const span = tracer.startSpan(name, { kind: kinds[kind] }, contextOf(parent));
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceParent: `00-${traceId}-${spanId}-${(traceFlags & 1) === 1 ? '01' : '00'}`,
        end: ({ name: found, failed, attributes }) => {
          if (found !== undefined) span.updateName(found);
          for (const [key, value] of Object.entries(attributes)) if (value !== undefined) span.setAttribute(key, value);
          if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    close: async () => {
      // A failure to export is logged where it happens.
      const closed = provider.shutdown().catch(() => undefined);
      await atMost(closeWithinMs, closed);
    },
  };
}

function contextOf(traceParent: string | null): Context {
  if (traceParent === null) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = ''] = traceParent.split('-');
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
  });
}

/** The library does not log which spans it could not export. */
function loggingFailures(exporter: SpanExporter, log: Logger): SpanExporter {
  let loggedAt = Number.NEGATIVE_INFINITY;
  return {
    export: (spans: ReadableSpan[], done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined && performance.now() - loggedAt > logEveryMs) {
          loggedAt = performance.now();
          const { name, code } = result.error as NodeJS.ErrnoException;
          log.warn({ type: name, code, count: spans.length }, 'spans could not be exported');
        }
        done(result);
      }),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}
