import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { IdMaker } from '../../../src/gateway/edge/ids.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Orders, OrderType, Side, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createGrpcClient, type GrpcClient } from '../../../src/kit/grpc-client.ts';
import { onlyKey, Seal, subkey } from '../../../src/kit/key-ring.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { secretKey } from '../../support/keys.ts';

const ids = new IdMaker(Date);
const seal = new Seal(onlyKey(subkey(Buffer.from(secretKey, 'hex'), 'submission notes')));

describe('a lost order whose note another version wrote', () => {
  let gateway: TestGateway;
  let exchange: GrpcClient<typeof Orders>;
  before(async () => {
    gateway = await startGateway();
    exchange = createGrpcClient(Orders, `127.0.0.1:${gateway.simulatorPort}`);
  });
  after(async () => {
    exchange.close();
    // Objects are removed here as a restore from a backup does, and what they counted is not.
    await gateway.stop(['usage']);
  });

  const factsOf = ({ account }: TestPartner): Record<string, unknown> => {
    const now = Date.now();
    return {
      account,
      symbol: 'SIM-REST',
      side: 'buy',
      type: 'market',
      timeInForce: 'gtc',
      quantity: '11',
      createdAt: now,
      countedDay: new Date(now).toISOString().slice(0, 10),
      countedPriceKobo: '1000',
      notAfter: now + 2_000,
    };
  };

  /** Sends an order as another version does whose database lost it afterwards: the broker alone has it. */
  async function send(partner: TestPartner, facts: Record<string, unknown>): Promise<string> {
    const id = ids.object('ord');
    const digest = Buffer.alloc(32, 7).toString('base64');
    const origin = { partnerId: partner.id, addedLater: true };
    const text = JSON.stringify({ partnerId: partner.id, idempotencyKey: id, digest, origin, facts, addedLater: [] });
    const { report } = await exchange.submitOrder(
      {
        clientOrderId: id,
        account: partner.account,
        symbol: 'SIM-REST',
        side: Side.BUY,
        quantity: 11n,
        type: OrderType.MARKET,
        timeInForce: TimeInForce.GTC,
        notAfter: timestampFromMs(Date.now() + 2_000),
        note: seal.seal(id, text),
      },
      { timeoutMs: 5_000 },
    );
    assert.ok(report !== undefined);
    return id;
  }

  it('is stored without what the note lacks, and never with the text "undefined"', async () => {
    const partner = await gateway.newPartner();
    const id = await send(partner, factsOf(partner));
    const order = await eventually(async () => {
      const answer = await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key });
      assert.equal(answer.body.state, 'pending', answer.text);
      return answer.body;
    });
    assert.deepEqual([order.client_reference, order.price_kobo], [null, null]);
    const [row] = await gateway.database.read(statement('SELECT * FROM orders WHERE id = ?', id));
    assert.deepEqual([row?.request_id, row?.trace_parent], [null, null]);
  });

  it('a note with names this version does not know is stored with them and left to the version that does', async () => {
    const partner = await gateway.newPartner();
    const id = await send(partner, { ...factsOf(partner), type: 'stop' });
    await eventually(async () => {
      const answer = await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key });
      assert.deepEqual([answer.body.state, answer.body.type], ['uncertain', 'stop'], answer.text);
    });
  });

  it('an order that cannot be stored is not made up: nothing new is taken until another version has stored it', async () => {
    const partner = await gateway.newPartner();
    const unreadable = [
      { account: undefined },
      { quantity: { units: 11 } },
      { createdAt: 'today' },
      // Longer than the column.
      { type: 'trailing_stop_limit' },
      { countedDay: '2026-02-31' },
      { quantity: '9'.repeat(18), countedPriceKobo: '9'.repeat(18) },
    ];
    const lost: string[] = [];
    for (const change of unreadable) lost.push(await send(partner, { ...factsOf(partner), ...change }));
    const order = { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 12 };
    await eventually(async () => {
      const refused = await gateway.place(partner, order);
      assert.deepEqual([refused.status, refused.body.error?.code], [503, 'exchange_unavailable']);
    });
    const held = (id: string, line: string) => line.includes(id) && line.includes('start a replica of that version');
    await eventually(() => {
      for (const id of lost) assert.ok(gateway.logged.some((line) => held(id, line)));
    });
    const now = new Date();
    for (const id of lost) {
      await gateway.database.write(
        statement(
          `INSERT INTO orders (partner_id, id, state, account, symbol, side, type, time_in_force, quantity, created_at,
            updated_at, counted_day, counted_price_kobo, request_digest, not_after)
            VALUES (?, ?, 'pending', ?, 'SIM-REST', 'buy', 'market', 'gtc', 11, ?, ?, ?, 1000, ?, ?)`,
          partner.id,
          id,
          partner.account,
          now,
          now,
          now.toISOString().slice(0, 10),
          Buffer.alloc(32, 7),
          now,
        ),
      );
    }
    await eventually(async () => {
      const placed = await gateway.place(partner, order);
      assert.equal(placed.status, 201, placed.text);
    }, 20_000);
  });
});
