import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { banner } from '../../src/sandbox/banner.ts';
import { describeExit, lastLines } from '../../src/sandbox/exits.ts';
import { natsAccounts, natsLogin } from '../../src/sandbox/nats-accounts.ts';
import { freePort, isPortTaken, readGreeting } from '../../src/sandbox/ports.ts';
import { readSandbox, runningSandbox, type Sandbox, writeSandbox } from '../../src/sandbox/sandbox-file.ts';
import { keptSecret } from '../../src/sandbox/secrets.ts';
import { readSettings } from '../../src/sandbox/settings.ts';
import { temporaryFolder } from '../support/folders.ts';

describe('a secret that a sandbox keeps', () => {
  it('a secret is made once, in a file of its owner', () => {
    const folder = temporaryFolder();
    const path = join(folder, 'secret');
    const secret = keptSecret(path, 16);
    assert.match(secret, /^[0-9a-f]{32}$/);
    assert.equal(keptSecret(path, 16), secret);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.notEqual(keptSecret(join(folder, 'other'), 16), secret);
    assert.deepEqual(readdirSync(folder).sort(), ['other', 'secret']);
    rmSync(folder, { recursive: true });
  });

  it('a file that was cut off is no secret', () => {
    const folder = temporaryFolder();
    const path = join(folder, 'secret');
    for (const cut of ['', 'ab', 'a'.repeat(31), 'a'.repeat(33)]) {
      writeFileSync(path, `${cut}\n`);
      const made = keptSecret(path, 16);
      assert.equal(made.length, 32);
      assert.equal(readFileSync(path, 'utf8').trim(), made);
    }
    rmSync(folder, { recursive: true });
  });
});

describe('the ports of this machine', () => {
  it('a port is taken while a server listens on it, and free afterwards', async () => {
    const server = createServer((socket) => socket.end('INFO {}\r\n')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    assert.equal(await isPortTaken(port), true);
    assert.equal(String(await readGreeting(port, 5_000)), 'INFO {}\r\n');
    assert.notEqual(await freePort(), port);
    server.close();
    await once(server, 'close');
    assert.equal(await isPortTaken(port), false);
    assert.equal(await readGreeting(port, 5_000), undefined);
  });

  it('a server that greets nobody has no greeting, whether it keeps the connection or ends it', async () => {
    for (const isKept of [true, false]) {
      const server = createServer((socket) => {
        if (!isKept) socket.end();
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      assert.equal(await readGreeting((server.address() as AddressInfo).port, isKept ? 20 : 5_000), undefined);
      server.close();
    }
  });
});

describe('the end of a process, in words', () => {
  it('a process ends with a code or by a signal', () => {
    for (const code of [0, 1]) assert.equal(describeExit({ code, signal: null }), `ended with code ${code}`);
    assert.equal(describeExit({ code: null, signal: 'SIGKILL' }), 'was ended by SIGKILL');
  });

  it('the last lines of a log are shown, also of a long one, and a log that is not there wrote nothing', () => {
    const folder = temporaryFolder();
    const path = join(folder, 'log');
    const lines = Array.from({ length: 5_000 }, (_, at) => `line ${at + 1}`);
    writeFileSync(path, `${lines.join('\n')}\n\n`);
    assert.equal(lastLines(path, 2), '    line 4999\n    line 5000');
    assert.equal(lastLines(path).split('\n').length, 15);
    writeFileSync(path, 'one line');
    assert.equal(lastLines(path, 3), '    one line');
    assert.equal(lastLines(join(folder, 'none')), '    (it wrote nothing)');
    rmSync(folder, { recursive: true });
  });
});

describe('the accounts of a sandbox’s NATS', () => {
  const passwords = { gateway: 'aa', events: 'bb', 'back-office': 'cc' };
  const text = (prefix?: string) => natsAccounts(passwords, prefix).join('\n');

  it('each user has a password of its own, and a URL has the login of one', () => {
    for (const line of ['GATEWAY_PASSWORD: "aa"', 'EVENTS_PASSWORD: "bb"', 'BACK_OFFICE_PASSWORD: "cc"'])
      assert.ok(text().split('\n').includes(line), line);
    for (const [user, url] of [
      ['gateway', 'nats://gateway:aa@127.0.0.1:4222'],
      ['events', 'nats://events:bb@127.0.0.1:4222'],
      ['back-office', 'nats://back-office:cc@127.0.0.1:4222'],
    ] as const)
      assert.equal(natsLogin('nats://127.0.0.1:4222', user, passwords).replace(/\/$/, ''), url);
    assert.match(text(), /^accounts \{/m);
  });

  it('the prefix of an installation stands before each of its streams, buckets, consumers and subjects', () => {
    assert.equal(text(''), text());
    const [bare, prefixed] = [text(), text('test_')];
    for (const name of ['"events.', '"peers.', '"say.', '.EVENTS', 'KV_SLOTS', '$KV.SLOTS']) {
      const with_ = name.replace(/(events|peers|say|EVENTS|SLOTS)/, 'test_$1');
      const count = (where: string, what: string) => where.split(what).length - 1;
      assert.equal(count(prefixed, name), 0, `${name} has the prefix everywhere`);
      assert.equal(count(prefixed, with_), count(bare, name), name);
    }
  });
});

describe('the file of a sandbox', () => {
  const sandbox = { partners: [], pids: { gateway: process.pid } } as unknown as Sandbox;

  it('a sandbox runs while its gateway does', () => {
    const folder = temporaryFolder();
    assert.equal(readSandbox(folder), undefined);
    assert.throws(() => runningSandbox(folder), /^Advice: No sandbox is running/);
    writeSandbox(folder, sandbox);
    assert.deepEqual(runningSandbox(folder), sandbox);
    assert.equal(statSync(join(folder, 'sandbox.json')).mode & 0o777, 0o600);
    for (const pids of [{}, { run: process.pid }, { gateway: 2 ** 30 }]) {
      writeSandbox(folder, { ...sandbox, pids });
      assert.throws(() => runningSandbox(folder), /^Advice: No sandbox is running/);
      assert.deepEqual(readSandbox(folder)?.pids, pids);
    }
    rmSync(folder, { recursive: true });
  });

  it('a file that was cut off, or that is of something else, is no sandbox', () => {
    const folder = temporaryFolder();
    for (const text of ['', '{"partners": [', '{}', '{"partners": {}, "pids": {}}', '{"partners": []}']) {
      writeFileSync(join(folder, 'sandbox.json'), text);
      assert.equal(readSandbox(folder), undefined, text);
    }
    rmSync(folder, { recursive: true });
  });

  it('the banner has the first partner’s key and account, and the operator’s token for the operator alone', () => {
    const partners = ['a', 'b'].map((id) => ({ id, key: `marina_test_${id}`, account: `C${id}` }));
    const text = banner(
      {
        ...sandbox,
        partners: partners as unknown as Sandbox['partners'],
        rest_url: 'http://127.0.0.1:8080',
        grpc_address: '127.0.0.1:50051',
        admin_address: '127.0.0.1:50052',
        operator_token: 'the_token',
      },
      '/data',
      1.26,
    );
    assert.match(text, /Marina is ready \(1\.3 s\)/);
    assert.ok(!text.includes('marina_test_b'));
    for (const line of text.split('\n').filter((each) => /^(?:curl|grpcurl|npx)/.test(each))) {
      const isOperators = line.includes('127.0.0.1:50052');
      assert.equal(line.includes('Bearer the_token'), isOperators, line);
      assert.equal(line.includes('Bearer marina_test_a'), !isOperators, line);
    }
    for (const [, order = ''] of text.matchAll(/-d '(\{"account.*?\})'/g))
      assert.equal(JSON.parse(order).account, 'Ca');
    assert.equal(banner(sandbox, '/data', 1), '');
  });
});

describe('the settings of make run', () => {
  it('every port has its default, a variable of its own, and is from 0 to 65535', () => {
    const defaults = { rest: 8080, grpc: 50051, admin: 50052, ops: 9464, simulator: 50060 };
    assert.deepEqual(readSettings({}).ports, defaults);
    assert.deepEqual(readSettings({ MARINA_REST_PORT: '' }).ports, defaults);
    for (const name of Object.keys(defaults)) {
      const variable = `MARINA_${name.toUpperCase()}_PORT`;
      for (const port of [0, 1, 65_535])
        assert.deepEqual(readSettings({ [variable]: String(port) }).ports, { ...defaults, [name]: port });
      for (const wrong of ['65536', '-1', '1.5', '8080x', ' 80'])
        assert.throws(() => readSettings({ [variable]: wrong }), new RegExp(`^Advice: ${variable} is ${wrong}`));
    }
  });

  it('the partners’ ports are opened where MARINA_HOST says, the operators’ where their own variables say', () => {
    const local = '127.0.0.1';
    const hosts = { rest: local, grpc: local, admin: local, ops: local, simulator: local };
    assert.deepEqual(readSettings({}).hosts, hosts);
    const partners = { ...hosts, rest: '0.0.0.0', grpc: '0.0.0.0' };
    assert.deepEqual(readSettings({ MARINA_HOST: '0.0.0.0' }).hosts, partners);
    assert.deepEqual(readSettings({ MARINA_ADMIN_HOST: '::' }).hosts, { ...hosts, admin: '::' });
    assert.deepEqual(readSettings({ MARINA_OPS_HOST: '::' }).hosts, { ...hosts, ops: '::' });
  });

  it('the databases and NATS of yours are used, and nothing is set by an empty variable', () => {
    const given = {
      MARINA_DATABASE_URL: 'mysql://one/marina',
      MARINA_OWNER_DATABASE_URL: 'mysql://two/marina',
      MARINA_SIMULATOR_DATABASE_URL: 'mysql://three/marina',
      MARINA_NATS_URL: 'nats://four',
    };
    const settings = readSettings({ ...given, MARINA_KEY: '', OTHER: 'x' });
    const { databaseUrl, ownerDatabaseUrl, simulatorDatabaseUrl, natsUrl } = settings;
    assert.deepEqual([databaseUrl, ownerDatabaseUrl, simulatorDatabaseUrl, natsUrl], Object.values(given));
    assert.deepEqual(settings.given, given);
    const none = readSettings(Object.fromEntries(Object.keys(given).map((name) => [name, ''])));
    assert.deepEqual([none.databaseUrl, none.natsUrl, none.given], [undefined, undefined, {}]);
  });

  it('authorities of yours are added, also Node’s own if its file is there', () => {
    const file = import.meta.filename;
    for (const [given, expected] of [
      [{}, []],
      [{ MARINA_WEBHOOK_CA_FILE: '/a.pem' }, ['/a.pem']],
      [{ NODE_EXTRA_CA_CERTS: file }, [file]],
      [{ NODE_EXTRA_CA_CERTS: '/nowhere.pem' }, []],
      [{ MARINA_WEBHOOK_CA_FILE: '/a.pem', NODE_EXTRA_CA_CERTS: file }, ['/a.pem', file]],
    ] as const)
      assert.deepEqual(readSettings(given).authorityFiles, expected);
  });

  it('a sandbox speaks no TLS, whichever port it is asked for', () => {
    for (const name of [
      'MARINA_TLS_CERT_FILE',
      'MARINA_ADMIN_TLS_CA',
      'MARINA_OPS_TLS_KEY',
      'MARINA_SIMULATOR_TLS_KEY',
    ])
      assert.throws(() => readSettings({ [name]: 'x' }), new RegExp(`^Advice: ${name} is set`));
    assert.equal(readSettings({ MARINA_TLS: 'on' }).given.MARINA_TLS, 'on');
  });
});
