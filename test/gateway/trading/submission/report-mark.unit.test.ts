import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasMark, ProvenMark } from '../../../../src/gateway/trading/submission/report-mark.ts';

const rowsOf = (position: string | undefined) => (position === undefined ? [] : [{ position }]);

/** A mark of the process with fence 5, written at 1,000. */
function marked() {
  const mark = new ProvenMark('order-reports', () => 1_000);
  mark.next(5n).acknowledged();
  return mark;
}

describe('the mark of reports that were proven', () => {
  it('a mark is lost if the database has an earlier one, of this process or of one before it', () => {
    for (const [stored, lost] of [
      [undefined, '5 1000'],
      ['4 1001', '5 1000'],
      ['5 999', '5 1000'],
      ['5 1000', undefined],
      ['5 1001', undefined],
      ['6 1', undefined],
      ['no mark', '5 1000'],
    ] as const) {
      assert.equal(marked().begin(rowsOf(stored)), lost, `${stored}`);
    }
  });

  it('a mark is in a database that has it or a later one of the same process, and no other', () => {
    const { least } = marked();
    for (const [stored, isThere] of [
      ['4 1000', false],
      ['5 999', false],
      ['5 1000', true],
      ['5 1001', true],
      ['6 1000', false],
    ] as const) {
      assert.equal(hasMark(rowsOf(stored), least), isThere, stored);
    }
    assert.equal(hasMark([], undefined), true);
  });

  it('a mark has a number that grows, also within a millisecond and when the clock is set back', () => {
    let now = 1_000;
    const mark = new ProvenMark('order-reports', () => now);
    const numbers = [1_000, 1_000, 900, 1_001, 2_000].map((at) => {
      now = at;
      mark.next(5n).acknowledged();
      return mark.least?.number;
    });
    assert.deepEqual(numbers, [1_000n, 1_001n, 1_002n, 1_003n, 2_000n]);
  });
});
