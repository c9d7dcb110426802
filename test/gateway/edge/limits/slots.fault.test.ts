import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../../support/eventually.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';
import { endReplicasAfterEach, newPrefix, startReplica, startSharing, taken } from '../../../support/slots.ts';

const holderFile = new URL('../../../support/fault/slots-process.ts', import.meta.url);
let nats: RestartableServer;
before(async () => {
  nats = await startTestNats();
});
after(() => nats.kill());
endReplicasAfterEach();

/** Counts how many slots are in use at once: each process keeps a connection to it for every slot that it uses. */
async function startJudge() {
  const holding = new Map<Socket, string>();
  const most = new Map<string, number>();
  let total = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('close', () => holding.delete(socket));
    socket.once('data', (data) => {
      const name = data.toString();
      holding.set(socket, name);
      total += 1;
      const now = [...holding.values()].filter((each) => each === name).length;
      most.set(name, Math.max(most.get(name) ?? 0, now));
      socket.write('held');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    /** The most slots of a name that were in use at once since it was last asked. */
    takeMost: () => {
      const highest = Math.max(0, ...most.values());
      most.clear();
      return highest;
    },
    get total() {
      return total;
    },
    holdingOf: (name: string) => [...holding.values()].filter((each) => each === name).length,
    close: () => server.close(),
  };
}

describe('slots across processes', () => {
  const children = new Set<ChildProcess>();
  const judges = new Set<Awaited<ReturnType<typeof startJudge>>>();
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
    for (const judge of judges) judge.close();
    judges.clear();
  });

  async function newJudge() {
    const judge = await startJudge();
    judges.add(judge);
    return judge;
  }

  async function startProcess(settings: Record<string, string>): Promise<ChildProcess> {
    const child = fork(holderFile, {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, SLOTS_NATS_URL: nats.url, ...settings },
    });
    children.add(child);
    child.once('exit', () => children.delete(child));
    await once(child, 'message');
    return child;
  }

  it('hammered by three of them are never more than two, and those of a killed one come back', async () => {
    const judge = await newJudge();
    const settings = { SLOTS_PREFIX: newPrefix(), SLOTS_JUDGE_PORT: String(judge.port), SLOTS_MOST: '2' };
    const [victim] = await Promise.all([startProcess(settings), startProcess(settings), startProcess(settings)]);
    await eventually(() => assert.equal(judge.total > 500, true), 30_000);
    assert.ok(judge.takeMost() <= 2);
    const before = judge.total;
    victim?.kill('SIGKILL');
    await eventually(() => assert.equal(judge.total > before + 500, true), 30_000);
    assert.ok(judge.takeMost() <= 2);
  });

  it('hammered by three of them are one each while NATS is away, and never more than two when it is back', async () => {
    const own = await startTestNats();
    const judge = await newJudge();
    const settings = { SLOTS_PREFIX: newPrefix(), SLOTS_JUDGE_PORT: String(judge.port), SLOTS_MOST: '2' };
    const start = () => startProcess({ ...settings, SLOTS_NATS_URL: own.url });
    const counting = new Map<ChildProcess, unknown>();
    for (const child of await Promise.all([start(), start(), start()])) {
      counting.set(child, true);
      child.on('message', (isShared) => counting.set(child, isShared));
    }
    const allAre = (isShared: boolean) =>
      eventually(() => assert.deepEqual([...counting.values()], [isShared, isShared, isShared]), 30_000);
    const more = async (count: number) => {
      const before = judge.total;
      await eventually(() => assert.equal(judge.total > before + count, true), 30_000);
    };
    for (const empty of [true, false]) {
      await own.kill();
      await allAre(false);
      await delay(500);
      judge.takeMost();
      await more(200);
      assert.ok(judge.takeMost() <= 3);
      await own.restart({ empty });
      await allAre(true);
      // Slots taken of the shares are free soon.
      await delay(500);
      judge.takeMost();
      await more(300);
      assert.ok(judge.takeMost() <= 2);
    }
    await own.kill();
  });

  it('slots of a process killed while it holds all of them come back after its lease and not before', async () => {
    const judge = await newJudge();
    const prefix = newPrefix();
    const other = await startSharing({ url: nats.url, prefix, leaseMs: 2_000 });
    const settings = { SLOTS_PREFIX: prefix, SLOTS_JUDGE_PORT: String(judge.port), SLOTS_MOST: '2' };
    const holder = await startProcess({ ...settings, SLOTS_HOLD: 'for ever', SLOTS_LEASE_MS: '2000' });
    await eventually(() => assert.equal(judge.holdingOf('documents.0'), 2));
    assert.equal(await other.acquire('documents.0', 2), undefined);
    const killedAt = performance.now();
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    assert.equal(await other.acquire('documents.0', 2), undefined);
    await eventually(async () => void (await taken(other, 'documents.0', 2)));
    assert.ok(performance.now() - killedAt > 900);
    await taken(other, 'documents.0', 2);
    assert.equal(await other.acquire('documents.0', 2), undefined);
  });

  it('slots of a process frozen for long are taken by others, and when it wakes it takes no more than are free', async () => {
    const judge = await newJudge();
    const prefix = newPrefix();
    const other = await startSharing({ url: nats.url, prefix, leaseMs: 2_000 });
    const settings = { SLOTS_PREFIX: prefix, SLOTS_JUDGE_PORT: String(judge.port), SLOTS_MOST: '2' };
    const frozen = await startProcess({ ...settings, SLOTS_LEASE_MS: '2000' });
    await eventually(() => assert.equal(judge.total > 50, true));
    frozen.kill('SIGSTOP');
    await eventually(async () => void (await taken(other, 'documents.0', 2)));
    await taken(other, 'documents.0', 2);
    frozen.kill('SIGCONT');
    // Its slots from before the freeze end, and until it hears of the others it may take its share.
    await delay(1_000);
    assert.ok(judge.takeMost() <= 2);
    const before = judge.total;
    await delay(1_000);
    assert.equal(judge.total, before);
  });
});

describe('slots while NATS is away', () => {
  it('are shared by the replicas there were, and counted across them again afterwards, with or without its store', async () => {
    const prefix = newPrefix();
    const own = await startTestNats();
    const together = { url: own.url, prefix };
    const [one, other] = [await startSharing(together), await startSharing(together)];
    // Both have heard of each other.
    await delay(1_200);
    for (const empty of [false, true]) {
      const held = [await taken(one, 'orders', 5), await taken(one, 'orders', 5)];
      await own.kill();
      await eventually(() => assert.equal(one.isShared || other.isShared, false));
      // The share is two: one has it already.
      assert.equal(await one.acquire('orders', 5), undefined);
      held.push(await taken(other, 'orders', 5), await taken(other, 'orders', 5));
      assert.equal(await other.acquire('orders', 5), undefined);
      // Each has the only slot there is.
      held.push(await taken(one, 'single', 1), await taken(other, 'single', 1));
      await own.restart({ empty });
      await eventually(() => assert.equal(one.isShared && other.isShared, true), 20_000);
      const fifth = await taken(one, 'orders', 5);
      assert.equal(await one.acquire('orders', 5), undefined);
      assert.equal(await other.acquire('orders', 5), undefined);
      assert.equal(await one.acquire('single', 1), undefined);
      for (const slot of [...held, fifth]) slot.release();
      const all = await Promise.all(Array.from({ length: 5 }, () => taken(other, 'orders', 5)));
      assert.equal(await one.acquire('orders', 5), undefined);
      for (const slot of all) slot.release();
    }
    for (const slots of [one, other]) await slots.close();
    await own.kill();
  });

  it('when the replicas start are counted across them once NATS is there', async () => {
    const own = await startTestNats();
    await own.kill();
    const prefix = newPrefix();
    const together = { url: own.url, prefix };
    const [one, other] = [await startReplica(together), await startReplica(together)];
    const held = [await taken(one, 'orders', 2), await taken(one, 'orders', 2), await taken(other, 'orders', 2)];
    await own.restart();
    await eventually(() => assert.equal(one.isShared && other.isShared, true), 20_000);
    held.shift()?.release();
    assert.equal(await one.acquire('orders', 2), undefined);
    assert.equal(await other.acquire('orders', 2), undefined);
    held.shift()?.release();
    held.push(await taken(other, 'orders', 2));
    assert.equal(await one.acquire('orders', 2), undefined);
    for (const slots of [one, other]) await slots.close();
    await own.kill();
  });
});
