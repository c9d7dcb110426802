import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CommitUnknownError } from '../../src/db/errors.ts';
import { GroupCommit } from '../../src/db/group-commit.ts';
import { ofList, type Statement, statement } from '../../src/db/statement.ts';
import { ApiError } from '../../src/lib/errors.ts';

describe('transactions that are committed together', () => {
  /** Commits so many transactions at once, and answers what ran and the outcome of each. */
  async function commitAll(count: number, run: (statements: readonly Statement[]) => Promise<void>) {
    const runs: string[][] = [];
    const commits = new GroupCommit((statements) => {
      runs.push(statements.map(({ sql, values }) => `${sql} ${JSON.stringify(values)}`));
      return run(statements);
    });
    const outcomes = await Promise.allSettled(
      Array.from({ length: count }, (_, index) =>
        commits.commit({
          locks: [statement('lock', index)],
          guards: [statement('guard', index)],
          writes: [ofList('insert', [[index]]), statement('update', index)],
        }),
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

  it('are never tried again when it is not known whether they were committed', async () => {
    const { runs, rejected } = await commitAll(5, async () => {
      throw new ApiError('service_unavailable', { cause: new CommitUnknownError('lost') });
    });
    assert.equal(runs.length, 1);
    assert.equal(rejected, 5);
  });
});
