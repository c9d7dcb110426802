import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { type SqlValue, statement } from '../../../../src/gateway/store/statement.ts';
import { emptyLedger, headAt, type LedgerEntry, nextEntry } from '../../../../src/gateway/trading/wallet/rules.ts';
import { listEntries, toEntry } from '../../../../src/gateway/trading/wallet/store.ts';
import { parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { adminClient } from '../../../support/admin.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { secretKey } from '../../../support/keys.ts';
import { verifyLedger } from '../../../support/ledger.ts';
import { runCommand, SecretFile } from '../../../support/secret-files.ts';

const million = 1_000_000n;

describe('the seals of wallets', () => {
  const file = new SecretFile(secretKey);
  let gateway: TestGateway;
  let partner: TestPartner;
  let admin: ReturnType<typeof adminClient>;

  before(async () => {
    gateway = await startGateway({
      ...{ MARINA_UNSEALED_ROWS: 'refused', MARINA_SECRET_KEY: '', MARINA_SECRET_KEY_FILE: file.path },
    });
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin?.close();
    // Wallets and payments are falsified here.
    await gateway?.stop(['ledgers']);
  });
  beforeEach(async () => {
    partner = await gateway.newPartner();
    await credit(10_000n);
  });

  const credit = (amountKobo: bigint) =>
    admin.wallets.creditWallet({ partnerId: partner.id, amountKobo, bankReference: randomUUID() }, admin.options);

  /** Writes with the gateway's own database account, and without its secret key. */
  async function attack(sql: string, ...values: SqlValue[]): Promise<void> {
    const connection = await createConnection(gateway.variables.MARINA_DATABASE_URL ?? '');
    try {
      await connection.query(sql, values);
    } finally {
      await connection.end();
    }
  }

  const entries = async () => (await gateway.database.read(listEntries(partner.id, 0n, 1_000))).map(toEntry);

  /** Adds a payment that nobody made, with everything that needs no key right. */
  async function forgeCredit(isAudited: boolean): Promise<LedgerEntry> {
    const last = (await entries()).at(-1);
    const id = `wtr_${randomBytes(13).toString('hex').slice(0, 20)}`;
    const createdAt = Date.now();
    const payment = { type: 'credit', amountKobo: 50n * million, allocation: null, account: null } as const;
    const head = last === undefined ? emptyLedger(partner.id) : headAt(last);
    const entry = nextEntry(head, { ...payment, id, bankReference: id, createdAt });
    await insertEntry(entry);
    await attack(
      `INSERT INTO wallets (partner_id, last_sequence, last_hash, available_kobo, reserved_kobo, posted_kobo)
        VALUES (?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE last_sequence = VALUES(last_sequence),
        last_hash = VALUES(last_hash), available_kobo = VALUES(available_kobo)`,
      ...[partner.id, String(entry.sequence), entry.hash],
      ...[String(entry.availableKobo), String(entry.reservedKobo), String(entry.postedKobo)],
    );
    if (isAudited) {
      await attack(
        `INSERT INTO audit_entries (at, operator, action, subject, detail, partner_id)
          VALUES (?, 'ada', 'Wallets.CreditWallet', ?, ?, ?)`,
        ...[new Date(createdAt), partner.id],
        ...[JSON.stringify({ entry: id, amountKobo: String(entry.amountKobo), bankReference: id }), partner.id],
      );
    }
    return entry;
  }

  const insertEntry = (entry: LedgerEntry) =>
    attack(
      `INSERT INTO wallet_transfers (partner_id, sequence, id, type, amount_kobo, available_after_kobo,
        reserved_after_kobo, posted_after_kobo, bank_reference, created_at, previous_hash, hash)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[entry.partnerId, String(entry.sequence), entry.id, entry.type, String(entry.amountKobo)],
      ...[entry.availableKobo, entry.reservedKobo, entry.postedKobo].map(String),
      ...[entry.bankReference, new Date(entry.createdAt), entry.previousHash, entry.hash],
    );

  async function allocationRefused(): Promise<void> {
    const { status, body } = await gateway.allocate(partner, { amount_kobo: 5_000 });
    assert.deepEqual([status, body.error.code], [503, 'service_unavailable']);
    const stored = await gateway.database.read(
      statement('SELECT id FROM allocations WHERE partner_id = ?', partner.id),
    );
    assert.deepEqual(stored, [], 'nothing is stored, so nothing is sent');
    const shown = await gateway.rest('GET', '/v1/wallet', { key: partner.key });
    assert.deepEqual(
      [shown.status, shown.body.error?.code],
      [503, 'service_unavailable'],
      'no sum is shown without proof',
    );
  }

  const command = (verb: string, unsealedRows: 'accepted' | 'refused' = 'accepted') => {
    const { MARINA_DATABASE_URL = '' } = gateway.variables;
    const variables = { MARINA_DATABASE_URL, MARINA_SECRET_KEY_FILE: file.path, MARINA_UNSEALED_ROWS: unsealedRows };
    return runCommand(['keys', verb], variables);
  };

  it('are right after credits and allocations', async () => {
    assert.equal((await gateway.allocate(partner, { amount_kobo: 4_000 })).status, 201);
    await credit(1n);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });

  for (const isAudited of [false, true]) {
    it(`show a payment that was inserted ${isAudited ? 'with' : 'without'} an entry of the audit, and no money of it moves`, async () => {
      await forgeCredit(isAudited);
      const faults = await verifyLedger(admin, partner.id);
      assert.deepEqual(faults, [
        ...(isAudited ? [] : ['UNAUDITED 2: no entry of the audit records this payment']),
        'UNSEALED 2: it is not sealed',
      ]);
      await allocationRefused();
      await assert.rejects(credit(1n), /service_unavailable|UNAVAILABLE|temporarily/i);
    });
  }

  it('show a payment that was inserted into the wallet of a partner that had none', async () => {
    partner = await gateway.newPartner();
    await forgeCredit(true);
    assert.deepEqual(await verifyLedger(admin, partner.id), ['UNSEALED 1: it is not sealed']);
    await allocationRefused();
  });

  it('show sums that were changed, a seal that was removed, and one that was copied from another wallet', async () => {
    await attack('UPDATE wallets SET available_kobo = available_kobo + 1 WHERE partner_id = ?', partner.id);
    await allocationRefused();
    await attack(
      'UPDATE wallets SET available_kobo = available_kobo - 1, seal = NULL WHERE partner_id = ?',
      partner.id,
    );
    await allocationRefused();
    assert.deepEqual(await verifyLedger(admin, partner.id), ['UNSEALED 1: it is not sealed']);
    const victim = partner;
    partner = await gateway.newPartner();
    await credit(10_000n);
    const copy = 'UPDATE wallets t JOIN wallets f ON f.partner_id = ? SET t.seal = f.seal WHERE t.partner_id = ?';
    await attack(copy, partner.id, victim.id);
    partner = victim;
    await allocationRefused();
    assert.deepEqual(await verifyLedger(admin, partner.id), [
      'UNSEALED 1: the seal of the wallet is of another entry than this one',
    ]);
  });

  it('do not let an earlier end of the ledger be used again', async () => {
    const [before] = await gateway.database.read(statement('SELECT * FROM wallets WHERE partner_id = ?', partner.id));
    assert.equal((await gateway.allocate(partner, { amount_kobo: 9_000 })).status, 201);
    await attack(
      `UPDATE wallets SET last_sequence = ?, last_hash = ?, available_kobo = ?, reserved_kobo = ?, posted_kobo = ?,
        seal = ? WHERE partner_id = ?`,
      ...[before?.last_sequence, before?.last_hash, before?.available_kobo, before?.reserved_kobo].map(
        (value) => value as SqlValue,
      ),
      ...[before?.posted_kobo as SqlValue, before?.seal as SqlValue, partner.id],
    );
    const { status } = await gateway.allocate(partner, { amount_kobo: 8_000 });
    assert.ok(status >= 500, `the money is not there twice: ${status}`);
    const faults = await verifyLedger(admin, partner.id);
    assert.deepEqual(faults, ['WRONG_SUM 0: the wallet knows 1 entries, and there are 3']);
  });

  it('show that the owner of the tables removed the last entries and set the wallet back without its seal', async () => {
    await credit(7n);
    const [first] = await entries();
    assert.ok(first !== undefined);
    const remove = statement('DELETE FROM wallet_transfers WHERE partner_id = ? AND sequence > 1', partner.id);
    await gateway.database.write(remove);
    const back = 'UPDATE wallets SET last_sequence = 1, last_hash = ?, available_kobo = ? WHERE partner_id = ?';
    await gateway.database.write(statement(back, first.hash, String(first.availableKobo), partner.id));
    assert.deepEqual(await verifyLedger(admin, partner.id), [
      'UNSEALED 0: the seal of the wallet is of no entry that it has',
    ]);
    await allocationRefused();
  });

  it('are made by keys seal for ledgers of earlier versions, and not for one with a forged payment', async () => {
    await attack('UPDATE wallets SET seal = NULL WHERE partner_id = ?', partner.id);
    const old = partner;
    await allocationRefused();
    partner = await gateway.newPartner();
    await credit(10_000n);
    const forged = partner;
    await forgeCredit(false);
    const sealed = command('seal');
    assert.equal(await sealed.ended, 1, sealed.printed());
    assert.match(
      sealed.printed(),
      new RegExp(
        `the wallet of ${forged.id} is not sealed: entry 2 wtr_\\w+: no entry of the audit records this payment`,
      ),
    );
    partner = old;
    assert.deepEqual(await verifyLedger(admin, old.id), []);
    assert.equal((await gateway.allocate(old, { amount_kobo: 4_000 })).status, 201);
    assert.deepEqual(await verifyLedger(admin, old.id), []);
  });

  for (const change of ['seal = NULL', 'seal = seal']) {
    it(`are made by keys seal for no forged payment with an entry of the audit while rows without a seal are refused (${change})`, async () => {
      await attack(`UPDATE wallets SET ${change} WHERE partner_id = ?`, partner.id);
      await forgeCredit(true);
      const run = command('seal', 'refused');
      assert.equal(await run.ended, 1, run.printed());
      assert.match(run.printed(), new RegExp(`the wallet of ${partner.id} is not sealed: its end is not sealed, and`));
      await allocationRefused();
    });
  }

  it('are made again by keys reseal, so that the former secret can leave', async () => {
    const next = randomBytes(32).toString('hex');
    await file.change([secretKey, next], gateway.logged);
    await file.change([next, secretKey], gateway.logged);
    const resealed = command('reseal');
    assert.equal(await resealed.ended, 0, resealed.printed());
    assert.doesNotMatch(resealed.printed(), /seals of rows, until keys reseal/);
    // Without its row the former secret counts as destroyed for good. Otherwise its file would be refused for 30 days.
    await gateway.database.write(statement('DELETE FROM secret_keys WHERE id = ?', parseKeyRing(secretKey)[0].id));
    await file.change([next], gateway.logged);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
    await credit(1n);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });
});
