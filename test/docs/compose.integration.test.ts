import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { parse } from 'yaml';
import { openDatabase } from '../../src/gateway/store/database.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import { createPartner } from '../../src/sandbox/provision.ts';
import { temporaryFolder } from '../support/folders.ts';
import { creditWallet } from '../support/ledger.ts';
import { type RestartableServer, startTestMariaDb } from '../support/servers.ts';

const deploy = resolve('docs/deploy');

/**
 * What the commands need of MySQL's client, which the packages of MariaDB do not have: it logs in at our server as its owner,
 * whatever host and user it is told, sends what it reads and prints the rows that come.
 */
function client(url: string): string {
  return `
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { createConnection } from '${resolve('node_modules/mysql2/promise.js')}';
const options = { host: { type: 'string', short: 'h' }, user: { type: 'string', short: 'u' } };
const printing = { N: { type: 'boolean', short: 'N' }, raw: { type: 'boolean' }, 'init-command': { type: 'string' } };
const { values, positionals } = parseArgs({ options: { ...options, ...printing }, allowPositionals: true });
const url = new URL('${url}');
url.pathname = positionals[0] ?? '';
const connection = await createConnection({ uri: url.href, multipleStatements: true, rowsAsArray: true });
if (values['init-command']) await connection.query(values['init-command']);
const sql = await text(process.stdin);
if (sql.trim() === '') throw new Error('nothing to send');
const [found] = await connection.query(sql);
for (const row of Array.isArray(found) ? found.flat(Array.isArray(found[0]?.[0]) ? 1 : 0) : []) {
  if (Array.isArray(row)) console.log(row.join('\\t'));
}
await connection.end();
`;
}

/** The program of each container runs without one: on a server of our own, with the secrets that the page makes. */
describe('the databases of docs/deploy/compose.yaml', () => {
  const folder = temporaryFolder();
  const { configs, services } = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'), { merge: true });
  let server: RestartableServer;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    server = await startTestMariaDb();
    const tools = join(folder, 'tools');
    mkdirSync(tools);
    writeFileSync(join(tools, 'client.mjs'), client(server.url));
    writeFileSync(join(tools, 'mysql'), `#!/bin/sh\nexec '${process.execPath}' '${tools}/client.mjs' "$@"\n`);
    chmodSync(join(tools, 'mysql'), 0o700);
    env = { ...process.env, PATH: [tools, process.env.PATH].join(delimiter) };
    const page = readFileSync(join(deploy, '../operations/deploy.md'), 'utf8');
    const [commands = ''] = /^mkdir -m 700 secrets\n[^`]*?(?=^docker)/m.exec(page) ?? [];
    execFileSync('bash', ['-euc', commands], { cwd: folder });
  });
  after(() => server?.stop());

  /** Runs a script of the file as Compose passes it on: `$$` stands for `$`. */
  function run(script: string): void {
    const own = script
      .replaceAll('$$', '$')
      .replaceAll('/run/secrets/', `${folder}/secrets/`)
      .replaceAll('/rights.sql', join(deploy, 'rights.sql'));
    execFileSync('bash', ['-euo', 'pipefail', '-c', own], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** The URL in a secret, at our server. */
  function urlOf(secret: string): string {
    const url = new URL(readFileSync(join(folder, 'secrets', secret), 'utf8').trim());
    url.host = new URL(server.url).host;
    return url.href;
  }

  it('are made, migrated and given their rights by its commands, so that a gateway and the simulator can work', async () => {
    run(`docker_process_sql() { mysql -u root "$@"; }\n${configs.databases.content}`);
    await migrate(urlOf('owner-url'));
    run(services.rights.command.join('\n'));
    const database = await openDatabase({ url: urlOf('gateway-url'), environment: 'sandbox', poolSize: 2 });
    try {
      const partnerId = await createPartner(database, { name: 'Lagoon Invest' });
      await creditWallet(database, { partnerId, amountKobo: 100n, bankReference: 'payment 1' });
    } finally {
      await database.close();
    }
    const simulator = await createConnection(urlOf('simulator-url'));
    await simulator.query('CREATE TABLE its_own (id INT PRIMARY KEY)');
    await simulator.end();
  });

  it('let the gateway change no table and no audit entry, and read no other database', async () => {
    const connection = await createConnection(urlOf('gateway-url'));
    try {
      for (const forbidden of [
        'DROP TABLE orders',
        'DELETE FROM audit_entries',
        'SELECT COUNT(*) FROM simulator.its_own',
      ]) {
        await assert.rejects(connection.query(forbidden), /denied/, forbidden);
      }
    } finally {
      await connection.end();
    }
  });

  it('may be given their rights again, as after each migration', () => {
    run(services.rights.command.join('\n'));
  });
});
