import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { walkLedger } from '../../../../src/gateway/operators/calls/ledger.ts';
import { ledgerCheck } from '../../../../src/gateway/operators/calls/ledger-check.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { type SqlValue, statement } from '../../../../src/gateway/store/statement.ts';
import { emptyLedger, headAt, type LedgerEntry, nextEntry } from '../../../../src/gateway/trading/wallet/rules.ts';
import { listEntries, toEntry } from '../../../../src/gateway/trading/wallet/store.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { createPartner } from '../../../../src/sandbox/provision.ts';
import { whileRunning, withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { creditWallet, walletSeals } from '../../../support/ledger.ts';

type Options = Partial<Parameters<typeof ledgerCheck>[0]>;

describe('the check of ledgers', () => {
  let database: Database;
  let partnerId: string;
  /** After which entry each page of entries was read. */
  let readAfter: number[];
  let logged: string[];
  let beforePage: () => Promise<void>;

  withDatabase((opened) => {
    database = opened;
    const read = database.read.bind(database);
    database.read = async (query) => {
      if (query.sql.includes('sequence > ?')) {
        await beforePage();
        readAfter.push(Number(query.values[1]));
      }
      return read(query);
    };
  });

  beforeEach(async () => {
    beforePage = async () => {};
    for (const table of ['partners', 'wallets', 'wallet_transfers', 'positions', 'leases', 'audit_entries']) {
      await write(`DELETE FROM ${table}`);
    }
    partnerId = await createPartner(database, { name: 'Lagoon Invest' });
    for (const reference of ['1', '2', '3', '4', '5']) await credit(reference);
    readAfter = [];
    logged = [];
  });

  const write = (sql: string, ...values: SqlValue[]) => database.write(statement(sql, ...values));
  const credit = (bankReference: string) => creditWallet(database, { partnerId, amountKobo: 5n, bankReference });
  const changeEntry = (sequence: number, amountKobo: number) =>
    write('UPDATE wallet_transfers SET amount_kobo = ? WHERE sequence = ?', amountKobo, sequence);

  /** Runs the check on a replica, for two rounds at least. Returns how many ledgers are at fault. */
  async function check(options: Options = {}): Promise<number | undefined> {
    const reports: number[] = [];
    const worker = newCheck({ ...options, checked: (faulty) => reports.push(faulty.length) });
    return whileRunning(worker, async () => {
      await eventually(() => assert.ok(reports.length > 3, 'rounds go on'));
      return reports[3];
    });
  }

  function newCheck(options: Pick<Parameters<typeof ledgerCheck>[0], 'checked'> & Options) {
    const destination = { write: (line: string) => void logged.push(line) };
    const log = createLogger({ name: 'marina', level: 'info', destination });
    return ledgerCheck({ database, seals: walletSeals(), log, holder: 'test', betweenRoundsMs: 5, ...options });
  }

  async function position(check: 'check' | 'recheck'): Promise<string | undefined> {
    const name = `ledger-${check} ${partnerId}`;
    const [row] = await database.read(statement('SELECT position FROM positions WHERE name = ?', name));
    return row && String(row.position);
  }

  async function faultsOfWalk() {
    const walk = await walkLedger(database, partnerId, 0n);
    return walk?.faults.map(({ kind, sequence }) => [kind, Number(sequence)]);
  }

  /** Replaces a ledger by another that is valid in itself, as the owner of the tables could who has the secret key. */
  async function replaceLedger(amounts: readonly bigint[]): Promise<void> {
    const stored = (await database.read(listEntries(partnerId, 0n, 100))).map(toEntry);
    await write('DELETE FROM wallet_transfers');
    const entries: LedgerEntry[] = [];
    for (const [index, amountKobo] of amounts.entries()) {
      const [last, like] = [entries.at(-1), stored[index]];
      assert.ok(like !== undefined);
      const { id, type, allocation, account, bankReference, createdAt } = like;
      const transfer = { id, type, amountKobo, allocation, account, bankReference, createdAt };
      entries.push(nextEntry(last === undefined ? emptyLedger(partnerId) : headAt(last), transfer));
    }
    for (const entry of entries) {
      await write(
        `INSERT INTO wallet_transfers (partner_id, sequence, id, type, amount_kobo, available_after_kobo,
          reserved_after_kobo, posted_after_kobo, bank_reference, created_at, previous_hash, hash)
          VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?)`,
        ...[partnerId, entry.sequence.toString(), entry.id, entry.type, entry.amountKobo.toString()],
        ...[entry.availableKobo.toString(), entry.bankReference, new Date(entry.createdAt)],
        ...[entry.previousHash, entry.hash],
      );
    }
    const last = entries.at(-1);
    assert.ok(last !== undefined);
    await write(
      'UPDATE wallets SET last_sequence = ?, last_hash = ?, available_kobo = ?, seal = ?',
      ...[last.sequence.toString(), last.hash, last.availableKobo.toString(), walletSeals().make(headAt(last))],
    );
  }

  it('goes on all the time, and names a faulty ledger until it is right again', async () => {
    const reports: number[] = [];
    const checked = (faulty: readonly string[]) => {
      if (faulty.length > 0) assert.deepEqual(faulty, [partnerId]);
      reports.push(faulty.length);
    };
    await whileRunning(newCheck({ checked, recheckAfterMs: 0 }), async () => {
      await eventually(() => assert.ok(reports.length > 2, 'rounds go on'));
      assert.ok(reports.every((faulty) => faulty === 0));
      await changeEntry(1, 6);
      await eventually(() => assert.equal(reports.at(-1), 1));
      assert.ok(logged.some((line) => line.includes('a ledger is at fault') && line.includes(partnerId)));
      await changeEntry(1, 5);
      await eventually(() => assert.equal(reports.at(-1), 0));
      await changeEntry(1, 6);
      await eventually(() => assert.equal(reports.at(-1), 1));
    });
    assert.equal(reports.at(-1), 0, 'a replica that no longer checks names none');
  });

  it('goes on at a start after the last entry that was checked, whichever replica did', async () => {
    assert.equal(await check(), 0);
    assert.deepEqual(readAfter, [0]);
    assert.match((await position('check')) ?? '', /^5 [\w-]{43}$/);
    await credit('6');
    readAfter = [];
    assert.equal(await check({ holder: 'another' }), 0);
    assert.deepEqual(readAfter, [5]);
    readAfter = [];
    assert.equal(await check(), 0);
    assert.deepEqual(readAfter, [], 'nothing is new');
  });

  it('reads a long ledger in parts, and goes on between them at a start', async () => {
    let pages = 0;
    beforePage = async () => {
      pages += 1;
      if (pages > 2) throw new Error('the database went away');
    };
    const worker = newCheck({ checked: () => {}, mostEntries: 2 });
    await assert.rejects(worker.run(new AbortController().signal), /went away/);
    assert.match((await position('check')) ?? '', /^4 /);
    beforePage = async () => {};
    readAfter = [];
    assert.equal(await check({ mostEntries: 2 }), 0);
    assert.deepEqual(readAfter, [4]);
  });

  it('checks a whole ledger again after a day, in parts with which another replica goes on', async () => {
    assert.equal(await check(), 0);
    const [, endedAt] = (await position('recheck'))?.split(' ') ?? [];
    assert.ok(Math.abs(Number(endedAt) - Date.now()) < 60_000, 'the first check was one of the whole ledger');

    const dayBefore = Number(endedAt) - 86_400_000;
    await write("UPDATE positions SET position = ? WHERE name LIKE 'ledger-recheck %'", `0 ${dayBefore}`);
    readAfter = [];
    assert.equal(await check({ mostEntries: 2 }), 0);
    assert.deepEqual(readAfter, [0, 2, 4]);
    // The next replica ends it, from any place.
    await write("UPDATE positions SET position = ? WHERE name LIKE 'ledger-recheck %'", '2 0');
    readAfter = [];
    assert.equal(await check({ mostEntries: 2, holder: 'another' }), 0);
    assert.deepEqual(readAfter, [2, 4]);
    assert.match((await position('recheck')) ?? '', /^0 /);
    assert.notEqual(await position('recheck'), '0 0');
  });

  it('finds a fault again on every replica and at every start, because no position passes it', async () => {
    assert.equal(await check(), 0);
    await changeEntry(4, 6);
    assert.equal(await check({ mostEntries: 2, recheckAfterMs: 0 }), 1);
    // From here on the repeated check is due only because it has not ended.
    const recheck = { mostEntries: 2 };
    for (const holder of ['one', 'another', 'one']) assert.equal(await check({ ...recheck, holder }), 1);
    await credit('6');
    await credit('7');
    assert.equal(await check(recheck), 1);
    assert.match((await position('check')) ?? '', /^7 /, 'new entries are checked meanwhile');
    assert.equal(await position('recheck'), '2 0');
    await changeEntry(4, 5);
    await changeEntry(1, 6);
    assert.equal(await check(recheck), 0, 'it goes on after entry 2');
    assert.equal(await check({ recheckAfterMs: 0 }), 1);
    assert.equal(await position('recheck'), '0 0');
    assert.equal(await check(), 1, 'a fault in the first part is found again too');
    await changeEntry(1, 5);
    assert.equal(await check(), 0);
  });

  it('finds a fault in new entries again, also if it had checked the earlier ones', async () => {
    assert.equal(await check(), 0);
    await credit('6');
    await credit('7');
    await changeEntry(6, 6);
    for (const holder of ['one', 'another']) assert.equal(await check({ holder }), 1);
    assert.match((await position('check')) ?? '', /^5 /);
  });

  it('notices a whole ledger that was replaced by another valid one, as VerifyLedger does', async () => {
    assert.equal(await check(), 0);
    await replaceLedger([5n, 500n, 5n, 5n, 5n]);
    await write(
      `UPDATE audit_entries SET detail = REPLACE(detail, '"5"', '"500"') WHERE detail LIKE '%"bankReference":"2"%'`,
    );
    assert.equal(await check(), 1);
    assert.ok(logged.some((line) => line.includes('an earlier check found another entry here')));
    assert.deepEqual(await faultsOfWalk(), [['changed', 5]]);
    await credit('6');
    assert.equal(await check({ holder: 'another' }), 1);
    assert.deepEqual(await faultsOfWalk(), [['changed', 5]]);
  });

  it('notices that the last entries were removed and the wallet set back', async () => {
    assert.equal(await check(), 0);
    await replaceLedger([5n, 5n, 5n]);
    assert.equal(await check(), 1);
    assert.ok(logged.some((line) => line.includes('entry 5 is missing, which an earlier check found')));
    assert.deepEqual(await faultsOfWalk(), [['missing', 4]]);
  });

  it('notices in the next round a wallet whose seal is wrong, although no entry is new', async () => {
    assert.equal(await check({ seals: walletSeals(false) }), 0);
    await write('UPDATE wallets SET available_kobo = available_kobo + 1');
    assert.equal(await check({ seals: walletSeals(false) }), 1);
    await write('UPDATE wallets SET available_kobo = available_kobo - 1');
    assert.equal(await check({ seals: walletSeals(false) }), 0);
    await write('UPDATE wallets SET seal = NULL');
    assert.equal(await check({ seals: walletSeals(false) }), 1);
    assert.ok(logged.some((line) => line.includes('the wallet has no right seal') && line.includes(partnerId)));
    assert.equal(await check(), 0, 'rows without a seal are accepted where they are meant to be');
  });

  it('names a payment without an entry of the audit, and one with the entry of another amount', async () => {
    assert.equal(await check(), 0);
    await write('DELETE FROM audit_entries ORDER BY id LIMIT 1');
    await write(`UPDATE audit_entries SET detail = REPLACE(detail, '"5"', '"6"') ORDER BY id DESC LIMIT 1`);
    assert.deepEqual(await faultsOfWalk(), [
      ['unaudited', 1],
      ['unaudited', 5],
    ]);
    assert.equal(await check({ recheckAfterMs: 0 }), 1);
  });

  it('stores no position after another replica has taken over', async () => {
    beforePage = () =>
      write("UPDATE leases SET fence = fence + 1, holder = 'another' WHERE name = 'ledger-check'").then();
    const reports: number[] = [];
    await whileRunning(newCheck({ checked: (faulty) => reports.push(faulty.length) }), () =>
      eventually(() => assert.ok(reports.length > 0, 'a round has ended')),
    );
    assert.ok(readAfter.length > 0);
    assert.equal(await position('check'), undefined);
  });

  it('begins with the first entry if the owner of the tables removed its positions', async () => {
    assert.equal(await check(), 0);
    await replaceLedger([5n, 5n, 5n]);
    assert.equal(await check(), 1);
    await write(
      'DELETE FROM positions WHERE name IN (?, ?)',
      `ledger-check ${partnerId}`,
      `ledger-recheck ${partnerId}`,
    );
    readAfter = [];
    assert.equal(await check(), 0);
    assert.deepEqual(readAfter, [0]);
    assert.deepEqual(await faultsOfWalk(), []);
  });
});
