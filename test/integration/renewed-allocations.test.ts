import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { creditWallet } from '../../src/admin/provision.ts';
import { statement } from '../../src/db/statement.ts';
import { ApiError } from '../../src/lib/errors.ts';
import { FactReader } from '../../src/submission/notes.ts';
import { openSettling, type Settling } from '../support/settling.ts';

let settling: Settling;
before(async () => {
  settling = await openSettling();
});
after(() => settling.close());

it('an allocation that was lost reserves its money again, to the last kobo, and counts for its own day', async () => {
  const { allocation, clock, database, ids } = settling;
  const partnerId = await settling.newPartner();
  await creditWallet(database, { partnerId, amountKobo: 4_000n, bankReference: 'B1' });
  const day = '2026-02-28';
  const renew = (amountKobo: string) => {
    const facts = new FactReader({
      account: 'A1',
      amountKobo,
      clientReference: null,
      createdAt: clock.now(),
      countedDay: day,
      notAfter: clock.realNow(),
    });
    const origin = { partnerId, requestId: null, traceParent: null };
    const submission = { partnerId, origin, idempotencyKey: null, requestDigest: Buffer.alloc(32) };
    return database.inPartner(partnerId, {
      touches: [],
      reads: allocation.renewReads(partnerId),
      decide: (partner, rows) => {
        const { writes } = allocation.renew(ids.object('alc'), submission, facts, partner, rows);
        return { writes, result: undefined };
      },
    });
  };
  const answer = (work: Promise<unknown>) =>
    work.then(
      () => 'stored',
      (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
    );
  assert.equal(await answer(renew('4001')), 'wallet_too_low');
  assert.equal(await answer(renew('4000')), 'stored', 'the wallet has exactly what it needs');
  assert.equal(await answer(renew('1')), 'wallet_too_low', 'the wallet is empty');
  const [wallet] = await database.read(
    statement('SELECT available_kobo, reserved_kobo FROM wallets WHERE partner_id = ?', partnerId),
  );
  assert.deepEqual([Number(wallet?.available_kobo), Number(wallet?.reserved_kobo)], [0, 4_000]);
  const used = await database.read(
    statement('SELECT day, kind, used_kobo FROM usage_days WHERE partner_id = ?', partnerId),
  );
  assert.deepEqual(
    used.map(({ kind, used_kobo: kobo }) => [kind, Number(kobo)]),
    [['allocations', 4_000]],
    'it counts again for the day it was made on',
  );
  assert.match(String(used[0]?.day), /2026-02-28|Feb 28 2026/);
});
