/** The limits that a partner reads, over a database that has used some of each day. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { limitHandlers } from '../../../../src/gateway/partners/limits/handlers.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';

const limits = {
  ...{ requestsPerSecond: 10, requestsBurst: 20, requestsUnderWay: 5 },
  ...{ ordersKoboPerDay: 1_000n, allocationsKoboPerDay: 500n },
};

/** The limits at an instant: the day, what is left of it, and when it ends. */
async function readAt(instant: string, used: Readonly<Record<string, Readonly<Record<string, string>>>>) {
  const read = async ({ values }: Statement) => {
    const [partner, day] = values;
    assert.equal(partner, 'par_a');
    return Object.entries(used[String(day)] ?? {}).map(([kind, kobo]) => ({ kind, used_kobo: kobo }));
  };
  const now = Date.parse(instant);
  const clock = { now: () => now, realNow: () => now };
  const { getLimits } = limitHandlers({ read } as never, clock, { underWay: async () => 2 } as never, 1_000);
  const answer = await getLimits({} as never, { caller: { partnerId: 'par_a', limits } } as never);
  const { day, ordersKoboPerDay, allocationsKoboPerDay, requestsUnderWay } = answer as unknown as Record<string, never>;
  const shown = ({ used: taken, remaining, resetsAt }: Record<string, never>) => [
    ...[taken, remaining],
    resetsAt === undefined ? undefined : new Date(timestampMs(resetsAt)).toISOString(),
  ];
  return [day, ...[ordersKoboPerDay, allocationsKoboPerDay, requestsUnderWay].map((each) => shown(each as never))];
}

it("the limits of a day are those of Lagos' day, from its midnight to the next one", async () => {
  const used = {
    '2026-03-02': { orders: '900', allocations: '500' },
    '2026-03-03': { orders: '1001' },
  };
  const underWay = [2n, 3n, undefined];
  const [before, after] = ['2026-03-02T23:00:00.000Z', '2026-03-03T23:00:00.000Z'];
  assert.deepEqual(await readAt('2026-03-02T22:59:59.999Z', used), [
    ...['2026-03-02', [900n, 100n, before], [500n, 0n, before], underWay],
  ]);
  for (const instant of [before, '2026-03-02T23:59:59.999Z', '2026-03-03T00:00:00.000Z']) {
    assert.deepEqual(await readAt(instant, used), [
      ...['2026-03-03', [1_001n, 0n, after], [0n, 500n, after], underWay],
    ]);
  }
});
