import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { makeSecret } from '../../../../src/gateway/delivery/webhooks/attempt/signature.ts';
import { newEndpoint } from '../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import {
  sealAgain,
  sealedSecrets,
  webhookSeal,
} from '../../../../src/gateway/operators/secret-keys/sealed-endpoints.ts';
import { resealWallets } from '../../../../src/gateway/operators/secret-keys/sealed-wallets.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { type SqlValue, type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import { wallets } from '../../../../src/gateway/trading/wallet/store.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { type KeyRing, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply } from '../../../support/applications.ts';
import { overRest } from '../../../support/documents.ts';
import { eventually, ready } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { noisePng } from '../../../support/images.ts';
import { createKey, createOldKey, secretKey as old } from '../../../support/keys.ts';
import { walletSeals } from '../../../support/ledger.ts';
import { runCommand, SecretFile } from '../../../support/secret-files.ts';
import { verify, WebhookReceiver } from '../../../support/webhook-receiver.ts';

/** Enough for several batches. */
const furtherEndpoints = 900;
const rotatedEach = 100;

describe('keys reseal', () => {
  const next = randomBytes(32).toString('hex');
  const file = new SecretFile(old);
  const formerRing = parseKeyRing(old);
  const ring = parseKeyRing(`${next}\n${old}`);
  const alone = parseKeyRing(next);
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let partner: TestPartner;
  let webhookSecret: string;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway({ ...receiver.variables, MARINA_SECRET_KEY: '', MARINA_SECRET_KEY_FILE: file.path });
    admin = adminClient(gateway.app.adminPort);
    partner = await gateway.newPartner();
    const url = receiver.url('/resealed');
    webhookSecret = (await admin.webhooks.registerEndpoint({ partnerId: partner.id, url }, admin.options)).secret;
    const seal = webhookSeal(formerRing);
    const rows = Array.from({ length: furtherEndpoints }, (_, at) => {
      const partnerId = `par_${String(at).padStart(20, '0')}`;
      const secret = seal.seal(partnerId, makeSecret());
      const made = { partnerId, url: 'https://example.com', secret, afterVersion: 0n, registeredAt: Date.now() };
      // Some of them are being rotated: events are signed with both secrets.
      if (at % rotatedEach > 0) return newEndpoint(made);
      const oldSecret = seal.seal(partnerId, makeSecret());
      return { ...newEndpoint(made), oldSecret, oldSecretUntil: Date.now() + 86_400_000 };
    });
    await gateway.database.write(endpoints.insert(...rows));
  });
  after(async () => {
    admin.close();
    // Rows are aged here without events.
    await gateway.stop(['objects', 'usage']);
    await receiver.close();
  });

  const command = (verb: string) => {
    const { MARINA_DATABASE_URL, MARINA_ENVIRONMENT } = gateway.variables;
    return runCommand(['keys', verb], { MARINA_DATABASE_URL, MARINA_ENVIRONMENT, MARINA_SECRET_KEY_FILE: file.path });
  };

  async function countUnder(keys: KeyRing): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for await (const some of sealedSecrets(gateway.database, webhookSeal(keys))) {
      for (const { opened } of some) {
        const name = opened?.keyId ?? 'none';
        counts[name] = (counts[name] ?? 0) + 1;
      }
    }
    return counts;
  }

  /** Checks that each secret in the rows, also that from before a rotation, opens with some keys. */
  async function assertEachOpens(keys: KeyRing): Promise<void> {
    const rows = await gateway.database.read(statement('SELECT partner_id, secret, old_secret FROM webhook_endpoints'));
    const seal = webhookSeal(keys);
    let rotated = 0;
    for (const { partner_id: partnerId, secret, old_secret: former } of rows) {
      for (const bytes of former === null ? [secret] : [secret, former]) {
        assert.doesNotThrow(() => seal.open(String(partnerId), bytes as Buffer), String(partnerId));
      }
      if (former !== null) rotated += 1;
    }
    assert.ok(rotated >= furtherEndpoints / rotatedEach, 'some are being rotated');
  }

  /** API keys as earlier versions stored them: without a MAC, and with one of a secret that the row does not name. */
  async function keysOfEarlierVersions(): Promise<Record<string, string>> {
    const unnamed = await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
    await gateway.database.write(statement('UPDATE api_keys SET mac_key = NULL, seal = NULL WHERE id = ?', unnamed.id));
    const without = await createOldKey(gateway.database, { partnerId: partner.id, scopes: 'read' });
    return { 'without a MAC': without.key, 'secret not named': unnamed.key };
  }

  /** Checks that API keys work, as soon as the gateway has read the list of those without a MAC again. */
  async function assertWork(keys: Record<string, string>): Promise<void> {
    for (const [version, key] of Object.entries(keys)) {
      await eventually(async () => {
        const { status, text } = await gateway.rest('GET', '/v1/orders', { key });
        assert.equal(status, 200, `${version}: ${text}`);
      });
    }
  }

  const place = (idempotencyKey?: string) =>
    gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }, idempotencyKey);

  it('never overwrites a secret that was rotated after it was read', async () => {
    const { id } = await gateway.newPartner();
    const url = receiver.url('/rotated');
    await admin.webhooks.registerEndpoint({ partnerId: id, url }, admin.options);
    const seal = webhookSeal(ring);
    const read = [];
    for await (const some of sealedSecrets(gateway.database, seal)) read.push(...some);
    const stale = read.find((each) => each.partnerId === id);
    assert.ok(stale?.opened !== undefined);
    await admin.webhooks.rotateSecret({ partnerId: id }, admin.options);
    assert.equal(await gateway.database.write(sealAgain(seal, stale, stale.opened.text)), 0);
  });

  it('keys reseal never puts the seal of a wallet back to before a payment that comes meanwhile', async () => {
    const { database } = gateway;
    const { id } = await gateway.newPartner();
    const credit = () =>
      admin.wallets.creditWallet({ partnerId: id, amountKobo: 100n, bankReference: randomUUID() }, admin.options);
    await credit();
    const busy = {
      environment: database.environment,
      read: (query: Statement) => database.read(query),
      write: async (update: Statement) => {
        await credit();
        return database.write(update);
      },
    } as Partial<Database> as Database;
    await resealWallets({ database: busy, ring, print: () => {} });
    const [row] = await database.read(wallets.find({ partnerId: id }));
    assert.ok(row !== undefined);
    const { seal, ...head } = wallets.all.read(row);
    assert.equal(walletSeals(false).prove(head, seal), 'sealed');
  });

  it('leaves API keys as they are while there has been one secret only', async () => {
    const keys = await keysOfEarlierVersions();
    const first = command('reseal');
    assert.equal(await first.ended, 0, first.printed());
    assert.match(first.printed(), /^API keys: 0 listed as keys without a MAC$/m);
    await assertWork(keys);
  });

  it('goes on after SIGKILL; then the former key can be removed, and API keys and webhooks still work', async () => {
    const repeated = randomUUID();
    const first = await place(repeated);
    assert.equal(first.status, 201, first.text);
    const before = await keysOfEarlierVersions();
    await file.change([old, next], gateway.logged);
    await file.change([next, old], gateway.logged);
    const [{ id: formerId }, { id: currentId }] = [formerRing[0], ring[0]];

    const killed = command('reseal');
    await ready(() => assert.match(killed.printed(), /sealed again/), 60_000);
    killed.process.kill('SIGKILL');
    assert.equal(await killed.ended, 'SIGKILL', killed.printed());
    const halfway = await countUnder(ring);
    assert.ok((halfway[formerId] ?? 0) > 0 && (halfway[currentId] ?? 0) > 0, JSON.stringify(halfway));
    const during = await place();
    assert.equal(during.status, 201, during.text);

    const whole = command('reseal');
    assert.equal(await whole.ended, 0, whole.printed());
    assert.deepEqual(Object.keys(await countUnder(ring)), [currentId]);
    await assertEachOpens(alone);
    assert.match(whole.printed(), new RegExp(`key ${currentId}: current\\n {2}has \\d+ webhook secrets\\n`));
    assert.match(
      whole.printed(),
      new RegExp(
        `key ${formerId}: not current, current until .*\\n {2}needed for cursors and Idempotency-Keys, until 20`,
      ),
    );
    assert.doesNotMatch(whole.printed(), new RegExp(`${old}|${next}|until keys reseal`), 'nothing stored needs it');

    // As 31 days later. A ring without a secret of the last 30 days would be refused.
    const dayMs = 86_400_000;
    const lastUsedIn = (ms: number) =>
      gateway.database.write(
        statement('UPDATE secret_keys SET last_used_at = ? WHERE id = ?', new Date(Date.now() + ms), formerId),
      );
    await lastUsedIn(-31 * dayMs);
    await file.change([next], gateway.logged);
    await lastUsedIn(0);
    assert.deepEqual(await countUnder(alone), await countUnder(ring));
    await assertWork({ ...before, sealed: partner.key });
    const forgotten = await keysOfEarlierVersions();
    const late = command('reseal');
    assert.equal(await late.ended, 0, late.printed());
    await assertWork(forgotten);
    const { status: refused, body } = await place(repeated);
    assert.deepEqual([refused, body.error?.code ?? body.code], [409, 'duplicate_order'], 'never a second order');
    const { body: last } = await place();
    await eventually(() => {
      const events = receiver.at('/resealed');
      assert.ok(events.some((event) => event.body.includes(last.id)));
      for (const event of events) verify(event, webhookSecret);
    }, 30_000);
  });

  it('says that a key is needed while objects of its time are not final and applications not decided', async () => {
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
    const { body: order } = await place();
    const { body: application } = await apply(gateway, partner);
    const photo = { key: partner.key, id: application.id, type: 'photo', file: await noisePng() };
    assert.equal((await overRest(gateway.app.restPort)(photo)).outcome, 'delivered');
    const write = (text: string, ...values: SqlValue[]) => gateway.database.write(statement(text, ...values));
    await write('UPDATE orders SET created_at = ? WHERE id = ?', daysAgo(40), order.id);
    await write('UPDATE applications SET created_at = ? WHERE id = ?', daysAgo(40), application.id);
    await write('UPDATE documents SET created_at = ? WHERE application_id = ?', daysAgo(40), application.id);
    await write('UPDATE secret_keys SET last_used_at = ? WHERE id = ?', daysAgo(35), formerRing[0].id);
    file.put(next, old);
    const needs = async () => {
      const status = command('status');
      assert.equal(await status.ended, 0, status.printed());
      assert.match(status.printed(), /\nnot counted: notes at the broker, and backups\./);
      const [, lines = ''] = status.printed().split(`key ${formerRing[0].id}: `);
      return lines
        .split('\n')
        .slice(1)
        .filter((line) => line.startsWith('  '));
    };
    assert.deepEqual(await needs(), [
      '  needed for the Idempotency-Keys of 2 objects that are not final, until they are',
      '  needed for the documents of 1 applications, until they are decided',
    ]);
    await write("UPDATE orders SET state = 'expired' WHERE id = ?", order.id);
    await write('UPDATE applications SET idempotency_key = NULL WHERE id = ?', application.id);
    assert.deepEqual(await needs(), ['  needed for the documents of 1 applications, until they are decided']);
    await write("UPDATE applications SET state = 'rejected' WHERE id = ?", application.id);
    assert.deepEqual(await needs(), ['  can be removed']);
  });

  it('says that a key can be removed once nothing needs it, and counts what opens under no key', async () => {
    await gateway.database.write(
      statement('UPDATE secret_keys SET last_used_at = ? WHERE id = ?', new Date('2020-01-01'), formerRing[0].id),
    );
    file.put(next, old);
    const status = command('status');
    assert.equal(await status.ended, 0, status.printed());
    assert.match(status.printed(), new RegExp(`key ${formerRing[0].id}: not current, .*\\n {2}can be removed\\n`));
    file.put(randomBytes(32).toString('hex'));
    const wrong = command('status');
    assert.equal(await wrong.ended, 0, wrong.printed());
    assert.match(wrong.printed(), /\d{3} webhook secrets open under no key of the ring/);
  });
});
