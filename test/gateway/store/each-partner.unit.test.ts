import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eachPartner } from '../../../src/gateway/store/each-partner.ts';

interface Row {
  readonly partnerId: string;
  readonly id: number;
}

const rowsOf = (...partners: string[]): Row[] => partners.map((partnerId, id) => ({ partnerId, id }));

/** Changes rows of partners, of which some cannot be changed, in pages. */
function open(rows: readonly Row[], { stuck = [] as string[], most = 100 } = {}) {
  const changed: [string, number[]][] = [];
  const failed: [string, number[], string][] = [];
  const asked: string[][] = [];
  const isDone = ({ id }: Row) => changed.some(([, ids]) => ids.includes(id));
  const count = eachPartner<Row>({
    find: async (without) => {
      asked.push([...without]);
      return rows.filter((row) => !without.includes(row.partnerId) && !isDone(row)).slice(0, most);
    },
    change: async (partnerId, own) => {
      if (stuck.includes(partnerId)) throw new Error(`${partnerId} is locked`);
      changed.push([partnerId, own.map(({ id }) => id)]);
    },
    failed: (partnerId, own, error) =>
      failed.push([partnerId, own.map(({ id }) => id), error instanceof Error ? error.message : String(error)]),
  });
  return { count, changed, failed, asked };
}

describe('changes of rows, one partner after the other', () => {
  it('all rows of a partner are changed together, in the order in which they were found', async () => {
    const { count, changed, failed, asked } = open(rowsOf('a', 'b', 'a'));
    assert.equal(await count, 3);
    assert.deepEqual(changed, [
      ['a', [0, 2]],
      ['b', [1]],
    ]);
    assert.deepEqual([failed, asked], [[], [[]]], 'and they are found once');
  });

  it('two partners whose rows cannot be changed hold up nobody, and each is told of once', async () => {
    const { count, changed, failed, asked } = open(rowsOf('a', 'x', 'b', 'y', 'c'), { stuck: ['x', 'y'] });
    assert.equal(await count, 1, 'what was changed before the last failure is not found again');
    assert.deepEqual(
      changed.map(([partnerId]) => partnerId),
      ['a', 'b', 'c'],
    );
    assert.deepEqual(failed, [
      ['x', [1], 'x is locked'],
      ['y', [3], 'y is locked'],
    ]);
    assert.deepEqual(asked, [[], ['x'], ['x', 'y']]);
  });

  it('a partner whose rows fill the page and cannot be changed leaves the next page to others', async () => {
    const { count, changed, failed } = open(rowsOf('x', 'x', 'x', 'a'), { stuck: ['x'], most: 2 });
    assert.equal(await count, 1);
    assert.deepEqual(changed, [['a', [3]]]);
    assert.deepEqual(failed, [['x', [0, 1], 'x is locked']]);
  });

  it('a database that is away ends the work with its error', async () => {
    const away = new Error('the database is away');
    let finds = 0;
    const work = eachPartner<Row>({
      find: async () => {
        finds += 1;
        if (finds > 1) throw away;
        return rowsOf('a', 'b');
      },
      change: async () => {
        throw away;
      },
      failed: () => {},
    });
    await assert.rejects(work, away);
    assert.equal(finds, 2, 'the second partner is not tried');
  });
});
