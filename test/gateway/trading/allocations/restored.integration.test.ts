import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { allocations, type StoredAllocation } from '../../../../src/gateway/trading/allocations/table.ts';
import { firstBroker, type Taken } from '../../../../src/gateway/trading/broker/broker.ts';
import { Kinds, newRow } from '../../../../src/gateway/trading/submission/kind.ts';
import { Notes } from '../../../../src/gateway/trading/submission/notes.ts';
import { Recovery } from '../../../../src/gateway/trading/submission/recovery.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';
import { onlyKey, Seal } from '../../../../src/kit/key-ring.ts';
import { creditWallet } from '../../../support/ledger.ts';
import { openSettling, type Settling } from '../../../support/settling.ts';

let settling: Settling;
before(async () => {
  settling = await openSettling();
});
after(() => settling.close());

it('an allocation that was lost reserves its money again, to the last kobo, and counts for its own day', async () => {
  const { allocation, clock, database, ids, log } = settling;
  const partnerId = await settling.newPartner();
  await creditWallet(database, { partnerId, amountKobo: 4_000n, bankReference: 'B1' });
  const day = '2026-02-28';
  const notes = new Notes(new Seal(onlyKey(Buffer.alloc(32, 1))));
  const gate = new StartGate();
  gate.open();
  let listed: readonly Taken[] = [];
  const recovery = new Recovery({
    lackedKeys: async () => [],
    ...{ database, clock, notes, gate, log },
    broker: { id: firstBroker, submissions: { submissionsAfter: async () => listed } },
    kinds: new Kinds([allocation]),
    isShared: false,
  });
  /** Whether an allocation of which only the broker's note is left is restored. */
  async function isRestored(amountKobo: bigint): Promise<boolean> {
    const times = { now: clock.now(), notAfter: clock.realNow(), checkAt: clock.realNow() };
    const origin = { partnerId, requestId: null, traceParent: null };
    const id = ids.object('alc');
    const submission = { ...origin, keyId: null, idempotencyKey: id, requestDigest: Buffer.alloc(32) };
    const fields = { account: 'A1', amountKobo, clientReference: null, countedDay: day };
    const lost = newRow<StoredAllocation>(allocation, id, submission, fields, times);
    listed = [{ number: 1n, clientId: id, note: notes.write(allocation, lost) }];
    await recovery.findLost();
    const rows = await database.read(allocations.find({ partnerId, id }));
    assert.deepEqual(
      gate.held,
      rows.length > 0 ? [] : [{ kind: 'allocation', partnerId }],
      'no other is taken while one is missing',
    );
    return rows.length > 0;
  }
  assert.equal(await isRestored(4_001n), false, 'the wallet lacks a kobo');
  assert.equal(await isRestored(4_000n), true, 'the wallet has exactly what it needs');
  assert.equal(await isRestored(1n), false, 'the wallet is empty');
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
