import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, restCaller, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { secretKey as old } from '../../../support/keys.ts';
import { runCommand, SecretFile } from '../../../support/secret-files.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const warning = 'MARINA_SECRET_KEY lacks a key that was current within the last 30 days';

describe('a key ring that lacks a key', () => {
  const next = randomBytes(32).toString('hex');
  const [{ id: oldId }, { id: nextId }] = [parseKeyRing(old)[0], parseKeyRing(next)[0]];
  const file = new SecretFile(old);
  let gateway: TestGateway;
  let partner: TestPartner;
  let app: App | undefined;
  let logged: string[] = [];
  before(async () => {
    gateway = await startGateway({ MARINA_SECRET_KEY: '', MARINA_SECRET_KEY_FILE: file.path });
    app = gateway.app;
    partner = await gateway.newPartner();
    await gateway.fund(partner, 1_000_000n);
    // Otherwise the ring without the former key would refuse every request, and move no money.
    await gateway.database.write(statement('UPDATE api_keys SET has_mac = 0, seal = NULL'));
    await gateway.database.write(statement('UPDATE wallets SET seal = NULL'));
  });
  after(async () => {
    if (app !== gateway.app) await app?.stop();
    // It ends with a database that lacks what a restored one lacks.
    await gateway.stop(['outbox', 'usage', 'exchange']);
  });

  async function stop(): Promise<void> {
    await app?.stop();
    app = undefined;
  }

  async function start(...keys: string[]): Promise<App> {
    file.put(...keys);
    logged = [];
    app = await startReplica();
    return app;
  }

  function startReplica(variables: Record<string, string> = {}): Promise<App> {
    const destination = { write: (line: string) => void logged.push(line) };
    const log = createLogger({ name: 'marina', level: 'info', destination });
    return startApp(readConfig({ ...gateway.variables, ...variables }), log);
  }

  const post = (path: string, idempotencyKey: string, body: object, at = app) => {
    assert.ok(at !== undefined);
    return restCaller(at)('POST', path, { key: partner.key, idempotencyKey, body });
  };

  /** As a restore of a database from before all orders. */
  async function loseOrders(): Promise<void> {
    for (const sql of [
      'DELETE FROM orders',
      'DELETE FROM order_steps',
      `DELETE FROM positions WHERE name = 'submissions'`,
    ]) {
      await gateway.database.write(statement(sql));
    }
  }
  const orderOf = ({ account }: TestPartner, quantity = 7) => ({
    ...{ account, symbol: 'SIM-FILL', side: 'buy', quantity, type: 'market' },
  });

  async function sentOrders(): Promise<number> {
    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    return messages.filter(({ call }) => call === Call.SUBMIT_ORDER).length;
  }

  const noteUses = (at: number) =>
    gateway.database.write(statement('UPDATE secret_keys SET first_used_at = ?, last_used_at = ?', ...twice(at)));
  const twice = (at: number) => [new Date(at), new Date(at)];

  async function lastUses(): Promise<Map<string, number>> {
    const rows = await gateway.database.read(statement('SELECT id, last_used_at FROM secret_keys'));
    return new Map(rows.map(({ id, last_used_at: at }) => [String(id), (at as Date).getTime()]));
  }

  const restored = async (...keys: string[]) => {
    file.put(...keys);
    const command = runCommand(['restored'], gateway.variables);
    return { code: await command.ended, printed: command.printed() };
  };

  it('after a restore holds what the broker has notes of, sends nothing again, and goes on with the key', async () => {
    const key = randomUUID();
    const placed = await post('/v1/orders', key, orderOf(partner));
    assert.equal(placed.status, 201, placed.text);
    await stop();
    // The database of a day ago, in which the former key was current.
    await loseOrders();
    await noteUses(Date.now() - dayMs);
    const { opsPort } = await start(next);
    const replica = await startReplica({ MARINA_ROLES: 'api' });
    for (const idempotencyKey of [key, randomUUID()]) {
      const refused = await post('/v1/orders', idempotencyKey, orderOf(partner));
      assert.deepEqual([refused.status, refused.body.error?.code], [503, 'exchange_unavailable'], refused.text);
    }
    const ready = await (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).text();
    assert.match(ready, /lost orders cannot be restored/);
    const line = logged.find((each) => each.includes('no key of MARINA_SECRET_KEY opens its note'));
    assert.ok(line?.includes(placed.body.id) && line.includes(oldId), line);
    const allocation = { account: partner.account, amount_kobo: 1_000 };
    const allocated = await post('/v1/allocations', randomUUID(), allocation);
    assert.equal(allocated.status, 201, `other kinds go on: ${allocated.text}`);

    await file.change([next, old], logged);
    await eventually(async () => {
      const again = await post('/v1/orders', key, orderOf(partner));
      assert.deepEqual([again.status, again.body.id], [200, placed.body.id], again.text);
    }, 20_000);
    assert.equal(await sentOrders(), 1, 'nothing was sent a second time');
    await eventually(async () => {
      const another = await post('/v1/orders', randomUUID(), orderOf(partner));
      assert.equal(another.status, 201, another.text);
    });
    await eventually(async () => {
      const there = await post('/v1/orders', randomUUID(), orderOf(partner), replica);
      assert.equal(there.status, 201, `a replica that does no background work goes on too: ${there.text}`);
    }, 20_000);
    await replica.stop();
    await stop();
  });

  it('holds them too if the restored database is older than that key', async () => {
    await start(next, old);
    const key = randomUUID();
    const placed = await post('/v1/orders', key, orderOf(partner, 8));
    assert.equal(placed.status, 201, placed.text);
    await stop();
    const sent = await sentOrders();
    await loseOrders();
    await gateway.database.write(statement('DELETE FROM secret_keys WHERE id = ?', nextId));
    await start(old);
    const refused = await post('/v1/orders', key, orderOf(partner, 8));
    assert.deepEqual([refused.status, refused.body.error?.code], [503, 'exchange_unavailable'], refused.text);
    await file.change([old, next], logged);
    await eventually(async () => {
      const again = await post('/v1/orders', key, orderOf(partner, 8));
      assert.deepEqual([again.status, again.body.id], [200, placed.body.id], again.text);
    }, 20_000);
    assert.equal(await sentOrders(), sent, 'nothing was sent a second time');
    await stop();
  });

  it('a key destroyed for good holds nothing once its row is deleted and what no key opens is passed over', async () => {
    await start(old, next);
    const key = randomUUID();
    const placed = await post('/v1/orders', key, orderOf(partner, 9));
    assert.equal(placed.status, 201, placed.text);
    await stop();
    await loseOrders();
    await noteUses(Date.now() - dayMs);
    file.put(next);
    app = await startReplica({ MARINA_BROKER_SHARED: 'true' });
    assert.equal((await post('/v1/orders', randomUUID(), orderOf(partner, 9))).status, 503);
    await gateway.database.write(statement('DELETE FROM secret_keys WHERE id = ?', oldId));
    await eventually(async () => {
      const another = await post('/v1/orders', randomUUID(), orderOf(partner, 9));
      assert.equal(another.status, 201, another.text);
    }, 20_000);
    await stop();
  });

  it('a missing key that was current a moment ago stops the start, and one of the last 30 days is logged', async () => {
    await start(old, next);
    await stop();
    await assert.rejects(start(next), new RegExp(`MARINA_SECRET_KEY lacks the key ${oldId}, which was current until`));
    await noteUses(Date.now() - 4 * minuteMs);
    await assert.rejects(start(next), /MARINA_SECRET_KEY lacks the key/);
    assert.ok(!logged.join('').includes(next) && !logged.join('').includes(old));
    for (const [agoMs, isLogged] of [
      [6 * minuteMs, true],
      [29 * dayMs, true],
      [31 * dayMs, false],
    ] as const) {
      await gateway.database.write(statement('DELETE FROM secret_keys WHERE id = ?', nextId));
      await noteUses(Date.now() - agoMs);
      await start(next);
      await stop();
      const line = logged.find((each) => each.includes(warning));
      assert.equal(line?.includes(oldId) === true, isLogged, `${agoMs / minuteMs} minutes ago`);
    }
  });

  it('is not declared restored; with all its keys it is, and each counts as used now', async () => {
    await gateway.database.write(statement('DELETE FROM secret_keys WHERE id = ?', nextId));
    await noteUses(Date.now() - 40 * dayMs);
    await gateway.database.write(statement(`DELETE FROM positions WHERE name = 'restored-at-submission'`));
    const refused = await restored(next);
    assert.equal(refused.code, 1, refused.printed);
    assert.match(refused.printed, new RegExp(`lacks the key ${oldId}`));
    assert.deepEqual(
      await gateway.database.read(statement(`SELECT 1 FROM positions WHERE name = 'restored-at-submission'`)),
      [],
      'nothing was declared',
    );
    assert.deepEqual([...(await lastUses()).keys()], [oldId], 'nothing was noted');

    const from = Date.now();
    const declared = await restored(next, old);
    assert.equal(declared.code, 0, declared.printed);
    assert.match(declared.printed, /declared: no event version is used again/);
    const uses = await lastUses();
    for (const id of [oldId, nextId]) assert.ok((uses.get(id) ?? 0) >= from, `${id} is needed from now on`);
  });
});
