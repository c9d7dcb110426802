import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { openDatabaseAccess } from '../../../src/gateway/store/access.ts';
import { openForReading } from '../../../src/gateway/store/database.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { CertificateFiles } from '../../support/certificate-files.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { execute, type RestartableServer, startTestMariaDb, type TestDatabase } from '../../support/servers.ts';

const used = 'a new certificate or secret is used';
const refused = 'a new certificate or secret is refused; the former one stays in use';
const silent = createLogger({ name: 'test', level: 'silent' });

describe('the link to a database that speaks TLS', () => {
  let files: CertificateFiles;
  let server: RestartableServer;
  let database: TestDatabase;
  let url: string;
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    files = await CertificateFiles.make();
    // MySQL loads another certificate of its own only if it knows the authority of that too.
    const authorities = files.put('authorities.pem', `${files.clients.cert}\n${files.servers.cert}`);
    server = await startTestMariaDb([
      `--ssl-ca=${authorities}`,
      `--ssl-cert=${files.server.certificate}`,
      `--ssl-key=${files.server.key}`,
    ]);
    gateway = await startGateway(
      { MARINA_DATABASE_TLS: 'required', ...files.settings('DATABASE') },
      {
        databaseServerUrl: server.url,
        prepare: async (variables, own) => {
          database = own;
          url = await account('first');
          variables.MARINA_DATABASE_URL = '';
          variables.MARINA_DATABASE_URL_FILE = files.put('database-url', `${url}\n`);
        },
      },
    );
    partner = await gateway.newPartner();
  });
  after(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  /** Makes an account that may come with a certificate only. */
  async function account(name: string): Promise<string> {
    const made = new URL(await database.grantGateway(`${database.name}_${name}`));
    await execute(server.url, `ALTER USER '${made.username}'@'127.0.0.1' REQUIRE X509`);
    made.hostname = 'localhost';
    return made.href;
  }

  interface Given {
    readonly url?: string;
    readonly speaksTls?: boolean;
    readonly authorities?: string;
    readonly certificate?: string | undefined;
    readonly key?: string | undefined;
    readonly serverName?: string;
  }

  /** The cipher of a connection made with the right settings, and those given. */
  async function cipherWith({ url: other = url, ...given }: Given = {}): Promise<unknown> {
    const { serverAuthority: authorities, client } = files;
    const tls = { speaksTls: true, authorities, ...client, serverName: undefined, ...given };
    const access = await openDatabaseAccess({ first: other, file: undefined, read: String }, tls, silent);
    const opened = await openForReading({ access });
    try {
      const [row] = await opened.read(statement("SHOW SESSION STATUS LIKE 'Ssl_cipher'"));
      return row?.Value;
    } finally {
      await opened.close();
    }
  }

  it('is encrypted with the right authority, name and certificate, by the host or by an address with a name', async () => {
    assert.match(String(await cipherWith()), /^TLS|^ECDHE/);
    const byAddress = url.replace('localhost', '127.0.0.1');
    assert.match(String(await cipherWith({ url: byAddress, serverName: 'localhost' })), /^TLS|^ECDHE/);
    assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' })).status, 201);
  });

  it('is refused if the authority or the name is another, a certificate is missing, or in plain text', async () => {
    await assert.rejects(cipherWith({ authorities: files.clientAuthority }), /certificate/);
    await assert.rejects(cipherWith({ serverName: 'db.example.com' }), /altnames|certificate/i);
    await assert.rejects(cipherWith({ certificate: undefined, key: undefined }), /Access denied/);
    await assert.rejects(cipherWith({ speaksTls: false }), /Access denied/);
  });

  it('is refused if the server speaks only plain text, before a password is sent', async () => {
    // The first is for MariaDB, the second for MySQL.
    const plain = await startTestMariaDb(['--loose-skip-ssl', '--tls-version=']);
    const other = new URL(plain.url);
    other.hostname = 'localhost';
    other.pathname = '/mysql';
    await assert.rejects(cipherWith({ url: other.href }), /secure|SSL/);
    await plain.stop();
  });

  it('is refused if the certificate of the server has expired', async () => {
    const names = ['localhost', '127.0.0.1'];
    const good = await files.servers.issue(names);
    // MySQL loads none that has expired already.
    const soonExpired = { notAfter: new Date(Date.now() + 3_000) };
    files.putIdentity(files.server, await files.servers.issue(names, soonExpired));
    await reloadCertificates();
    await eventually(() => assert.rejects(cipherWith(), /expired/));
    files.putIdentity(files.server, good);
    await reloadCertificates();
    assert.match(String(await cipherWith()), /^TLS|^ECDHE/);
  });

  it('serves migrations too', async () => {
    const owner = new URL(database.url);
    owner.hostname = 'localhost';
    const tls = { speaksTls: true, authorities: files.serverAuthority, ...files.client, serverName: undefined };
    const access = await openDatabaseAccess({ first: owner.href, file: undefined, read: String }, tls, silent);
    await migrate({ access });
  });

  it('takes a new password and certificate under load, also when the former account is gone, and no order fails', async () => {
    const answers: number[] = [];
    let isLoaded = true;
    const load = Array.from({ length: 6 }, async () => {
      while (isLoaded) answers.push((await gateway.place(partner, { symbol: 'SIM-FILL' })).status);
    });
    try {
      const former = new URL(url);
      const second = await account('second');
      const before = count(used);
      files.putIdentity(files.client, await files.clients.issueClient('renewed'));
      files.put('database-url', second);
      await eventually(() => assert.ok(count(used) > before));
      await eventually(async () => assert.equal(await connectionsOf(former.username), 0));
      await execute(server.url, `DROP USER '${former.username}'@'127.0.0.1'`);
      await assert.rejects(cipherWith(), /Access denied/, 'the former account is gone');
      url = second;
      const enough = answers.length + 100;
      await eventually(() => assert.ok(answers.length > enough));
    } finally {
      isLoaded = false;
      await Promise.all(load);
    }
    assert.deepEqual([...new Set(answers)], [201]);
  });

  it('keeps its connections while a new password does not hold, and says so once', async () => {
    const before = count(refused);
    files.put('database-url', url.replace(/:[^:/]+@/, ':canary-password@'));
    await eventually(() => assert.equal(count(refused), before + 1));
    for (let order = 0; order < 20; order += 1) {
      assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' })).status, 201);
    }
    assert.equal(count(refused), before + 1);
    assert.doesNotMatch(gateway.logged.join(''), /canary-password/);
  });

  it('keeps what it had while a new URL is wrong or names another database, and tells nothing of it', async () => {
    for (const wrong of ['mysql://canary-user:canary@', url.replace(/[^/]+$/, 'canary'), `${url}?canary=1`]) {
      const before = count(refused);
      writeFileSync(files.path('database-url'), wrong);
      await eventually(() => assert.equal(count(refused), before + 1));
    }
    assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' })).status, 201);
    const lines = gateway.logged.filter((line) => line.includes(refused)).join('');
    assert.match(lines, /another host, port or database needs a restart/);
    assert.doesNotMatch(lines, /canary-user|canary@|:canary/);
    assert.doesNotMatch(gateway.logged.join(''), new RegExp(new URL(url).password));
  });

  /** MariaDB and MySQL have different words for it. */
  async function reloadCertificates(): Promise<void> {
    await execute(server.url, 'FLUSH SSL').catch(() => execute(server.url, 'ALTER INSTANCE RELOAD TLS'));
  }

  async function connectionsOf(user: string): Promise<number> {
    const counted = statement('SELECT COUNT(*) AS number FROM information_schema.processlist WHERE user = ?', user);
    return Number((await gateway.database.read(counted))[0]?.number);
  }

  function count(message: string): number {
    return gateway.logged.filter((line) => line.includes(message) && line.includes('"database"')).length;
  }
});
