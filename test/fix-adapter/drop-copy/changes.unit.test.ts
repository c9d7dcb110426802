import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type BookedChange,
  faultOfBookedChange,
  faultOfCopiedChange,
  namesOfTrade,
  type TradeCorrection,
} from '../../../src/fix-adapter/drop-copy/changes.ts';

const bust: TradeCorrection = { kind: 'cancelled', execRefId: 'e1', quantity: 0n, priceKobo: 0n };
const correction: TradeCorrection = { kind: 'corrected', execRefId: 'e1', quantity: 40n, priceKobo: 250n };
const from = (change: TradeCorrection, execId: string | null = 'c1'): BookedChange => ({ ...change, execId });

describe('a trade that one of the two sides takes back or corrects', () => {
  for (const [of, copied, booked, fault] of [
    ['a bust that both have', bust, [from(bust)], undefined],
    ['a bust of unlike fields', { ...bust, quantity: 7n }, [from(bust)], undefined],
    ['a correction that both have', correction, [from(correction)], undefined],
    ['a bust that was not applied', bust, [], 'the drop copy took trade e1 back, and the order session did not'],
    ['a bust of another trade', bust, [from({ ...bust, execRefId: 'e2' })], /and the order session did not$/],
    ['a correction that the order session has as a bust', correction, [from(bust)], /and the order session did not$/],
    [
      'a correction to another quantity',
      correction,
      [from({ ...correction, quantity: 41n })],
      'the drop copy corrected trade e1 to 40 at 250 kobo, and the order session corrected trade e1 to 41 at 250 kobo',
    ],
    ['a correction to another price', correction, [from({ ...correction, priceKobo: 1n })], /to 40 at 1 kobo$/],
  ] as const) {
    it(`is ${fault === undefined ? 'no finding' : 'a finding'} of the copy: ${of}`, () => {
      const found = faultOfCopiedChange(copied, booked);
      if (fault instanceof RegExp) assert.match(String(found), fault);
      else assert.equal(found, fault);
    });
  }

  it('is found if the drop copy lacks it, and once if it has it with other terms', () => {
    assert.equal(
      faultOfBookedChange(from(bust), [from(bust)], []),
      'the drop copy lacks that the order session took trade e1 back',
    );
    assert.equal(faultOfBookedChange(from(bust), [from(bust)], [bust]), undefined);
    assert.equal(
      faultOfBookedChange(from(correction), [from(correction)], [{ ...correction, quantity: 1n }]),
      undefined,
    );
    assert.notEqual(faultOfBookedChange(from(bust), [from(bust)], [{ ...bust, execRefId: 'e2' }]), undefined);
  });

  it('is found if the drop copy has the first of two corrections only', () => {
    const first = from(correction, 'c1');
    const second = from({ ...correction, execRefId: 'c1', quantity: 30n }, 'c2');
    assert.equal(faultOfBookedChange(first, [first, second], [correction]), undefined);
    assert.notEqual(faultOfBookedChange(second, [first, second], [correction]), undefined);
  });

  it('is the same change whether it names the trade or an earlier change of it', () => {
    const first = from(correction, 'c1');
    const second = from({ ...correction, execRefId: 'c1', quantity: 30n }, 'c2');
    const copied = { ...second, execRefId: 'e1' };
    assert.equal(faultOfCopiedChange(copied, [first, second]), undefined);
    assert.equal(faultOfBookedChange(second, [first, second], [correction, copied]), undefined);
    assert.deepEqual(namesOfTrade(second, [first, second]), ['e1', 'c1', 'c2']);
  });

  it('ends where changes refer to each other in a circle', () => {
    const circle = [from({ ...bust, execRefId: 'c2' }, 'c1'), from({ ...bust, execRefId: 'c1' }, 'c2')];
    assert.equal(
      faultOfCopiedChange({ ...bust, execRefId: 'e9' }, circle),
      'the drop copy took trade e9 back, and the order session did not',
    );
  });
});
