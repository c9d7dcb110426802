import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { migrations } from '../../../migrations/index.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { GaleraCluster } from '../../support/clusters/galera.ts';
import { execute } from '../../support/servers.ts';

describe('migrating at two nodes of a Galera cluster at once', { timeout: 240_000 }, () => {
  let servers: GaleraCluster | string;
  before(async () => {
    servers = await GaleraCluster.start();
  });
  after(async () => {
    if (typeof servers !== 'string') await servers?.stop();
  });

  async function names(url: string): Promise<string[]> {
    const connection = await createConnection(url);
    try {
      await connection.query('SET SESSION wsrep_sync_wait = 15');
      const [rows] = await connection.query<RowDataPacket[]>('SELECT name FROM migrations ORDER BY id');
      return rows.map(({ name }) => String(name));
    } finally {
      await connection.end();
    }
  }

  for (const done of [0, 5, migrations.length - 3]) {
    it(`brings a database that has had ${done} migrations up to date, and notes each once`, async (t) => {
      if (typeof servers === 'string') return t.skip(`Galera cannot be had here: ${servers}`);
      const name = `two_migrations_${done}`;
      await execute(servers.nodes[0].url, `CREATE DATABASE ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
      const urls = servers.nodes.map(({ url }) => `${url}/${name}`);
      const [first = ''] = urls;
      if (done > 0) await migrate(first, migrations.slice(0, done));
      await Promise.all(urls.map((url) => migrate(url)));
      for (const url of urls) {
        assert.deepEqual(
          await names(url),
          migrations.map((Migration) => new Migration().name),
        );
      }
    });
  }
});
