import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { secretKey as old } from '../../../support/keys.ts';
import { scrape } from '../../../support/metrics.ts';
import { runCommand, SecretFile, secretRefused } from '../../../support/secret-files.ts';

const dayMs = 86_400_000;

describe('a changed file of MARINA_SECRET_KEY that has lost a key', () => {
  const next = randomBytes(32).toString('hex');
  const { id: oldId } = parseKeyRing(old)[0];
  const file = new SecretFile(old);
  let gateway: TestGateway;
  let apiKey: string;
  before(async () => {
    gateway = await startGateway({ MARINA_SECRET_KEY: '', MARINA_SECRET_KEY_FILE: file.path });
    const admin = adminClient(gateway.app.adminPort);
    try {
      const { id: partnerId } = await gateway.newPartner();
      const made = await admin.keys.createKey({ partnerId, scopes: [1], reason: 'a new one' }, admin.options);
      apiKey = made.secret;
    } finally {
      admin.close();
    }
    await file.change([next, old], gateway.logged);
  });
  after(() => gateway.stop());

  const read = async () => (await gateway.rest('GET', '/v1/orders', { key: apiKey })).status;
  const isRefused = async () =>
    (await scrape(gateway.app.opsPort)).value('marina_changed_files_refused', { link: 'secret key' });
  const refusals = () => gateway.logged.filter((line) => line.includes(secretRefused));

  async function lose(): Promise<string> {
    await file.change([next], gateway.logged, secretRefused);
    return refusals().at(-1) ?? '';
  }

  it('is refused, and the former keys stay in use, until the key is back', async () => {
    const line = await lose();
    assert.match(line, new RegExp(`MARINA_SECRET_KEY lacks the key ${oldId}, which was current until`));
    for (const secret of [old, next]) assert.ok(!line.includes(secret));
    assert.equal(await isRefused(), 1);
    assert.equal(await read(), 200, 'an API key that the former key made');
    file.put(next, old);
    await eventually(async () => assert.equal(await isRefused(), 0), 10_000);
  });

  it('is refused after 30 days too while API keys need the key, and used once they are sealed again', async () => {
    const longAgo = new Date(Date.now() - 31 * dayMs);
    const age = 'UPDATE secret_keys SET first_used_at = ?, last_used_at = ? WHERE id = ?';
    await gateway.database.write(statement(age, longAgo, longAgo, oldId));
    assert.match(await lose(), new RegExp(`lacks the key ${oldId}, which \\d+ API keys need: run keys reseal first`));
    assert.equal(await read(), 200);
    file.put(next, old);
    await eventually(async () => assert.equal(await isRefused(), 0), 10_000);
    const resealed = runCommand(['keys', 'reseal'], gateway.variables);
    assert.equal(await resealed.ended, 0, resealed.printed());
    await file.change([next], gateway.logged);
    assert.equal(await isRefused(), 0);
    assert.equal(await read(), 200);
  });
});
