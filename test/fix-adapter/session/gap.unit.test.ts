import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Incoming } from '../../../src/fix-adapter/session/gap.ts';
import { fc } from '../../support/properties.ts';

const rules = { chunk: undefined, quietMs: 250, timeoutMs: 30_000 };

/** Numbers of the other side, of which 5 is the next one. */
function begin(chunk?: number) {
  return new Incoming(5, { ...rules, chunk });
}

describe('the numbers of the other side', () => {
  it('are asked for once when some are missing, without an end', () => {
    const incoming = begin();
    assert.equal(incoming.request(0), undefined);
    assert.equal(incoming.comesEarly(8, false, 0), true);
    assert.deepEqual(incoming.request(0), { begin: 5, end: 0 });
    assert.equal(incoming.comesEarly(9, false, 1), false);
    assert.equal(incoming.request(1), undefined);
    assert.deepEqual(incoming.missing, { from: 5, to: 9 });
  });

  it('close a gap exactly at its end, which is the last message that came too early', () => {
    const incoming = begin();
    incoming.comesEarly(7, false, 0);
    incoming.request(0);
    assert.deepEqual(
      [5, 6, 7, 8].map((_, at) => incoming.take(at)),
      [false, false, true, false],
    );
    assert.equal(incoming.missing, undefined);
    assert.equal(incoming.next, 9);
  });

  it('close it by a gap fill that ends at it, and not by one that ends before it', () => {
    for (const [to, isClosed] of [
      [7, false],
      [8, true],
      [12, true],
    ] as const) {
      const incoming = begin();
      incoming.comesEarly(7, false, 0);
      assert.deepEqual(incoming.moveTo({ number: 5, to, isPossDup: true }, 1), { passesOver: true, isClosed });
      assert.equal(incoming.next, to);
    }
  });

  it('are asked for in parts, each at once when the one before is complete', () => {
    const incoming = begin(3);
    incoming.comesEarly(12, false, 0);
    const asked = [incoming.request(0)];
    while (incoming.missing !== undefined) {
      incoming.take(1);
      const range = incoming.request(1);
      if (range !== undefined) asked.push(range);
    }
    assert.deepEqual(asked, [
      { begin: 5, end: 7 },
      { begin: 8, end: 10 },
      { begin: 11, end: 12 },
    ]);
  });

  it('are asked for again soon after the other side stopped in the middle, and not before', () => {
    const incoming = begin();
    incoming.comesEarly(20, false, 0);
    incoming.request(0);
    for (let count = 0; count < 5; count += 1) incoming.take(100);
    assert.equal(incoming.request(349), undefined);
    assert.deepEqual(incoming.request(350), { begin: 10, end: 0 });
    assert.equal(incoming.request(10_000), undefined, 'nothing came since');
  });

  it('are not asked for again while repetitions still come', () => {
    const incoming = begin();
    incoming.comesEarly(20, false, 0);
    incoming.request(0);
    incoming.take(100);
    incoming.repeats(300);
    assert.equal(incoming.request(400), undefined);
    assert.deepEqual(incoming.request(550), { begin: 6, end: 0 });
  });

  it('are waited for if the other side sends them by itself, and asked for if it does not', () => {
    const incoming = begin();
    incoming.comesEarly(9, true, 0);
    incoming.isSentAlready(0);
    assert.equal(incoming.request(249), undefined);
    assert.deepEqual(incoming.request(250), { begin: 5, end: 0 });
  });

  it('are overdue when nothing of them comes in time, and when they come too slowly', () => {
    const incoming = begin();
    incoming.comesEarly(10_000, false, 0);
    incoming.request(0);
    assert.deepEqual([incoming.isOverdue(30_000), incoming.isOverdue(30_001)], [false, true]);
    incoming.take(20_000);
    assert.equal(incoming.isOverdue(50_000), false);
    for (let now = 20_000; now <= 600_000; now += 20_000) incoming.take(now);
    assert.deepEqual([incoming.isOverdue(600_000), incoming.isOverdue(600_001)], [false, true]);
    assert.equal(begin().isOverdue(1e9), false);
  });

  it('pass over nothing by a gap fill of its own number alone', () => {
    assert.equal(begin().moveTo({ number: 5, to: 6, isPossDup: false }, 0).passesOver, false);
    assert.equal(begin().moveTo({ number: 5, to: 7, isPossDup: false }, 0).passesOver, true);
    assert.equal(begin().moveTo({ number: 5, to: 6, isPossDup: true }, 0).passesOver, true, 'an earlier message');
    assert.equal(begin().moveTo({ number: 1, to: 6, isPossDup: false }, 0).passesOver, true, 'a reset');
    assert.equal(begin().moveTo({ number: 1, to: 5, isPossDup: false }, 0).passesOver, false, 'a reset to the next');
  });

  it('pass over a message unless each one was seen to be administrative', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 30 }),
        fc.boolean(),
        (kinds, count, isPossDup) => {
          const incoming = begin();
          for (const [at, isAdministrative] of kinds.entries()) incoming.comesEarly(5 + at, isAdministrative, 0);
          const passed = Array.from({ length: count }, (_, at) => kinds[at] ?? false);
          const { passesOver } = incoming.moveTo({ number: 5, to: 5 + count, isPossDup }, 0);
          assert.equal(
            passesOver,
            passed.some((isSeen) => !isSeen),
          );
        },
      ),
    );
  });

  it('pass over the number of a gap fill without PossDupFlag only if it is one that was missing', () => {
    assert.equal(begin().moveTo({ number: 5, to: 6, isPossDup: false }, 0).passesOver, false, 'nothing was missing');
    const asked = begin();
    asked.comesEarly(6, false, 0);
    assert.equal(asked.moveTo({ number: 5, to: 6, isPossDup: false }, 0).passesOver, true, 'it stands for a report');
    const behind = begin();
    behind.comesEarly(5, true, 0);
    behind.moveTo({ number: 5, to: 6, isPossDup: true }, 0);
    assert.equal(behind.moveTo({ number: 6, to: 7, isPossDup: false }, 0).passesOver, false, 'behind what was missing');
  });

  it('a gap remembers 10,000 administrative messages, and passes over what lies beyond them', () => {
    for (const [count, passesOver] of [
      [10_000, false],
      [10_001, true],
    ] as const) {
      const incoming = begin();
      for (let each = 0; each < count; each += 1) incoming.comesEarly(5 + each, true, 0);
      assert.equal(
        incoming.moveTo({ number: 5, to: 5 + count, isPossDup: true }, 0).passesOver,
        passesOver,
        `${count}`,
      );
    }
  });

  it('are all received in the end, whatever the other side resends at once and fills', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 50 }),
        fc.boolean(),
        (count, chunk, parts, fills) => {
          const incoming = begin(chunk);
          const last = 4 + count;
          incoming.comesEarly(last, false, 0);
          let asked = 0;
          for (let now = 0; incoming.missing !== undefined; now += 300) {
            const range = incoming.request(now);
            assert.ok(range !== undefined, 'it asks again for what was left out');
            assert.equal(range.begin, incoming.next);
            const part = parts[asked % parts.length] ?? 1;
            const end = Math.min(range.end === 0 ? last : range.end, last, range.begin + part - 1);
            if (fills) incoming.moveTo({ number: range.begin, to: end + 1, isPossDup: true }, now);
            else for (let number = range.begin; number <= end; number += 1) incoming.take(now);
            asked += 1;
            assert.ok(asked <= count);
          }
          assert.equal(incoming.next, last + 1);
        },
      ),
    );
  });
});
