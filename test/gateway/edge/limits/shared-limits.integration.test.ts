import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Metadata, status } from '@grpc/grpc-js';
import { connect } from 'nats';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { OrderSide, Orders, OrderType } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, restCaller, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { createKey } from '../../../support/keys.ts';

const silent = createLogger({ name: 'test', level: 'silent' });

describe('three replicas', () => {
  let gateway: TestGateway;
  let others: App[] = [];
  before(async () => {
    gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '6000' });
    others = await Promise.all([1, 2].map(() => startApp(readConfig({ ...gateway.variables }), silent)));
  });
  after(async () => {
    await Promise.all(others.map((app) => app.stop()));
    await gateway.stop();
  });

  const request = (at: number, method: string, path: string, { key }: TestPartner, body?: object) => {
    const rest = restCaller([gateway.app, ...others][at % 3] ?? gateway.app);
    return rest(method, path, body === undefined ? { key } : { key, idempotencyKey: crypto.randomUUID(), body });
  };

  it('a replica says that it is gone before its stop ends, so that the others need not wait for its lease', async () => {
    const { MARINA_NATS_URL: servers, MARINA_NATS_PREFIX: prefix } = gateway.variables;
    const app = await startApp(readConfig({ ...gateway.variables }), silent);
    await eventually(async () => assert.equal((await fetch(`http://127.0.0.1:${app.opsPort}/readyz`)).status, 200));
    const connection = await connect({ servers });
    try {
      const gone = connection.subscribe(`${prefix}peers.gone`);
      await connection.flush();
      await app.stop();
      await connection.flush();
      assert.equal(gone.getReceived(), 1);
    } finally {
      await connection.close();
    }
  });

  it('let five orders be in progress together and no sixth, and each tells how many are', async () => {
    const partner = await gateway.newPartner({ limits: { requestsUnderWay: undefined } });
    const { account } = partner;
    const fault = { call: Call.SUBMIT_ORDER, account, times: 5, fault: WireFault.HANG };
    await gateway.controls.injectFault(fault, callTimeout);
    const order = { account, symbol: 'SIM-REST', side: 'buy', type: 'limit', price_kobo: 1_000 };
    const answers = Array.from({ length: 30 }, (_, at) =>
      request(at, 'POST', '/v1/orders', partner, { ...order, quantity: at + 1 }),
    );
    const statuses = (async () => (await Promise.all(answers)).map(({ status }) => status).sort())();
    await eventually(async () => {
      for (const at of [0, 1, 2]) {
        const { body } = await request(at, 'GET', '/v1/limits', partner);
        assert.deepEqual(body.requests_under_way, { limit: 5, used: 5, remaining: 0, resets_at: null });
      }
    }, 4_000);
    for (const at of [0, 1, 2]) {
      const sixth = await request(at, 'POST', '/v1/orders', partner, { ...order, quantity: 100 + at });
      assert.deepEqual([sixth.status, sixth.body.error.code], [429, 'rate_limited']);
      assert.match(sixth.body.error.message, /limit of 5 requests in progress is used up: 5 are in progress, 0 remain/);
    }
    assert.deepEqual(await statuses, [...Array(5).fill(201), ...Array(25).fill(429)]);
    await eventually(async () => {
      for (const at of [0, 1, 2]) {
        const { body } = await request(at, 'GET', '/v1/limits', partner);
        assert.equal(body.requests_under_way.used, 0);
      }
    });
    const next = await request(1, 'POST', '/v1/orders', partner, { ...order, quantity: 200 });
    assert.equal(next.status, 201, JSON.stringify(next.body));
  });

  it('hammered over REST and gRPC let no more pass in any second than a burst and a rate, and no sixth at once', async () => {
    const limits = { requestsPerSecond: undefined, requestsBurst: undefined, requestsUnderWay: undefined };
    const partner = await gateway.newPartner({ limits });
    const second = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.READ, Scope.TRADE] });
    const delayMs = 150;
    const fault = {
      call: Call.SUBMIT_ORDER,
      account: partner.account,
      times: 1_000,
      fault: WireFault.LATE_ANSWER,
      delayMs,
    };
    await gateway.controls.injectFault(fault, callTimeout);
    const clients = [gateway.app, ...others].map(({ grpcPort }) => createGrpcClient(Orders, `127.0.0.1:${grpcPort}`));
    const symbols = ['SIM-REST', 'SIM-REJECT', 'SIM-FILL'];
    const passed: { sentAt: number; answeredAt: number }[] = [];
    let placed = 0;
    let refused = 0;

    async function once(at: number, key: string, isOrder: boolean, isGrpc: boolean): Promise<boolean> {
      placed += 1;
      const order = { account: partner.account, symbol: symbols[placed % 3] ?? '', quantity: placed };
      if (!isGrpc) {
        const body = isOrder ? { ...order, side: 'buy', type: 'limit', price_kobo: 1_000 } : undefined;
        const { status } = await request(at, isOrder ? 'POST' : 'GET', '/v1/orders', { ...partner, key }, body);
        assert.ok([200, 201, 422, 429].includes(status), String(status));
        return status !== 429;
      }
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${key}`);
      if (isOrder) metadata.set('idempotency-key', crypto.randomUUID());
      const options = { ...callTimeout, metadata };
      const typed = {
        ...order,
        quantity: BigInt(order.quantity),
        side: OrderSide.BUY,
        type: OrderType.LIMIT,
        priceKobo: 1_000n,
      };
      const answer = isOrder ? clients[at % 3]?.createOrder(typed, options) : clients[at % 3]?.listOrders({}, options);
      return Promise.resolve(answer).then(
        () => true,
        ({ code }) => {
          assert.ok([status.RESOURCE_EXHAUSTED, status.FAILED_PRECONDITION].includes(code), String(code));
          return code !== status.RESOURCE_EXHAUSTED;
        },
      );
    }

    const startedAt = performance.now();
    const hammers = Array.from({ length: 18 }, async (_, at) => {
      const key = at % 2 === 0 ? partner.key : second.key;
      while (performance.now() - startedAt < 5_000) {
        const sentAt = performance.now();
        const isOrder = at % 3 > 0;
        if (await once(at, key, isOrder, at % 4 < 2)) passed.push({ sentAt, answeredAt: performance.now() });
        else {
          refused += 1;
          await delay(10);
        }
      }
    });
    await Promise.all(hammers);
    const elapsedMs = performance.now() - startedAt;
    for (const { sentAt } of passed) {
      const within = passed.filter((each) => each.sentAt >= sentAt && each.answeredAt <= sentAt + 1_000).length;
      assert.ok(within <= 60, `${within} passed in a second`);
    }
    assert.ok(passed.length <= 40 + Math.ceil((20 * elapsedMs) / 1_000), `${passed.length} passed`);
    // An order that finds no slot has used its token.
    assert.ok(passed.length > 40 && refused > 0, `${passed.length} passed, ${refused} were refused`);

    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    const received = messages
      .filter(({ call, account }) => call === Call.SUBMIT_ORDER && account === partner.account)
      .map(({ receivedAt }) => Number(receivedAt?.seconds) * 1_000 + Number(receivedAt?.nanos) / 1e6);
    assert.ok(received.length > 10, `${received.length} were received`);
    for (const at of received) {
      const underWay = received.filter((each) => each <= at && at - each < delayMs - 5).length;
      assert.ok(underWay <= 5, `${underWay} under way at once`);
    }

    /** The hammers left nothing of the rate: it is asked again as the answer says. */
    async function limitsAt(at: number): ReturnType<typeof request> {
      const answer = await request(at, 'GET', '/v1/limits', partner);
      if (answer.status !== 429) return answer;
      await delay(1_000);
      return limitsAt(at);
    }
    const keptIn = 'SELECT state, quantity, filled_quantity FROM orders WHERE partner_id = ?';
    await eventually(async () => {
      const rows = await gateway.database.read(statement(keptIn, partner.id));
      assert.equal(rows.length, received.length);
      const shares = rows.map((row) => Number(row.state === 'rejected' ? row.filled_quantity : row.quantity));
      const used = shares.reduce((sum, each) => sum + each, 0) * 1_000;
      for (const at of [0, 1, 2]) {
        const { body } = await limitsAt(at);
        assert.equal(body.orders_kobo_per_day?.used, used);
        assert.deepEqual(body.requests_under_way, { limit: 5, used: 0, remaining: 5, resets_at: null });
      }
    }, 30_000);
    for (const client of clients) client.close();
  });
});
