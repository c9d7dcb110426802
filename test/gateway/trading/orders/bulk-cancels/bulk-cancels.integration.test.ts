import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { Message, MessageShape } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { type App, startApp } from '../../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../../src/gateway/app/config.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { maxRunning } from '../../../../../src/gateway/trading/orders/bulk-cancels/table.ts';
import {
  BulkCancelResult,
  BulkCancelState,
  type CountOpenOrdersRequestSchema,
  StopAction,
} from '../../../../../src/gen/marina/admin/v1/trading_pb.ts';
import { OrderSide } from '../../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Scope } from '../../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call, WireFault } from '../../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { adminClient } from '../../../../support/admin.ts';
import { eventually } from '../../../../support/eventually.ts';
import { FaultProxy } from '../../../../support/fault-proxy.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../../support/gateway.ts';
import { createKey } from '../../../../support/keys.ts';
import { scrape } from '../../../../support/metrics.ts';
import { patient } from '../../../../support/patience.ts';

const silent = createLogger({ name: 'test', level: 'silent' });
const { CANCELLED, NOT_CANCELABLE, UNCONFIRMED, UNSPECIFIED: NONE } = BulkCancelResult;
const longMs = patient(20_000);

type Filter = Partial<Omit<MessageShape<typeof CountOpenOrdersRequestSchema>, keyof Message>>;

describe('bulk cancels', () => {
  let gateway: TestGateway;
  let other: App;
  /** Between both replicas and the broker. */
  let proxy: FaultProxy;
  let admin: ReturnType<typeof adminClient>;
  let partner: TestPartner;
  let neighbour: TestPartner;
  before(async () => {
    gateway = await startGateway(
      { MARINA_BULK_CANCELS_PER_SECOND: '500' },
      {
        prepare: async (variables) => {
          proxy = await FaultProxy.start(variables.MARINA_BROKER_ADDRESS ?? '');
          variables.MARINA_BROKER_ADDRESS = proxy.address;
        },
      },
    );
    other = await startApp(readConfig(gateway.variables), silent);
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await other.stop();
    await gateway.stop();
    await proxy.close();
  });
  beforeEach(async () => {
    [partner, neighbour] = [await gateway.newPartner({ accounts: 2 }), await gateway.newPartner()];
  });
  afterEach(async () => {
    const { bulkCancels } = await admin.trading.listBulkCancels({}, admin.options);
    for (const { id } of bulkCancels) {
      await stop(id).catch((error: ServiceError) => assert.equal(error.code, status.FAILED_PRECONDITION));
    }
    await gateway.controls.clearDirectives({}, callTimeout);
  });

  /** Places an order that stays open, and waits until its partner sees it so. */
  async function place(of: TestPartner, order: Record<string, unknown> = {}): Promise<string> {
    const placed = await gateway.place(of, { symbol: 'SIM-REST', ...order });
    assert.equal(placed.status, 201, placed.text);
    return placed.body.id;
  }

  const count = (filter: Filter) => admin.trading.countOpenOrders(filter, admin.options);
  const stop = (id: string) => admin.trading.stopBulkCancel({ id, reason: 'the test is over' }, admin.options);

  async function begin(filter: Filter, atMost = 1_000): Promise<string> {
    const request = { ...filter, atMost, reason: 'a leaked key' };
    const { changed, bulkCancel } = await admin.trading.cancelOpenOrders(request, admin.options);
    assert.deepEqual([changed, bulkCancel?.state], [true, BulkCancelState.RUNNING]);
    return bulkCancel?.id ?? '';
  }

  async function get(id: string) {
    const { bulkCancel } = await admin.trading.getBulkCancel({ id }, admin.options);
    assert.ok(bulkCancel !== undefined);
    return bulkCancel;
  }

  /** Waits until a job has ended, and returns its counters: cancelled, not cancelable, unconfirmed and left. */
  async function ended(id: string): Promise<number[]> {
    const job = await eventually(async () => {
      const found = await get(id);
      assert.equal(found.state, BulkCancelState.DONE, JSON.stringify(await results(id, NONE)));
      return found;
    }, longMs);
    const { matched, cancelled, notCancelable, unconfirmed, left } = job;
    assert.equal(matched, cancelled + notCancelable + unconfirmed + left);
    return [cancelled, notCancelable, unconfirmed, left].map(Number);
  }

  async function results(id: string, result: BulkCancelResult): Promise<[string, string][]> {
    const { orders } = await admin.trading.listBulkCancelOrders({ id, result, limit: 200 }, admin.options);
    return orders.map(({ orderId, detail }) => [orderId, detail]);
  }

  async function read(of: TestPartner, id: string) {
    return (await gateway.rest('GET', `/v1/orders/${id}`, { key: of.key })).body;
  }

  /** The number of cancels of an order that came to the broker. */
  async function cancelsOf(clientOrderId: string): Promise<number> {
    const { messages } = await gateway.controls.listMessages({ clientOrderId }, callTimeout);
    return messages.filter(({ call }) => call === Call.CANCEL_ORDER).length;
  }

  const fault = (clientId: string, call: Call, kind: WireFault, times = 1) =>
    gateway.controls.injectFault({ clientId, call, fault: kind, times }, callTimeout);

  it('takes the open orders of one partner and cancels them as the partner would', async () => {
    const [pending, half] = [await place(partner), await place(partner, { symbol: 'SIM-HALF' })];
    const foreign = await place(neighbour);
    await eventually(async () => assert.equal((await read(partner, half)).state, 'partially_filled'));
    const counted = await count({ partnerId: partner.id });
    const { matched, pending: pendings, partiallyFilled, undecided, cancelling, examples } = counted;
    assert.deepEqual([matched, pendings, partiallyFilled, undecided, cancelling], [2n, 1n, 1n, 0n, 0n]);
    assert.deepEqual(
      examples.map(({ partnerId, orderId, symbol }) => [partnerId, orderId, symbol]),
      [
        [partner.id, pending, 'SIM-REST'],
        [partner.id, half, 'SIM-HALF'],
      ],
    );
    const id = await begin({ partnerId: partner.id }, 2);
    assert.deepEqual(await ended(id), [2, 0, 0, 0]);
    assert.deepEqual((await results(id, CANCELLED)).map(([order]) => order).sort(), [pending, half].sort());
    for (const [order, filled] of [
      [pending, 0],
      [half, 50],
    ] as const) {
      const { state, filled_quantity: traded } = await read(partner, order);
      assert.deepEqual([state, traded, await cancelsOf(order)], ['cancelled', filled, 1]);
      const { data } = (await gateway.rest('GET', `/v1/orders/${order}/history`, { key: partner.key })).body;
      const steps = data.filter(({ kind }: { kind: string }) => kind === 'cancel');
      assert.equal(steps[0].detail, `a cancel is sent, by the operators (${id})`);
      const { data: events } = (await gateway.rest('GET', '/v1/events?limit=100', { key: partner.key })).body;
      const told = events.filter((event: { type: string; data: { id: string } }) => event.data.id === order);
      assert.equal(told.at(-1).type, 'order.cancelled');
    }
    assert.equal((await read(neighbour, foreign)).state, 'pending');
    assert.equal((await count({ partnerId: partner.id })).matched, 0n);
    const audited = await gateway.database.read(
      statement('SELECT action, operator, partner_id, detail FROM audit_entries WHERE subject = ?', id),
    );
    assert.deepEqual(
      audited.map(({ action, operator, partner_id: of }) => [action, operator, of]),
      [['Trading.CancelOpenOrders', 'tester', partner.id]],
    );
    assert.match(String(audited[0]?.detail), /a leaked key/);
  });

  it('takes the orders of one account, of one symbol over all partners, of one side and of one key', async () => {
    const [first = '', second = ''] = partner.accounts;
    const { id: keyId, key } = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.TRADE] });
    const inFirst = await place(partner, { account: first });
    const inSecond = await place(partner, { account: second, symbol: 'SIM-HALF' });
    const sale = await place(partner, { account: second, side: 'sell' });
    const stolen = await place({ ...partner, key });
    const foreign = await place(neighbour);
    const cases: [Filter, string[]][] = [
      [{ account: first.toLowerCase() }, [inFirst, stolen]],
      [{ symbol: 'SIM-HALF' }, [inSecond]],
      [{ partnerId: partner.id, side: OrderSide.SELL }, [sale]],
      [{ partnerId: partner.id, keyId }, [stolen]],
      [{ account: first, partnerId: neighbour.id }, []],
      [{ account: second, symbol: 'SIM-REST' }, [sale]],
    ];
    const symbol = await count({ symbol: 'SIM-REST' });
    assert.ok(symbol.matched >= 4n);
    for (const [filter, expected] of cases) {
      const { examples } = await count(filter);
      assert.deepEqual(examples.map(({ orderId }) => orderId).sort(), [...expected].sort(), JSON.stringify(filter));
    }
    assert.deepEqual(await ended(await begin({ partnerId: partner.id, keyId }, 1)), [1, 0, 0, 0]);
    assert.deepEqual(await ended(await begin({ symbol: 'SIM-HALF' }, 1)), [1, 0, 0, 0]);
    assert.deepEqual(await ended(await begin({ account: second }, 1)), [1, 0, 0, 0]);
    const states = await Promise.all([inFirst, inSecond, sale, stolen].map((id) => read(partner, id)));
    assert.deepEqual(
      states.map(({ state }) => state),
      ['pending', 'cancelled', 'cancelled', 'cancelled'],
    );
    const all = Number((await count({ symbol: 'SIM-REST' })).matched);
    assert.deepEqual(await ended(await begin({ symbol: 'SIM-REST' }, all)), [all, 0, 0, 0]);
    assert.deepEqual(
      [(await read(partner, inFirst)).state, (await read(neighbour, foreign)).state],
      ['cancelled', 'cancelled'],
    );
  });

  it('works while trading is paused, while a stop is in force, and while the partner is suspended', async () => {
    const orders = [await place(partner), await place(partner)];
    const { stop: made } = await admin.trading.addStop(
      { partnerId: partner.id, actions: [StopAction.BUY, StopAction.SELL], reason: 'a leaked key' },
      admin.options,
    );
    await admin.trading.pauseTrading({ reason: 'a leaked key' }, admin.options);
    try {
      await admin.partners.suspendPartner({ partnerId: partner.id, reason: 'a leaked key' }, admin.options);
      assert.equal((await gateway.rest('DELETE', `/v1/orders/${orders[0]}`, { key: partner.key })).status, 401);
      assert.deepEqual(await ended(await begin({ partnerId: partner.id })), [2, 0, 0, 0]);
    } finally {
      await admin.trading.resumeTrading({ reason: 'the test is over' }, admin.options);
      await admin.trading.endStop({ id: made?.id ?? '', reason: 'the test is over' }, admin.options);
    }
  });

  it('counts an order as not cancelable that filled meanwhile, and one that the exchange calls too late', async () => {
    const late = await place(partner);
    await gateway.controls.disturbReports({ omit: 1 }, callTimeout);
    await gateway.controls.fillOrder({ clientOrderId: late }, callTimeout);
    const id = await begin({ partnerId: partner.id }, 1);
    assert.deepEqual(await ended(id), [0, 1, 0, 0]);
    assert.deepEqual(await results(id, NOT_CANCELABLE), [[late, 'the order is filled']]);
    assert.equal((await read(partner, late)).state, 'filled');
  });

  it('sends one cancel that gets no answer, asks the record, and leaves the order unconfirmed if it goes on', async () => {
    const [hung, lost, plain] = [await place(partner), await place(partner), await place(partner)];
    await fault(hung, Call.CANCEL_ORDER, WireFault.HANG);
    await fault(lost, Call.CANCEL_ORDER, WireFault.LOSE_ANSWER);
    const id = await begin({ partnerId: partner.id }, 3);
    assert.deepEqual(await ended(id), [2, 0, 1, 0]);
    assert.deepEqual(await results(id, UNCONFIRMED), [[hung, "the broker's record has no cancel of the order"]]);
    for (const order of [hung, lost, plain]) assert.equal(await cancelsOf(order), 1);
    assert.deepEqual([(await read(partner, hung)).state, (await read(partner, lost)).state], ['pending', 'cancelled']);
    assert.deepEqual(await ended(await begin({ partnerId: partner.id }, 1)), [1, 0, 0, 0], 'a further job sends again');
    assert.equal(await cancelsOf(hung), 2);
  });

  it('waits for orders that are being sent, cancels those that turn out to be open, and counts those that never were', async () => {
    const { account } = partner;
    const late = { account, call: Call.SUBMIT_ORDER, fault: WireFault.LATE_RECEIPT, delayMs: 1_000 };
    await gateway.controls.injectFault(late, callTimeout);
    const placing = [gateway.place(partner, { symbol: 'SIM-REST' })];
    await eventually(async () => assert.equal((await count({ partnerId: partner.id })).undecided, 1n));
    placing.push(gateway.place(partner, { symbol: 'SIM-HANG' }));
    await eventually(async () => assert.equal((await count({ partnerId: partner.id })).undecided, 2n));
    const job = await begin({ partnerId: partner.id }, 2);
    const [open, lost] = (await Promise.all(placing)).map(({ body }) => body.id);
    assert.deepEqual(await ended(job), [1, 1, 0, 0]);
    assert.deepEqual(await results(job, NOT_CANCELABLE), [[lost, 'the order is refused']]);
    assert.equal((await read(partner, open)).state, 'cancelled');
    assert.deepEqual([await cancelsOf(open), await cancelsOf(lost)], [1, 0]);
  });

  it('sends one cancel of each order for two jobs at once, and both count it', async () => {
    const orders = await Promise.all(Array.from({ length: 12 }, () => place(partner)));
    // Neither begins before both are stored.
    await proxy.refuse();
    proxy.reset();
    const begun = [begin({ partnerId: partner.id }), begin({ account: partner.account })];
    const jobs = await Promise.all(begun).finally(() => proxy.accept());
    for (const id of jobs) assert.deepEqual(await ended(id), [12, 0, 0, 0]);
    for (const order of orders) assert.equal(await cancelsOf(order), 1);
  });

  it('waits while the broker is away, says so, and goes on when it is there again', async () => {
    const orders = [await place(partner), await place(partner)];
    await proxy.refuse();
    proxy.reset();
    let id = '';
    try {
      id = await begin({ partnerId: partner.id }, 2);
      await eventually(async () => assert.equal((await get(id)).waitsFor, 'a connection to the broker'), longMs);
      const metrics = await scrape(gateway.app.opsPort);
      assert.equal(metrics.value('marina_bulk_cancels_running'), 1);
      assert.equal(metrics.value('marina_bulk_cancel_orders_left'), 2);
      assert.equal(Number((await get(id)).left), 2);
    } finally {
      await proxy.accept();
    }
    assert.deepEqual(await ended(id), [2, 0, 0, 0]);
    assert.equal((await get(id)).waitsFor, '');
    for (const order of orders) assert.equal(await cancelsOf(order), 1);
  });

  it('ends when its time is over though the broker is away, and cancels nothing after that', async () => {
    const orders = [await place(partner), await place(partner)];
    await proxy.refuse();
    proxy.reset();
    let id = '';
    try {
      id = await begin({ partnerId: partner.id }, 2);
      await eventually(async () => assert.equal((await get(id)).waitsFor, 'a connection to the broker'), longMs);
      const over = statement('UPDATE bulk_cancels SET give_up_at = ? WHERE id = ?', new Date(Date.now() - 1_000), id);
      await gateway.database.write(over);
      await eventually(async () => assert.equal((await get(id)).state, BulkCancelState.DONE), longMs);
    } finally {
      await proxy.accept();
    }
    await eventually(() => place(neighbour), longMs);
    assert.deepEqual(
      [await ended(id), await Promise.all(orders.map(cancelsOf))],
      [
        [0, 0, 0, 2],
        [0, 0],
      ],
    );
  });

  it('cannot be stopped once it has ended by itself, because then another one is meant', async () => {
    await place(partner);
    const id = await begin({ partnerId: partner.id }, 1);
    await ended(id);
    await assert.rejects(stop(id), { code: status.FAILED_PRECONDITION, details: 'the job has ended by itself' });
  });

  it('is stopped by an operator, leaves the other orders as they are, and says how many', async () => {
    const orders = [await place(partner), await place(partner)];
    await proxy.refuse();
    proxy.reset();
    try {
      const id = await begin({ partnerId: partner.id }, 2);
      const { changed, bulkCancel } = await stop(id);
      assert.deepEqual([changed, bulkCancel?.state, bulkCancel?.stoppedBy], [true, BulkCancelState.DONE, 'tester']);
      assert.equal((await stop(id)).changed, false);
      await proxy.accept();
      const after = await begin({ account: 'A', partnerId: partner.id }, 1).catch(() => undefined);
      assert.equal(after, undefined, 'no order matches');
      assert.deepEqual(await ended(id), [0, 0, 0, 2]);
      assert.deepEqual((await results(id, NONE)).map(([order]) => order).sort(), [...orders].sort());
      const { bulkCancels } = await admin.trading.listBulkCancels({ done: true, limit: 1 }, admin.options);
      assert.deepEqual([bulkCancels[0]?.id, bulkCancels[0]?.stopReason], [id, 'the test is over']);
      const audited = await gateway.database.read(
        statement('SELECT action, was, became FROM audit_entries WHERE subject = ? ORDER BY id', id),
      );
      assert.deepEqual(
        audited.map(({ action, was, became }) => [action, was, became]),
        [
          ['Trading.CancelOpenOrders', null, '{"running":true}'],
          ['Trading.StopBulkCancel', '{"running":true}', '{"running":false}'],
        ],
      );
    } finally {
      await proxy.accept();
    }
    for (const order of orders) assert.equal((await read(partner, order)).state, 'pending');
  });

  it('goes on in another replica when the process that was at work stops', async () => {
    const orders = await Promise.all(Array.from({ length: 20 }, () => place(partner)));
    const third = await startApp(readConfig({ ...gateway.variables, MARINA_BULK_CANCELS_PER_SECOND: '5' }), silent);
    const id = await begin({ partnerId: partner.id });
    await third.stop();
    assert.deepEqual(await ended(id), [20, 0, 0, 0]);
    for (const order of orders) assert.equal(await cancelsOf(order), 1);
  });

  describe('a job is refused', () => {
    const refusals: [string, () => Filter, number, status, string][] = [
      ['without a partner, an account or a symbol', () => ({}), 1, status.INVALID_ARGUMENT, 'partner_id'],
      ['of one side of everything', () => ({ side: OrderSide.BUY }), 1, status.INVALID_ARGUMENT, 'partner_id'],
      [
        'of a key without its partner',
        () => ({ symbol: 'GTCO', keyId: `key_${'a'.repeat(20)}` }),
        1,
        status.INVALID_ARGUMENT,
        'partner_id',
      ],
      [
        'of a side that does not exist',
        () => ({ partnerId: partner.id, side: 9 as OrderSide }),
        1,
        status.INVALID_ARGUMENT,
        'side',
      ],
      ['without a number of orders', () => ({ partnerId: partner.id }), 0, status.INVALID_ARGUMENT, 'at_most'],
      [
        'of a partner that does not exist',
        () => ({ partnerId: `par_${'a'.repeat(20)}` }),
        1,
        status.NOT_FOUND,
        'partner',
      ],
      [
        'of a key that another partner has',
        () => ({ partnerId: partner.id, keyId: neighbour.keyId }),
        1,
        status.NOT_FOUND,
        'the partner has no such key',
      ],
      [
        'more orders than it names',
        () => ({ partnerId: partner.id }),
        1,
        status.FAILED_PRECONDITION,
        'more than 1 orders',
      ],
    ];
    for (const [which, filter, atMost, code, says] of refusals) {
      it(`a job is refused that is asked for ${which}`, async () => {
        await Promise.all([place(partner), place(partner)]);
        await assert.rejects(begin(filter(), atMost), (error: { code: status; message: string }) => {
          assert.deepEqual([error.code, error.message.includes(says)], [code, true], error.message);
          return true;
        });
        assert.deepEqual((await admin.trading.listBulkCancels({}, admin.options)).bulkCancels, []);
        assert.equal((await count({ partnerId: partner.id })).matched, 2n);
      });
    }

    it('a job is refused while as many run as may run, of one operator or of all', async () => {
      await place(partner);
      await proxy.refuse();
      proxy.reset();
      try {
        const refusal = async () => {
          const error: ServiceError = await begin({ partnerId: partner.id }).then(
            () => assert.fail('it began'),
            (thrown) => thrown,
          );
          return [error.code, error.details];
        };
        for (let at = 0; at < maxRunning / 2; at += 1) await begin({ partnerId: partner.id });
        const others = (name: string) =>
          gateway.database.write(statement('UPDATE bulk_cancels SET started_by = ? WHERE ended_at IS NULL', name));
        await others('TESTER');
        const ofOne = '10 jobs of yours are running: stop one first';
        assert.deepEqual(await refusal(), [status.RESOURCE_EXHAUSTED, ofOne], 'names in capitals are the same person');
        await others('ada');
        for (let at = 0; at < maxRunning / 2; at += 1) await begin({ partnerId: partner.id });
        const ofAll = '20 such jobs are running: wait, or stop one first';
        assert.deepEqual(await refusal(), [status.RESOURCE_EXHAUSTED, ofAll]);
      } finally {
        await proxy.accept();
      }
    });

    it('no job is stored if no order matches, without an error', async () => {
      const request = { partnerId: partner.id, atMost: 1, reason: 'a test' };
      const { changed, bulkCancel } = await admin.trading.cancelOpenOrders(request, admin.options);
      assert.deepEqual([changed, bulkCancel], [false, undefined]);
    });
  });
});
