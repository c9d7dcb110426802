import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { it } from 'node:test';
import { openDatabaseAccess } from '../../../src/gateway/store/access.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { whileRunning } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { keptDatabase } from '../../support/kept-databases.ts';

it('a new account of the database is used if one node of a cluster takes it, and not if none does', async () => {
  const database = await keptDatabase('gateway');
  const away = createServer();
  await once(away.listen(0, '127.0.0.1'), 'listening');
  const { port } = away.address() as AddressInfo;
  await once(away.close(), 'close');
  /** The address of two nodes, one of which is away, for an account. */
  const nodes = (url: string) => {
    const { username, password, host, pathname } = new URL(url);
    return `mysql://${username}:${password}@127.0.0.1:${port},${host}${pathname}`;
  };
  const first = nodes(database.url);
  const second = nodes(await database.grantGateway(`${new URL(database.url).pathname.slice(1)}_second`));
  const file = join(temporaryFolder(), 'database-url');
  writeFileSync(file, first);
  const logged: string[] = [];
  const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void logged.push(line) } });
  const files = { authorities: undefined, certificate: undefined, key: undefined, serverName: undefined };
  const access = await openDatabaseAccess({ first, file, read: String }, { ...files, speaksTls: false }, log);
  try {
    assert.equal(access.current.url, first);
    await whileRunning(access.worker, async () => {
      writeFileSync(file, second.replace(/:[^:@]+@/, ':another@'));
      await eventually(() => assert.ok(logged.some((line) => line.includes('is refused'))));
      assert.equal(access.current.url, first);
      writeFileSync(file, second);
      await eventually(() => assert.equal(access.current.url, second), 30_000);
    });
  } finally {
    await database.drop();
  }
});
