import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import type { Identification } from '../../../src/gateway/edge/auth/caller.ts';
import { defaultRequestBounds, RequestsUnderWay } from '../../../src/gateway/edge/bounds.ts';
import type { HandlersOf } from '../../../src/gateway/edge/call.ts';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { Metrics } from '../../../src/gateway/edge/metrics.ts';
import { type ApiOperation, defineOperations } from '../../../src/gateway/edge/operations.ts';
import { type CallLimits, Pipeline, type PipelineOptions } from '../../../src/gateway/edge/pipeline.ts';
import {
  CreateOrderRequestSchema,
  type Order,
  OrderSide,
  Orders,
  OrderType,
} from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Feature, Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { callerWith, noLimits, order, recordingHandlers } from './fixture.ts';

function operationsWith(orders: Partial<HandlersOf<typeof Orders>> = {}): ApiOperation[] {
  return defineOperations(Orders, { ...recordingHandlers([]).orders, ...orders });
}

function find(operations: readonly ApiOperation[], name: string): ApiOperation {
  const operation = operations.find((each) => each.name === name);
  assert.ok(operation !== undefined);
  return operation;
}

const createOrder = find(operationsWith(), 'Orders.CreateOrder');
const goodMessage = () =>
  create(CreateOrderRequestSchema, {
    account: 'abc',
    symbol: 'gtco',
    side: OrderSide.BUY,
    quantity: 1n,
    type: OrderType.MARKET,
  });

interface Bench {
  readonly pipeline: Pipeline;
  readonly lines: Record<string, unknown>[];
  readonly metrics: Metrics;
}

function bench(options: Partial<PipelineOptions> = {}): Bench {
  const lines: Record<string, unknown>[] = [];
  const metrics = new Metrics();
  const log = createLogger({
    name: 'test',
    level: 'info',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const identify = async () => ({ caller: callerWith(), refusal: undefined });
  const pipeline = new Pipeline({
    identify,
    limits: noLimits,
    log,
    metrics,
    ...options,
  });
  return { pipeline, lines, metrics };
}

const head = { authorization: 'Bearer x' };

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error.code;
  }
  return 'admitted';
}

/** Every reason to refuse at once; each test takes the earlier ones away. */
interface Faults {
  rate?: boolean;
  route?: boolean;
  credential?: boolean;
  scope?: boolean;
  feature?: boolean;
  place?: boolean;
}

function admission(faults: Faults): Promise<string> {
  const limits: CallLimits = {
    ...noLimits,
    takeRequest: () => {
      if (faults.rate) throw new ApiError('rate_limited', { message: 'rate' });
      return undefined;
    },
    acquireSlot: async () => {
      if (faults.place) throw new ApiError('rate_limited', { message: 'place' });
      return () => {};
    },
  };
  const found: Identification = {
    caller: callerWith(faults.scope ? [Scope.READ] : [Scope.TRADE], faults.feature ? [] : [Feature.ACCOUNT_OPENING]),
    refusal: faults.credential ? 'revoked' : undefined,
  };
  const { pipeline } = bench({ limits, identify: async () => found });
  const route = () => {
    if (faults.route) throw new ApiError('not_found');
    return { operation: { ...createOrder, feature: Feature.ACCOUNT_OPENING } };
  };
  return codeOf(pipeline.admit(pipeline.begin('rest', '::1'), head, route));
}

test('the head of a call is checked in the decided order', async () => {
  const all = { rate: true, route: true, credential: true, scope: true, feature: true, place: true };
  assert.equal(await admission(all), 'not_found');
  assert.equal(await admission({ ...all, credential: false }), 'rate_limited', 'the rate is that of a good credential');
  assert.equal(await admission({ ...all, route: false }), 'unauthorized');
  assert.equal(await admission({ scope: true, feature: true, place: true }), 'insufficient_scope');
  assert.equal(await admission({ feature: true, place: true }), 'feature_not_enabled');
  assert.equal(await admission({ place: true }), 'rate_limited');
  assert.equal(await admission({}), 'admitted');
});

test('a request with a refused key counts against nobody, nor does one without a key', async () => {
  let taken = 0;
  const limits: CallLimits = {
    ...noLimits,
    takeRequest: () => {
      taken += 1;
      return undefined;
    },
  };
  const admit = (found: Identification) => {
    const { pipeline } = bench({ limits, identify: async () => found });
    return codeOf(pipeline.admit(pipeline.begin('rest', '::1'), head, () => ({ operation: createOrder })));
  };
  assert.equal(await admit({ caller: callerWith(), refusal: 'revoked' }), 'unauthorized');
  assert.equal(await admit({ caller: undefined, refusal: 'unknown' }), 'unauthorized');
  assert.equal(taken, 0);
  assert.equal(await admit({ caller: callerWith(), refusal: undefined }), 'admitted');
  assert.equal(taken, 1);
});

function places(): { limits: CallLimits; held: () => number } {
  let held = 0;
  const acquireSlot = async () => {
    held += 1;
    return () => {
      held -= 1;
    };
  };
  return { limits: { ...noLimits, acquireSlot }, held: () => held };
}

test('a place is held while the handler runs and given back before the answer', async () => {
  const { limits, held } = places();
  const during: number[] = [];
  const handler = async (): Promise<Order> => {
    during.push(held());
    return order;
  };
  const operation = find(operationsWith({ createOrder: handler }), 'Orders.CreateOrder');
  const { pipeline } = bench({ limits });
  const context = pipeline.begin('grpc');
  await pipeline.admit(context, head, () => ({ operation }));
  assert.equal(held(), 1);
  await pipeline.call(context, goodMessage(), 'k');
  assert.deepEqual([during, held()], [[1], 0]);
  pipeline.finish(context, 201);
  pipeline.finish(context, 201);
  assert.equal(held(), 0);
});

test('a place is given back once whatever ends the call', async () => {
  for (const end of ['refused before the handler', 'refused by a field', 'thrown by the handler'] as const) {
    const { limits, held } = places();
    const handler = async () => assert.fail('broken');
    const operation = find(operationsWith({ createOrder: handler }), 'Orders.CreateOrder');
    const { pipeline } = bench({ limits });
    const context = pipeline.begin('rest', '::1');
    await pipeline.admit(context, head, () => ({ operation }));
    if (end === 'refused by a field')
      await assert.rejects(pipeline.call(context, create(CreateOrderRequestSchema), 'k'));
    if (end === 'thrown by the handler') await assert.rejects(pipeline.call(context, goodMessage(), 'k'));
    pipeline.finish(context, 400, 'invalid_request');
    assert.equal(held(), 0, end);
  }
});

test('an operation that takes no slot leaves the limit alone', async () => {
  const { limits, held } = places();
  const { pipeline } = bench({ limits });
  const operation = find(operationsWith(), 'Orders.GetOrder');
  await pipeline.admit(pipeline.begin('rest', '::1'), head, () => ({ operation }));
  assert.equal(held(), 0);
});

test('one request too many under way is answered service_unavailable, until another ends', async () => {
  const { pipeline } = bench({ requests: new RequestsUnderWay({ ...defaultRequestBounds, total: 1, reserve: 0 }) });
  const route = () => ({ operation: createOrder });
  const first = pipeline.begin('rest', '::1');
  const second = pipeline.begin('grpc');
  assert.equal(await codeOf(pipeline.admit(first, head, route)), 'admitted');
  assert.equal(await codeOf(pipeline.admit(second, head, route)), 'service_unavailable');
  pipeline.finish(second, 503, 'service_unavailable');
  assert.equal(pipeline.underWay, 1);
  pipeline.finish(first, 201);
  assert.equal(await codeOf(pipeline.admit(pipeline.begin('connect'), head, route)), 'admitted');
});

test('a first answer is created with its path; a replay is neither', async () => {
  const { pipeline } = bench();
  const operation = find(
    operationsWith({
      createOrder: async (_request, call) => {
        call.reply.replayed = call.idempotencyKey === 'again';
        return order;
      },
    }),
    'Orders.CreateOrder',
  );
  const replyTo = async (key: string) => {
    const context = pipeline.begin('rest', '::1');
    await pipeline.admit(context, head, () => ({ operation }));
    const { replayed, location } = await pipeline.call(context, goodMessage(), key);
    return { replayed, location };
  };
  assert.deepEqual(await replyTo('new'), { replayed: false, location: `/v1/orders/${order.id}` });
  assert.deepEqual(await replyTo('again'), { replayed: true, location: undefined });
});

test('a request makes one line and one count, with nothing of what was sent', async () => {
  const { pipeline, lines, metrics } = bench();
  const context = pipeline.begin('rest', '::1');
  await pipeline.admit(context, head, () => ({ operation: createOrder }));
  await pipeline.call(context, goodMessage(), 'secret-idempotency-key');
  pipeline.finish(context, 201);
  const { time, pid, hostname, durationMs, ...line } = lines[0] ?? {};
  assert.deepEqual(line, {
    level: 'info',
    name: 'test',
    requestId: context.requestId,
    protocol: 'rest',
    operation: 'Orders.CreateOrder',
    partnerId: 'par_1',
    keyId: 'key_1',
    clientAddress: '::1',
    objectId: 'ord_abcdefghijklmnopqrst',
    status: 201,
    msg: 'request',
  });
  assert.equal(typeof durationMs, 'number');
  assert.equal(lines.length, 1);
  const { values } = await metrics.requests.get();
  assert.deepEqual(
    values.filter(({ metricName }) => metricName?.endsWith('_count')).map(({ labels, value }) => [labels, value]),
    [[{ protocol: 'rest', operation: 'Orders.CreateOrder', status: 201 }, 1]],
  );
});

test('an error that is none of ours becomes internal_error, and its cause is logged but not told', async () => {
  const { pipeline, lines } = bench();
  const context = pipeline.begin('rest', '::1');
  const refusal = pipeline.refuse(context, new TypeError('password=hunter2'));
  assert.equal(refusal?.code, 'internal_error');
  assert.ok(!refusal.message.includes('hunter2'));
  assert.equal(lines[0]?.level, 'error');
  assert.equal(lines[0]?.requestId, context.requestId);
  const known = new ApiError('trading_paused');
  assert.equal(pipeline.refuse(pipeline.begin('rest', '::1'), known), known);
  assert.equal(lines.filter(({ msg }) => msg !== 'request').length, 1);
});

test('why the service is not available is logged, without the reason reaching the caller', () => {
  const { pipeline, lines } = bench();
  const error = new ApiError('service_unavailable', { cause: new Error('connect ECONNREFUSED') });
  assert.equal(pipeline.refuse(pipeline.begin('grpc'), error), error);
  assert.deepEqual([lines[0]?.level, lines[0]?.code], ['warn', 'service_unavailable']);
  assert.match(JSON.stringify(lines[0]?.err), /ECONNREFUSED/);
});

test('a request that cannot be kept is answered and counted all the same, and each kind of reason is logged once', async () => {
  const reasons = [new TypeError('hunter2'), new TypeError('hunter2'), new RangeError('hunter2'), 'hunter2'];
  const keep = () => {
    throw reasons.shift();
  };
  const { pipeline, lines } = bench({ kept: { keep } });
  for (let sent = 0; sent < 4; sent += 1) {
    const context = pipeline.begin('rest', '::1');
    context.exchanged = { method: 'POST', path: '/v1/orders', query: '', isUnlogged: false };
    const idle = pipeline.idle();
    const error = new ApiError('trading_paused');
    assert.equal(pipeline.refuse(context, error), error);
    await idle;
  }
  assert.deepEqual(
    lines.filter(({ level }) => level === 'error').map(({ kind, msg }) => [kind, msg]),
    ['TypeError', 'RangeError', 'string'].map((kind) => [kind, 'a request could not be kept']),
  );
  assert.ok(!JSON.stringify(lines).includes('hunter2'));
});

test('a service with a handler missing does not start', () => {
  const { getOrder: _, ...incomplete } = recordingHandlers([]).orders;
  assert.throws(() => defineOperations(Orders, incomplete as unknown as HandlersOf<typeof Orders>), /GetOrder/);
});

test('a request is in its client’s trace only if it has a valid key, and the span begins when the request came', async () => {
  const traceParent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const begun: { readonly parent: string | null; readonly startedAt?: number }[] = [];
  const tracer: PipelineOptions['tracer'] = {
    begin: (span) => {
      begun.push(span);
      return { traceParent: span.parent, end: () => undefined };
    },
    close: async () => undefined,
  };
  const parentOf = async (identify: PipelineOptions['identify']) => {
    const { pipeline } = bench({ tracer, identify });
    const context = pipeline.begin('rest');
    const admitted = pipeline.admit(context, { authorization: 'x', traceParent }, () => ({ operation: createOrder }));
    await admitted.catch((error: unknown) => pipeline.refuse(context, error));
    return begun.at(-1)?.parent;
  };
  const before = Date.now();
  assert.equal(await parentOf(async () => ({ caller: callerWith(), refusal: undefined })), traceParent);
  assert.equal(await parentOf(async () => ({ caller: undefined, refusal: 'unknown' })), null);
  assert.equal(await parentOf(async () => ({ caller: callerWith(), refusal: 'revoked' })), null);
  const unread = () => Promise.reject(new ApiError('service_unavailable'));
  assert.equal(await parentOf(unread), null);
  assert.equal(begun.length, 4);
  for (const { startedAt = 0 } of begun) assert.ok(startedAt >= before - 2 && startedAt <= Date.now() + 2);
});
