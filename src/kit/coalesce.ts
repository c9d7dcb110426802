/**
 * Merges the batches that arrive while the consumer is busy. While about `most` items wait, the source is not read.
 * Before each batch, `gather` is awaited with the size of the batch before, so that more can join.
 */
export async function* coalesce<T>(
  source: AsyncIterable<readonly T[]>,
  most: number,
  gather: (before: number) => Promise<void> = async () => {},
): AsyncGenerator<readonly T[]> {
  let waiting: T[] = [];
  let before = 0;
  let ended = false;
  let failure: { error: unknown } | undefined;
  let wake = () => {};
  let makeRoom = () => {};
  let left = false;

  const pump = async () => {
    try {
      for await (const batch of source) {
        if (left) return;
        waiting.push(...batch);
        wake();
        if (waiting.length >= most) await new Promise<void>((resolve) => (makeRoom = resolve));
      }
    } catch (error) {
      failure = { error };
    } finally {
      ended = true;
      wake();
    }
  };

  const pumping = pump();
  try {
    for (;;) {
      if (waiting.length > 0) {
        await gather(before);
        const batch = waiting;
        before = batch.length;
        waiting = [];
        makeRoom();
        yield batch;
      } else if (ended) {
        if (failure !== undefined) throw failure.error;
        return;
      } else {
        await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  } finally {
    // The source ends by itself or by its own signal. The rest of it is not wanted.
    left = true;
    makeRoom();
    void pumping;
  }
}
