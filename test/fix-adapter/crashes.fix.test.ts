import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { connect } from '../../src/gateway/store/data-source.ts';
import { Database } from '../../src/gateway/store/database.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { CancelOutcome, type Orders, ReportKind } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import type { GrpcClient } from '../../src/kit/grpc-client.ts';
import { eventually } from '../support/eventually.ts';
import { createFixDatabase, order, soon, startAdapterProcess } from '../support/fix/adapter.ts';
import { Exchange } from '../support/fix/exchange.ts';

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

async function everyReport(orders: GrpcClient<typeof Orders>) {
  const found = [];
  for await (const { reports, lastNumber } of orders.streamReports({ afterNumber: 0n }, soon)) {
    found.push(...reports);
    if (BigInt(found.length) >= lastNumber) break;
  }
  return found;
}

describe('an adapter that is killed', { concurrency: 3 }, () => {
  const points = [
    'fix-order.before-store',
    'fix-order.stored',
    'fix-order.sent',
    'fix-report.before-apply',
    'fix-report.applied',
  ];
  for (const point of points) {
    it(`killed at ${point}, it sends the order at most once, and what became of it is known afterwards`, async (context) => {
      const { exchange, variables } = await begin(context);
      const first = await startAdapterProcess({ ...variables, MARINA_FIX_CRASH_POINT: point });
      const { orders } = await first.active();
      const one = order({ notAfter: inSeconds(60) });
      exchange.treat = () => 'fill';
      await eventually(() => assert.ok(exchange.isConnected));
      // It is refused while the session comes up, and that is no crash yet.
      for (let tries = 0; tries < 400 && !(await isDead(first)); tries += 1) {
        await orders
          .submitOrder({ ...one, clientOrderId: `${one.clientOrderId.slice(0, -3)}${100 + tries}` }, soon)
          .catch(() => {});
      }
      assert.ok(await isDead(first), 'it was killed');
      orders.close();

      const second = await startAdapterProcess(variables);
      const again = await second.active();
      for (const [id, times] of exchange.arrivals) {
        assert.equal(times, 1, `${id} was sent once`);
        const { found, reports } = await settled(again.orders, id);
        assert.ok(found, 'what the exchange has is found');
        assert.deepEqual(
          reports.map(({ kind }) => kind),
          [ReportKind.ACCEPTED, ReportKind.TRADE],
        );
      }
      const all = await everyReport(again.orders);
      assert.deepEqual(
        all.map(({ number }) => number),
        all.map((_, at) => BigInt(at + 1)),
      );
      assert.equal(all.filter(({ kind }) => kind === ReportKind.TRADE).length, exchange.arrivals.size);
      again.orders.close();
      await second.kept.stop();
    });
  }

  for (const point of ['fix-cancel.stored', 'fix-cancel.sent']) {
    it(`killed at ${point}, it lets the cancel be asked for again, and the order is cancelled once`, async (context) => {
      const { variables } = await begin(context);
      const first = await startAdapterProcess({ ...variables, MARINA_FIX_CRASH_POINT: point });
      const { orders } = await first.active();
      const one = await placedBy(orders);
      await assert.rejects(orders.cancelOrder(one, soon));
      assert.ok(await isDead(first));
      orders.close();
      const second = await startAdapterProcess(variables);
      const again = await second.active();
      const { outcome } = await eventually(() => again.orders.cancelOrder(one, soon), 40_000);
      assert.equal(outcome, CancelOutcome.CANCELLED);
      const { reports } = await settled(again.orders, one.clientOrderId);
      assert.deepEqual(
        reports.map(({ kind }) => kind),
        [ReportKind.ACCEPTED, ReportKind.CANCELLED],
      );
      again.orders.close();
      await second.kept.stop();
    });
  }

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
    const first = await startAdapterProcess({
      ...variables,
      MARINA_FIX_CRASH_POINT: 'fix-order.stored',
      MARINA_FIX_CRASH_SIGNAL: 'SIGSTOP',
    });
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

async function isDead({ kept }: AdapterProcess): Promise<boolean> {
  return Promise.race([
    kept.exited.then(() => true),
    new Promise<boolean>((resolve) => setTimeout(resolve, 50, false)),
  ]);
}

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
