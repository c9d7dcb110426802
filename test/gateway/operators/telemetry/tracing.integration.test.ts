import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
}

/** A span as OTLP writes it in JSON. */
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly { readonly key: string; readonly value: OtlpValue }[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

/** A collector that takes spans by OTLP over HTTP and remembers them. */
class Collector {
  readonly requests: OtlpRequest[] = [];
  /** The status of its answers. */
  status = 200;
  asked = 0;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<Collector> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const collector = new Collector(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        collector.asked += 1;
        if (collector.status === 200 && request.url === '/v1/traces') {
          collector.requests.push(JSON.parse(Buffer.concat(chunks).toString('utf8')));
        }
        response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
      });
    });
    return collector;
  }

  get spans(): OtlpSpan[] {
    return this.requests.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
    );
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }
}

const attribute = (span: OtlpSpan | undefined, key: string) => {
  const value = span?.attributes.find((each) => each.key === key)?.value;
  return value?.stringValue ?? value?.intValue;
};

describe('a gateway with an OpenTelemetry collector', () => {
  let collector: Collector;
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    collector = await Collector.start();
    receiver = await WebhookReceiver.start();
    gateway = await startGateway({ ...receiver.variables, MARINA_OTLP_URL: collector.url });
    partner = await gateway.newPartner();
    const admin = adminClient(gateway.app.adminPort);
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url('/traced') }, admin.options);
    admin.close();
  });
  after(async () => {
    await gateway.stop();
    await receiver.close();
    await collector.close();
  });

  function place(headers: Record<string, string> = {}) {
    return gateway.rest('POST', '/v1/orders', {
      key: partner.key,
      idempotencyKey: randomUUID(),
      body: {
        account: partner.account,
        symbol: 'SIM-FILL',
        side: 'buy',
        type: 'limit',
        price_kobo: 1000,
        quantity: 10,
        client_reference: 'canary-reference',
      },
      headers,
    });
  }

  /** The spans of a trace, once so many of a name are among them. */
  async function spansOf(traceId: string, name: string | undefined, count: number): Promise<OtlpSpan[]> {
    return eventually(() => {
      const spans = collector.spans.filter((span) => span.traceId === traceId);
      const names = spans.map((span) => span.name);
      assert.ok(names.filter((each) => each === (name ?? each)).length >= count, JSON.stringify(names));
      return spans;
    }, 20_000);
  }

  it("exports an order's request, calls to the broker and webhooks as one trace within the caller's", async () => {
    const traceId = randomBytes(16).toString('hex');
    const callerSpan = randomBytes(8).toString('hex');
    const { status, body, text, headers } = await place({ traceparent: `00-${traceId}-${callerSpan}-01` });
    assert.equal(status, 201, text);
    const spans = await spansOf(traceId, 'webhook attempt', 2);
    const request = spans.find(({ name }) => name === 'Orders.CreateOrder');
    const sent = spans.find(({ name }) => name === 'Orders.SubmitOrder');
    assert.equal(request?.parentSpanId, callerSpan);
    assert.equal(sent?.parentSpanId, request?.spanId);
    assert.equal(attribute(request, 'marina.request_id'), headers.get('x-request-id'));
    assert.equal(attribute(request, 'marina.partner_id'), partner.id);
    assert.equal(attribute(request, 'marina.object_id'), body.id);
    assert.equal(Number(attribute(request, 'http.response.status_code')), 201);
    assert.equal(attribute(sent, 'marina.outcome'), 'ok');
    const attempts = spans.filter(({ name }) => name === 'webhook attempt');
    for (const { parentSpanId } of attempts) assert.equal(parentSpanId, request?.spanId);
    assert.equal(attempts.length, 2);

    const { messages } = await gateway.controls.listMessages({ clientOrderId: body.id }, callTimeout);
    const submitted = messages.find(({ call }) => call === Call.SUBMIT_ORDER);
    assert.equal(submitted?.traceparent, `00-${traceId}-${sent?.spanId}-01`, 'the broker goes on from the call');
    const resource = collector.requests[0]?.resourceSpans[0]?.resource.attributes ?? [];
    assert.ok(
      resource.some(({ key, value }) => key === 'service.name' && value.stringValue === 'marina'),
      JSON.stringify(resource),
    );
  });

  it('begins a trace where the caller has none, and exports nothing of one the caller does not sample', async () => {
    const placed = await place();
    const begun = await eventually(() => {
      const requestId = placed.headers.get('x-request-id');
      const found = collector.spans.find((span) => attribute(span, 'marina.request_id') === requestId);
      assert.ok(found !== undefined, 'its span');
      return found;
    });
    assert.ok(!begun.parentSpanId, 'nothing before it');
    const unsampled = randomBytes(16).toString('hex');
    const { body } = await place({ traceparent: `00-${unsampled}-${'b'.repeat(16)}-00` });
    const { messages } = await gateway.controls.listMessages({ clientOrderId: body.id }, callTimeout);
    assert.match(messages[0]?.traceparent ?? '', new RegExp(`^00-${unsampled}-[0-9a-f]{16}-00$`));
    const later = randomBytes(16).toString('hex');
    await place({ traceparent: `00-${later}-${'b'.repeat(16)}-01` });
    await spansOf(later, 'webhook attempt', 2);
    assert.ok(!collector.spans.some(({ traceId }) => traceId === unsampled), 'it is not exported');
  });

  it('tells a span that failed, and nothing a client wrote is in any', async () => {
    const refused = randomBytes(16).toString('hex');
    await gateway.rest('GET', '/v1/canary?canary=canary', {
      key: partner.key,
      headers: { traceparent: `00-${refused}-${'c'.repeat(16)}-01`, 'x-canary': 'canary' },
    });
    const [span] = await spansOf(refused, undefined, 1);
    assert.equal(attribute(span, 'error.type'), 'not_found');
    assert.notEqual(span?.status?.code, 2, 'a refusal is not a failure of ours');
    const text = JSON.stringify(collector.requests);
    assert.doesNotMatch(text, /canary/);
    assert.ok(!text.includes(partner.account) && !text.includes(partner.key.slice(32, 80)), 'no account, no key');
  });

  it('begins a trace of its own for a request without a valid key, whatever trace it asks for', async () => {
    const [wished, valid] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')];
    const wish = (key: string, traceId: string) =>
      gateway.rest('GET', '/v1/orders', { key, headers: { traceparent: `00-${traceId}-${'d'.repeat(16)}-01` } });
    const { headers } = await wish(`${partner.key.slice(0, -1)}${partner.key.endsWith('0') ? '1' : '0'}`, wished);
    await wish(partner.key, valid);
    await spansOf(valid, undefined, 1);
    const requestId = headers.get('x-request-id') ?? '';
    const own = await eventually(() => {
      const found = collector.spans.find((span) => attribute(span, 'marina.request_id') === requestId);
      assert.ok(found !== undefined, 'its span');
      return found;
    });
    assert.notEqual(own.traceId, wished);
    assert.ok(!own.parentSpanId, 'nothing before it');
    assert.ok(!collector.spans.some(({ traceId }) => traceId === wished));
  });

  it('goes on without the collector, and says so once', async () => {
    collector.status = 503;
    const asked = collector.asked;
    for (let count = 0; count < 5; count += 1) assert.equal((await place()).status, 201);
    await eventually(() => assert.ok(collector.asked > asked, 'it was asked'));
    await eventually(() => {
      const said = gateway.logged.filter((line) => line.includes('spans could not be exported'));
      assert.equal(said.length, 1);
    }, 20_000);
    collector.status = 200;
  });
});
