import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import type { Taken } from '../../../../src/gateway/trading/broker/broker.ts';
import { UnreadableNote } from '../../../../src/gateway/trading/submission/notes.ts';
import { Recovery, type RecoveryOptions } from '../../../../src/gateway/trading/submission/recovery.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';

const page = 1_000;
const listed: readonly Taken[] = Array.from({ length: 2.5 * page }, (_, at) => ({
  ...{ number: BigInt(at + 1), clientId: `ord_${at + 1}`, note: Buffer.alloc(0) },
})) as never;

/** A recovery over a broker's list and a database that lacks some of its objects. Their notes are of another version. */
function begin(lacked: ReadonlySet<string>, from = 0n, more: Partial<RecoveryOptions> = {}) {
  let position = from;
  const broker = { isAway: false, lists: true };
  const logged: [level: string, objectId: unknown][] = [];
  const note = (level: string) => (facts: { readonly objectId?: string } | string) =>
    void logged.push([level, typeof facts === 'string' ? undefined : facts.objectId]);
  /** Done after each read that is not part of a transaction. */
  const state = { afterRead: () => {} };
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
      readAll: async (some: readonly Statement[]) => {
        const rows = some.map(answer);
        state.afterRead();
        return rows;
      },
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
          if (!broker.lists) return undefined;
          return listed.slice(Number(after), Number(after) + most);
        },
      },
    },
    kinds: { all: [kind], ofId: (id: string) => (id.startsWith('ord_') ? kind : undefined) },
    ...{ gate, clock: { now: () => 0, realNow: () => 0 }, isShared: false, lackedKeys: async () => [] },
    notes: {
      read: () => {
        throw new UnreadableNote('a note of another version');
      },
    },
    ...{ log: { error: note('error'), warn: note('warn') }, ...more },
  } as unknown as RecoveryOptions;
  return { recovery: new Recovery(options), gate, broker, state, logged, position: () => position };
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

  for (const number of [1, page + 1, listed.length]) {
    it(`the position does not pass the object ${number} that a failover takes after it was found, nor the pages behind it`, async () => {
      const lacked = new Set<string>();
      const { recovery, state, gate, position } = begin(lacked);
      let reads = 0;
      state.afterRead = () => {
        reads += 1;
        if (reads === Math.ceil(number / page)) lacked.add(`ord_${number}`);
      };
      await assert.rejects(recovery.findLost(), new RegExp(`has lost ord_${number},`));
      assert.ok(position() < BigInt(number), `${position()} is past it`);
      await recovery.findLost();
      assert.ok(position() < BigInt(number), `${position()} is past it`);
      assert.equal(gate.held.length, 1, 'the next run finds that it is lost');
    });
  }

  it('an object that a replica for reads lacks is not lost', async () => {
    const lacked = new Set(['ord_1']);
    const { recovery, gate, state, logged, position } = begin(lacked);
    state.afterRead = () => void lacked.clear();
    await recovery.findLost();
    assert.deepEqual([position(), gate.held, logged], [BigInt(listed.length), [], []]);
  });
});

describe('what the broker was given and is not stored', () => {
  const of = (clientId: string) => [{ number: 1n, clientId, note: Buffer.alloc(0) }] as unknown as readonly Taken[];
  const listing = (taken: readonly Taken[]) => ({
    id: 1 as never,
    submissions: { submissionsAfter: async (after: bigint) => taken.slice(Number(after)) },
  });
  const noNote = { read: () => undefined } as never;
  for (const [name, id, more, held] of [
    ['is held while no key opens its note', 'ord_1', { notes: noNote }, [{ kind: 'order' }]],
    [
      'is held while a key is lacked, also if others use the connection',
      'ord_1',
      { notes: noNote, isShared: true, lackedKeys: async () => ['key'] },
      [{ kind: 'order' }],
    ],
    ['is passed over as that of others who use the connection', 'ord_1', { notes: noNote, isShared: true }, []],
    ['is passed over if it is of no kind that there is', 'foreign', { notes: noNote }, []],
    ['holds everything if even its kind is unknown, and its note is of another version', 'foreign', {}, [{ kind: '' }]],
  ] as const) {
    it(`an object ${name}`, async () => {
      const { recovery, gate, position } = begin(new Set([id]), 0n, { broker: listing(of(id)), ...more });
      await recovery.findLost();
      assert.deepEqual([gate.held, position()], [held, held.length === 0 ? 1n : 0n]);
    });
  }

  it('an object that cannot be restored is logged once, and again if it was lost a second time', async () => {
    const lacked = new Set(['ord_1', 'ord_2']);
    const { recovery, gate, logged } = begin(lacked);
    for (let runs = 0; runs < 2; runs += 1) await recovery.findLost();
    const both = [...lacked].map((id) => ['error', id]);
    assert.deepEqual(logged, both);
    assert.deepEqual(gate.held, [{ kind: 'order' }], 'two of a kind hold it once');
    lacked.delete('ord_1');
    await recovery.findLost();
    lacked.add('ord_1');
    await recovery.findLost();
    assert.deepEqual(logged.slice(2), [['error', 'ord_1']]);
  });

  it('a broker that does not list what it was given is no error, and is named once', async () => {
    const { recovery, broker, gate, logged, position } = begin(new Set());
    broker.lists = false;
    for (let runs = 0; runs < 2; runs += 1) await recovery.findLost();
    assert.deepEqual([gate.held, position(), logged], [[], 0n, [['warn', undefined]]]);
  });
});
