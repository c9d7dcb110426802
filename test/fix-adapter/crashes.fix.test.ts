import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import type { Orders } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import type { GrpcClient } from '../../src/kit/grpc-client.ts';
import { eventually } from '../support/eventually.ts';
import { fated } from '../support/fault/moments/fated.ts';
import { createFixDatabase, order, soon, startAdapterProcess } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';
import { temporaryFolder } from '../support/folders.ts';

/** The order's status at the adapter, once it is certain. */
async function settled(orders: GrpcClient<typeof Orders>, id: string) {
  return eventually(() => orders.lookUpOrder({ clientOrderId: id }, soon), 40_000);
}

/** The findings about an order. */
async function findingsOf(url: string, id: string): Promise<string[]> {
  const database = new Database(await connect({ url, poolSize: 1 }), 'live', 1);
  try {
    const rows = await database.read(statement('SELECT what FROM fix_findings WHERE order_id = ?', Buffer.from(id)));
    return rows.map(({ what }) => String(what));
  } finally {
    await database.close();
  }
}

describe('an adapter that is killed', { concurrency: 3 }, () => {
  it('is replaced by one that waits, within seconds, and nothing is sent twice', async (context) => {
    const { exchange, variables } = await begin(context);
    const first = await startAdapterProcess(variables);
    const one = await first.active();
    const second = await startAdapterProcess(variables);
    const placed = await placedBy(one.orders);
    const began = performance.now();
    await first.kept.kill();
    const two = await second.active();
    await eventually(() => two.orders.submitOrder(order(), soon), 20_000);
    assert.ok(performance.now() - began < 20_000);
    assert.equal((await settled(two.orders, placed.clientOrderId)).found, true);
    assert.deepEqual([...new Set(exchange.arrivals.values())], [1]);
    one.orders.close();
    two.orders.close();
    await second.kept.stop();
  });

  it('killed or frozen before it writes an order, it does not write it when it goes on, if another has the session', async (context) => {
    const { exchange, variables, ownerUrl } = await begin(context);
    const stored = 'update fix_numbers, insert fix_orders, insert fix_submissions';
    const frozen = fated(temporaryFolder(), { kind: 'commit', label: stored, fate: 'frozen' });
    const first = await startAdapterProcess({ ...variables, ...frozen });
    const one = await first.active();
    const second = await startAdapterProcess(variables);
    const placed: string[] = [];
    const answer = eventually(() => {
      const next = order({ notAfter: inSeconds(60) });
      placed.push(next.clientOrderId);
      return one.orders.submitOrder(next, { timeoutMs: 30_000 });
    }).catch(() => undefined);
    const two = await second.active();
    await eventually(() => two.orders.submitOrder(order(), soon), 20_000);
    process.kill(first.kept.pid, 'SIGCONT');
    await answer;
    for (const id of placed) {
      assert.equal(exchange.arrivals.get(id), undefined);
      // Messages for the frozen one are lost, so the exchange's word proves nothing: the order stays in doubt, and is found.
      const answer = await two.orders
        .lookUpOrder({ clientOrderId: id }, soon)
        .catch((error: { code: status }) => error);
      if ('found' in answer) assert.equal(answer.found, false);
      else {
        assert.equal(answer.code, status.UNAVAILABLE);
        await eventually(async () => assert.deepEqual(await findingsOf(ownerUrl, id), ['absence_unproven']), 40_000);
      }
    }
    one.orders.close();
    two.orders.close();
    await Promise.all([first.kept.stop(), second.kept.stop()]);
  });
});

function inSeconds(seconds: number) {
  return { seconds: BigInt(Math.floor(Date.now() / 1_000) + seconds), nanos: 0 };
}

/** Places an order. One that was refused while the session came up is not taken any more, so each try is another. */
async function placedBy(orders: Awaited<ReturnType<AdapterProcess['active']>>['orders']) {
  return eventually(async () => {
    const one = order({ notAfter: inSeconds(60) });
    await orders.submitOrder(one, soon);
    return one;
  });
}

type AdapterProcess = Awaited<ReturnType<typeof startAdapterProcess>>;

async function begin(context: { after(work: () => Promise<void>): void }) {
  const database = await createFixDatabase();
  const exchange = await Exchange.start();
  context.after(async () => {
    await exchange.close();
    await database.drop();
  });
  const variables = {
    MARINA_FIX_DATABASE_URL: database.url,
    MARINA_FIX_ADDRESS: `127.0.0.1:${exchange.port}`,
  };
  return { database, exchange, variables, ownerUrl: database.ownerUrl };
}
