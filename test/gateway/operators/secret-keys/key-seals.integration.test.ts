import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { type SqlValue, statement } from '../../../../src/gateway/store/statement.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { createKey, createOldKey, secretKey } from '../../../support/keys.ts';
import { scrape } from '../../../support/metrics.ts';
import { runCommand, SecretFile } from '../../../support/secret-files.ts';

const addresses = ['127.0.0.1/32'];

/** A live gateway wants one. */
const reason = 'a test';

/** Writes as somebody who has the gateway's own database account, and not its secret key. */
class Attacker {
  constructor(private readonly gateway: TestGateway) {}

  async write(sql: string, ...values: SqlValue[]): Promise<void> {
    const connection = await createConnection(this.gateway.variables.MARINA_DATABASE_URL ?? '');
    try {
      await connection.query(sql, values);
    } finally {
      await connection.end();
    }
  }
}

describe('the seals of API keys in live', () => {
  const file = new SecretFile(secretKey);
  let gateway: TestGateway;
  let partner: TestPartner;
  let other: TestPartner;
  let attacker: Attacker;
  let admin: ReturnType<typeof adminClient>;

  before(async () => {
    gateway = await startGateway({
      ...{ MARINA_ENVIRONMENT: 'live', MARINA_SIMULATOR_ADDRESS: '' },
      ...{ MARINA_SECRET_KEY: '', MARINA_SECRET_KEY_FILE: file.path },
    });
    attacker = new Attacker(gateway);
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin?.close();
    await gateway?.stop();
  });
  beforeEach(async () => {
    partner = await gateway.newPartner({ addresses });
    other = await gateway.newPartner({ addresses });
  });

  const use = async (key: string) => (await gateway.rest('GET', '/v1/orders', { key })).status;
  /** Waits until a gateway has read the row of a key and refused it for its seal. */
  async function refusedForSeal({ id, key }: { readonly id: string; readonly key: string }): Promise<void> {
    await eventually(async () => {
      assert.equal(await use(key), 401);
      const isNamed = gateway.logged.some((line) => line.includes('has no right seal') && line.includes(id));
      assert.ok(isNamed, 'the log names the key');
    }, 15_000);
  }

  const newKey = (scopes: readonly Scope[], from = addresses) =>
    createKey(gateway.database, { partnerId: partner.id, scopes, addresses: from });
  const commandWith = (more: NodeJS.ProcessEnv, ...args: string[]) => {
    const { MARINA_DATABASE_URL = '' } = gateway.variables;
    const variables = { MARINA_DATABASE_URL, MARINA_ENVIRONMENT: 'live', MARINA_SECRET_KEY_FILE: file.path };
    return runCommand(['keys', ...args], { ...variables, ...more });
  };
  const command = (...args: string[]) => commandWith({}, ...args);
  /** As during an upgrade. */
  const accepting = (...args: string[]) => commandWith({ MARINA_UNSEALED_ROWS: 'accepted' }, ...args);
  const sealOf = async (id: string) =>
    (await gateway.database.read(statement('SELECT seal FROM api_keys WHERE id = ?', id)))[0]?.seal as Buffer | null;

  it('accept the keys that gateways make', async () => {
    assert.equal(await use(partner.key), 200);
    const { status, body } = await gateway.rest('POST', '/v1/keys', {
      key: partner.key,
      body: { scopes: ['read'], addresses: ['127.0.0.1'] },
    });
    assert.equal(status, 201);
    assert.equal(await use(body.secret), 200);
    const made = await admin.keys.createKey(
      { partnerId: partner.id, scopes: [Scope.READ], addresses, reason },
      admin.options,
    );
    assert.equal(await use(made.secret), 200);
  });

  it('refuse a key that was inserted without a seal, and one with a made-up seal', async () => {
    const forged = await createOldKey(gateway.database, { partnerId: partner.id, scopes: 'read,trade,fund,keys' });
    await refusedForSeal(forged);
    const next = await createOldKey(gateway.database, { partnerId: partner.id, scopes: 'read' });
    const seal = Buffer.concat([((await sealOf(partner.keyId)) as Buffer).subarray(0, 8), randomBytes(32)]);
    await attacker.write('UPDATE api_keys SET seal = ? WHERE id = ?', seal, next.id);
    await refusedForSeal(next);
  });

  it('refuse a seal that was copied from another key', async () => {
    const forged = await createOldKey(gateway.database, { partnerId: partner.id, scopes: 'read' });
    await attacker.write('UPDATE api_keys SET seal = ? WHERE id = ?', await sealOf(partner.keyId), forged.id);
    await refusedForSeal(forged);
  });

  for (const [what, change] of [
    ['scopes', "scopes = 'read,trade,fund,keys,apply'"],
    ['addresses', "addresses = '[]'"],
    ['secret', "secret_hash = REPEAT('a', 32)"],
    ['seal', 'seal = NULL'],
  ] as const) {
    it(`refuse a key whose ${what} was changed`, async () => {
      const key = await newKey([Scope.READ]);
      await attacker.write(`UPDATE api_keys SET ${change} WHERE id = ?`, key.id);
      if (what === 'secret') assert.equal(await use(key.key), 401);
      else await refusedForSeal(key);
    });
  }

  it('refuse a key that was moved to another partner, and two that were swapped', async () => {
    const moved = await newKey([Scope.READ]);
    await attacker.write('UPDATE api_keys SET partner_id = ? WHERE id = ?', other.id, moved.id);
    await refusedForSeal(moved);
    const swap = 'UPDATE api_keys SET partner_id = IF(partner_id = ?, ?, ?) WHERE id IN (?, ?)';
    await attacker.write(swap, partner.id, other.id, partner.id, partner.keyId, other.keyId);
    await refusedForSeal({ id: partner.keyId, key: partner.key });
    await refusedForSeal({ id: other.keyId, key: other.key });
  });

  it('keep a key revoked whose revocation was taken out of its row, whoever revoked it', async () => {
    const [byPartner, byOperator] = [await newKey([Scope.READ]), await newKey([Scope.READ])];
    const rows = await Promise.all([byPartner, byOperator].map(({ id }) => sealOf(id)));
    const { status } = await gateway.rest('DELETE', `/v1/keys/${byPartner.id}`, { key: partner.key });
    assert.equal(status, 200);
    await admin.keys.revokeKey({ keyId: byOperator.id, reason: 'test' }, admin.options);
    for (const [at, { id, key }] of [byPartner, byOperator].entries()) {
      const restore = 'UPDATE api_keys SET revoked_at = NULL, seal = ? WHERE id = ?';
      await attacker.write(restore, rows[at] ?? null, id);
      assert.equal(await use(key), 401);
    }
  });

  it('let nobody make a key with more scopes out of one whose row was changed a moment ago', async () => {
    const { id, key } = await newKey([Scope.READ, Scope.KEYS]);
    assert.equal(await use(key), 200, 'it is cached');
    await attacker.write("UPDATE api_keys SET scopes = 'read,fund,keys', addresses = '[]' WHERE id = ?", id);
    const body = { scopes: ['fund'], addresses: ['127.0.0.1'] };
    const { status } = await gateway.rest('POST', '/v1/keys', { key, body });
    assert.equal(status, 401);
  });

  it('are made by keys seal for keys of earlier versions, if an entry says who made them or they are named', async () => {
    const recorded = await createOldKey(gateway.database, { partnerId: partner.id, scopes: 'read' });
    const named = await createOldKey(gateway.database, { partnerId: partner.id, scopes: 'read' });
    const forged = await createOldKey(gateway.database, { partnerId: partner.id, scopes: 'read' });
    const changed = await newKey([Scope.READ]);
    await attacker.write("UPDATE api_keys SET scopes = 'read,fund' WHERE id = ?", changed.id);
    await gateway.database.write(
      statement(
        `INSERT INTO audit_entries (at, operator, action, subject, detail, partner_id)
          VALUES (NOW(3), 'ada', 'Keys.CreateKey', ?, '{}', ?)`,
        recorded.id,
        partner.id,
      ),
    );
    const first = accepting('seal', named.id);
    assert.equal(await first.ended, 1, first.printed());
    assert.match(
      first.printed(),
      new RegExp(
        `${recorded.id} of ${partner.id} is sealed; made by ada at 20\\d\\d-[^;]+Z; scopes read; addresses \\[\\]\\n`,
      ),
    );
    assert.match(first.printed(), new RegExp(`${named.id} of ${partner.id} is sealed; made by nobody known`));
    assert.match(first.printed(), new RegExp(`${forged.id} of ${partner.id} is not sealed: no entry says who made it`));
    assert.match(first.printed(), new RegExp(`${changed.id} of ${partner.id} is not sealed: its row was changed`));
    assert.match(first.printed(), /API keys are not sealed: see keys seal/);
    for (const { key } of [recorded, named]) {
      await eventually(async () => assert.equal(await use(key), 200), 15_000);
    }
    assert.deepEqual([await use(forged.key), await use(changed.key)], [401, 401]);
    const again = accepting('seal');
    assert.equal(await again.ended, 1, again.printed());
    assert.match(again.printed(), /API keys: 0 sealed/);
  });

  it('are made by keys seal for no key by itself while rows without a seal are refused', async () => {
    const { key: made, secret } = await admin.keys.createKey(
      { partnerId: partner.id, scopes: [Scope.READ], addresses, reason },
      admin.options,
    );
    const id = made?.id ?? '';
    const own = await createOldKey(gateway.database, { partnerId: other.id, scopes: 'read' });
    await attacker.write(
      `UPDATE api_keys k JOIN api_keys o ON o.id = ? SET k.seal = NULL, k.secret_hash = o.secret_hash WHERE k.id = ?`,
      own.id,
      id,
    );
    const run = command('seal');
    assert.equal(await run.ended, 1, run.printed());
    assert.match(
      run.printed(),
      new RegExp(`${id} of ${partner.id} is not sealed: it has no seal, and MARINA_UNSEALED_ROWS`),
    );
    assert.match(run.printed(), /API keys: 0 sealed/);
    assert.deepEqual([await sealOf(id), await use(secret)], [null, 401]);
    const named = command('seal', id);
    await named.ended;
    assert.match(
      named.printed(),
      new RegExp(`${id} of ${partner.id} is sealed; made by .*; scopes read; addresses \\["127`),
    );
    assert.notEqual(await sealOf(id), null);
  });

  it('are made for no operator key whose row differs from the entry of the audit, also if the key is named', async () => {
    const changes = ["scopes = 'read,fund'", "addresses = '[]'", "addresses = 'no JSON'"];
    const ids = await Promise.all(
      changes.map(async (change) => {
        const request = { partnerId: partner.id, scopes: [Scope.READ], addresses, reason };
        const { key: made } = await admin.keys.createKey(request, admin.options);
        const id = made?.id ?? '';
        await attacker.write(`UPDATE api_keys SET ${change}, seal = NULL WHERE id = ?`, id);
        return id;
      }),
    );
    const run = accepting('seal', ...ids);
    assert.equal(await run.ended, 1, run.printed());
    for (const id of ids) {
      assert.match(
        run.printed(),
        new RegExp(`${id} of ${partner.id} is not sealed: its scopes or addresses are not those`),
      );
      assert.equal(await sealOf(id), null);
    }
  });

  it('are made for no key with two entries of its creation in the audit', async () => {
    const request = { partnerId: partner.id, scopes: [Scope.READ], addresses, reason };
    const { key: made } = await admin.keys.createKey(request, admin.options);
    const id = made?.id ?? '';
    await attacker.write(
      `INSERT INTO audit_entries (at, operator, action, subject, detail, partner_id)
        VALUES (NOW(3), 'a line break\nand ada', 'Keys.CreateKey', ?, '{}', ?)`,
      id,
      partner.id,
    );
    await attacker.write('UPDATE api_keys SET seal = NULL WHERE id = ?', id);
    const run = accepting('seal');
    assert.equal(await run.ended, 1, run.printed());
    assert.match(run.printed(), new RegExp(`${id} of ${partner.id} is not sealed: no entry says who made it`));
  });

  it('are not missed in a revoked key: it is refused as revoked, and the log says nothing of tampering', async () => {
    const { id, key } = await newKey([Scope.READ]);
    await gateway.database.write(statement('UPDATE api_keys SET seal = NULL, revoked_at = NOW(3) WHERE id = ?', id));
    const refusals = async () => {
      const { value } = await scrape(gateway.app.opsPort);
      const count = (reason: string) => value('marina_credential_refusals_total', { reason });
      return [count('revoked'), count('unsealed')] as const;
    };
    const [revoked, unsealed] = await refusals();
    assert.equal(await use(key), 401);
    assert.deepEqual(await refusals(), [revoked + 1, unsealed]);
    assert.ok(!gateway.logged.some((line) => line.includes('has no right seal') && line.includes(id)));
  });

  it('are made again by keys reseal, so that the former secret can leave', async () => {
    const next = randomBytes(32).toString('hex');
    const kept = await newKey([Scope.READ]);
    await file.change([secretKey, next], gateway.logged);
    await file.change([next, secretKey], gateway.logged);
    const resealed = command('reseal');
    assert.equal(await resealed.ended, 0, resealed.printed());
    assert.match(resealed.printed(), /has \d+ seals of rows/);
    assert.match(resealed.printed(), /API keys have a wrong seal and are refused/);
    assert.doesNotMatch(resealed.printed(), /seals of rows, until keys reseal/);
    // Without its row the former secret counts as destroyed for good. Otherwise its file would be refused for 30 days.
    const { id } = parseKeyRing(secretKey)[0];
    await gateway.database.write(statement('DELETE FROM secret_keys WHERE id = ?', id));
    await file.change([next], gateway.logged);
    await eventually(async () => assert.equal(await use(kept.key), 200), 10_000);
  });
});

describe('the seals of API keys in a sandbox', () => {
  it('may be absent, because versions before seals made the keys, but never wrong', async () => {
    const gateway = await startGateway();
    try {
      const { id: partnerId } = await gateway.newPartner();
      const use = async (key: string) => (await gateway.rest('GET', '/v1/orders', { key })).status;
      const old = await createOldKey(gateway.database, { partnerId, scopes: 'read' });
      await eventually(async () => assert.equal(await use(old.key), 200), 15_000);
      const { id, key } = await createKey(gateway.database, { partnerId, scopes: [Scope.READ] });
      await gateway.database.write(statement("UPDATE api_keys SET scopes = 'read,trade' WHERE id = ?", id));
      assert.equal(await use(key), 401);
    } finally {
      await gateway.stop();
    }
  });

  it('are needed if MARINA_UNSEALED_ROWS refuses rows without one', async () => {
    const gateway = await startGateway({ MARINA_UNSEALED_ROWS: 'refused' });
    try {
      const { id: partnerId } = await gateway.newPartner();
      const { key } = await createOldKey(gateway.database, { partnerId, scopes: 'read' });
      assert.equal((await gateway.rest('GET', '/v1/orders', { key })).status, 401);
    } finally {
      await gateway.stop();
    }
  });
});
