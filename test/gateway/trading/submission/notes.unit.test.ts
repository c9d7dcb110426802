import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { FactReader, Notes, readFacts, UnreadableNote } from '../../../../src/gateway/trading/submission/notes.ts';
import { sentFrom } from '../../../../src/gateway/trading/submission/table.ts';
import type { StoredWithdrawal } from '../../../../src/gateway/trading/withdrawals/table.ts';
import { onlyKey, Seal } from '../../../../src/kit/key-ring.ts';
import { orderKind, withdrawalKind } from '../../../support/kinds.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const seal = new Seal(onlyKey(Buffer.alloc(32, 1)));
const notes = new Notes(seal);
const row = {
  ...plainOrder,
  id: 'ord_22222222222222222222',
  partnerId: 'par_22222222222222222222',
  keyId: 'key_22222222222222222222',
  idempotencyKey: 'key',
};
const orderOf = (referenceLength: number) => ({ ...row, clientReference: 'x'.repeat(referenceLength) });

describe('the notes that go out with submissions', () => {
  it('notes that are as long as may be fit what a broker keeps, and a longer one is refused before anything is stored', () => {
    let length = 2_048;
    const fits = () => {
      try {
        notes.checkLength(orderKind, orderOf(length));
        return true;
      } catch {
        return false;
      }
    };
    while (!fits()) length -= 1;
    const note = notes.write(orderKind, orderOf(length));
    assert.ok(note.length <= 2_048 && note.length > 2_040, String(note.length));
    assert.equal(notes.read(row.id, note)?.facts.text('clientReference').length, length);
    assert.throws(() => notes.checkLength(orderKind, orderOf(length + 8)), /too long/);
  });

  it('hold what restores the object, and nothing the broker or the mechanism gives', () => {
    const read = notes.read(row.id, notes.write(orderKind, row));
    assert.ok(read !== undefined, 'it is ours');
    const { partnerId, requestId, traceParent, keyId, idempotencyKey, requestDigest } = row;
    assert.deepEqual(read.submission, { partnerId, requestId, traceParent, keyId, idempotencyKey, requestDigest });
    const { account, symbol, side, type, timeInForce, quantity, priceKobo, clientReference } = row;
    const { createdAt, countedDay, countedPriceKobo, notAfter } = row;
    assert.deepEqual(readFacts(orderKind, read.facts), {
      ...{ account, symbol, side, type, timeInForce, quantity, priceKobo, clientReference },
      ...{ createdAt, countedDay, countedPriceKobo, notAfter },
    });
    const market = notes.read(row.id, notes.write(orderKind, { ...row, priceKobo: null, clientReference: null }));
    assert.ok(market !== undefined, 'it is ours');
    const { priceKobo: none, clientReference: neither } = readFacts<StoredOrder>(orderKind, market.facts);
    assert.deepEqual([none, neither], [null, null]);
  });

  it('a note restores from when a withdrawal was sent: from its release on, if it waited for one', () => {
    const { requestDigest, createdAt, countedDay, notAfter } = plainOrder;
    const draft = { account: 'A1', amountKobo: 5n, destination: 'wallet', clientReference: null } as const;
    const withdrawal = {
      ...withdrawalKind.blank,
      ...draft,
      ...{ id: 'wdr_22222222222222222222', partnerId: row.partnerId, keyId: row.keyId, idempotencyKey: 'key' },
      ...{ requestId: null, traceParent: null, requestDigest, createdAt, countedDay, notAfter },
    } as StoredWithdrawal;
    for (const releasedAt of [null, createdAt + 86_400_000]) {
      const read = notes.read(withdrawal.id, notes.write(withdrawalKind, { ...withdrawal, releasedAt }));
      assert.ok(read !== undefined, 'it is ours');
      const restored = readFacts<StoredWithdrawal>(withdrawalKind, read.facts);
      assert.deepEqual(restored, { ...draft, createdAt, countedDay, notAfter, releasedAt });
      assert.equal(sentFrom(restored as StoredWithdrawal), releasedAt ?? createdAt);
    }
  });

  it('notes have instants from the start of 2000 to the end of 2199', () => {
    const [first, last] = [Date.UTC(2000, 0, 1), Date.UTC(2200, 0, 1)];
    for (const [at, isInstant] of [
      [first - 1, false],
      [first, true],
      [last, true],
      [last + 1, false],
    ] as const) {
      const read = () => new FactReader({ at }).instant('at');
      if (isInstant) assert.equal(read(), at);
      else assert.throws(read, UnreadableNote, `${at}`);
    }
  });

  it('notes of others are none of ours: too long, or not sealed for the object', () => {
    assert.equal(notes.read(row.id, Buffer.alloc(2_049, 1)), undefined);
    assert.equal(notes.read(row.id, Buffer.from('their own')), undefined);
    assert.equal(notes.read('ord_33333333333333333333', notes.write(orderKind, row)), undefined);
  });

  it('notes of an earlier version, which wrote less of the origin, restore the object all the same', () => {
    const read = (origin: object | undefined) => {
      const sealed = notes.write(orderKind, row);
      const written = JSON.parse(String(seal.open(row.id, Buffer.from(sealed))));
      const note = seal.seal(row.id, JSON.stringify({ ...written, origin }));
      return notes.read(row.id, note)?.submission;
    };
    const { requestId, traceParent } = row;
    for (const origin of [
      { requestId, traceParent, keyId: null },
      { requestId, traceParent },
      { requestId: null },
      {},
    ]) {
      const submission = read({ partnerId: row.partnerId, ...origin });
      assert.deepEqual([submission?.partnerId, submission?.keyId], [row.partnerId, null], JSON.stringify(origin));
      assert.equal(submission?.idempotencyKey, row.idempotencyKey);
    }
  });

  it('notes of another version say what is missing, and a null or an absent member is no text', () => {
    const facts = new FactReader({ nothing: null, number: 5, text: 'abc', amount: '12' });
    assert.equal(facts.optionalText('nothing'), null);
    assert.equal(facts.optionalText('absent'), null);
    assert.equal(facts.whole('amount'), 12n);
    for (const read of [
      () => facts.text('nothing'),
      () => facts.text('absent'),
      () => facts.text('number'),
      () => facts.whole('text'),
      () => facts.whole('number'),
      () => facts.instant('text'),
      () => facts.instant('number'),
      () => facts.day('text'),
      () => facts.digest('text'),
      () => facts.inner('text'),
    ]) {
      assert.throws(read, UnreadableNote);
    }
  });
});
