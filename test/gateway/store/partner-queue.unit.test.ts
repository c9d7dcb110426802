import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { noFact } from '../../../src/gateway/store/facts.ts';
import { PartnerQueue, type WaitingWork } from '../../../src/gateway/store/group-commit.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

/** A queue whose transactions end when they are told to. Each has the names of the work in it. */
function startQueue() {
  const transactions: { readonly partnerId: string; readonly names: readonly string[]; readonly end: () => void }[] =
    [];
  const queue = new PartnerQueue((partnerId, group: readonly WaitingWork[]) => {
    const names = group.map(({ work }) => String(work.decide(undefined, undefined as never).result));
    return new Promise<void>((resolve) => {
      const end = () => {
        for (const [index, each] of group.entries()) each.resolve(names[index]);
        resolve();
      };
      transactions.push({ partnerId, names, end });
    });
  });
  const run = (name: string, touches: readonly string[] = [name], partnerId = 'a') =>
    queue.run(partnerId, { touches, fact: noFact, decide: () => ({ writes: [], result: name }) });
  /** Ends the transaction that runs, and waits for the next one. */
  const endOne = async () => {
    transactions.at(-1)?.end();
    await new Promise(setImmediate);
  };
  return { queue, transactions, run, endOne };
}

describe("a partner's work", () => {
  it('goes one transaction at a time, and all that waits meanwhile goes together in the next, in order', async () => {
    const { queue, transactions, run, endOne } = startQueue();
    const done = ['one', 'two', 'three', 'four'].map((name) => run(name));
    assert.equal(queue.waiting, 3);
    await endOne();
    await endOne();
    assert.deepEqual(
      transactions.map(({ names }) => names),
      [['one'], ['two', 'three', 'four']],
    );
    assert.deepEqual(await Promise.all(done), ['one', 'two', 'three', 'four'], 'each has its own result');
    assert.equal(queue.waiting, 0);
  });

  it('work that touches the same goes in different transactions, in order, also behind work that had to wait', async () => {
    const { transactions, run, endOne } = startQueue();
    const asked: [string, string[]][] = [
      ['first', ['x']],
      ['a', ['p']],
      ['b', ['p', 'q']],
      ['c', ['q']],
      ['d', ['r']],
    ];
    const done = asked.map(([name, touches]) => run(name, touches));
    for (let count = 0; count < asked.length; count += 1) await endOne();
    // c would fit together with a, but b, which came before it, touches the same as c.
    assert.deepEqual(
      transactions.map(({ names }) => names),
      [['first'], ['a', 'd'], ['b'], ['c']],
    );
    await Promise.all(done);
  });

  it('goes at most 16 together, and waits for no other partner', async () => {
    const { transactions, run, endOne } = startQueue();
    const done = Array.from({ length: 34 }, (_, at) => run(`${at}`));
    const other = run('other', ['0'], 'b');
    assert.deepEqual(
      transactions.map(({ partnerId }) => partnerId),
      ['a', 'b'],
      'both partners began at once',
    );
    transactions[1]?.end();
    assert.equal(await other, 'other');
    transactions[0]?.end();
    await new Promise(setImmediate);
    for (let count = 0; count < 3; count += 1) await endOne();
    await Promise.all(done);
    assert.deepEqual(
      transactions.filter(({ partnerId }) => partnerId === 'a').map(({ names }) => names.length),
      [1, 16, 16, 1],
    );
  });

  it('is refused when 500 wait already, and the others are done', async () => {
    const { run, transactions, queue } = startQueue();
    const settled = Promise.allSettled(Array.from({ length: 502 }, (_, at) => run(`${at}`)));
    assert.equal(queue.waiting, 500);
    while (queue.waiting > 0) {
      transactions.at(-1)?.end();
      await new Promise(setImmediate);
    }
    transactions.at(-1)?.end();
    const refused = (await settled).filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    assert.deepEqual(
      refused.map(({ reason }) => reason instanceof UnavailableError),
      [true],
      'one began, 500 waited, one was refused',
    );
  });

  it('work that waited for more than 8 seconds is refused when its turn comes, and the rest is done', async () => {
    const began = Math.ceil(performance.now()); // Sums of whole numbers are exact.
    let passedMs = 0;
    const now = mock.method(performance, 'now', () => began + passedMs);
    try {
      const { transactions, run, endOne } = startQueue();
      const asked = [run('runs')];
      for (const [name, at] of [
        ['late', 0],
        ['just in time', 1_000],
        ['new', 5_000],
      ] as const) {
        passedMs = at;
        asked.push(run(name));
      }
      passedMs = 9_000;
      const settled = Promise.allSettled(asked);
      await endOne();
      await endOne();
      const results = (await settled).map((each) => (each.status === 'fulfilled' ? each.value : each.reason.name));
      assert.deepEqual(results, ['runs', 'UnavailableError', 'just in time', 'new']);
      assert.deepEqual(transactions[1]?.names, ['just in time', 'new'], 'what was refused did not begin');
    } finally {
      now.mock.restore();
    }
  });

  it("a partner's work goes on after all that waited was refused, and after all that waited was done", async () => {
    const began = Math.ceil(performance.now());
    let passedMs = 0;
    const now = mock.method(performance, 'now', () => began + passedMs);
    try {
      const { queue, transactions, run, endOne } = startQueue();
      for (const round of [1, 2]) {
        passedMs = round * 100_000;
        const settled = Promise.allSettled([run('runs'), run('late')]);
        passedMs += 8_001;
        await endOne();
        assert.deepEqual(
          (await settled).map(({ status }) => status),
          ['fulfilled', 'rejected'],
          `round ${round}`,
        );
        assert.equal(queue.waiting, 0);
        const next = run('next');
        assert.deepEqual(transactions.at(-1)?.names, ['next'], `round ${round}`);
        await endOne();
        assert.equal(await next, 'next');
      }
    } finally {
      now.mock.restore();
    }
  });
});
