import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import type { Numbered } from '../../../../src/gateway/trading/submission/report-session.ts';
import { ReportConsumer } from '../../../../src/gateway/trading/submission/reports.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { UnavailableError } from '../../../../src/kit/refusal.ts';
import { eventually } from '../../../support/eventually.ts';

interface Report extends Numbered {
  readonly of: string;
}

it('a stream whose position cannot be stored when it ends applies no further report', async () => {
  let isAway = false;
  let found = 0;
  const stored: unknown[] = [];
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.includes('FROM leases')) return [{ fence: 1, free: 1 }];
    if (sql.includes('FROM positions')) return [];
    return values.map((id) => ({ id: `${id}`, partner_id: `partner of ${id}`, last_report: 9, missed_report: 0 }));
  };
  const database = {
    transaction: async (
      reads: readonly Statement[],
      decide: (rows: SqlRow[][]) => { writes: readonly Statement[]; result: unknown },
    ) => {
      if (isAway) throw new UnavailableError();
      const { writes, result } = decide(reads.map(answer));
      stored.push(...writes);
      return result;
    },
    write: async () => 1,
    readAll: async ([{ values }]: [Statement]) => {
      found += 1;
      return [values.map((id) => ({ id, partner_id: `partner of ${id}`, last_report: 0, missed_report: 0 }))];
    },
  };
  const applied: string[] = [];
  let apply = () => {};
  const held = new Promise<void>((resolve) => {
    apply = resolve;
  });
  const changeMany = async (_: unknown, { partnerId }: { partnerId: string }) => {
    applied.push(partnerId);
    if (partnerId === 'partner of held') await held;
    return [];
  };
  let breakOff = () => {};
  const broken = new Promise<void>((resolve) => {
    breakOff = resolve;
  });
  const report = (number: bigint, of: string): readonly Report[] => [{ number, of }];
  async function* stream() {
    yield report(1n, 'free');
    await eventually(() => assert.ok(stored.length > 0, 'the position is stored'));
    yield report(2n, 'free');
    await eventually(() => assert.equal(applied.length, 2));
    yield report(3n, 'held');
    await eventually(() => assert.equal(applied.length, 3));
    yield report(4n, 'held');
    await broken;
    throw new Error('the broker is away');
  }
  const [stop, log] = [new AbortController(), createLogger({ name: 'reports', level: 'silent' })];
  const consumer = new ReportConsumer<never, Report>({
    ...{ broker: firstBroker, holder: 'a', clock: { now: () => 0, realNow: () => 0 }, log },
    kind: { name: 'order', table: { name: 'orders' }, objectIdOf: ({ of }: Report) => of, streamReports: stream },
    ...{ database, recorder: { changeMany }, findLost: async () => {}, stuck: {} },
  } as never);
  const running = consumer.worker.run(stop.signal);
  await eventually(() => assert.deepEqual([found, applied.length, consumer.position], [4, 3, 2n]));
  isAway = true;
  breakOff();
  await eventually(() => assert.equal(consumer.isFollowing, false));
  apply();
  for (let turns = 0; turns < 20; turns += 1) await turn();
  assert.deepEqual(applied, ['partner of free', 'partner of free', 'partner of held']);
  stop.abort();
  await running;
});
