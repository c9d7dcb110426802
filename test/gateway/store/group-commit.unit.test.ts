import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CommitUnknownError } from '../../../src/gateway/store/errors.ts';
import { GroupCommit } from '../../../src/gateway/store/group-commit.ts';
import { ofList, type Statement, statement } from '../../../src/gateway/store/statement.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

describe('transactions that are committed together', () => {
  /** Commits so many transactions at once, and answers what ran and the outcome of each. */
  async function commitAll(count: number, run: (statements: readonly Statement[]) => Promise<void>) {
    const runs: string[][] = [];
    const noted = (statements: readonly Statement[]) => {
      runs.push(statements.map(({ sql, values }) => `${sql} ${JSON.stringify(values)}`));
      return run(statements);
    };
    const commits = new GroupCommit(noted, noted);
    const outcomes = await Promise.allSettled(
      Array.from({ length: count }, (_, index) =>
        commits.commit(
          {
            locks: [statement('lock', index)],
            guards: [statement('guard', index)],
            writes: [ofList('insert', [[index]]), statement('update', index)],
          },
          true,
        ),
      ),
    );
    return { runs, rejected: outcomes.filter(({ status }) => status === 'rejected').length };
  }

  it('lock first, then prove, then write, with one statement for what is alike', async () => {
    const { runs, rejected } = await commitAll(2, async () => {});
    assert.equal(rejected, 0);
    assert.deepEqual(runs, [
      [
        'lock [0]',
        'lock [1]',
        'INSERT INTO guards (ok) SELECT 0 FROM DUAL WHERE ((guard) AND (guard)) IS NOT TRUE [0,1]',
        'insert [[[0],[1]]]',
        'update [0]',
        'update [1]',
      ],
    ]);
  });

  it('are at most 16 in a round trip, and at most two round trips at once', async () => {
    let [running, most] = [0, 0];
    const { runs } = await commitAll(100, async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    });
    assert.equal(most, 2);
    assert.equal(Math.max(...runs.map((run) => run.filter((sql) => sql.startsWith('lock')).length)), 16);
    assert.equal(runs.length, 7);
  });

  it('are each tried alone when one of them fails', async () => {
    const { runs, rejected } = await commitAll(5, async (statements) => {
      if (statements.some(({ sql, values }) => sql === 'update' && values[0] === 3)) throw new Error('wrong');
    });
    assert.equal(runs.length, 6);
    assert.equal(rejected, 1);
  });

  for (const [earlier, when] of [
    [0, ''],
    [1, ', also after half a second in which none had to wait'],
    [2, ', also after two such half seconds'],
  ] as const) {
    it(`go alone when they have waited half a second for those before them${when}`, async (context) => {
      context.mock.timers.enable({ apis: ['setTimeout'] });
      let now = 1_000;
      context.mock.method(performance, 'now', () => now);
      let [together, alone] = [0, 0];
      const commits = new GroupCommit(
        async () => {
          alone += 1;
        },
        () => {
          together += 1;
          return new Promise(() => {});
        },
      );
      let done = 0;
      const commit = () =>
        commits.commit({ locks: [], guards: [], writes: [statement('update')] }, true).then(() => {
          done += 1;
        });
      const passHalfASecond = async () => {
        now += 500;
        context.mock.timers.tick(500);
        await new Promise((resolve) => setImmediate(resolve));
      };
      for (let count = 0; count < earlier; count += 1) {
        await commit();
        await passHalfASecond();
      }
      [alone, done] = [0, 0];
      for (let count = 0; count < 40; count += 1) void commit();
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual([together, alone, commits.waiting], [2, 0, 8]);
      await passHalfASecond();
      assert.deepEqual([together, alone, commits.waiting, done], [2, 8, 0, 8]);
    });
  }

  it('go alone if they are likely to fail the others', async () => {
    const sizes: number[] = [];
    const run = async (statements: readonly Statement[]) => {
      sizes.push(statements.length);
    };
    const commits = new GroupCommit(run, () => assert.fail('it went with others'));
    const one = { locks: [statement('lock')], guards: [], writes: [statement('update')] };
    await Promise.all([commits.commit(one, false), commits.commit(one, false)]);
    assert.deepEqual(sizes, [3, 3]);
  });

  it('are each tried alone when the server ended a statement that took too long', async () => {
    const { runs, rejected } = await commitAll(5, async (statements) => {
      const cause = Object.assign(new Error('too long'), { errno: 1969, sqlState: '70100' });
      if (statements.some(({ values }) => values[0] === 3)) throw new UnavailableError({ cause });
    });
    assert.equal(runs.length, 6);
    assert.equal(rejected, 1);
  });

  it('are never tried again when it is not known whether they were committed', async () => {
    const { runs, rejected } = await commitAll(5, async () => {
      throw new UnavailableError({ cause: new CommitUnknownError('lost') });
    });
    assert.equal(runs.length, 1);
    assert.equal(rejected, 5);
  });

  it('commits go on after any number of round trips that failed, together and alone, known or not', async () => {
    const state: { error: Error | undefined } = { error: undefined };
    const run = async () => {
      await new Promise(setImmediate);
      if (state.error !== undefined) throw state.error;
    };
    const commits = new GroupCommit(run, run);
    const commitMany = async (count: number) => {
      const one = { locks: [], guards: [], writes: [statement('update')] };
      const outcomes = await Promise.allSettled(Array.from({ length: count }, () => commits.commit(one, true)));
      return outcomes.filter(({ status }) => status === 'fulfilled').length;
    };
    for (const error of [new Error('wrong'), new UnavailableError({ cause: new CommitUnknownError('lost') })]) {
      for (const count of [40, 1, 2]) {
        state.error = error;
        assert.equal(await commitMany(count), 0, `${count}: ${error.message}`);
        state.error = undefined;
        assert.deepEqual([await commitMany(40), commits.waiting], [40, 0], `${count}: ${error.message}`);
      }
    }
  });
});
