import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { coalesce } from '../../src/kit/coalesce.ts';

/** A source whose batches come when the test says, and that knows how far it was read. */
class Source implements AsyncIterable<readonly number[]> {
  readonly #batches: (readonly number[] | Error)[] = [];
  #wake: () => void = () => {};
  /** How many batches were taken. */
  read = 0;
  /** How many times its reader left it. */
  left = 0;
  isOver = false;

  push(...batches: readonly (readonly number[] | Error)[]): void {
    this.#batches.push(...batches);
    this.#wake();
  }

  end(): void {
    this.isOver = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        const next = this.#batches.shift();
        if (next instanceof Error) throw next;
        if (next !== undefined) {
          this.read += 1;
          yield next;
        } else if (this.isOver) return;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.left += 1;
    }
  }
}

async function settled(): Promise<void> {
  for (let count = 0; count < 10; count += 1) await turn();
}

describe('batches that are merged while their reader is busy', () => {
  it('batches come one by one to a reader that waits, and merged and in order to one that was busy', async () => {
    const source = new Source();
    const merged = coalesce(source, 100);
    for (const number of [1, 2, 3]) {
      const next = merged.next();
      await settled();
      source.push([number]);
      assert.deepEqual((await next).value, [number]);
    }
    source.push([4], [5, 6], [7]);
    await settled();
    assert.deepEqual((await merged.next()).value, [4, 5, 6, 7]);
    source.push([8]);
    source.end();
    assert.deepEqual((await merged.next()).value, [8]);
    assert.equal((await merged.next()).done, true);
  });

  it('a reader that waits is told at once that the source has ended, or why it failed', async () => {
    const [ending, failing] = [new Source(), new Source()];
    const [end, failure] = [coalesce(ending, 100).next(), coalesce(failing, 100).next()];
    await settled();
    ending.end();
    failing.push(new Error('the source is away'));
    assert.equal((await end).done, true);
    await assert.rejects(failure, /is away/);
  });

  it('a source is not read while so many items wait, and read again each time that they were taken', async () => {
    const source = new Source();
    source.push(...Array.from({ length: 30 }, (_, at) => [2 * at, 2 * at + 1]));
    source.end();
    const merged = coalesce(source, 6);
    const got: number[] = [];
    for (let round = 1; ; round += 1) {
      await settled();
      const before = source.read;
      const { value, done } = await merged.next();
      if (done) break;
      got.push(...value);
      // A batch of the first round begins to be read with the first question.
      assert.ok(value.length <= 6 && source.read - before <= 3, `${value.length} items in round ${round}`);
      await settled();
      assert.ok(2 * source.read - got.length <= 6, 'what waits is bounded');
    }
    assert.deepEqual(
      got,
      Array.from({ length: 60 }, (_, at) => at),
    );
  });

  it('what came before the source failed is read first, and then the error is thrown', async () => {
    const source = new Source();
    const failure = new Error('the source is away');
    const merged = coalesce(source, 100);
    source.push([1], [2], failure);
    const got = [...((await merged.next()).value ?? [])];
    await settled();
    await assert.rejects(async () => {
      for await (const batch of merged) got.push(...batch);
    }, failure);
    assert.deepEqual(got, [1, 2]);
  });

  it('a reader that leaves ends the reading of the source, also while it waits for room', async () => {
    for (const most of [1, 100]) {
      const source = new Source();
      source.push([1]);
      for await (const _ of coalesce(source, most)) {
        source.push([2]);
        await settled();
        break;
      }
      source.push([3]);
      await settled();
      source.push([4]);
      await settled();
      assert.equal(source.left, 1, `at most ${most} wait`);
    }
  });

  it('whoever gathers items for a batch is told the size of the batch before', async () => {
    const source = new Source();
    const sizes: number[] = [];
    const gather = async (before: number) => {
      sizes.push(before);
      source.push([sizes.length * 10]);
      await settled();
    };
    const merged = coalesce(source, 100, gather);
    source.push([1, 2]);
    assert.deepEqual((await merged.next()).value, [1, 2, 10]);
    source.push([3]);
    await settled();
    assert.deepEqual((await merged.next()).value, [3, 20]);
    source.push([4]);
    await settled();
    await merged.next();
    assert.deepEqual(sizes, [0, 3, 2]);
  });
});
