/** How the gateway connects to its database, and when another login is used. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { accessOptions, openDatabaseAccess } from '../../../src/gateway/store/access.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { checkFiles } from '../../support/check-files.ts';
import { temporaryFolder } from '../../support/folders.ts';

const folder = temporaryFolder();
after(() => rmSync(folder, { recursive: true }));
const logged: string[] = [];
const write = (line: string) => void logged.push(JSON.parse(line).wrong);
const log = createLogger({ name: 'test', level: 'error', destination: { write } });
const noTls = {
  authorities: undefined,
  certificate: undefined,
  key: undefined,
  serverName: undefined,
  speaksTls: false,
};

describe('the access to the database', () => {
  it('another URL is refused if it names another place, or if nothing can connect with it', async () => {
    const file = join(folder, 'url');
    const first = 'mysql://ada:word@127.0.0.1:1,127.0.0.1:2/marina';
    writeFileSync(file, `${first}\n`);
    const link = await openDatabaseAccess({ first: 'never', file, read: (text) => text }, noTls, log);
    assert.deepEqual(link.current, { url: first, tls: undefined });
    const elsewhere = ['another host, port or database needs a restart'];
    for (const [url, wrong] of [
      ['mysql://ada:word@127.0.0.1:1/marina', elsewhere],
      ['mysql://ada:word@127.0.0.1:1,127.0.0.1:3/marina', elsewhere],
      ['mysql://ada:word@127.0.0.2:1,127.0.0.1:2/marina', elsewhere],
      ['mysql://ada:word@127.0.0.1:1,127.0.0.1:2/other', elsewhere],
      ['mysql://ada:next@127.0.0.1:1,127.0.0.1:2/marina', ['it does not work: ECONNREFUSED']],
    ] as const) {
      logged.length = 0;
      writeFileSync(file, url);
      await checkFiles(link);
      assert.deepEqual([link.current.url, logged], [first, wrong], url);
    }
  });

  it('a connection has the login of the URL, and goes to the given host', () => {
    const url = 'mysql://ada:a%40b@one,two:3307/marina';
    const { user, password, host, ssl } = accessOptions({ url, tls: undefined }, { host: 'two', port: 3_307 });
    assert.deepEqual([user, password, host, ssl], ['ada', 'a@b', 'two', undefined]);
  });

  it('a connection with TLS checks the certificate for the host, or for the name in the settings', () => {
    const url = 'mysql://ada:word@one/marina';
    const [ca, cert, key] = ['ca', 'cert', 'key'].map((text) => Buffer.from(text));
    for (const [serverName, name] of [
      [undefined, 'one'],
      ['database', 'database'],
    ] as const) {
      const options = accessOptions({ url, tls: { ca, cert, key, serverName } as never }, { host: 'one', port: 3_306 });
      assert.equal(options.host, name);
      assert.deepEqual(options.ssl, {
        ...{ ca, cert, key, rejectUnauthorized: true, verifyIdentity: true, minVersion: 'TLSv1.2' },
      });
    }
  });
});
