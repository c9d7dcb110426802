import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Orders, OrderType, Side, TimeInForce } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { eventually } from '../../../support/eventually.ts';
import { TestOperator } from '../../../support/operator.ts';

describe("the broker's reports about an order that is not stored here", () => {
  let operator: TestOperator;
  before(async () => {
    operator = await TestOperator.start();
    const { simulatorPort } = operator.gateway;
    const { account } = await operator.gateway.newPartner();
    const exchange = createGrpcClient(Orders, `127.0.0.1:${simulatorPort}`);
    try {
      const terms = { type: OrderType.MARKET, timeInForce: TimeInForce.DAY, side: Side.BUY, quantity: 7n };
      const theirs = { clientOrderId: 'their-order-1', account, symbol: 'SIM-FILL', ...terms };
      await exchange.submitOrder({ ...theirs, notAfter: timestampFromMs(Date.now() + 60_000) }, { timeoutMs: 10_000 });
    } finally {
      exchange.close();
    }
  });
  // The exchange has orders that are not stored here.
  after(() => operator.stop(['exchange']));

  const list = (request = {}) =>
    operator.call('Diagnostics.ListUnclaimedReports', { kind: 'UNCLAIMED_KIND_ORDER', ...request });

  it('are listed for operators with their trades, and counted', async () => {
    const { reports } = await eventually(async () => {
      const answer = await list();
      assert.equal(answer.reports?.length, 2);
      return answer;
    });
    const [fill, acceptance] = reports;
    assert.deepEqual([fill.object_id, fill.report, String(fill.quantity)], ['their-order-1', 'trade', '7']);
    assert.ok(Number(fill.price_kobo) > 0);
    assert.equal(acceptance.report, 'accepted');
    const metrics = await fetch(`http://127.0.0.1:${operator.gateway.app.opsPort}/metrics`);
    assert.match(await metrics.text(), /marina_unclaimed_reports_total\{kind="order"\} [1-9]/);
  });

  it('are listed a page at a time', async () => {
    const first = await list({ limit: 1 });
    const second = await list({ limit: 1, cursor: first.next_cursor });
    assert.deepEqual(
      [first, second].map(({ reports }) => reports.map(({ report }: { report: string }) => report)),
      [['trade'], ['accepted']],
    );
    assert.ok(!second.next_cursor);
  });

  it('reports of applications are another list, and a kind must be named', async () => {
    const others = await list({ kind: 'UNCLAIMED_KIND_APPLICATION' });
    assert.equal(others.reports?.length ?? 0, 0);
    const refused = await operator.refused('Diagnostics.ListUnclaimedReports', {});
    assert.equal(refused.code, status.INVALID_ARGUMENT);
  });
});
