import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { GaleraCluster } from '../../support/clusters/galera.ts';
import { GroupCluster } from '../../support/clusters/group-replication.ts';
import { killAtRandom, TornTransactions, Writer } from '../../support/clusters/torn.ts';
import { execute, type RestartableServer, startTestMariaDb } from '../../support/servers.ts';

/**
 * Transactions that fight for few rows, through our own database code. `TORN_TRANSACTIONS` says how many there are in each
 * test, and `TORN_SEED` which.
 */
const count = Number(process.env.TORN_TRANSACTIONS ?? 4_000);
const seed = Number(process.env.TORN_SEED ?? Date.now() % 2 ** 31);
const atOnce = 12;
/** How long one writer is used before the other. */
const switchedAfterMs = 700;

const createDatabase = (name: string) => `CREATE DATABASE ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`;

describe(`${count} transactions that meet (seed ${seed})`, { timeout: 60_000 + count * 60 }, () => {
  describe('on a Galera cluster', () => {
    let cluster: GaleraCluster | string;
    before(async () => {
      cluster = await GaleraCluster.start();
    });
    after(async () => {
      if (typeof cluster !== 'string') await cluster?.stop();
    });

    /** Runs them on two nodes, by a rule that says which node the next one of a worker goes to. */
    async function areWhole(
      t: TestContext,
      name: string,
      choose: (worker: number) => number,
      areKilled = false,
    ): Promise<void> {
      if (typeof cluster === 'string') return t.skip(`Galera cannot be had here: ${cluster}`);
      const urls = cluster.nodes.map(({ url }) => `${url}/${name}`);
      await execute(cluster.nodes[0]?.url ?? '', createDatabase(name));
      const torn = await TornTransactions.prepare(urls[0] ?? '', seed);
      const writers = await Promise.all(urls.slice(0, 2).map((url) => Writer.open(url)));
      const stopping = new AbortController();
      const killing = areKilled ? killAtRandom(urls[0] ?? '', seed, stopping.signal) : Promise.resolve();
      try {
        await torn
          .runMany(count, atOnce, (worker) => writers[choose(worker)] as Writer)
          .finally(() => stopping.abort());
        await killing;
        for (const url of urls) {
          const { counts, wrong } = await torn.check(url);
          assert.deepEqual(wrong, [], `${wrong.length} are wrong of ${JSON.stringify(counts)}`);
          assert.ok(counts.committed > 0 && counts.refused > 0, `they met: ${JSON.stringify(counts)}`);
        }
      } finally {
        await Promise.all(writers.map((writer) => writer.close()));
      }
    }

    it('are there whole or not at all, as their callers were answered, with two writers', (t) =>
      areWhole(t, 'torn_two', (worker) => worker % 2));

    it('are there whole or not at all when the writer is switched while the old one still writes', (t) =>
      areWhole(t, 'torn_switched', () => Math.floor(performance.now() / switchedAfterMs) % 2));

    it('are there whole or not at all when their statements and connections are ended', (t) =>
      areWhole(t, 'torn_killed', () => 0, true));

    it('are there whole or not at all when they are ended, and meet those of another writer', (t) =>
      areWhole(t, 'torn_both', (worker) => worker % 2, true));
  });

  describe('on a group of MySQL servers', () => {
    let cluster: GroupCluster | string;
    before(async () => {
      cluster = await GroupCluster.start();
    });
    after(async () => {
      if (typeof cluster !== 'string') await cluster?.stop();
    });

    /** Runs them through writers at two members, while something is done to the group until it is stopped. */
    async function areWhole(
      t: TestContext,
      name: string,
      disturb: (group: GroupCluster, url: string, stopped: AbortSignal) => Promise<void>,
    ): Promise<void> {
      if (typeof cluster === 'string') return t.skip(`MySQL cannot be had here: ${cluster}`);
      const { nodes } = cluster;
      const [first] = nodes;
      await cluster.makeWriter(first, async () => {});
      await execute(first.url, createDatabase(name));
      const urls = nodes.map(({ url }) => `${url}/${name}`);
      const torn = await TornTransactions.prepare(urls[0] ?? '', seed);
      const writers = await Promise.all(urls.slice(0, 2).map((url) => Writer.open(url)));
      const stopping = new AbortController();
      const disturbing = disturb(cluster, urls[0] ?? '', stopping.signal);
      // It is waited for below.
      disturbing.catch(() => undefined);
      try {
        await torn.runMany(count, atOnce, (worker) => writers[worker % 2] as Writer);
      } finally {
        stopping.abort();
        await disturbing;
        await Promise.all(writers.map((writer) => writer.close()));
      }
      for (const url of urls) {
        const { counts, wrong } = await torn.check(url);
        assert.deepEqual(wrong, [], `${wrong.length} are wrong of ${JSON.stringify(counts)}`);
        assert.ok(counts.committed > 0 && counts.refused > 0, `both were used: ${JSON.stringify(counts)}`);
      }
    }

    it('are there whole or not at all, as their callers were answered, when the primary changes all the time', (t) =>
      areWhole(t, 'torn_changed', async (group, _, stopped) => {
        const [first, second] = group.nodes;
        for (let turn = 1; !stopped.aborted; turn += 1) {
          await group.makeWriter(turn % 2 === 0 ? first : second, () => delay(switchedAfterMs));
        }
      }));

    it('are there whole or not at all when their statements and connections are ended', (t) =>
      areWhole(t, 'torn_killed', (_, url, stopped) => killAtRandom(url, seed, stopped)));
  });

  describe('on one server that ends their statements and connections', () => {
    let server: RestartableServer;
    before(async () => {
      server = await startTestMariaDb();
    });
    after(() => server?.kill());

    it('are there whole or not at all, as their callers were answered', async () => {
      await execute(server.url, createDatabase('torn'));
      const url = `${server.url}/torn`;
      const torn = await TornTransactions.prepare(url, seed);
      const writer = await Writer.open(url);
      const stopping = new AbortController();
      const killing = killAtRandom(url, seed, stopping.signal);
      try {
        await torn.runMany(count, atOnce, () => writer);
      } finally {
        stopping.abort();
        await killing;
        await writer.close();
      }
      const { counts, wrong } = await torn.check(url);
      assert.deepEqual(wrong, [], `${wrong.length} are wrong of ${JSON.stringify(counts)}`);
      assert.ok(counts.committed > 0 && counts.refused > 0, `some were ended: ${JSON.stringify(counts)}`);
    });
  });
});
