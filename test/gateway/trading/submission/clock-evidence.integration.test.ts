import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { BrokerClock } from '../../../../src/gateway/trading/broker/clock.ts';
import { ClockWatch } from '../../../../src/gateway/trading/submission/clock-watch.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { withDatabase } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;

describe("evidence in a report that the broker's clock is wrong", () => {
  let database: Database;
  withDatabase((opened) => {
    database = opened;
  });

  const newWatch = () =>
    new ClockWatch(
      { id: firstBroker, clock: new BrokerClock(2_000), orders: { honoursNotAfter: async () => true } },
      database,
      { offsetMs: 0 },
      createLogger({ name: 'test', level: 'silent' }),
    );

  /** Returns a replica's knowledge so long after now, by a clock that no setting of a clock moves. */
  async function knownAfter(watch: ClockWatch, ms: number) {
    const { now } = performance;
    const later = mock.method(performance, 'now', () => now.call(performance) + ms);
    try {
      return await watch.agreement();
    } finally {
      later.mock.restore();
    }
  }

  it('evidence counts for the next decision of each replica, though that has looked a moment before', async () => {
    await database.write(statement('DELETE FROM positions'));
    const [one, other] = [newWatch(), newWatch()];
    assert.equal(await other.agreement(), 'unknown');
    one.reported(-minuteMs);
    await eventually(async () =>
      assert.equal((await database.read(statement('SELECT name FROM positions'))).length, 1),
    );
    assert.equal(await other.agreement(), 'apart');
  });

  it("counts for ten minutes on all replicas, also when the database's clock is set back a day", async () => {
    const [one, other] = [newWatch(), newWatch()];
    one.reported(-minuteMs);
    await eventually(async () => assert.equal(await other.agreement(), 'apart', 'the other replica does not know'));
    // As if the database's clock had been a day ahead when it was written.
    await database.write(statement('UPDATE positions SET position = position + ?', dayMs));
    assert.equal(await knownAfter(other, 9 * minuteMs), 'apart', 'it is forgotten');
    const late = newWatch();
    assert.equal(await late.agreement(), 'apart', 'a replica that starts does not know');
    assert.equal(await one.agreement(), 'apart');
    for (const watch of [one, late]) {
      assert.equal(await knownAfter(watch, 21 * minuteMs), 'unknown', 'it counts for a day');
    }
  });
});
