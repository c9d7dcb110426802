import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { declareRestored } from '../../../../src/gateway/trading/submission/recovery.ts';
import { noteRestore } from '../../../../src/gateway/trading/submission/restored.ts';
import { Orders, OrderType, Side, TimeInForce } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { restCaller, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { creditWallet } from '../../../support/ledger.ts';
import { runCommand } from '../../../support/secret-files.ts';
import type { WorldPart } from '../../../support/world.ts';

const silent = createLogger({ name: 'test', level: 'silent' });

/** Rows are removed here as a restore from a backup does, without what they counted and told. */
const left: readonly WorldPart[] = ['outbox', 'feed', 'objects', 'usage', 'exchange'];

describe('a gateway that starts on a database that lacks what the broker was given', () => {
  let gateway: TestGateway;
  let app: App;
  const logged: string[] = [];
  before(async () => {
    gateway = await startGateway();
    app = gateway.app;
  });
  after(async () => {
    if (app !== gateway.app) await app.stop();
    await gateway.stop(left);
  });

  /** Stops the gateway, changes its database behind its back, and starts it again. */
  async function startAfter(...losses: [sql: string, ...values: string[]][]): Promise<void> {
    await app.stop();
    for (const [sql, ...values] of losses) await gateway.database.write(statement(sql, ...values));
    const config = readConfig(gateway.variables);
    const destination = { write: (line: string) => void logged.push(line) };
    app = await startApp(config, createLogger({ name: 'marina', level: 'info', destination }));
  }

  /** Calls the gateway that was started last. */
  function ask(method: string, path: string, { key }: TestPartner, body?: unknown, idempotencyKey = randomUUID()) {
    const isRead = body === undefined;
    return restCaller(app)(method, path, isRead ? { key } : { key, idempotencyKey, body });
  }

  function said(message: string): number {
    return logged.filter((line) => line.includes(message)).length;
  }

  const order = ({ account }: TestPartner) => ({
    account,
    symbol: 'SIM-FILL',
    side: 'buy',
    quantity: 7,
    type: 'market',
  });
  const fromTheStart: [string] = [`DELETE FROM positions WHERE name = 'submissions'`];

  it('stores a lost order again under its key, with what became of it, and counts it for its day', async () => {
    const partner = await gateway.newPartner();
    const key = randomUUID();
    const placed = await ask('POST', '/v1/orders', partner, { ...order(partner), client_reference: 'mine ' }, key);
    assert.equal(placed.status, 201);
    const filled = await eventually(async () => {
      const { body } = await ask('GET', `/v1/orders/${placed.body.id}`, partner);
      assert.equal(body.state, 'filled');
      return body;
    });
    const before = await ask('GET', '/v1/limits', partner);
    await startAfter(
      ['DELETE FROM orders WHERE partner_id = ?', partner.id],
      ['DELETE FROM order_steps WHERE partner_id = ?', partner.id],
      ['DELETE FROM usage_days WHERE partner_id = ?', partner.id],
      fromTheStart,
    );
    const again = await ask('POST', '/v1/orders', partner, { ...order(partner), client_reference: 'mine ' }, key);
    assert.equal(again.status, 200, JSON.stringify(again.body));
    assert.equal(again.body.id, placed.body.id);
    await eventually(async () => {
      const { body } = await ask('GET', `/v1/orders/${placed.body.id}`, partner);
      assert.deepEqual({ ...body, updated_at: '', filled_at: '' }, { ...filled, updated_at: '', filled_at: '' });
    });
    const limits = await ask('GET', '/v1/limits', partner);
    assert.deepEqual(limits.body.orders_kobo_per_day, before.body.orders_kobo_per_day);
    const other = await ask('POST', '/v1/orders', partner, order(partner), key);
    assert.equal(other.body.error.code, 'duplicate_order', 'the key stands for its request');
  });

  it('tells no version again, and a reader goes on across what was skipped', async () => {
    const partner = await gateway.newPartner();
    await ask('POST', '/v1/orders', partner, order(partner));
    const page = await eventually(async () => {
      const { body } = await ask('GET', '/v1/events', partner);
      assert.equal(body.data.at(-1)?.type, 'order.filled');
      return body;
    });
    const last = page.data.at(-1).version;
    // As if the last event had never been: the reader has seen what the database does not know of.
    await startAfter(
      ['DELETE FROM feed_events WHERE partner_id = ? AND version = ?', partner.id, String(last)],
      ['UPDATE partners SET version = ? WHERE id = ?', String(last - 1), partner.id],
    );
    assert.equal(await declareRestored(gateway.database, firstBroker), true);
    assert.equal(await declareRestored(gateway.database, firstBroker), false, 'once');
    await ask('POST', '/v1/orders', partner, order(partner));
    const on = await eventually(async () => {
      const { body } = await ask('GET', `/v1/events?cursor=${page.next_cursor}`, partner);
      assert.equal(body.data.at(-1)?.type, 'order.filled');
      return body;
    });
    assert.ok(on.data[0].version > last, 'no version comes again');
    const whole = await ask('GET', '/v1/events', partner);
    assert.deepEqual(
      whole.body.data.map(({ id }: { id: string }) => id),
      [...page.data.slice(0, -1), ...on.data].map(({ id }: { id: string }) => id),
      'from the start it is one feed',
    );
  });

  it('is passed over in one feed after two restores with no event between them, and a reader goes on', async () => {
    const partner = await gateway.newPartner();
    await ask('POST', '/v1/orders', partner, order(partner));
    const page = await eventually(async () => {
      const { body } = await ask('GET', '/v1/events', partner);
      assert.equal(body.data.at(-1)?.type, 'order.filled');
      return body;
    });
    await app.stop();
    for (const _ of ['killed half way', 'repeated', 'restored once more'])
      await noteRestore(gateway.database, firstBroker);
    await startAfter();
    await ask('POST', '/v1/orders', partner, order(partner));
    const on = await eventually(async () => {
      const { body } = await ask('GET', `/v1/events?cursor=${page.next_cursor}`, partner);
      assert.equal(body.data.at(-1)?.type, 'order.filled', 'the feed ends at the first gap for ever');
      return body;
    });
    const whole = await ask('GET', '/v1/events', partner);
    assert.deepEqual(
      whole.body.data.map(({ id }: { id: string }) => id),
      [...page.data, ...on.data].map(({ id }: { id: string }) => id),
      'from the start it is one feed',
    );
    const after = await ask('GET', `/v1/events?cursor=${whole.body.next_cursor}`, partner);
    assert.deepEqual(after.body.data, []);
  });

  it('skips no version because of what somebody else gave the broker', async () => {
    const own = await startGateway();
    const exchange = createGrpcClient(Orders, `127.0.0.1:${own.simulatorPort}`);
    let next: App | undefined;
    try {
      const partner = await own.newPartner();
      await own.app.stop();
      const { account } = partner;
      const terms = { type: OrderType.LIMIT, timeInForce: TimeInForce.DAY, priceKobo: 1_000n };
      const theirs = {
        clientOrderId: 'their-order-1',
        account,
        symbol: 'SIM-REST',
        side: Side.BUY,
        quantity: 1n,
        ...terms,
      };
      await exchange.submitOrder({ ...theirs, notAfter: timestampFromMs(Date.now() + 60_000) }, { timeoutMs: 10_000 });
      const log = createLogger({ name: 'marina', level: 'info', destination: { write: () => {} } });
      next = await startApp(readConfig(own.variables), log);
      const rows = await own.database.read(statement('SELECT version FROM partners'));
      assert.deepEqual(
        rows.map(({ version }) => Number(version)),
        [0],
        'versions were skipped, as after a restore',
      );
    } finally {
      exchange.close();
      await next?.stop();
      await own.stop(left);
    }
  });

  it('a database that lost exactly one submission tells its events under versions that were never told', async () => {
    const own = await startGateway();
    let next: App | undefined;
    try {
      const partner = await own.newPartner();
      const placeOne = async () => {
        const placed = await own.place(partner, { symbol: 'SIM-FILL' });
        assert.equal(placed.status, 201, placed.text);
        return String(placed.body.id);
      };
      const readFeed = async (query = '') => {
        const { body } = await own.rest('GET', `/v1/events?limit=100${query}`, { key: partner.key });
        return body as { data: { version: number; type: string; data: { id: string } }[]; next_cursor: string };
      };
      const filled = (id: string, query = '') =>
        eventually(async () => {
          const feed = await readFeed(query);
          const types = feed.data.filter(({ data }) => data.id === id).map(({ type }) => type);
          assert.equal(types.at(-1), 'order.filled', `the feed after the restart has of the lost order: [${types}]`);
          return feed;
        });
      const kept = await filled(await placeOne());
      const lost = await placeOne();
      const seen = await filled(lost);
      const [atBackup, atLoss] = [kept.data.at(-1)?.version ?? 0, seen.data.at(-1)?.version ?? 0];

      await own.app.stop();
      for (const [sql, ...values] of [
        ['DELETE FROM orders WHERE id = ?', lost],
        ['DELETE FROM order_steps WHERE order_id = ?', lost],
        ['DELETE FROM feed_events WHERE partner_id = ? AND version > ?', partner.id, String(atBackup)],
        ['UPDATE partners SET version = ? WHERE id = ?', String(atBackup), partner.id],
        fromTheStart,
      ] as const) {
        await own.database.write(statement(sql, ...values));
      }
      const restPort = String(own.app.restPort);
      next = await startApp(readConfig({ ...own.variables, MARINA_REST_PORT: restPort }), silent);
      // Who has seen all that was told before goes on, and misses nothing.
      const on = await filled(lost, `&cursor=${seen.next_cursor}`);
      const again = on.data.map(({ version }) => version).filter((version) => version <= atLoss);
      assert.deepEqual(again, [], `versions up to ${atLoss} were told before, and these came again: ${again}`);
    } finally {
      await next?.stop();
      await own.stop(left);
    }
  });

  it('repeats answers and lets partners read without a broker at its start, and takes nothing new', async () => {
    const own = await startGateway();
    const partner = await own.newPartner();
    await own.fund(partner, 10_000n);
    const body = { account: partner.account, amount_kobo: 4_000 };
    const [key, orderKey] = [randomUUID(), randomUUID()];
    const booked = await own.allocate(partner, body, key);
    const placed = await own.place(partner, { symbol: 'SIM-FILL' }, orderKey);
    assert.deepEqual([booked.status, placed.status], [201, 201]);
    await own.stopBroker();
    await own.app.stop();
    const restPort = String(own.app.restPort); // Where its helpers go on to ask.
    const alone = await startApp(readConfig({ ...own.variables, MARINA_REST_PORT: restPort }), silent);
    try {
      const again = await own.allocate(partner, body, key);
      assert.deepEqual([again.status, again.body.id], [200, booked.body.id]);
      const order = await own.place(partner, { symbol: 'SIM-FILL' }, orderKey);
      assert.deepEqual([order.status, order.body.id], [200, placed.body.id]);
      const read = await own.rest('GET', `/v1/orders/${placed.body.id}`, { key: partner.key });
      assert.equal(read.status, 200);
      const refused = await own.allocate(partner, body);
      assert.equal(refused.body.error.code, 'exchange_unavailable');
    } finally {
      await alone.stop();
      await own.stop(left);
    }
  });

  it('takes no allocation of a partner whose lost one waits for the credit that was lost with it', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    const body = { account: partner.account, amount_kobo: 4_000 };
    const booked = await ask('POST', '/v1/allocations', partner, body);
    assert.equal(booked.body.state, 'booked', JSON.stringify(booked.body));
    await startAfter(
      ['DELETE FROM allocations WHERE partner_id = ?', partner.id],
      ['DELETE FROM object_steps WHERE partner_id = ?', partner.id],
      ['DELETE FROM wallet_transfers WHERE partner_id = ?', partner.id],
      ['DELETE FROM wallets WHERE partner_id = ?', partner.id],
      ['DELETE FROM usage_days WHERE partner_id = ?', partner.id],
      fromTheStart,
    );
    const other = await gateway.newPartner();
    await gateway.fund(other, 10_000n);
    const refused = await ask('POST', '/v1/allocations', partner, { account: partner.account, amount_kobo: 1 });
    assert.equal(refused.body.error?.code, 'exchange_unavailable');
    const taken = await ask('POST', '/v1/allocations', other, { account: other.account, amount_kobo: 1 });
    assert.equal(taken.status, 201, "another partner's allocation");
    assert.ok(said('its wallet lacks the money') > 0, 'an alarm is in the log');
    assert.equal((await ask('POST', '/v1/orders', partner, order(partner))).status, 201, 'orders are taken');
    const ready = await fetch(`http://127.0.0.1:${app.opsPort}/readyz`);
    assert.match(await ready.text(), /lost allocations cannot be restored/);

    await creditWallet(gateway.database, { partnerId: partner.id, amountKobo: 10_000n, bankReference: randomUUID() });
    await eventually(async () => {
      const { body: wallet } = await ask('GET', '/v1/wallet', partner);
      assert.deepEqual(
        [wallet.available_kobo, wallet.reserved_kobo, wallet.posted_kobo],
        [6_000, 0, 4_000],
        'the allocation is booked again',
      );
    }, 20_000);
    await eventually(async () => {
      const { status } = await ask('POST', '/v1/allocations', partner, { account: partner.account, amount_kobo: 1 });
      assert.equal(status, 201, 'an allocation of the same partner');
    });
  });

  it('takes no allocation of a partner whose rows contradict a lost one, serves all else, and restores it afterwards', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    const wallet = statement('SELECT * FROM wallets WHERE partner_id = ?', partner.id);
    const [before] = await gateway.database.read(wallet);
    const body = { account: partner.account, amount_kobo: 4_000 };
    const booked = await ask('POST', '/v1/allocations', partner, body);
    assert.equal(booked.body.state, 'booked', JSON.stringify(booked.body));
    await startAfter(
      ['DELETE FROM allocations WHERE partner_id = ?', partner.id],
      ['DELETE FROM object_steps WHERE partner_id = ?', partner.id],
      fromTheStart,
    );
    const other = await gateway.newPartner();
    assert.equal((await ask('POST', '/v1/orders', other, order(other))).status, 201, 'orders are taken');
    await gateway.fund(other, 10_000n);
    const taken = await ask('POST', '/v1/allocations', other, { account: other.account, amount_kobo: 1 });
    assert.equal(taken.status, 201, "another partner's allocation");
    const refused = await ask('POST', '/v1/allocations', partner, { account: partner.account, amount_kobo: 1 });
    assert.equal(refused.body.error?.code, 'exchange_unavailable');
    const lines = logged.filter((line) => line.includes('rows of its partner are damaged'));
    assert.equal(lines.length, 1, 'it is logged once');
    assert.ok(lines[0]?.includes(booked.body.id) && lines[0].includes(partner.id), lines[0]);

    await gateway.database.write(
      statement('DELETE FROM wallet_transfers WHERE partner_id = ? AND sequence > 1', partner.id),
    );
    await gateway.database.write(
      statement(
        `UPDATE wallets SET last_sequence = 1, last_hash = ?, available_kobo = 10000, reserved_kobo = 0, posted_kobo = 0,
          seal = ? WHERE partner_id = ?`,
        ...[before?.last_hash as Buffer, before?.seal as Buffer, partner.id],
      ),
    );
    await eventually(async () => {
      const { body } = await ask('GET', `/v1/allocations/${booked.body.id}`, partner);
      assert.equal(body.state, 'booked', JSON.stringify(body));
    }, 20_000);
    await eventually(async () => {
      const { status } = await ask('POST', '/v1/allocations', partner, { account: partner.account, amount_kobo: 1 });
      assert.equal(status, 201, 'an allocation of the same partner');
    });
  });
});

describe('a gateway that starts on a database from before seals and lacks an allocation', () => {
  it('holds allocations of the partner alone, serves everything else, and restores the allocation once keys seal has run', async () => {
    const gateway = await startGateway({ MARINA_UNSEALED_ROWS: 'refused' });
    const logged: string[] = [];
    let next: App | undefined;
    try {
      const partner = await gateway.newPartner();
      const other = await gateway.newPartner();
      for (const each of [partner, other]) await gateway.fund(each, 10_000n);
      const [before] = await gateway.database.read(statement('SELECT * FROM wallets WHERE partner_id = ?', partner.id));
      const booked = await gateway.allocate(partner, { amount_kobo: 4_000 });
      assert.equal(booked.body.state, 'booked', booked.text);
      await gateway.app.stop();
      for (const sql of [
        'DELETE FROM allocations WHERE partner_id = ?',
        'DELETE FROM object_steps WHERE partner_id = ?',
        'DELETE FROM wallet_transfers WHERE partner_id = ? AND sequence > 1',
        'DELETE FROM usage_days WHERE partner_id = ?',
      ]) {
        await gateway.database.write(statement(sql, partner.id));
      }
      await gateway.database.write(
        statement(
          `UPDATE wallets SET last_sequence = 1, last_hash = ?, available_kobo = 10000, reserved_kobo = 0, posted_kobo = 0,
            seal = NULL WHERE partner_id = ?`,
          before?.last_hash as Buffer,
          partner.id,
        ),
      );
      await gateway.database.write(statement(`DELETE FROM positions WHERE name = 'submissions'`));

      const destination = { write: (line: string) => void logged.push(line) };
      const log = createLogger({ name: 'marina', level: 'info', destination });
      const restPort = String(gateway.app.restPort);
      next = await startApp(readConfig({ ...gateway.variables, MARINA_REST_PORT: restPort }), log);
      for (const each of [partner, other]) {
        const placed = await gateway.place(each, { symbol: 'SIM-FILL' });
        assert.equal(placed.status, 201, `orders are taken: ${placed.text}`);
      }
      const held = await gateway.allocate(partner, { amount_kobo: 1 });
      assert.equal(held.body.error?.code, 'exchange_unavailable', held.text);
      const taken = await gateway.allocate(other, { amount_kobo: 1 });
      assert.equal(taken.status, 201, taken.text);
      const lines = logged.filter((line) => line.includes('its wallet has no right seal'));
      assert.equal(lines.length, 1, 'it is logged once');
      assert.ok(lines[0]?.includes(booked.body.id) && lines[0].includes(partner.id), lines[0]);
      const ready = await fetch(`http://127.0.0.1:${next.opsPort}/readyz`);
      assert.match(await ready.text(), /lost allocations cannot be restored/);

      const { MARINA_DATABASE_URL = '', MARINA_SECRET_KEY = '' } = gateway.variables;
      const accepted = { MARINA_DATABASE_URL, MARINA_SECRET_KEY, MARINA_UNSEALED_ROWS: 'accepted' };
      const sealed = runCommand(['keys', 'seal'], accepted);
      assert.equal(await sealed.ended, 0, sealed.printed());
      await eventually(async () => {
        const { body } = await gateway.rest('GET', `/v1/allocations/${booked.body.id}`, { key: partner.key });
        assert.equal(body.state, 'booked', JSON.stringify(body));
      }, 20_000);
      await eventually(async () => {
        const { status, text } = await gateway.allocate(partner, { amount_kobo: 1 });
        assert.equal(status, 201, text);
      });
    } finally {
      await next?.stop();
      await gateway.stop(left);
    }
  });
});
