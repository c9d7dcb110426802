import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Seal } from '../../src/lib/seal.ts';
import { FactReader, Notes, UnreadableNote } from '../../src/submission/notes.ts';

const seal = new Seal(Buffer.alloc(32, 1));
const notes = new Notes(seal);
const row = {
  id: 'ord_22222222222222222222',
  partnerId: 'par_22222222222222222222',
  origin: { partnerId: 'par_22222222222222222222', requestId: 'req', traceParent: null },
  idempotencyKey: 'key',
  requestDigest: Buffer.alloc(32, 2),
  state: 'sending',
  rejectReason: null,
  firstAnswer: null,
  steps: 1,
  notAfter: 0,
  checkAt: null,
  checks: 0,
  missingSince: null,
};

describe('the notes that go out with submissions', () => {
  it('that are as long as may be fit what a broker keeps, and a longer one is refused before anything is stored', () => {
    const longest = (length: number) => ({ text: 'x'.repeat(length) });
    let length = 2_048;
    const fits = () => {
      try {
        notes.checkLength(row, longest(length));
        return true;
      } catch {
        return false;
      }
    };
    while (!fits()) length -= 1;
    const note = notes.write(row, longest(length));
    assert.ok(note.length <= 2_048 && note.length > 2_040, String(note.length));
    assert.equal(notes.read(row.id, note)?.facts.text('text').length, length);
    assert.throws(() => notes.checkLength(row, longest(length + 8)), /too long/);
  });

  it('of others are none of ours: too long, or not sealed for the object', () => {
    assert.equal(notes.read(row.id, Buffer.alloc(2_049, 1)), undefined);
    assert.equal(notes.read(row.id, Buffer.from('their own')), undefined);
    assert.equal(notes.read('ord_33333333333333333333', notes.write(row, {})), undefined);
  });

  it('of another version say what is missing, and a null or an absent member is no text', () => {
    const facts = new FactReader({ nothing: null, number: 5, text: 'abc', amount: '12' });
    assert.equal(facts.optionalText('nothing'), null);
    assert.equal(facts.optionalText('absent'), null);
    assert.equal(facts.optionalWhole('absent'), null);
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
