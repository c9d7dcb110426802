import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ClusterNode, WriterNode } from '../../../src/gateway/store/writer.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

const quietMs = 5_000;

/** A gateway at the node `one` of a cluster, of which the test says what it answers. */
function startGateway() {
  const state = {
    clock: 0,
    writer: 'one',
    beat: 1,
    /** How long each look takes. */
    tookMs: 0,
    fails: undefined as Error | undefined,
    isCluster: true,
  };
  const kept: [node: string, beganAt: number][] = [];
  const written: string[] = [];
  const node: ClusterNode = {
    name: 'one',
    ask: async () => {
      state.clock += state.tookMs;
      if (state.fails !== undefined) throw state.fails;
      return [{ node: state.writer, fence: 3, beat: state.beat }];
    },
    write: async (statements) => void written.push(`beat ${statements.length}`),
    writeUnchecked: async () => {
      written.push('takes over');
      state.writer = 'one';
    },
  };
  const database = {
    atNode: async <T>(work: (at: ClusterNode) => Promise<T>) => (state.isCluster ? work(node) : undefined),
    keepTo: (name: string, beganAt: number) => void kept.push([name, beganAt]),
  };
  const gateway = new WriterNode(database, undefined, () => state.clock);
  return { gateway, state, kept, written };
}

const answer = (errno: number, message: string) => Object.assign(new Error(message), { errno, sqlState: 'HY000' });

describe('a gateway at a node of a cluster', () => {
  it('reads there are proven from when the write began, and by a node that gateways write through only', async () => {
    const { gateway, state, kept, written } = startGateway();
    Object.assign(state, { clock: 500, tookMs: 300 });
    await gateway.renew();
    assert.deepEqual([kept.splice(0), written.splice(0)], [[['one', 500]], ['beat 1']]);
    state.writer = 'two';
    assert.equal((await gateway.renew())?.isWriter, false);
    state.clock += quietMs;
    await gateway.renew();
    assert.deepEqual([kept, written], [[['one', 500 + 2 * 300 + quietMs]], ['takes over']]);
  });

  it('another node is quiet only from the last sign that was seen of it, also after this one was written through meanwhile', async () => {
    const { gateway, state, written } = startGateway();
    const renew = async (writer: string, afterMs: number) => {
      state.writer = writer;
      state.clock += afterMs;
      return (await gateway.renew())?.isWriter;
    };
    assert.equal(await renew('two', 0), false);
    assert.equal(await renew('one', 1_000), true);
    assert.equal(await renew('two', quietMs), false, 'the sign from before counts no more');
    state.beat += 1;
    assert.equal(await renew('two', quietMs), false, 'another sign');
    assert.equal(await renew('two', quietMs - 1), false);
    assert.equal(await renew('two', 1), true);
    assert.equal(await renew('two', 0), false, 'it was taken over, and is quiet from now on only');
    assert.deepEqual(written, ['beat 1', 'takes over']);
  });

  it('a node without any writer is taken at once', async () => {
    const { gateway, state, written } = startGateway();
    state.writer = '';
    assert.equal((await gateway.renew())?.isWriter, true);
    assert.deepEqual(written, ['takes over']);
  });

  it('a look that fails because another gateway was quicker says that this one may not write, and any other is told', async () => {
    const { gateway, state, kept } = startGateway();
    for (const [error, isAnswered] of [
      [answer(4025, 'CONSTRAINT `marina_writer` failed'), true],
      [answer(4025, 'CONSTRAINT `marina_guard` failed'), true],
      [answer(1213, 'Deadlock found'), true],
      [answer(1205, 'Lock wait timeout exceeded'), true],
      [answer(4025, 'CONSTRAINT `positive` failed'), false],
      [answer(1142, "INSERT command denied for table 'writer_guards'"), false],
      [new Error('the connection was lost'), false],
    ] as const) {
      for (const fails of [error, new UnavailableError({ cause: error })]) {
        state.fails = fails;
        if (isAnswered) assert.equal((await gateway.renew())?.isWriter, false, error.message);
        else await assert.rejects(gateway.renew(), fails, error.message);
      }
    }
    assert.deepEqual(kept, []);
  });

  it('the beat goes on while the database is away, and ends by an error that is no refusal', async () => {
    const { gateway, state } = startGateway();
    const once = () => {
      const stop = new AbortController();
      const ended = gateway.worker.run(stop.signal);
      stop.abort();
      return ended;
    };
    state.fails = new UnavailableError();
    await once();
    state.fails = new TypeError('a defect');
    await assert.rejects(once(), TypeError);
  });

  it('a gateway that starts waits for ten seconds to write, and then names both nodes', async () => {
    const { gateway, state } = startGateway();
    await gateway.settle();
    state.isCluster = false;
    await gateway.settle();
    Object.assign(state, { isCluster: true, writer: 'two', tookMs: 5_000 });
    const refused = { message: "the database's node one takes no writes of gateways, which write through two" };
    const beating = Object.defineProperty(state, 'beat', { get: () => state.clock });
    await assert.rejects(gateway.settle(), refused);
    assert.equal(beating.clock, 15_000, 'it looked until ten seconds had passed');
  });
});
