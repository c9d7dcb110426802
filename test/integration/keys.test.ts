import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createPartner } from '../../src/admin/provision.ts';
import { startApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { statement } from '../../src/db/statement.ts';
import { Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import { createLogger } from '../../src/lib/log.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { createKey } from '../support/keys.ts';
import { createTestDatabase } from '../support/servers.ts';

const silent = createLogger({ name: 'test', level: 'silent' });

describe("a partner's keys", () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  it('twenty asked for at once make ten active keys and no more', async () => {
    const partner = await gateway.newPartner();
    const make = () => gateway.rest('POST', '/v1/keys', { key: partner.key, body: { scopes: ['read'] } });
    const answers = await Promise.all(Array.from({ length: 20 }, make));
    assert.equal(answers.filter(({ status }) => status === 201).length, 9);
    for (const { status, body } of answers) if (status !== 201) assert.equal(body.error.code, 'too_many_keys');
    const secrets = answers.flatMap(({ status, body }) => (status === 201 ? [body.secret] : []));
    assert.equal(new Set(secrets).size, 9);
    for (const key of secrets) assert.equal((await gateway.rest('GET', '/v1/orders', { key })).status, 200);
  });

  it('a key is revoked at once here, and as fast as a message travels on another replica', async () => {
    const other = await startApp(readConfig({ ...gateway.variables }), silent);
    try {
      const partner = await gateway.newPartner();
      const { id, key } = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
      const elsewhere = () =>
        fetch(`http://127.0.0.1:${other.restPort}/v1/orders`, { headers: { authorization: `Bearer ${key}` } });
      assert.equal((await gateway.rest('GET', '/v1/orders', { key })).status, 200);
      assert.equal((await elsewhere()).status, 200);
      const revoked = await gateway.rest('DELETE', `/v1/keys/${id}`, { key: partner.key });
      assert.equal(revoked.status, 200, revoked.text);
      assert.equal((await gateway.rest('GET', '/v1/orders', { key })).status, 401);
      await eventually(async () => assert.equal((await elsewhere()).status, 401), 2_000);
    } finally {
      await other.stop();
    }
  });

  it('what was done with keys is kept: what, when, and with which key', async () => {
    const partner = await gateway.newPartner();
    const { body: made } = await gateway.rest('POST', '/v1/keys', { key: partner.key, body: { scopes: ['keys'] } });
    await gateway.rest('DELETE', `/v1/keys/${made.id}`, { key: made.secret });
    await gateway.rest('DELETE', `/v1/keys/${made.id}`, { key: partner.key });
    const rows = await gateway.database.read(
      statement('SELECT key_id, action, by_key_id FROM key_changes WHERE partner_id = ? ORDER BY at', partner.id),
    );
    assert.deepEqual(
      rows.map((row) => [row.key_id, row.action, row.by_key_id]),
      [
        [made.id, 'created', partner.keyId],
        [made.id, 'revoked', made.id],
      ],
    );
  });

  it('the last use is written down within seconds, in one row however many requests there were', async () => {
    const partner = await gateway.newPartner();
    const before = Math.floor(Date.now() / 1_000) * 1_000;
    for (let count = 0; count < 5; count += 1) await gateway.rest('GET', '/v1/orders', { key: partner.key });
    await eventually(async () => {
      const rows = await gateway.database.read(
        statement('SELECT key_id, used_at FROM key_uses WHERE partner_id = ?', partner.id),
      );
      assert.deepEqual(
        rows.map((row) => row.key_id),
        [partner.keyId],
      );
      assert.ok((rows[0] as { used_at: Date }).used_at.getTime() >= before);
    }, 15_000);
    // Asking for the list is a use itself.
    const { body } = await gateway.rest('GET', '/v1/keys', { key: partner.key });
    assert.ok(Date.parse(body.data[0].last_used_at) >= before);
  });

  it('a refused request is no use of a key', async () => {
    const partner = await gateway.newPartner();
    const { id, key } = await createKey(gateway.database, {
      partnerId: partner.id,
      scopes: [Scope.READ],
      addresses: ['192.0.2.1'],
    });
    assert.equal((await gateway.rest('GET', '/v1/orders', { key })).status, 401);
    const { body } = await gateway.rest('GET', '/v1/keys', { key: partner.key });
    assert.equal(body.data.find((each: { id: string }) => each.id === id).last_used_at, null);
  });

  it('no secret is stored or logged', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.rest('POST', '/v1/keys', { key: partner.key, body: { scopes: ['read'] } });
    const secret = body.secret.slice('marina_test_'.length + 20, -6);
    for (const table of ['api_keys', 'key_changes', 'key_uses', 'audit_entries']) {
      const rows = await gateway.database.read(statement(`SELECT * FROM ${table}`));
      assert.ok(!rows.some((row) => Object.values(row).map(String).join(' ').includes(secret)), table);
    }
    assert.ok(!gateway.logged.join('').includes(secret));
  });

  it('a live key is made with addresses of the key it is made with, or not at all', async () => {
    const live = await createTestDatabase();
    await migrate(live.url);
    const { MARINA_SIMULATOR_ADDRESS: _, ...rest } = gateway.variables;
    const variables = { ...rest, MARINA_ENVIRONMENT: 'live', MARINA_DATABASE_URL: live.url };
    const database = await openDatabase({ url: live.url, environment: 'live', poolSize: 2 });
    const app = await startApp(readConfig(variables), silent);
    try {
      const partnerId = await createPartner(database, { name: 'Live' });
      const addresses = ['127.0.0.0/8', '198.51.100.0/24'];
      const { key } = await createKey(database, { partnerId, scopes: [Scope.KEYS, Scope.READ], addresses });
      const create = async (body: object) => {
        const response = await fetch(`http://127.0.0.1:${app.restPort}/v1/keys`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        });
        // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely.
        return { status: response.status, body: (await response.json()) as any };
      };
      const without = await create({ scopes: ['read'] });
      assert.deepEqual([without.status, without.body.error.param], [400, 'addresses']);
      const wider = await create({ scopes: ['read'], addresses: ['203.0.113.1'] });
      assert.deepEqual([wider.status, wider.body.error.param], [400, 'addresses[0]']);
      const made = await create({ scopes: ['read'], addresses: ['198.51.100.7'] });
      assert.equal(made.status, 201);
      assert.match(made.body.secret, /^marina_live_/);
    } finally {
      await app.stop();
      await database.close();
      await live.drop();
    }
  });
});
