import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { IdMaker } from '../../../src/gateway/edge/ids.ts';
import { audit } from '../../../src/gateway/operators/calls/audit.ts';
import { creditAction, type Payment, paymentEntry } from '../../../src/gateway/operators/calls/credit-audit.ts';
import { walkLedger } from '../../../src/gateway/operators/calls/ledger.ts';
import { type Database, openDatabase } from '../../../src/gateway/store/database.ts';
import { allFacts, existsFact, rowsFact, sharedFact } from '../../../src/gateway/store/facts.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statement, toBigInt } from '../../../src/gateway/store/statement.ts';
import { usage } from '../../../src/gateway/trading/submission/day-limit.ts';
import { inForceFact } from '../../../src/gateway/trading/submission/environment.ts';
import { transfer, wallet } from '../../../src/gateway/trading/wallet/store.ts';
import { createPartner } from '../../../src/sandbox/provision.ts';
import { walletSeals } from '../../support/ledger.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';

const ids = new IdMaker(Date);
const day = '2026-11-20';

const auditPayment = (paid: Payment) =>
  audit({ operator: 'test', action: creditAction }, paid.createdAt, paymentEntry(paid));

describe('what all work on one partner shares', () => {
  let test: TestDatabase;
  let [database, replica]: Database[] = [];
  let partnerId: string;
  before(async () => {
    test = await createTestDatabase();
    await migrate(test.url);
    const open = () => openDatabase({ url: test.url, environment: 'sandbox', poolSize: 4 });
    [database, replica] = [await open(), await open()];
  });
  after(async () => {
    await Promise.all([database?.close(), replica?.close()]);
    await test.drop();
  });
  beforeEach(async () => {
    partnerId = await createPartner(of(database), { name: 'Shares', limits: {}, features: [] });
  });

  function of(one: Database | undefined): Database {
    assert.ok(one !== undefined, 'it is open');
    return one;
  }

  /** Credits the wallet and counts the same for a day. Answers what was there before, each time it was decided. */
  async function credit(by: Database | undefined, amountKobo: bigint, isRefused = false): Promise<[bigint, bigint][]> {
    const seen: [bigint, bigint][] = [];
    const id = ids.object('wtr');
    await of(by).inPartnerTransaction(partnerId, {
      touches: [],
      fact: sharedFact(wallet(partnerId, walletSeals()), usage(partnerId, day, 'orders')),
      decide: (_, partner) => {
        const counted = usage(partnerId, day, 'orders');
        seen.push([partner.get(wallet(partnerId, walletSeals())).head.availableKobo, partner.get(counted)]);
        const payment = { type: 'credit', amountKobo, allocation: null, account: null } as const;
        const paid = { ...payment, id, bankReference: id, createdAt: Date.now() };
        transfer(partner, paid, walletSeals());
        partner.add(counted, amountKobo);
        partner.takeVersions(1);
        if (isRefused) throw new Error('refused');
        return { writes: [auditPayment({ ...paid, partnerId })], result: undefined };
      },
    });
    return seen;
  }

  async function assertStored(kobo: bigint, entries: number): Promise<void> {
    const walk = await walkLedger(of(database), partnerId, 0n);
    assert.deepEqual([walk?.complete, walk?.faults, walk?.entries], [true, [], entries]);
    const [partners = [], days = [], wallets = []] = await of(database).readAll([
      statement('SELECT version FROM partners WHERE id = ?', partnerId),
      statement('SELECT used_kobo FROM usage_days WHERE partner_id = ?', partnerId),
      statement('SELECT available_kobo FROM wallets WHERE partner_id = ?', partnerId),
    ]);
    assert.deepEqual(
      [toBigInt(partners[0]?.version), toBigInt(days[0]?.used_kobo), toBigInt(wallets[0]?.available_kobo)],
      [BigInt(entries), kobo, kobo],
    );
  }

  it('is remembered as it was saved, and read once', async () => {
    assert.deepEqual(await credit(database, 4n), [[0n, 0n]]);
    assert.deepEqual(await credit(database, 5n), [[4n, 4n]]);
    assert.deepEqual(await credit(database, 6n), [[9n, 9n]]);
    await assertStored(15n, 3);
  });

  it('is seen by each piece of work as those before it in the transaction left it', async () => {
    await credit(database, 1n);
    const all = await Promise.all([2n, 3n, 4n].map((kobo) => credit(database, kobo)));
    assert.deepEqual(all, [[[1n, 1n]], [[3n, 3n]], [[6n, 6n]]]);
    await assertStored(10n, 4);
  });

  it('is as if work that is refused had never been', async () => {
    await credit(database, 1n);
    // The first goes alone, and the others together.
    const [first, second, refused, last] = await Promise.allSettled([
      credit(database, 2n),
      credit(database, 3n),
      credit(database, 100n, true),
      credit(database, 4n),
    ]);
    assert.deepEqual(
      [first.status, second.status, refused.status, last.status],
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
    );
    await assertStored(10n, 4);
  });

  it('is read again when another replica changed the wallet alone', async () => {
    await credit(database, 4n);
    const id = ids.object('wtr');
    await of(replica).inPartnerTransaction(partnerId, {
      touches: [],
      fact: sharedFact(wallet(partnerId, walletSeals())),
      decide: (_, partner) => {
        const payment = { type: 'credit', amountKobo: 7n, allocation: null, account: null } as const;
        const paid = { ...payment, id, bankReference: id, createdAt: Date.now() };
        transfer(partner, paid, walletSeals());
        return { writes: [auditPayment({ ...paid, partnerId })], result: undefined };
      },
    });
    assert.deepEqual(await credit(database, 5n), [
      [4n, 4n],
      [11n, 4n],
    ]);
    const walk = await walkLedger(of(database), partnerId, 0n);
    assert.deepEqual([walk?.complete, walk?.faults, walk?.entries], [true, [], 3]);
  });

  it('is read when it was never read before, also when the partner is known', async () => {
    await of(database).inPartnerTransaction(partnerId, {
      touches: [],
      fact: rowsFact(),
      decide: (_, partner) => {
        partner.takeVersions(1);
        return { writes: [], result: undefined };
      },
    });
    assert.deepEqual(await credit(database, 5n), [[0n, 0n]]);
  });

  it('is saved only while trading goes on, also when nobody heard of a pause', async () => {
    const decided: boolean[] = [];
    const work = () =>
      of(database).inPartnerTransaction(partnerId, {
        touches: [],
        fact: inForceFact({ stops: [], stopsVersion: 0n }),
        decide: ({ paused }, partner) => {
          decided.push(paused);
          if (paused) throw new Error('paused');
          partner.takeVersions(1);
          return { writes: [], result: undefined };
        },
      });
    const setPaused = (at: string) =>
      of(database).write(statement(`UPDATE environment SET trading_paused_at = ${at} WHERE id = 1`));
    await work();
    await work();
    assert.deepEqual(decided.splice(0), [false, false]);
    await setPaused('NOW()');
    try {
      await assert.rejects(work(), /paused/);
      assert.deepEqual(decided, [false, true], 'it was decided as if trading went on, and then as it is');
    } finally {
      await setPaused('NULL');
    }
  });

  for (const changed of ['first', 'second'] as const) {
    it(`is saved only if all that the work depends on is as expected: not the ${changed}`, async () => {
      const seen: unknown[] = [];
      const isThere = (name: string) =>
        existsFact(statement('SELECT 1 FROM positions WHERE name = ?', `${partnerId} ${name}`), false);
      const work = () =>
        of(database).inPartnerTransaction(partnerId, {
          touches: [],
          fact: allFacts({ first: isThere('first'), second: isThere('second') }),
          decide: (facts, partner) => {
            seen.push(facts);
            partner.takeVersions(1);
            return { writes: [], result: undefined };
          },
        });
      await work();
      await work();
      const neither = { first: false, second: false };
      assert.deepEqual(seen.splice(0), [neither, neither]);
      const name = `${partnerId} ${changed}`;
      await of(database).write(statement("INSERT INTO positions (name, position) VALUES (?, '')", name));
      await work();
      assert.deepEqual(seen, [neither, { ...neither, [changed]: true }]);
    });
  }
});
