import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { IdMaker } from '../../../../src/gateway/edge/ids.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { createPartner } from '../../../../src/sandbox/provision.ts';
import { adminClient } from '../../../support/admin.ts';
import { openTestDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { restCaller, startGateway, type TestGateway } from '../../../support/gateway.ts';
import { insertRows } from '../../../support/insert-rows.ts';
import { createKey } from '../../../support/keys.ts';

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

  it('each change of a key is kept, with its time and the key that made it', async () => {
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

  /** A key for each generation, each made with the one before; the first is the partner's own. */
  async function makeLine(first: { key: string; keyId: string }, generations: number) {
    const line = [{ id: first.keyId, key: first.key }];
    for (let made = 0; made < generations; made += 1) {
      const body = { scopes: ['read', 'keys'] };
      const answer = await gateway.rest('POST', '/v1/keys', { key: line.at(-1)?.key ?? '', body });
      assert.equal(answer.status, 201, answer.text);
      assert.equal(answer.body.created_by, line.at(-1)?.id);
      line.push({ id: answer.body.id, key: answer.body.secret });
    }
    return line;
  }

  const works = async (key: string, port = gateway.app.restPort) => {
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`http://127.0.0.1:${port}/v1/orders`, { headers })).status === 200;
  };

  it('the list shows with which key each was made', async () => {
    const partner = await gateway.newPartner();
    const [, child, grandchild] = await makeLine(partner, 2);
    const { body } = await gateway.rest('GET', '/v1/keys', { key: partner.key });
    assert.deepEqual(
      body.data.map((key: { id: string; created_by: string | null }) => [key.id, key.created_by]),
      [
        [grandchild?.id, child?.id],
        [child?.id, partner.keyId],
        [partner.keyId, null],
      ],
    );
  });

  it('a leaked key is revoked with its children at any depth, on every replica, and no other is', async () => {
    const other = await startApp(readConfig({ ...gateway.variables }), silent);
    try {
      const partner = await gateway.newPartner();
      const [own, leaked, ...children] = await makeLine(partner, 4);
      const [, sibling] = await makeLine(partner, 1);
      // One in the middle was revoked before, which hides nobody.
      await gateway.rest('DELETE', `/v1/keys/${children[1]?.id}`, { key: partner.key });
      for (const { key } of [leaked, children[0], children[2]].filter((each) => each !== undefined)) {
        assert.equal(await works(key, other.restPort), true);
      }
      const path = `/v1/keys/${leaked?.id}`;
      const revoked = await gateway.rest('DELETE', `${path}?with_children=true`, { key: partner.key });
      assert.equal(revoked.status, 200, revoked.text);
      assert.deepEqual([revoked.body.id, revoked.body.created_by], [leaked?.id, own?.id]);
      for (const { key } of [leaked, ...children].filter((each) => each !== undefined)) {
        assert.equal(await works(key), false);
        await eventually(async () => assert.equal(await works(key, other.restPort), false), 2_000);
      }
      for (const { key } of [own, sibling].filter((each) => each !== undefined)) assert.equal(await works(key), true);
      const rows = await gateway.database.read(
        statement(
          "SELECT key_id, by_key_id FROM key_changes WHERE partner_id = ? AND action = 'revoked' ORDER BY key_id",
          partner.id,
        ),
      );
      assert.deepEqual(
        rows.map((row) => row.key_id),
        [leaked, ...children].map((each) => each?.id).sort(),
      );
      assert.ok(rows.every((row) => row.by_key_id === partner.keyId));
    } finally {
      await other.stop();
    }
  });

  it('children are revoked also when the key was revoked before, and left alone unless that is asked for', async () => {
    const partner = await gateway.newPartner();
    const [, leaked, child] = await makeLine(partner, 2);
    const path = `/v1/keys/${leaked?.id}`;
    for (const query of ['', '?with_children=false']) {
      assert.equal((await gateway.rest('DELETE', `${path}${query}`, { key: partner.key })).status, 200);
      assert.equal(await works(child?.key ?? ''), true);
    }
    assert.equal((await gateway.rest('DELETE', `${path}?with_children=true`, { key: partner.key })).status, 200);
    assert.equal(await works(child?.key ?? ''), false);
    const wrong = await gateway.rest('DELETE', `${path}?with_children=yes`, { key: partner.key });
    assert.deepEqual([wrong.status, wrong.body.error.param], [400, 'with_children']);
  });

  it('a key that was rotated 1,500 times is followed to the one that leaked', async () => {
    const partner = await gateway.newPartner();
    const { id: partnerId, keyId } = partner;
    const ids = new IdMaker(Date);
    const line = [keyId, ...Array.from({ length: 1_500 }, () => `key_${ids.keyHead()}aaaaaa`)];
    const last = await createKey(gateway.database, { partnerId, scopes: [Scope.READ] });
    line.push(last.id);
    const rows = line.slice(1).map((id, at) => [partnerId, id, 'created', new Date(), line[at] ?? '', 'test']);
    const ended = line
      .slice(1, -1)
      .map((id) => [partnerId, id, Buffer.alloc(32), 'read', '[]', new Date(), new Date()]);
    const keyColumns = ['partner_id', 'id', 'secret_hash', 'scopes', 'addresses', 'created_at', 'revoked_at'];
    await gateway.database.write(insertRows('api_keys', keyColumns, ended));
    const changeColumns = ['partner_id', 'key_id', 'action', 'at', 'by_key_id', 'request_id'];
    await gateway.database.write(insertRows('key_changes', changeColumns, rows));
    const own = await createKey(gateway.database, { partnerId, scopes: [Scope.KEYS] });
    const revoked = await gateway.rest('DELETE', `/v1/keys/${keyId}?with_children=true`, { key: own.key });
    assert.equal(revoked.status, 200, revoked.text);
    assert.equal(await works(last.key), false);
  });

  it('an operator revokes a key with its children, sees which, and each has its entry in the audit log', async () => {
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner();
      const [, leaked, child, grandchild] = await makeLine(partner, 3);
      const request = { keyId: leaked?.id ?? '', reason: 'leaked', withChildren: true };
      const { changed, revokedKeyIds } = await admin.keys.revokeKey(request, admin.options);
      assert.equal(changed, true);
      const line = [leaked?.id, child?.id, grandchild?.id];
      assert.deepEqual(revokedKeyIds, line);
      const { keys } = await admin.keys.listKeys({ partnerId: partner.id }, admin.options);
      assert.deepEqual(
        keys.map(({ id, createdByKeyId, revokedAt }) => [id, createdByKeyId, revokedAt !== undefined]),
        [
          [grandchild?.id, child?.id, true],
          [child?.id, leaked?.id, true],
          [leaked?.id, partner.keyId, true],
          [partner.keyId, '', false],
        ],
      );
      const entries = await gateway.database.read(
        statement(
          "SELECT subject, detail FROM audit_entries WHERE partner_id = ? AND action = 'Keys.RevokeKey' ORDER BY id",
          partner.id,
        ),
      );
      assert.deepEqual(
        entries.map(({ subject, detail }) => [subject, JSON.parse(String(detail)).child_of]),
        [
          [leaked?.id, undefined],
          [child?.id, leaked?.id],
          [grandchild?.id, leaked?.id],
        ],
      );
      assert.equal(await works(grandchild?.key ?? ''), false);
      const again = await admin.keys.revokeKey(request, admin.options);
      assert.deepEqual([again.changed, again.revokedKeyIds], [false, []]);
      const nobody = { ...request, keyId: 'key_22222222222222222222' };
      await assert.rejects(admin.keys.revokeKey(nobody, admin.options), /NOT_FOUND/);
    } finally {
      admin.close();
    }
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

  it('the last use of a key is the latest that any replica has noted', async () => {
    const partner = await gateway.newPartner();
    const { id, key } = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
    const lastUse = async () => {
      const { body } = await gateway.rest('GET', '/v1/keys', { key: partner.key });
      return body.data.find((each: { id: string }) => each.id === id).last_used_at;
    };
    const later = new Date(Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000);
    await gateway.database.write(
      statement('INSERT INTO key_uses (partner_id, key_id, used_at) VALUES (?, ?, ?)', partner.id, id, later),
    );
    assert.equal((await gateway.rest('GET', '/v1/orders', { key })).status, 200);
    assert.equal(Date.parse(await lastUse()), later.getTime());
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
    const { database, url, close } = await openTestDatabase({ environment: 'live', poolSize: 2 });
    const { MARINA_SIMULATOR_ADDRESS: _, ...rest } = gateway.variables;
    const variables = { ...rest, MARINA_ENVIRONMENT: 'live', MARINA_DATABASE_URL: url };
    const app = await startApp(readConfig(variables), silent);
    try {
      const partnerId = await createPartner(database, { name: 'Live' });
      const addresses = ['127.0.0.0/8', '198.51.100.0/24'];
      const { key } = await createKey(database, { partnerId, scopes: [Scope.KEYS, Scope.READ], addresses });
      const create = (body: object) => restCaller(app)('POST', '/v1/keys', { key, body });
      const without = await create({ scopes: ['read'] });
      assert.deepEqual([without.status, without.body.error.param], [400, 'addresses']);
      const wider = await create({ scopes: ['read'], addresses: ['203.0.113.1'] });
      assert.deepEqual([wider.status, wider.body.error.param], [400, 'addresses[0]']);
      const tooWide = await create({ scopes: ['read'], addresses: ['127.0.0.0/9', '127.128.0.0/9'] });
      assert.deepEqual([tooWide.status, tooWide.body.error.param], [400, 'addresses']);
      const made = await create({ scopes: ['read'], addresses: ['198.51.100.7'] });
      assert.equal(made.status, 201);
      assert.match(made.body.secret, /^marina_live_/);
    } finally {
      await app.stop();
      await close();
    }
  });
});
