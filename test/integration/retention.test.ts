import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { insertRows, type Statement, statement } from '../../src/db/statement.ts';
import { feedRetention } from '../../src/events/retention.ts';
import type { Worker } from '../../src/lib/worker.ts';
import { webhookRetention } from '../../src/webhooks/retention.ts';
import { eventually } from '../support/eventually.ts';
import { openSettling, type Settling } from '../support/settling.ts';

const dayMs = 86_400_000;

describe("a process whose clock is ahead of the database's", () => {
  let settling: Settling;
  let partnerId: string;
  let stop: () => Promise<void> = async () => {};
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    settling.clock.moveTo(Date.now());
    partnerId = await settling.newPartner();
  });
  afterEach(() => stop());

  function run(worker: Worker): void {
    const stopping = new AbortController();
    const running = worker.run(stopping.signal);
    stop = async () => {
      stopping.abort();
      await running;
    };
  }

  async function versions(table: string): Promise<number[]> {
    const rows = await settling.database.read(
      statement(`SELECT version FROM ${table} WHERE partner_id = ? ORDER BY version`, partnerId),
    );
    return rows.map(({ version }) => Number(version));
  }

  /** Version 1 is old by both clocks, version 2 by ours alone. */
  async function storeBoth(row: (version: number, at: Date) => Statement): Promise<void> {
    const { database, clock } = settling;
    await database.write(row(1, new Date(clock.now())));
    clock.advanceBusiness(31 * dayMs);
    await database.write(row(2, new Date(clock.now())));
    clock.advance(31 * dayMs);
  }

  it('removes no event that partners may read for 30 days', async () => {
    const columns = ['partner_id', 'version', 'id', 'body', 'occurred_at'];
    await storeBoth((version, at) =>
      insertRows('feed_events', columns, [[partnerId, version, `msg_${version}`, Buffer.from('{}'), at]]),
    );
    run(feedRetention(settling.database, settling.clock, 'test'));
    await eventually(async () => assert.ok(!(await versions('feed_events')).includes(1), 'an old event is kept'));
    assert.deepEqual(await versions('feed_events'), [2]);
  });

  it('removes no attempt to deliver a webhook before its 30 days are over', async () => {
    const columns = ['partner_id', 'version', 'number', 'at', 'is_probe', 'outcome', 'duration_ms'];
    await storeBoth((version, at) =>
      insertRows('webhook_attempts', columns, [[partnerId, version, 1, at, false, 'delivered', 1]]),
    );
    run(webhookRetention(settling.database, settling.clock, 'test'));
    await eventually(async () =>
      assert.ok(!(await versions('webhook_attempts')).includes(1), 'an old attempt is kept'),
    );
    assert.deepEqual(await versions('webhook_attempts'), [2]);
  });
});
