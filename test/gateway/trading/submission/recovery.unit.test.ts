import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import type { Taken } from '../../../../src/gateway/trading/broker/broker.ts';
import { UnreadableNote } from '../../../../src/gateway/trading/submission/notes.ts';
import { Recovery, type RecoveryOptions } from '../../../../src/gateway/trading/submission/recovery.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';
import { createLogger } from '../../../../src/kit/log.ts';

const page = 1_000;
const listed: readonly Taken[] = Array.from({ length: 2.5 * page }, (_, at) => ({
  ...{ number: BigInt(at + 1), clientId: `ord_${at + 1}`, note: Buffer.alloc(0) },
})) as never;

/** A recovery over a broker's list and a database that lacks some of its objects. Their notes are of another version. */
function begin(lacked: ReadonlySet<string>, from = 0n) {
  let position = from;
  const broker = { isAway: false };
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (!sql.includes('WHERE id IN')) return [{ name: 'submissions', position: String(position) }];
    return (values.flat() as string[]).filter((id) => !lacked.has(id)).map((id) => ({ id }));
  };
  const kind = { name: 'order', table: { name: 'orders' } };
  const gate = new StartGate();
  gate.open();
  const options = {
    database: {
      read: async (one: Statement) => answer(one),
      readAll: async (some: readonly Statement[]) => some.map(answer),
      transaction: async (
        some: readonly Statement[],
        decide: (rows: SqlRow[][]) => { readonly writes: readonly Statement[]; readonly result: unknown },
      ) => {
        const { writes, result } = decide(some.map(answer));
        for (const { values } of writes) position = BigInt(String(values.flat(3).at(-1)));
        return result;
      },
    },
    broker: {
      id: 1,
      submissions: {
        submissionsAfter: async (after: bigint, most: number) => {
          if (broker.isAway) throw new Error('the broker is away');
          return listed.slice(Number(after), Number(after) + most);
        },
      },
    },
    kinds: { all: [kind], ofId: () => kind },
    ...{ gate, clock: { now: () => 0, realNow: () => 0 }, isShared: false, lackedKeys: async () => [] },
    notes: {
      read: () => {
        throw new UnreadableNote('a note of another version');
      },
    },
    log: createLogger({ name: 'test', level: 'silent' }),
  } as unknown as RecoveryOptions;
  return { recovery: new Recovery(options), gate, broker, position: () => position };
}

describe('the position of what the broker was given', () => {
  it('the position is the end of the list when all of it is stored', async () => {
    const { recovery, gate, position } = begin(new Set());
    await recovery.findLost();
    assert.equal(position(), BigInt(listed.length));
    assert.deepEqual(gate.held, []);
  });

  it('the position moves on once the broker is there again, also for callers who share a look that failed', async () => {
    const { recovery, broker, position } = begin(new Set());
    broker.isAway = true;
    for (let looks = 0; looks < 2; looks += 1) {
      const [one, other] = [recovery.findLost(), recovery.findLost()];
      await Promise.all([one, other].map((look) => assert.rejects(look, /is away/)));
    }
    assert.equal(position(), 0n);
    broker.isAway = false;
    await recovery.findLost();
    assert.equal(position(), BigInt(listed.length));
  });

  for (const number of [1, page - 1, page, page + 1, 2 * page, listed.length]) {
    it(`the position stays before the object ${number} that cannot be restored, however many pages follow, in each run`, async () => {
      const lacked = new Set([`ord_${number}`]);
      const { recovery, gate, position } = begin(lacked);
      for (let run = 0; run < 2; run += 1) {
        await recovery.findLost();
        assert.ok(position() < BigInt(number), `${position()} is past it`);
        assert.equal(gate.held.length, 1);
      }
      // Then a replica of that version stores it.
      lacked.clear();
      await recovery.findLost();
      assert.deepEqual([position(), gate.held], [BigInt(listed.length), []]);
    });
  }
});
