/** How operators pause trading and move a sandbox's clock, over an environment that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentServices } from '../../../../src/gateway/operators/calls/environment.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';

const now = 1_000_000;
const dayMs = 86_400_000;
const call = { operator: 'ada', action: 'Trading.PauseTrading', requestId: 'req' };

function open({ pausedAt = null as number | null, offsetMs = 0n, simulator = async (_: object) => {} } = {}) {
  const done: string[] = [];
  const written: Statement[] = [];
  const row = {
    clock_offset_ms: offsetMs,
    trading_paused_at: pausedAt === null ? null : new Date(pausedAt),
    stops_version: 1n,
  };
  const database = {
    transaction: async (
      reads: readonly Statement[],
      decide: (rows: SqlRow[][]) => { writes: Statement[]; result: unknown },
    ) => {
      assert.match(reads[0]?.sql ?? '', /FOR UPDATE$/);
      const { writes, result } = decide([[row]]);
      written.push(...writes);
      done.push('commit');
      return result;
    },
  };
  const { trading, clock } = environmentServices({
    ...{ database, clock: { now: () => now }, ids: {}, timeoutMs: 1, isListed: async () => true },
    environment: { refresh: async () => void done.push('refresh') },
    changed: () => done.push('notify'),
    simulator: {
      setClock: async (to: object) => {
        done.push('simulator');
        await simulator(to);
      },
    },
  } as never);
  const calls = { ...trading.calls, ...clock.calls } as Record<
    string,
    (request: object, by: object) => Promise<unknown>
  >;
  return { done, written, call: (name: string, request: object) => calls[name]?.({ reason: 'why', ...request }, call) };
}

const tables = (written: readonly Statement[]) => written.map(({ sql }) => /(?:INTO|UPDATE) (\w+)/.exec(sql)?.[1]);

describe('a pause of trading', () => {
  it('a pause of trading begins and ends once, and is known to this process and told to the others after it is committed', async () => {
    for (const [name, pausedAt, changed, set] of [
      ['pauseTrading', null, true, new Date(now)],
      ['pauseTrading', 5, false, undefined],
      ['resumeTrading', 5, true, null],
      ['resumeTrading', null, false, undefined],
    ] as const) {
      const { call: make, done, written } = open({ pausedAt });
      assert.deepEqual(await make(name, {}), { changed });
      assert.deepEqual(done, ['commit', 'refresh', 'notify'], 'also if another process has changed it');
      assert.deepEqual(tables(written), changed ? ['environment', 'audit_entries'] : []);
      if (set !== undefined) assert.deepEqual(written[0]?.values, [set, 1]);
    }
  });
});

describe("an advance of a sandbox's clock", () => {
  it("an advance of a sandbox's clock is of 0 to 400 days, from where the clock is", async () => {
    const advanced = (by: object) => open({ offsetMs: 500n }).call('advanceClock', { by });
    const longest = BigInt((400 * dayMs) / 1_000);
    for (const [by, offsetMs] of [
      [{ seconds: 0n, nanos: 0 }, 500n],
      [{ seconds: 2n, nanos: 999_999_999 }, 3_499n],
      [{ seconds: longest, nanos: 999_999 }, 500n + longest * 1_000n],
    ] as const) {
      assert.deepEqual(await advanced(by), { now, offsetMs });
    }
    for (const by of [
      { seconds: -1n, nanos: 0 },
      { seconds: 0n, nanos: -1 },
      { seconds: 0n, nanos: 1_000_000_000 },
      { seconds: longest, nanos: 1_000_000 },
    ]) {
      await assert.rejects(async () => advanced(by), /must be 0 to 400 days/, `${by.seconds} ${by.nanos}`);
    }
    assert.deepEqual(await open({ offsetMs: 500n }).call('advanceClock', { by: undefined }), { now, offsetMs: 500n });
  });

  it("an advance of a sandbox's clock moves the simulator to the same time, once the gateway has moved", async () => {
    const told: object[] = [];
    const { call: make, done } = open({ offsetMs: 500n, simulator: async (to) => void told.push(to) });
    await make('advanceClock', { by: { seconds: 1n, nanos: 0 } });
    assert.deepEqual([done, told], [['commit', 'refresh', 'notify', 'simulator'], [{ offsetMs: 1_500n }]]);
    const away = open({ simulator: async () => Promise.reject(new Error('away')) });
    await assert.rejects(
      async () => away.call('advanceClock', { by: { seconds: 1n, nanos: 0 } }),
      /advance by 0 to try again/,
    );
    assert.deepEqual(tables(away.written), ['environment', 'audit_entries'], 'the gateway has moved');
  });
});
