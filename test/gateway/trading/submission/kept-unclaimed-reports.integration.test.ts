import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { readBacklog } from '../../../../src/gateway/operators/telemetry/backlog.ts';
import { type SqlRow, statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { keepUnclaimed } from '../../../../src/gateway/trading/submission/unclaimed-reports.ts';
import { unclaimedRetention } from '../../../../src/gateway/trading/submission/unclaimed-retention.ts';
import { ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { startWorker } from '../../../support/database.ts';
import { eventually } from '../../../support/eventually.ts';
import { openSettling, type Settling } from '../../../support/settling.ts';

const dayMs = 86_400_000;

describe('kept reports about orders that are not stored', () => {
  let settling: Settling;
  let stop: () => Promise<void> = async () => {};
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    settling.clock.moveTo(Date.now());
    await settling.database.write(statement('DELETE FROM unclaimed_reports'));
  });
  afterEach(() => stop());

  const trade = (number: bigint, quantity = 10n) =>
    create(ReportSchema, { number, kind: ReportKind.TRADE, quantity, priceKobo: 1_000n, exchangeOrderId: 'X1' });

  /** Keeps trades of one order in one transaction, as the position of the reports does. */
  function keep(...trades: ReturnType<typeof trade>[]): Promise<void> {
    const { database, order, clock } = settling;
    const writes = keepUnclaimed(firstBroker, order, 'foreign', trades, clock.realNow());
    return database.transaction<undefined>([], () => ({ writes, result: undefined }));
  }

  const rows = (): Promise<SqlRow[]> =>
    settling.database.read(statement('SELECT number, quantity FROM unclaimed_reports ORDER BY number'));
  const kept = async () => (await rows()).map(({ number, quantity }) => [Number(number), Number(quantity)]);

  it('stay as they are when they come again together with new ones', async () => {
    await keep(trade(1n), trade(2n));
    await keep(trade(1n, 99n), trade(3n));
    assert.deepEqual(await kept(), [
      [1, 10],
      [2, 10],
      [3, 10],
    ]);
  });

  it('fail with their transaction if a value does not fit its column, and are not stored with another value', async () => {
    await assert.rejects(keep(trade(1n), trade(2n, 2n ** 63n)), /out of range/i);
    assert.deepEqual(await kept(), []);
  });

  it('are removed 400 days of real time after they came first, and no earlier', async () => {
    const { clock, database } = settling;
    await keep(trade(1n));
    clock.advance(1);
    await keep(trade(2n));
    clock.advance(400 * dayMs);
    // A sandbox's business time can be far ahead, and makes no report older.
    clock.advanceBusiness(1_000 * dayMs);
    stop = startWorker(unclaimedRetention(database, async () => clock.now(), 'test', clock));
    await eventually(async () => assert.deepEqual(await kept(), [[2, 10]]));
  });

  it('show in the backlog how long their removal is overdue', async () => {
    const { clock, database } = settling;
    const overdueDays = async () => {
      const { removal } = await readBacklog(database, clock);
      return Math.floor(
        (removal.find(({ worker }) => worker === 'unclaimed-report-retention')?.overdueMs ?? -1) / dayMs,
      );
    };
    assert.equal(await overdueDays(), 0);
    await keep(trade(1n));
    clock.advanceBusiness(1_000 * dayMs);
    assert.equal(await overdueDays(), 0);
    clock.advance(403 * dayMs);
    assert.equal(await overdueDays(), 3);
  });
});
