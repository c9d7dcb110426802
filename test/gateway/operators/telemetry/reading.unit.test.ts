import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Reading } from '../../../../src/gateway/operators/telemetry/gauges.ts';

describe('a figure that is read from outside', () => {
  it('is absent while the read hangs, which is not begun again, and shown when it is there', async () => {
    const shown: (string | undefined)[] = [];
    const answers: ((value: string) => void)[] = [];
    const reading = new Reading(
      () => new Promise<string>((resolve) => answers.push(resolve)),
      (value) => shown.push(value),
    );
    await reading.refresh(10);
    await reading.refresh(10);
    assert.deepEqual(shown, [undefined, undefined]);
    assert.equal(answers.length, 1);
    const third = reading.refresh(10_000);
    answers[0]?.('there');
    await third;
    assert.deepEqual(shown, [undefined, undefined, 'there']);
  });

  it('is absent when the read fails, and not read more than once a second', async () => {
    const shown: unknown[] = [];
    let reads = 0;
    const reading = new Reading(
      async () => {
        reads += 1;
        throw new Error('away');
      },
      (value) => shown.push(value),
    );
    await Promise.all([reading.refresh(1_000), reading.refresh(1_000)]);
    await reading.refresh(1_000);
    assert.deepEqual([reads, shown], [1, [undefined]]);
  });
});
