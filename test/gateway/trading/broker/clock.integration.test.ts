import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { BrokerClockAgreement, ReconcileOutcome } from '../../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { Orders, OrderType, Side, TimeInForce } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { StatedTime } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply } from '../../../support/applications.ts';
import { overRest } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { noiseJpeg } from '../../../support/images.ts';
import { scrape } from '../../../support/metrics.ts';

/** An amount that the simulated broker never takes and never answers. */
const hangingKobo = 999_005;
const twoMinutesMs = 120_000n;
const anHourMs = 3_600_000n;

describe('a wrong clock at the broker', { concurrency: 3 }, () => {
  /** Runs a test with a gateway and a simulator of its own. */
  async function withGateway(
    test: (gateway: TestGateway, partner: TestPartner, admin: ReturnType<typeof adminClient>) => Promise<void>,
  ): Promise<void> {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      await test(gateway, await gateway.newPartner(), admin);
    } finally {
      admin.close();
      // A submission arrives late here, delivered by the test.
      await gateway.stop(['exchange']);
    }
  }

  const setClock = ({ controls }: TestGateway, errorMs: bigint, stated = StatedTime.UNSPECIFIED) =>
    controls.setClockError({ errorMs, stated }, callTimeout);

  /**
   * Delivers the submission of an order that hung on its way, as the network would at last. Rejects when the exchange does
   * not take it any more.
   */
  async function deliverLate(gateway: TestGateway, { account }: TestPartner, id: string): Promise<void> {
    const [row] = await gateway.database.read(statement('SELECT not_after FROM orders WHERE id = ?', id));
    const orders = createGrpcClient(Orders, `127.0.0.1:${gateway.simulatorPort}`);
    try {
      const order = { clientOrderId: id, account, symbol: 'SIM-REST', side: Side.BUY, quantity: 100n };
      const terms = { type: OrderType.LIMIT, timeInForce: TimeInForce.DAY, priceKobo: 1_000n };
      const notAfter = timestampFromDate(row?.not_after as Date);
      await orders.submitOrder({ ...order, ...terms, notAfter }, callTimeout);
    } finally {
      orders.close();
    }
  }

  /** Places an order that never arrives. */
  const placeHanging = (gateway: TestGateway, partner: TestPartner) =>
    eventually(async () => {
      const { body } = await gateway.place(partner, { symbol: 'SIM-HANG', quantity: 100 });
      assert.equal(body.state, 'uncertain', JSON.stringify(body));
      return body;
    }, 20_000);

  const get = async (gateway: TestGateway, { key }: TestPartner, path: string) =>
    (await gateway.rest('GET', path, { key })).body;

  const eventsOf = async (gateway: TestGateway, partner: TestPartner, id: string) =>
    (await get(gateway, partner, '/v1/events?limit=100')).data.filter(
      (event: { data: { id: string } }) => event.data.id === id,
    );

  const lookUpsOf = async ({ database }: TestGateway, id: string) =>
    Number((await database.read(statement('SELECT asked FROM look_ups WHERE object_id = ?', id)))[0]?.asked ?? 0);

  /** Waits until an object was looked up that often, after which it would be settled if that proved anything. */
  const lookedUp = (gateway: TestGateway, id: string, times: number) =>
    eventually(
      async () => assert.ok((await lookUpsOf(gateway, id)) >= times, `${id} was looked up too seldom`),
      20_000,
    );

  it('behind: an order that arrives late is not called refused, and is filled', () =>
    withGateway(async (gateway, partner, admin) => {
      await setClock(gateway, -twoMinutesMs);
      const placed = await placeHanging(gateway, partner);
      // By our clock its time is over, and it is not there.
      await lookedUp(gateway, placed.id, 4);
      assert.equal((await get(gateway, partner, `/v1/orders/${placed.id}`)).state, 'uncertain');
      const { upstream, troubles } = await admin.diagnostics.getStatus({}, admin.options);
      assert.equal(upstream?.clockAgreement, BrokerClockAgreement.APART);
      assert.ok(Math.abs(Number(upstream?.clockAheadMs) + 120_000) < 2_000, `${upstream?.clockAheadMs} ms`);
      assert.ok(troubles.some(({ part, stops }) => part === 'broker-clock' && !stops));
      const shown = await scrape(gateway.app.opsPort);
      const offset = shown.value('marina_broker_clock_offset_seconds');
      assert.ok(Math.abs(offset + 120) < 2, `${offset} s`);
      assert.ok(shown.has('marina_part_trouble_seconds', { part: 'broker-clock' }));
      await eventually(() => assert.ok(gateway.logged.some((line) => line.includes('too far apart'))));

      await deliverLate(gateway, partner, placed.id);
      await eventually(async () =>
        assert.equal((await get(gateway, partner, `/v1/orders/${placed.id}`)).state, 'pending'),
      );
      await gateway.controls.fillOrder({ clientOrderId: placed.id, quantity: 30n }, callTimeout);
      await eventually(async () => {
        const order = await get(gateway, partner, `/v1/orders/${placed.id}`);
        assert.deepEqual([order.state, order.filled_quantity], ['partially_filled', 30]);
      });
      await eventually(async () => {
        const types = (await eventsOf(gateway, partner, placed.id)).map(({ type }: { type: string }) => type);
        assert.deepEqual(types, ['order.uncertain', 'order.pending', 'order.partially_filled']);
      });
    }));

  it('when the clock jumps back, a missing order stays uncertain, and settles by itself once the clock is right', () =>
    withGateway(async (gateway, partner, admin) => {
      await gateway.fund(partner, 2_000_000n);
      const wanting = await eventually(async () => {
        const { body } = await apply(gateway, partner, { first_name: 'SIM-HANG-DOCUMENTS' });
        assert.equal(body.state, 'documents_required');
        return body;
      }, 20_000);
      const send = overRest(gateway.app.restPort);
      const [order, { body: allocation }, { body: application }, document] = await Promise.all([
        placeHanging(gateway, partner),
        gateway.allocate(partner, { amount_kobo: hangingKobo }),
        apply(gateway, partner, { last_name: 'SIM-HANG' }),
        noiseJpeg().then((file) => send({ key: partner.key, id: wanting.id, type: 'photo', file })),
        setClock(gateway, -twoMinutesMs),
      ]);
      assert.equal(document.outcome, 'document_unconfirmed');
      const objects = [
        `/v1/orders/${order.id}`,
        `/v1/allocations/${allocation.id}`,
        `/v1/applications/${application.id}`,
      ];
      for (const { id } of [order, allocation, application]) await lookedUp(gateway, id, 3);
      for (const path of objects) assert.equal((await get(gateway, partner, path)).state, 'uncertain', path);
      const wallet = await get(gateway, partner, '/v1/wallet');
      assert.equal(wallet.reserved_kobo, hangingKobo);
      const release = () =>
        admin.documents.releaseDocument({ applicationId: wanting.id, type: 'photo', reason: 'test' }, admin.options);
      await eventually(() => assert.rejects(release(), /FAILED_PRECONDITION.*too far apart/));
      const { objects: asked } = await admin.diagnostics.reconcileNow(
        { objectId: order.id, reason: 'test' },
        admin.options,
      );
      assert.equal(asked[0]?.outcome, ReconcileOutcome.STILL_UNCLEAR);

      await setClock(gateway, 0n);
      await eventually(async () => {
        const states = await Promise.all(objects.map(async (path) => (await get(gateway, partner, path)).state));
        assert.deepEqual(states, ['refused', 'refused', 'unplaced']);
      }, 90_000);
      const settled = await get(gateway, partner, '/v1/wallet');
      assert.deepEqual([settled.available_kobo, settled.reserved_kobo], [2_000_000, 0]);
      assert.equal((await release()).changed, true);
      const shown = await scrape(gateway.app.opsPort);
      assert.ok(Math.abs(shown.value('marina_broker_clock_offset_seconds')) < 1);
      assert.equal(shown.has('marina_part_trouble_seconds', { part: 'broker-clock' }), false);
    }));

  it('when the broker does not state its clock, a missing order stays uncertain until it states it', () =>
    withGateway(async (gateway, partner, admin) => {
      await setClock(gateway, 0n, StatedTime.NONE);
      // The watch forgets earlier measurements; until then an answer without a time proves nothing either.
      const placed = await placeHanging(gateway, partner);
      await lookedUp(gateway, placed.id, 4);
      assert.equal((await get(gateway, partner, `/v1/orders/${placed.id}`)).state, 'uncertain');
      const { troubles } = await admin.diagnostics.getStatus({}, admin.options);
      assert.deepEqual(
        troubles.filter(({ part }) => part === 'broker-clock'),
        [],
      );
      await setClock(gateway, 0n);
      await eventually(
        async () => assert.equal((await get(gateway, partner, `/v1/orders/${placed.id}`)).state, 'refused'),
        40_000,
      );
    }));

  it('ahead: the broker refuses orders as too late, and the clock is in trouble', () =>
    withGateway(async (gateway, partner, admin) => {
      await setClock(gateway, twoMinutesMs);
      const placed = await gateway.place(partner, { symbol: 'SIM-FILL' });
      assert.deepEqual([placed.status, placed.body.error.code], [503, 'order_not_sent']);
      await eventually(async () => {
        const { upstream } = await admin.diagnostics.getStatus({}, admin.options);
        assert.equal(upstream?.clockAgreement, BrokerClockAgreement.APART);
        assert.ok(Math.abs(Number(upstream?.clockAheadMs) - 120_000) < 2_000, `${upstream?.clockAheadMs} ms`);
      });
    }));

  it('when answers hide the wrong clock and reports show it, the reports count, on every replica', () =>
    withGateway(async (gateway, partner) => {
      await setClock(gateway, -twoMinutesMs, StatedTime.RIGHT);
      const { body: filled } = await gateway.place(partner, { symbol: 'SIM-FILL' });
      await eventually(async () =>
        assert.equal((await get(gateway, partner, `/v1/orders/${filled.id}`)).state, 'filled'),
      );
      await eventually(() =>
        assert.ok(gateway.logged.some((line) => line.includes('happened before it was asked for'))),
      );
      const hung = await placeHanging(gateway, partner);
      await lookedUp(gateway, hung.id, 4);
      assert.equal((await get(gateway, partner, `/v1/orders/${hung.id}`)).state, 'uncertain');

      const config = readConfig({ ...gateway.variables, MARINA_ROLES: 'api' });
      const other = await startApp(config, createLogger({ name: 'other', level: 'silent' }));
      const admin = adminClient(other.adminPort);
      try {
        const { objects } = await admin.diagnostics.reconcileNow({ objectId: hung.id, reason: 'test' }, admin.options);
        assert.equal(objects[0]?.outcome, ReconcileOutcome.STILL_UNCLEAR);
      } finally {
        admin.close();
        await other.stop();
      }
    }));

  it('when nothing showed the wrong clock, a refused order that the exchange has is corrected, told, not counted, and alerted', () =>
    withGateway(async (gateway, partner) => {
      await setClock(gateway, -anHourMs, StatedTime.RIGHT);
      const placed = await placeHanging(gateway, partner);
      const order = () => get(gateway, partner, `/v1/orders/${placed.id}`);
      await eventually(async () => assert.equal((await order()).state, 'refused'), 40_000);
      assert.equal((await order()).reason, 'It never reached the exchange.');
      const before = await scrape(gateway.app.opsPort);
      assert.equal(before.value('marina_false_refusals_total', { kind: 'order' }), 0);

      await deliverLate(gateway, partner, placed.id);
      await eventually(async () => assert.match((await order()).reason, /That was wrong. It may trade\.$/));
      await gateway.controls.fillOrder({ clientOrderId: placed.id, quantity: 30n }, callTimeout);
      await eventually(async () => {
        const { state, filled_quantity: filled, reason } = await order();
        assert.deepEqual([state, filled], ['refused', 30]);
        assert.match(
          reason,
          /^It was reported as never having reached the exchange\. That was wrong\. 30 of 100 shares/,
        );
      });
      await eventually(async () => {
        const events = await eventsOf(gateway, partner, placed.id);
        assert.deepEqual(
          events.map(({ type, data }: { type: string; data: { filled_quantity: number } }) => [
            type,
            data.filled_quantity,
          ]),
          [
            ['order.uncertain', 0],
            ['order.refused', 0],
            ['order.refused', 0],
            ['order.refused', 30],
          ],
        );
        assert.deepEqual(events.at(-1).data, await order());
      });
      const limits = await get(gateway, partner, '/v1/limits');
      assert.equal(limits.orders_kobo_per_day.used, 0);
      const after = await scrape(gateway.app.opsPort);
      assert.ok(after.value('marina_false_refusals_total', { kind: 'order' }) >= 1);
      assert.ok(gateway.logged.some((line) => line.includes('had never arrived') && line.includes(placed.id)));
    }));
});
