import { Agent as PlainAgent } from 'node:http';
import { Agent, type AgentOptions } from 'node:https';
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
import { atMost } from '../../../kit/at-most.ts';
import type { LinkTls } from '../../../kit/link.ts';
import type { Logger } from '../../../kit/log.ts';
import type { SpanKind, Tracer } from '../../../kit/trace.ts';
import type { Live } from '../../../kit/watched-files.ts';
import type { CollectorAccess } from './collector-access.ts';

const exportTimeoutMs = 5_000;
const exportEveryMs = 1_000;
/** The most spans that wait for export. Further spans are dropped, because traces need not be complete. */
const maxWaiting = 4_096;
const maxTogether = 512;
/** How often failed exports are logged. */
const logEveryMs = 60_000;
/** How long a stop waits for the last export. */
const closeWithinMs = 2_000;

const kinds: Readonly<Record<SpanKind, ApiSpanKind>> = {
  server: ApiSpanKind.SERVER,
  client: ApiSpanKind.CLIENT,
  producer: ApiSpanKind.PRODUCER,
};

/**
 * Makes spans and exports them to an OpenTelemetry collector. Imported only if tracing is configured, because its
 * libraries take time and memory to load.
 *
 * @param url The collector's OTLP over HTTP; `/v1/traces` is appended.
 * @param access Asked at each export, so that what has changed is used.
 * @param ratio The share of new traces that is sampled, 0 to 1. Incoming traces carry their own decision.
 * @param resource The resource attributes: the service's version, its environment, this process.
 */
export function otlpTracer(
  url: string,
  access: Live<CollectorAccess>,
  ratio: number,
  resource: Record<string, string>,
  log: Logger,
): Tracer {
  const exporter = new OTLPTraceExporter({
    url: `${url}/v1/traces`,
    timeoutMillis: exportTimeoutMs,
    headers: async () => ({ ...access.current.headers }),
    httpAgentOptions: () => collectorAgent(access),
  });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes(resource),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [
      new BatchSpanProcessor(loggingFailures(exporter, log), {
        maxQueueSize: maxWaiting,
        maxExportBatchSize: maxTogether,
        scheduledDelayMillis: exportEveryMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  const tracer = provider.getTracer('marina');
  return {
    begin: ({ name, kind, parent, startedAt }) => {
      const startTime = startedAt === undefined ? {} : { startTime: startedAt };
      const span = tracer.startSpan(name, { kind: kinds[kind], ...startTime }, contextOf(parent));
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
      // `loggingFailures` logs a failure within this time.
      const closed = provider.shutdown().catch(() => undefined);
      await atMost(closeWithinMs, closed);
    },
  };
}

/** The agent keeps connections by their certificates too, so after a change it makes new ones. */
function collectorAgent(access: Live<CollectorAccess>): PlainAgent {
  if (access.current.tls === undefined) return new PlainAgent({ keepAlive: true });
  const agent = new Agent({ keepAlive: true, ...agentTls(access.current.tls) });
  access.onChange(({ tls }) => void Object.assign(agent.options, agentTls(tls)));
  return agent;
}

function agentTls({ ca, cert, key, serverName: servername }: LinkTls = {}): AgentOptions {
  // Otherwise NODE_TLS_REJECT_UNAUTHORIZED could switch the check off.
  return { ca, cert, key, rejectUnauthorized: true, ...(servername === undefined ? {} : { servername }) };
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

/** Logs failed exports, because the library does not. */
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
