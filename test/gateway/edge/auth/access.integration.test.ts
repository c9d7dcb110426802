import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { openDatabase } from '../../../../src/gateway/store/database.ts';
import { migrate } from '../../../../src/gateway/store/migrate.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Sandbox } from '../../../../src/gen/marina/gateway/v1/sandbox_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { createPartner } from '../../../../src/sandbox/provision.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { createKey } from '../../../support/keys.ts';
import { createTestDatabase } from '../../../support/servers.ts';

const silent = createLogger({ name: 'test', level: 'silent' });

describe('access', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  it('a revoked key stops at once, and revoking twice changes nothing', async () => {
    const admin = adminClient(gateway.app.adminPort);
    const partner = await gateway.newPartner();
    assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 200);
    const first = await admin.keys.revokeKey({ keyId: partner.keyId, reason: 'leaked' }, admin.options);
    assert.equal(first.changed, true);
    const refused = await gateway.rest('GET', '/v1/orders', { key: partner.key });
    assert.deepEqual([refused.status, refused.body.error.code], [401, 'unauthorized']);
    assert.ok(refused.headers.get('www-authenticate'));
    const second = await admin.keys.revokeKey({ keyId: partner.keyId }, admin.options);
    assert.equal(second.changed, false);
    await assert.rejects(admin.keys.revokeKey({ keyId: 'key_22222222222222222222' }, admin.options), /NOT_FOUND/);
    admin.close();
  });

  it('a key revoked behind the back of a replica stops within five seconds', async () => {
    const partner = await gateway.newPartner();
    assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 200);
    await gateway.database.write(statement('UPDATE api_keys SET revoked_at = NOW(3) WHERE id = ?', partner.keyId));
    await eventually(async () => {
      assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 401);
    }, 6_000);
  });

  it('a key revoked on one replica stops on the other as fast as a message travels', async () => {
    const other = await startApp(readConfig({ ...gateway.variables }), silent);
    const admin = adminClient(other.adminPort);
    try {
      const partner = await gateway.newPartner();
      assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 200);
      await admin.keys.revokeKey({ keyId: partner.keyId }, admin.options);
      await eventually(async () => {
        assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 401);
      }, 2_000);
    } finally {
      admin.close();
      await other.stop();
    }
  });

  it("an operator's call needs an operator's token: a wrong one, none, or a partner's key is refused", async () => {
    const partner = await gateway.newPartner();
    for (const token of ['wrong-token-012345678901234567', '', partner.key]) {
      const admin = adminClient(gateway.app.adminPort, token);
      await assert.rejects(admin.trading.pauseTrading({ reason: 'x' }, admin.options), /UNAUTHENTICATED/);
      admin.close();
    }
  });

  it('the database holds no key, only its hash', async () => {
    const partner = await gateway.newPartner();
    const rows = await gateway.database.read(statement('SELECT * FROM api_keys'));
    const secret = partner.key.slice('marina_test_'.length + 20, -6);
    assert.ok(rows.length > 0);
    const text = rows.map((row) => Object.values(row).map(String).join(' ')).join('\n');
    assert.ok(!text.includes(secret));
    assert.ok(!gateway.logged.join('').includes(secret));
  });

  it('a key with registered addresses works from those only', async () => {
    const here = await gateway.newPartner({ addresses: ['127.0.0.0/8'] });
    const elsewhere = await gateway.newPartner({ addresses: ['192.0.2.0/24', '2001:db8::1'] });
    assert.equal((await gateway.rest('GET', '/v1/orders', { key: here.key })).status, 200);
    const refused = await gateway.rest('GET', '/v1/orders', { key: elsewhere.key });
    assert.equal(refused.status, 401);
    const forwarded = await gateway.rest('GET', '/v1/orders', {
      key: elsewhere.key,
      headers: { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' },
    });
    assert.equal(forwarded.status, 401, 'forwarded addresses are not believed');
  });

  it('health answers, and metrics count requests without ids', async () => {
    const ops = `http://127.0.0.1:${gateway.app.opsPort}`;
    assert.equal((await fetch(`${ops}/livez`)).status, 200);
    assert.equal((await fetch(`${ops}/readyz`)).status, 200);
    const metrics = await (await fetch(`${ops}/metrics`)).text();
    assert.match(metrics, /marina_request_duration_seconds_count\{protocol="rest",operation="Orders\.ListOrders"/);
    assert.doesNotMatch(metrics, /ord_|key_|par_/);
  });
});

describe('a live gateway', () => {
  it('has no clock to move, takes live keys from registered addresses only, and refuses what is for sandboxes', async () => {
    const gateway = await startGateway();
    const live = await createTestDatabase();
    await migrate(live.url);
    const { MARINA_SIMULATOR_ADDRESS: _, ...rest } = gateway.variables;
    const variables = { ...rest, MARINA_ENVIRONMENT: 'live', MARINA_DATABASE_URL: live.url };
    const database = await openDatabase({ url: live.url, environment: 'live', poolSize: 2 });
    const logged: string[] = [];
    const log = createLogger({ name: 'test', level: 'warn', destination: { write: (line) => void logged.push(line) } });
    const app = await startApp(readConfig({ ...variables, MARINA_HOST: '0.0.0.0' }), log);
    const admin = adminClient(app.adminPort);
    try {
      assert.match(logged.join(''), /"host":"0\.0\.0\.0".*partners' ports speak no TLS/);
      assert.match(logged.join(''), /"operator":"tester".*a token without a role may make every call/);
      await assert.rejects(admin.clock.advanceClock({ by: { seconds: 1n } }, admin.options), /UNIMPLEMENTED/);
      const partnerId = await createPartner(database, { name: 'Live' });
      await assert.rejects(createKey(database, { partnerId, scopes: [Scope.READ] }), /at least one registered address/);
      for (const everywhere of ['0.0.0.0/0', '::/0']) {
        await assert.rejects(
          admin.keys.createKey(
            { partnerId, scopes: [Scope.READ], addresses: ['127.0.0.1', everywhere], reason: 'x' },
            admin.options,
          ),
          /`addresses\[1\]` must not be all addresses/,
        );
      }
      const { key } = await createKey(database, { partnerId, scopes: [Scope.READ], addresses: ['127.0.0.1'] });
      assert.match(key, /^marina_live_/);
      const call = (port: number, token: string) =>
        fetch(`http://127.0.0.1:${port}/v1/orders`, { headers: { authorization: `Bearer ${token}` } });
      assert.equal((await call(app.restPort, key)).status, 200);
      assert.equal((await call(gateway.app.restPort, key)).status, 401, 'a live key in the sandbox');
      const sandbox = await gateway.newPartner();
      assert.equal((await call(app.restPort, sandbox.key)).status, 401, 'a sandbox key in live');
      for (const path of ['/v1/sandbox/faults', '/v1/sandbox/orders/next', '/v1/sandbox']) {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const steering = await fetch(`http://127.0.0.1:${app.restPort}${path}`, {
          method: 'POST',
          headers,
          body: '{}',
        });
        const { error } = (await steering.json()) as { error: { code: string } };
        assert.deepEqual([steering.status, error.code], [404, 'not_found'], `${path} in live`);
      }
      const steering = createGrpcClient(Sandbox, `127.0.0.1:${app.grpcPort}`);
      await assert.rejects(steering.injectFault({}, { timeoutMs: 5_000 }), /UNIMPLEMENTED/);
      steering.close();
      await assert.rejects(
        startApp(readConfig({ ...gateway.variables, MARINA_DATABASE_URL: live.url }), silent),
        /belongs to the live environment/,
      );
      await database.write(statement('UPDATE environment SET clock_offset_ms = 1'));
      await assert.rejects(startApp(readConfig(variables), silent), /cannot be ahead/);
      assert.throws(
        () => readConfig({ ...variables, MARINA_SIMULATOR_ADDRESS: 'localhost:1' }),
        /must not be set in live/,
      );
      assert.throws(
        () => readConfig({ ...variables, MARINA_WEBHOOK_ALLOW_LOOPBACK: 'true' }),
        /MARINA_WEBHOOK_ALLOW_LOOPBACK must not be true in live/,
      );
    } finally {
      admin.close();
      await app.stop();
      await database.close();
      await gateway.stop();
      await live.drop();
    }
  });
});

describe('the configuration', () => {
  it('names every setting that is wrong, and never shows a secret', () => {
    assert.throws(
      () => readConfig({ MARINA_SECRET_KEY: 'canary-secret', MARINA_REST_PORT: '70000', MARINA_LOG_LEVEL: 'loud' }),
      ({ message }: Error) => {
        for (const name of ['MARINA_SECRET_KEY', 'MARINA_REST_PORT', 'MARINA_LOG_LEVEL', 'MARINA_DATABASE_URL']) {
          assert.ok(message.includes(name), name);
        }
        assert.ok(!message.includes('canary'));
        return true;
      },
    );
  });
});
