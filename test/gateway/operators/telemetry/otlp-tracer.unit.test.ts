/** Spans, and how they come to a collector that is inside the test. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { otlpTracer } from '../../../../src/gateway/operators/telemetry/otlp-tracer.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { readTraceParent } from '../../../../src/kit/trace.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';

const [trace, span] = ['ab'.repeat(16), 'cd'.repeat(8)];

function tracerTo(url: string, ratio = 1) {
  const logged: { level: string; msg: string; count?: number }[] = [];
  const log = createLogger({
    name: 'test',
    level: 'info',
    destination: { write: (line) => void logged.push(JSON.parse(line)) },
  });
  const access = fixed({ headers: { 'x-word': 'secret' }, tls: undefined });
  return { tracer: otlpTracer(url, access, ratio, { 'service.name': 'marina' }, log), logged };
}

/** A collector that answers each export with a status. */
async function openCollector(status: number) {
  const bodies: string[] = [];
  const heads: unknown[] = [];
  const server = createServer((request, response) => {
    heads.push([request.url, request.headers['x-word']]);
    let text = '';
    request.on('data', (chunk) => {
      text += chunk;
    });
    request.on('end', () => {
      bodies.push(text);
      response.writeHead(status).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, bodies, heads, close };
}

describe('spans', () => {
  it('a span goes on with the trace that it is given, and with whether that is sampled', async () => {
    for (const [ratio, parent, isSampled, isOfParent] of [
      [1, null, true, false],
      [0, null, false, false],
      [0, `00-${trace}-${span}-01`, true, true],
      [1, `00-${trace}-${span}-00`, false, true],
    ] as const) {
      const { tracer } = tracerTo('http://127.0.0.1:1', ratio);
      const { traceParent } = tracer.begin({ name: 'a', kind: 'server', parent });
      assert.equal(readTraceParent(traceParent ?? undefined), traceParent, 'it is one that others can read');
      const [, traceId, spanId, flags] = traceParent?.split('-') ?? [];
      assert.deepEqual([flags, traceId === trace], [isSampled ? '01' : '00', isOfParent]);
      assert.notEqual(spanId, span);
    }
  });

  it('a span is exported with all that is known of it, at the latest when the gateway stops', async () => {
    const { url, bodies, heads, close } = await openCollector(200);
    const { tracer, logged } = tracerTo(`${url}/path`);
    const parent = `00-${trace}-${span}-01`;
    const failing = tracer.begin({ name: 'first', kind: 'client', parent, startedAt: 1_700_000_000_000 });
    failing.end({ name: 'found', failed: true, attributes: { one: 'a', two: 2, none: undefined } });
    tracer.begin({ name: 'second', kind: 'server', parent }).end({ failed: false, attributes: {} });
    await tracer.close();
    close();
    assert.deepEqual(heads, [['/path/v1/traces', 'secret']]);
    const [{ resource, scopeSpans }] = JSON.parse(bodies[0] ?? '').resourceSpans;
    assert.ok(JSON.stringify(resource).includes('"marina"'));
    const [first, second] = scopeSpans[0].spans;
    assert.deepEqual(
      [first.name, first.kind, first.traceId, first.parentSpanId, first.startTimeUnixNano, first.status.code],
      ['found', 3, trace, span, '1700000000000000000', 2],
    );
    assert.deepEqual(
      first.attributes.map(({ key }: { key: string }) => key),
      ['one', 'two'],
    );
    assert.deepEqual([second.name, second.kind, second.status.code, logged], ['second', 2, 0, []]);
  });

  it('a failed export is logged without a word of its headers, and the stop goes on', async () => {
    const { url, close } = await openCollector(400);
    const { tracer, logged } = tracerTo(url);
    tracer.begin({ name: 'a', kind: 'producer', parent: null }).end({ failed: false, attributes: {} });
    await tracer.close();
    close();
    assert.deepEqual(
      logged.map(({ level, msg, count }) => [level, msg, count]),
      [['warn', 'spans could not be exported', 1]],
    );
    assert.ok(!JSON.stringify(logged).includes('secret'));
  });
});
