import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Partners } from '../../../../src/gen/marina/admin/v1/partners_pb.ts';
import { AccountStatus } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { CreateAllocationRequestSchema } from '../../../../src/gen/marina/gateway/v1/allocations_pb.ts';
import { CreateApplicationRequestSchema } from '../../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { DocumentType, SendDocumentRequestSchema } from '../../../../src/gen/marina/gateway/v1/documents_pb.ts';
import { CreateOrderRequestSchema, OrderSide, OrderType } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import {
  CreateWithdrawalRequestSchema,
  WithdrawalDestination,
} from '../../../../src/gen/marina/gateway/v1/withdrawals_pb.ts';
import { Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../../../src/kit/grpc-client.ts';
import { adminClient } from '../../../support/admin.ts';
import { goodFields } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { type HalfSent, halfOverGrpc, halfOverHttp } from '../../../support/half-sent.ts';
import { noiseJpeg } from '../../../support/images.ts';
import { scrape } from '../../../support/metrics.ts';

const protocols = ['REST', 'gRPC', 'Connect'] as const;
type Protocol = (typeof protocols)[number];

const operations = ['order', 'allocation', 'withdrawal', 'application', 'document'] as const;
type Operation = (typeof operations)[number];

const rpcs: Record<Operation, string> = {
  order: 'Orders/CreateOrder',
  allocation: 'Allocations/CreateAllocation',
  withdrawal: 'Withdrawals/CreateWithdrawal',
  application: 'Applications/CreateApplication',
  document: 'Applications/SendDocument',
};

describe('a caller whose body comes late', () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  let partners: GrpcClient<typeof Partners>;
  let picture: Buffer;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
    partners = createGrpcClient(Partners, `127.0.0.1:${gateway.app.adminPort}`);
    picture = await noiseJpeg();
  });
  after(async () => {
    admin.close();
    partners.close();
    await gateway.stop();
  });

  const camelFields = Object.fromEntries(
    Object.entries(goodFields).map(([name, value]) => [
      name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );

  function messageOf(operation: Operation, account: string, id: string): Buffer {
    if (operation === 'allocation') {
      const message = create(CreateAllocationRequestSchema, { account, amountKobo: 1_000n });
      return Buffer.from(toBinary(CreateAllocationRequestSchema, message));
    }
    if (operation === 'withdrawal') {
      const destination = WithdrawalDestination.WALLET;
      const message = create(CreateWithdrawalRequestSchema, { account, amountKobo: 1_000n, destination });
      return Buffer.from(toBinary(CreateWithdrawalRequestSchema, message));
    }
    if (operation === 'application') {
      const message = create(CreateApplicationRequestSchema, camelFields);
      return Buffer.from(toBinary(CreateApplicationRequestSchema, message));
    }
    if (operation === 'document') {
      const fields = { id, type: DocumentType.PHOTO, content: picture, contentType: 'image/jpeg' };
      return Buffer.from(toBinary(SendDocumentRequestSchema, create(SendDocumentRequestSchema, fields)));
    }
    const message = create(CreateOrderRequestSchema, {
      ...{ account, symbol: 'SIM-REST', side: OrderSide.BUY, quantity: 100n },
      ...{ type: OrderType.LIMIT, priceKobo: 1_000n },
    });
    return Buffer.from(toBinary(CreateOrderRequestSchema, message));
  }

  function restOf(operation: Operation, account: string, id: string) {
    if (operation === 'document') {
      const path = `/v1/applications/${id}/documents/photo`;
      return { method: 'PUT', path, body: picture, type: 'image/jpeg' };
    }
    const bodies = {
      order: { account, symbol: 'SIM-REST', side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000 },
      allocation: { account, amount_kobo: 1_000 },
      withdrawal: { account, amount_kobo: 1_000, destination: 'wallet' },
      application: goodFields,
    };
    const body = Buffer.from(JSON.stringify(bodies[operation]));
    return { method: 'POST', path: `/v1/${operation}s`, body, type: 'application/json' };
  }

  const underWay = async () => (await scrape(gateway.app.opsPort)).value('marina_requests_under_way');

  /** Sends half of a request, which the gateway has begun to serve when this resolves. */
  async function begin(protocol: Protocol, operation: Operation, partner: TestPartner, id: string): Promise<HalfSent> {
    const { restPort, grpcPort } = gateway.app;
    const headers: Record<string, string> = { authorization: `Bearer ${partner.key}` };
    if (operation !== 'document') headers['idempotency-key'] = randomUUID();
    const path = `/marina.gateway.v1.${rpcs[operation]}`;
    const body = messageOf(operation, partner.account, id);
    const before = await underWay();
    let half: HalfSent;
    if (protocol === 'gRPC') {
      half = await halfOverGrpc(grpcPort, { method: 'POST', path, headers, body });
    } else if (protocol === 'Connect') {
      headers['content-type'] = 'application/proto';
      half = await halfOverHttp(restPort, { method: 'POST', path, headers, body });
    } else {
      const { type, ...rest } = restOf(operation, partner.account, id);
      half = await halfOverHttp(restPort, { ...rest, headers: { ...headers, 'content-type': type } });
    }
    await eventually(async () => assert.ok((await underWay()) > before));
    return half;
  }

  async function newPartner(requestsUnderWay?: number): Promise<{ partner: TestPartner; id: string }> {
    const partner = await gateway.newPartner(requestsUnderWay === undefined ? {} : { limits: { requestsUnderWay } });
    await gateway.fund(partner, 1_000_000n);
    const request = { key: partner.key, idempotencyKey: randomUUID(), body: goodFields };
    const made = await gateway.rest('POST', '/v1/applications', request);
    assert.equal(made.status, 201, made.text);
    return { partner, id: made.body.id };
  }

  /** The partner's rows; its one application was there before. */
  async function stored({ id }: TestPartner) {
    const [row] = await gateway.database.read(
      statement(
        `SELECT (SELECT COUNT(*) FROM orders WHERE partner_id = ?) AS orders,
          (SELECT COUNT(*) FROM allocations WHERE partner_id = ?) AS allocations,
          (SELECT COUNT(*) FROM withdrawals WHERE partner_id = ?) AS withdrawals,
          (SELECT COUNT(*) - 1 FROM applications WHERE partner_id = ?) AS applications,
          (SELECT COUNT(*) FROM documents WHERE partner_id = ?) AS documents`,
        ...[id, id, id, id, id],
      ),
    );
    return Object.values(row ?? {}).map(Number);
  }
  const nothing = [0, 0, 0, 0, 0];

  for (const protocol of protocols) {
    for (const operation of operations) {
      it(`${protocol}: with a key revoked meanwhile is answered 401, and no ${operation} is stored`, async () => {
        const { partner, id } = await newPartner();
        const half = await begin(protocol, operation, partner, id);
        await admin.keys.revokeKey({ keyId: partner.keyId }, admin.options);
        assert.equal(await half.finish(), 401);
        assert.deepEqual(await stored(partner), nothing);
      });
    }

    it(`${protocol}: of a partner suspended meanwhile is answered 401, and nothing is stored`, async () => {
      const { partner, id } = await newPartner();
      const half = await begin(protocol, 'order', partner, id);
      await partners.suspendPartner({ partnerId: partner.id }, admin.options);
      assert.equal(await half.finish(), 401);
      assert.deepEqual(await stored(partner), nothing);
    });

    for (const operation of ['withdrawal', 'application', 'document'] as const) {
      it(`${protocol}: without the feature by then is answered 403, and no ${operation} is stored`, async () => {
        const { partner, id } = await newPartner();
        const half = await begin(protocol, operation, partner, id);
        await partners.setFeatures({ partnerId: partner.id, features: [] }, admin.options);
        assert.equal(await half.finish(), 403);
        assert.deepEqual(await stored(partner), nothing);
      });
    }

    it(`${protocol}: of a partner that nothing was changed of is served`, async () => {
      const { partner, id } = await newPartner();
      for (const operation of operations) {
        const half = await begin(protocol, operation, partner, id);
        assert.ok([200, 201].includes(await half.finish()), operation);
      }
      assert.deepEqual(await stored(partner), [1, 1, 1, 1, 1]);
    });
  }

  for (const protocol of protocols) {
    it(`${protocol}: beyond a limit of requests in progress lowered meanwhile is answered 429`, async () => {
      const { partner, id } = await newPartner(2);
      const first = await begin(protocol, 'order', partner, id);
      const second = await begin(protocol, 'order', partner, id);
      await partners.setLimits({ partnerId: partner.id, limits: { requestsUnderWay: 1 } }, admin.options);
      assert.equal(await first.finish(), 429);
      assert.deepEqual(await stored(partner), nothing);
      assert.ok([200, 201].includes(await second.finish()), 'the one that is left fits the new limit');
      assert.deepEqual(await stored(partner), [1, 0, 0, 0, 0]);
    });
  }

  it('takes one token of the rate, though it is looked at twice', async () => {
    const partner = await gateway.newPartner({ limits: { requestsBurst: 1, requestsPerSecond: 0 } });
    const half = await begin('REST', 'order', partner, '');
    assert.notEqual(await half.finish(), 429);
    assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 429, 'it was the only one');
  });
});

describe('a caller whose request waits before it is stored', () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });

  const countRows = async (table: 'orders' | 'allocations', { id }: TestPartner, of = gateway) => {
    const [row] = await of.database.read(
      statement(`SELECT COUNT(*) AS counted FROM ${table} WHERE partner_id = ?`, id),
    );
    return Number(row?.counted);
  };

  /** Locks a partner's row, sends, does something when what was sent waits for the row, and lets it go. */
  async function whileLocked<T>(
    partner: TestPartner,
    send: () => Promise<T>,
    work: () => Promise<unknown>,
  ): Promise<T> {
    const other = await createConnection(gateway.databaseUrl);
    try {
      await other.query('START TRANSACTION');
      await other.query('SELECT * FROM partners WHERE id = ? FOR UPDATE', [partner.id]);
      const sent = send();
      await eventually(async () => {
        await delay(150); // Asked more often, the server answers the same again.
        const [rows] = await other.query<RowDataPacket[]>(
          "SELECT trx_query FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
        );
        assert.ok(rows.some(({ trx_query: query }) => String(query).includes(partner.id)));
      });
      await work();
      await other.query('ROLLBACK');
      return await sent;
    } finally {
      await other.end();
    }
  }

  it('a request that waits for the broker is answered 401 when the key is revoked meanwhile, and nothing is stored', async () => {
    const proxy = await FaultProxy.start(`127.0.0.1:${gateway.simulatorPort}`);
    const behind = await startGateway({
      MARINA_BROKER_ADDRESS: proxy.address,
      MARINA_SIMULATOR_ADDRESS: proxy.address,
      MARINA_READ_TIMEOUT_MS: '5000',
    });
    const operators = adminClient(behind.app.adminPort);
    try {
      const partner = await behind.newPartner();
      await gateway.controls.setAccount({ account: partner.account, status: AccountStatus.ACTIVE }, callTimeout);
      // The broker is asked about the account; its answer is held until the key is revoked.
      const asked = new Promise<void>((resolve) => {
        proxy.onBytes = (link, direction, bytes) => {
          if (direction !== 'toServer' || !bytes.includes(partner.account)) return;
          link.set('toClient', { hold: true });
          resolve();
        };
      });
      const answer = behind.place(partner, { symbol: 'SIM-REST' });
      await asked;
      await operators.keys.revokeKey({ keyId: partner.keyId }, operators.options);
      proxy.heal();
      assert.equal((await answer).status, 401);
      assert.equal(await countRows('orders', partner, behind), 0);
    } finally {
      operators.close();
      await behind.stop();
      await proxy.close();
    }
  });

  it('a request that waits for its partner is answered 401 when the key is revoked meanwhile, and nothing is stored', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 1_000_000n);
    // The first of a partner is stored the slow way, and those after it in one round trip.
    assert.equal((await gateway.place(partner, { symbol: 'SIM-REST' })).status, 201);
    const send = () => Promise.all([gateway.place(partner, { symbol: 'SIM-REST' }), gateway.allocate(partner, {})]);
    const answers = await whileLocked(partner, send, () =>
      admin.keys.revokeKey({ keyId: partner.keyId }, admin.options),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401, 401],
    );
    assert.deepEqual([await countRows('orders', partner), await countRows('allocations', partner)], [1, 0]);
  });

  it('a request that waits for its partner is served when something was heard of its key meanwhile, and the key is good', async () => {
    const partner = await gateway.newPartner();
    const send = () => gateway.place(partner, { symbol: 'SIM-REST' });
    // A revocation on another replica makes this one forget the key, which is as good as before.
    const answer = await whileLocked(partner, send, async () => {
      await admin.keys.revokeKey({ keyId: partner.keyId }, admin.options);
      await gateway.database.write(statement('UPDATE api_keys SET revoked_at = NULL WHERE id = ?', partner.keyId));
      await gateway.database.write(statement('DELETE FROM audit_entries WHERE subject = ?', partner.keyId));
    });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(await countRows('orders', partner), 1);
  });

  it('a waiting request to cancel an order is answered 401 when the key is revoked meanwhile, and no cancel is sent', async () => {
    const partner = await gateway.newPartner();
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-REST' });
    const send = () => gateway.rest('DELETE', `/v1/orders/${order.id}`, { key: partner.key });
    const answer = await whileLocked(partner, send, () =>
      admin.keys.revokeKey({ keyId: partner.keyId }, admin.options),
    );
    assert.equal(answer.status, 401, answer.text);
    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    const isCancel = ({ call, account }: (typeof messages)[number]) =>
      call === Call.CANCEL_ORDER && account === partner.account;
    assert.equal(messages.filter(isCancel).length, 0);
  });
});
