import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { nkeys } from 'nats';
import { createLogger } from '../../../src/kit/log.ts';
import { Nats } from '../../../src/kit/nats.ts';
import { openNatsAccess } from '../../../src/kit/nats-access.ts';
import { CertificateFiles } from '../../support/certificate-files.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { type RestartableServer, startTestNats } from '../../support/servers.ts';

interface Given {
  readonly url?: string;
  readonly credentials?: string;
  readonly nkey?: string;
  readonly speaksTls?: boolean;
  readonly authorities?: string;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string;
}

/** Lines of a server's configuration: TLS with clients' certificates. */
function tlsLines({ server, clientAuthority }: CertificateFiles): string {
  return `tls { cert_file: "${server.certificate}", key_file: "${server.key}", ca_file: "${clientAuthority}", verify: true }`;
}

/** Whether a connection comes about, and why not. */
async function connects(files: CertificateFiles, url: string, given: Given = {}): Promise<string> {
  const { credentials, nkey, ...rest } = given;
  const { serverAuthority: authorities, client } = files;
  const logged: string[] = [];
  const log = createLogger({ name: 'test', level: 'warn', destination: { write: (line) => void logged.push(line) } });
  const access = await openNatsAccess(
    { url: { first: given.url ?? url, file: undefined, read: String }, credentials, nkey },
    { speaksTls: true, authorities, ...client, serverName: undefined, ...rest },
    log,
  );
  const nats = new Nats({ access: () => access.current, log });
  await nats.start();
  const isConnected = nats.connection !== undefined;
  await nats.close();
  return isConnected ? 'connected' : logged.join('');
}

describe('the link to a NATS that speaks TLS', () => {
  let files: CertificateFiles;
  let server: RestartableServer;
  const at = (login = 'marina:first%40password', host = 'localhost') => `nats://${login}@${host}:${server.port}`;
  before(async () => {
    files = await CertificateFiles.make();
    const users = 'authorization { users: [ { user: marina, password: "first@password" } ] }';
    server = await startTestNats([tlsLines(files), users]);
  });
  after(() => server.stop());

  it('connects with the right authority, name, certificate, user and password, by name or by address', async () => {
    assert.equal(await connects(files, at()), 'connected');
    assert.equal(await connects(files, at(undefined, '127.0.0.1')), 'connected');
    assert.equal(await connects(files, at(undefined, '127.0.0.1'), { serverName: 'localhost' }), 'connected');
  });

  it('does not if one of them is wrong or missing', async () => {
    assert.match(await connects(files, at(), { authorities: files.clientAuthority }), /certificate|self.signed/i);
    assert.match(await connects(files, at(), { serverName: 'nats.example.com' }), /altnames|ALTNAME/);
    assert.notEqual(await connects(files, at(), { certificate: undefined, key: undefined }), 'connected');
    assert.match(await connects(files, at('marina:canary')), /AUTHORIZATION_VIOLATION/);
    assert.match(await connects(files, `nats://localhost:${server.port}`), /AUTHORIZATION_VIOLATION/);
    assert.doesNotMatch(await connects(files, at('marina:canary')), /canary/);
  });

  it('does not with a server that speaks plain text only, or whose certificate has expired', async () => {
    const plain = await startTestNats();
    assert.match(await connects(files, `nats://localhost:${plain.port}`), /tls/i);
    await plain.stop();
    const late = await CertificateFiles.make();
    late.putIdentity(late.server, await late.expired());
    const expired = await startTestNats([tlsLines(late)]);
    assert.match(await connects(late, `nats://localhost:${expired.port}`), /expired/i);
    await expired.stop();
  });
});

describe('the ways to log in at NATS', () => {
  let files: CertificateFiles;
  before(async () => {
    files = await CertificateFiles.make();
  });

  async function logsIn(lines: readonly string[], login: string, given: Given = {}): Promise<string> {
    const server = await startTestNats(lines);
    const url = `nats://${login}localhost:${server.port}`;
    const plain = { speaksTls: false, authorities: undefined, certificate: undefined, key: undefined };
    const outcome = await connects(files, url, { ...plain, ...given } as Given);
    await server.stop();
    return outcome;
  }

  it('are a token in the URL, and the seed of an nkey in a file', async () => {
    assert.equal(await logsIn(['authorization { token: "a-token" }'], 'a-token@'), 'connected');
    assert.match(await logsIn(['authorization { token: "a-token" }'], 'another@'), /AUTHORIZATION_VIOLATION/);
    const [right, wrong] = [nkeys.createUser(), nkeys.createUser()];
    const lines = [`authorization { users: [ { nkey: ${right.getPublicKey()} } ] }`];
    const seed = (pair: typeof right) => files.put('user.nk', `${new TextDecoder().decode(pair.getSeed())}\n`);
    assert.equal(await logsIn(lines, '', { nkey: seed(right) }), 'connected');
    assert.match(await logsIn(lines, '', { nkey: seed(wrong) }), /AUTHORIZATION_VIOLATION/);
  });

  it('are a JWT and its seed in a file of credentials', async () => {
    const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
    const base64 = (value: object | Uint8Array) =>
      Buffer.from(value instanceof Uint8Array ? value : JSON.stringify(value)).toString('base64url');
    const signed = (issuer: typeof operator, subject: typeof operator, type: string, limits: object = {}) => {
      const claims = { jti: 'test', iat: 1_700_000_000, iss: issuer.getPublicKey(), sub: subject.getPublicKey() };
      const nats = {
        type,
        version: 2,
        ...(type === 'account' ? { limits: { ...connections, ...limits } } : { subs: -1, data: -1, payload: -1 }),
      };
      const body = `${base64({ typ: 'JWT', alg: 'ed25519-nkey' })}.${base64({ ...claims, name: type, nats })}`;
      return `${body}.${base64(issuer.sign(new TextEncoder().encode(body)))}`;
    };
    const system = nkeys.createAccount();
    const preloaded = [
      `${system.getPublicKey()}: ${signed(operator, system, 'account')}`,
      `${account.getPublicKey()}: ${signed(operator, account, 'account', streams)}`,
    ];
    const lines = [
      `system_account: ${system.getPublicKey()}`,
      `operator: ${signed(operator, operator, 'operator')}`,
      'resolver: MEMORY',
      `resolver_preload: { ${preloaded.join(', ')} }`,
    ];
    const text = (seed: Uint8Array) =>
      [
        '-----BEGIN NATS USER JWT-----',
        signed(account, user, 'user'),
        '------END NATS USER JWT------',
        '',
        '-----BEGIN USER NKEY SEED-----',
        new TextDecoder().decode(seed),
        '------END USER NKEY SEED------',
        '',
      ].join('\n');
    assert.equal(await logsIn(lines, '', { credentials: files.put('right.creds', text(user.getSeed())) }), 'connected');
    const other = files.put('wrong.creds', text(nkeys.createUser().getSeed()));
    assert.match(await logsIn(lines, '', { credentials: other }), /AUTHORIZATION_VIOLATION/);
    const nonsense = files.put('nonsense.creds', 'canary');
    await assert.rejects(
      logsIn(lines, '', { credentials: nonsense }),
      /nats cannot be used: the file of the credentials/,
    );
  });
});

const unlimited = -1;
const connections = {
  subs: unlimited,
  data: unlimited,
  payload: unlimited,
  imports: unlimited,
  exports: unlimited,
  wildcards: true,
  conn: unlimited,
  leaf: unlimited,
};
const streams = { mem_storage: unlimited, disk_storage: unlimited, streams: unlimited, consumer: unlimited };

describe('a gateway whose login at NATS changes', () => {
  let files: CertificateFiles;
  let server: RestartableServer;
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    files = await CertificateFiles.make();
    files.put('users.conf', users('first'));
    // NATS takes a path from its own folder, which is next to this one.
    server = await startTestNats([tlsLines(files), `include "../${basename(files.folder)}/users.conf"`]);
    gateway = await startGateway({
      MARINA_NATS_URL: '',
      MARINA_NATS_URL_FILE: files.put('nats-url', url('first')),
      MARINA_NATS_TLS: 'required',
      ...files.settings('NATS'),
    });
    partner = await gateway.newPartner();
  });
  after(async () => {
    await gateway?.stop();
    await server?.stop();
  });

  const users = (...logins: string[]) =>
    `authorization { users: [ ${logins.map((login) => `{ user: ${login}, password: "${login}-secret" }`).join(', ')} ] }\n`;
  const url = (login: string) => `nats://${login}:${login}-secret@localhost:${server.port}`;
  const logged = (form: RegExp) => gateway.logged.filter((line) => form.test(line)).length;
  const restartWith = async (...logins: string[]) => {
    const before = logged(/"status":"reconnect"/);
    files.put('users.conf', users(...logins));
    await server.kill();
    await server.restart();
    await eventually(() => assert.ok(logged(/"status":"reconnect"/) > before, 'it is connected again'));
  };

  it('keeps the former one while NATS refuses the new one, and connects with it again', async () => {
    files.put('nats-url', url('unknown'));
    const refused = /"link":"nats","wrong":"it does not work: AUTHORIZATION_VIOLATION".*is refused/;
    await eventually(() => assert.equal(logged(refused), 1));
    await restartWith('first');
    assert.equal(logged(/is used/), 0);
    assert.doesNotMatch(gateway.logged.join(''), /-secret/);
  });

  it('uses the new one after the former is revoked, under load, and no order fails', async () => {
    const answers: number[] = [];
    let isLoaded = true;
    const load = Array.from({ length: 4 }, async () => {
      while (isLoaded) answers.push((await gateway.place(partner, { symbol: 'SIM-FILL' })).status);
    });
    try {
      await restartWith('first', 'second');
      files.put('nats-url', url('second'));
      files.putIdentity(files.client, await files.clients.issueClient('renewed'));
      await eventually(() => assert.match(gateway.logged.join(''), /a new certificate or secret is used/));
      await restartWith('second');
      const enough = answers.length + 50;
      await eventually(() => assert.ok(answers.length > enough));
    } finally {
      isLoaded = false;
      await Promise.all(load);
    }
    assert.deepEqual([...new Set(answers)], [201]);
    assert.doesNotMatch(gateway.logged.join(''), /-secret/);
  });
});
