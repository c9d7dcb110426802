import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ReportFeed } from '../../src/simulator/wire/report-feed.ts';

const reports = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ number: from + at, text: `report ${from + at}` }));

describe('the committed reports of a simulator', () => {
  /** A feed over a table that has more than memory. */
  function feedOver(table: readonly { number: number; text: string }[]) {
    return new ReportFeed(async (number, last, limit) =>
      table.filter((each) => each.number > number && each.number <= last).slice(0, limit),
    );
  }

  it('reports are those of the table after a commit whose outcome is unknown, each under its number', async () => {
    const table = reports(1, 9);
    const feed = feedOver(table);
    feed.publish(table.slice(0, 3));
    assert.deepEqual(await feed.after(1, 10), table.slice(1, 3));
    // The commit of 4 to 6 was done, and nobody heard of it.
    feed.restart(6);
    feed.publish(table.slice(6));
    for (const number of [0, 2, 3, 5, 6, 8, 9]) {
      assert.deepEqual(await feed.after(number, 10), table.slice(number), `after ${number}`);
    }
  });
});
