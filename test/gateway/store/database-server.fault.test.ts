import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { adminClient } from '../../support/admin.ts';
import { Cluster, type GatewayProcess, isTraffic, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { Load } from '../../support/fault/load.ts';
import { type RestartableServer, startTestMariaDb } from '../../support/servers.ts';

/** A part in trouble. */
interface Part {
  readonly part: string;
  readonly reason: string;
}

interface Readiness {
  readonly status: number;
  readonly reasons: readonly Part[];
  readonly degraded: readonly Part[];
}

describe('gateways whose database server', () => {
  let server: RestartableServer;
  let cluster: Cluster;
  let gateways: GatewayProcess[] = [];
  let partners: Partner[] = [];
  let root: Connection;
  before(async () => {
    server = await startTestMariaDb();
    cluster = await Cluster.start({}, { databaseServerUrl: server.url });
    const url = new URL(cluster.databaseUrl);
    const name = url.pathname.slice(1);
    // An account like one in production: it may read and write rows, and is bound by read_only.
    const password = randomBytes(16).toString('hex');
    root = await createConnection(server.url);
    await root.query(`CREATE USER 'gateway'@'127.0.0.1' IDENTIFIED BY '${password}'`);
    await root.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${name}.* TO 'gateway'@'127.0.0.1'`);
    url.username = 'gateway';
    url.password = password;
    const variables = { MARINA_DATABASE_URL: url.href };
    gateways = await Promise.all([cluster.startGateway(variables), cluster.startGateway(variables)]);
    partners = [await cluster.newPartner(), await cluster.newPartner()];
  });
  after(async () => {
    await cluster.stop();
    await server.kill();
  });

  function first(): GatewayProcess {
    return gateways[0] ?? assert.fail('no gateway');
  }

  async function readiness(gateway: GatewayProcess): Promise<Readiness> {
    const answer = await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`);
    return { ...((await answer.json()) as Readiness), status: answer.status };
  }

  /** An operator is answered also then, soon, and told which part is in trouble. */
  async function tellsTheTrouble({ adminPort }: GatewayProcess): Promise<void> {
    const admin = adminClient(adminPort);
    try {
      const { troubles, upstream, queues, replica } = await admin.diagnostics.getStatus({}, admin.options);
      assert.ok(troubles.some(({ part }) => part === 'database'));
      assert.ok(upstream?.connected && replica !== undefined, 'the rest is told');
      assert.ok(
        queues.every(({ name }) => name.startsWith('stream ')),
        'what cannot be read is left out',
      );
    } finally {
      admin.close();
    }
  }

  /** Why workers failed last, for the message of an assertion. */
  function lastFailures(): string {
    const failures = first()
      .logged()
      .filter(({ worker }) => worker !== undefined);
    return JSON.stringify(failures.slice(-3), null, 1);
  }

  async function underLoad(disturb: () => Promise<void>): Promise<void> {
    const load = Load.start({
      gateways: () => gateways,
      partners,
      symbols: ['SIM-PARTS', 'SIM-REST'],
      cancels: true,
      restMs: 10,
    });
    try {
      await delay(500);
      await disturb();
      await eventually(async () => assert.equal((await readiness(first())).status, 200), 20_000);
      const clear = load.clearCount;
      await eventually(() => assert.ok(load.clearCount > clear, 'orders go through again'), 20_000);
      await load.settle(first());
    } finally {
      await load.stop();
    }
    await eventually(async () => assert.deepEqual((await readiness(first())).degraded, [], lastFailures()), 30_000);
    await checkEverything(cluster, first(), partners);
  }

  for (const how of ['kill', 'stop'] as const) {
    it(`${how === 'kill' ? 'crashes' : 'is stopped'} and starts again under load: every order is settled`, () =>
      underLoad(async () => {
        root.destroy();
        const logged = first().logged().length;
        await server[how]();
        await eventually(async () => {
          const { status, reasons } = await readiness(first());
          assert.deepEqual([status, ...reasons.map(({ part }) => part)], [503, 'database']);
        });
        await tellsTheTrouble(first());
        await delay(2_000);
        const lines = first()
          .logged()
          .slice(logged)
          .filter((line) => !isTraffic(line) && line.msg !== 'a request was not served');
        const counts = new Map<string, number>();
        for (const { worker, kind, msg } of lines) {
          const about = `${worker ?? kind ?? ''}: ${msg}`;
          counts.set(about, (counts.get(about) ?? 0) + 1);
        }
        const most = Math.max(...counts.values());
        assert.ok(most <= 10, `too many lines about the same: ${JSON.stringify([...counts])}`);
        assert.ok(lines.length < 150, `${lines.length} lines: ${JSON.stringify([...counts])}`);
        await server.restart();
        root = await createConnection(server.url);
      }));
  }

  it('takes no writes for a while: reads go on, and readiness tells what fails', () =>
    underLoad(async () => {
      await root.query('SET GLOBAL read_only = 1');
      const [partner] = partners;
      assert.ok(partner !== undefined);
      await eventually(async () => {
        const placed = await first().place(partner, { symbol: 'SIM-FILL', quantity: 77 });
        assert.equal(placed.body?.error?.code, 'service_unavailable');
      });
      assert.equal((await first().request('GET', '/v1/orders', { key: partner.key })).status, 200);
      await eventually(async () => {
        const { status, reasons, degraded } = await readiness(first());
        assert.deepEqual(
          [status, ...reasons.map(({ reason }) => reason)],
          [503, 'the database takes no writes: it is read-only'],
        );
        assert.ok(
          degraded.some(({ reason }) => /fails/.test(reason)),
          JSON.stringify(degraded),
        );
      });
      await root.query('SET GLOBAL read_only = 0');
    }));

  /** `KILL` by account is MariaDB's alone. */
  async function endConnections(): Promise<void> {
    const [rows] = await root.query<RowDataPacket[]>('SHOW PROCESSLIST');
    for (const { Id: id, User: user } of rows) {
      // It can have ended by itself meanwhile.
      if (user === 'gateway') await root.query('KILL ?', [id]).catch(() => undefined);
    }
  }

  it('ends all connections again and again: the work goes on over new ones', () =>
    underLoad(async () => {
      for (let round = 0; round < 8; round += 1) {
        await endConnections();
        await delay(150);
      }
    }));

  it('has no room for more connections for a while', () =>
    underLoad(async () => {
      await root.query('SET GLOBAL max_connections = 10');
      await endConnections();
      await delay(1_500);
      await root.query('SET GLOBAL max_connections = 500');
    }));
});
