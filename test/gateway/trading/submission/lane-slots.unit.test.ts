import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LaneSlots } from '../../../../src/gateway/trading/submission/lane-slots.ts';
import { eventually } from '../../../support/eventually.ts';
import { fc } from '../../../support/properties.ts';

/** Work that ends when it is told to. */
function held() {
  let finish = () => {};
  const ended = new Promise<void>((resolve) => {
    finish = resolve;
  });
  return { work: () => ended, finish };
}

/** How many can be begun one after the other until none is free. */
function countFree(slots: LaneSlots, hasFailed: boolean, finishes: (() => void)[]): number {
  let count = 0;
  for (; slots.isFree(hasFailed); count += 1) {
    const { work, finish } = held();
    finishes.push(finish);
    void slots.run(work, hasFailed, 60_000);
  }
  return count;
}

describe("the slots of partners' reports", () => {
  it('four are worked on at once, and one more for each that is known to be slow, up to ten', async () => {
    const slots = new LaneSlots();
    const finishes: (() => void)[] = [];
    assert.equal(countFree(slots, false, finishes), 4);
    for (const finish of finishes) finish();
    await slots.idle();
    let begun = 0;
    while (begun < 20 && slots.isFree(false)) {
      const { work, finish } = held();
      finishes.push(finish);
      void slots.run(work, false, 1);
      begun += 1;
      if (begun < 10) await eventually(() => assert.ok(slots.isFree(false), 'a slow one counts no more'));
    }
    assert.equal(begun, 10);
    for (const finish of finishes) finish();
    await slots.idle();
  });

  it('all slots are free again after any number of partners, fast or slow, that failed before or not', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ isSlow: fc.boolean(), hasFailed: fc.boolean() }), { minLength: 1, maxLength: 20 }),
        async (all) => {
          const slots = new LaneSlots();
          for (const { isSlow, hasFailed } of all) {
            assert.ok(slots.isFree(hasFailed), 'nothing is under way');
            const { work, finish } = held();
            const controller = new AbortController();
            const freed = new Promise<void>((resolve) => slots.onFree(resolve, controller.signal));
            const running = slots.run(work, hasFailed, isSlow ? 0 : 60_000);
            if (isSlow) await freed;
            controller.abort();
            finish();
            await running;
          }
          const finishes: (() => void)[] = [];
          assert.equal(countFree(slots, true, finishes), 4, 'partners that failed before');
          for (const finish of finishes) finish();
          await slots.idle();
          assert.equal(countFree(slots, false, finishes), 4, 'other partners');
          for (const finish of finishes) finish();
          await slots.idle();
        },
      ),
      { numRuns: 40 },
    );
  });
});
