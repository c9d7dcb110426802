/** Who the gateway is at NATS, and which servers it believes. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import type { ConnectionOptions, PeerCertificate } from 'node:tls';
import { nkeys } from 'nats';
import { createLogger } from '../../src/kit/log.ts';
import { connectionOptions, type NatsAccess, openNatsAccess, plainNatsAccess } from '../../src/kit/nats-access.ts';
import { checkFiles } from '../support/check-files.ts';
import { temporaryFolder } from '../support/folders.ts';

const folder = temporaryFolder();
after(() => rmSync(folder, { recursive: true }));

const noTls = {
  authorities: undefined,
  certificate: undefined,
  key: undefined,
  serverName: undefined,
  speaksTls: false,
};
const logged: string[] = [];
const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void logged.push(line) } });

function put(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** The login that the library sends. */
function loginOf(access: NatsAccess): Record<string, unknown> {
  const { authenticator } = connectionOptions(() => access);
  assert.ok(typeof authenticator === 'function');
  return authenticator('nonce') as unknown as Record<string, unknown>;
}

function open(url: string, files: { url?: string; credentials?: string; nkey?: string } = {}) {
  const secret = { first: url, file: files.url, read: (text: string) => text };
  return openNatsAccess({ url: secret, credentials: files.credentials, nkey: files.nkey }, noTls, log);
}

const seed = new TextDecoder().decode(nkeys.createUser().getSeed());
const publicKey = nkeys.fromSeed(new TextEncoder().encode(seed)).getPublicKey();
const credentials = `-----BEGIN NATS USER JWT-----
a.b.c
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${seed}
------END USER NKEY SEED------`;

describe('the login at NATS', () => {
  it('the login is that of the URL, of a file of credentials, of an nkey, or of several of them', async () => {
    assert.deepEqual(loginOf(plainNatsAccess('nats://one')), {});
    assert.deepEqual(loginOf(plainNatsAccess('nats://ada:word@one')), { user: 'ada', pass: 'word' });
    assert.deepEqual(loginOf(plainNatsAccess('nats://token@one')), { auth_token: 'token' });
    const byCredentials = loginOf((await open('nats://one', { credentials: put('creds', credentials) })).current);
    assert.deepEqual([byCredentials.jwt, byCredentials.nkey], ['a.b.c', publicKey]);
    const byNkey = loginOf((await open('nats://ada:word@one', { nkey: put('nkey', seed) })).current);
    assert.deepEqual([byNkey.user, byNkey.pass, byNkey.nkey], ['ada', 'word', publicKey]);
    assert.ok(byNkey.sig, 'it signs what the server asks');
  });

  it('a file that has no login is found at the start, and nothing of it is told', async () => {
    for (const [name, text, wrong] of [
      ['credentials', 'canary', /^Error: the link to nats cannot be used: the file of the credentials has none$/],
      ['nkey', 'canary', /^Error: the link to nats cannot be used: the file of the nkey has none$/],
      ['nkey', ' \n', /^Error: the link to nats cannot be used: a file of a secret is empty$/],
      ['url', 'canary@one/path', /^Error: the link to nats cannot be used: has an unknown part after the host$/],
    ] as const) {
      await assert.rejects(open('nats://one', { [name]: put('wrong', text) }), wrong);
    }
  });

  it('the login of the file of the URL is the one that is used', async () => {
    const link = await open('nats://first@one', { url: put('url', 'nats://second@one\n') });
    assert.deepEqual(loginOf(link.current), { auth_token: 'second' });
  });

  it('another URL is refused if it names other servers, or if nothing can connect with it', async () => {
    const path = put('changed', 'nats://ada:word@127.0.0.1:1');
    const link = await open('', { url: path });
    for (const [url, wrong] of [
      ['nats://ada:word@127.0.0.1:2', 'other servers need a restart'],
      ['nats://ada:word@127.0.0.1:1,127.0.0.1:2', 'other servers need a restart'],
      ['nats://ada:other@127.0.0.1:1', 'it does not work: CONNECTION_REFUSED'],
    ] as const) {
      logged.length = 0;
      put('changed', url);
      await checkFiles(link);
      assert.deepEqual([link.isRefused, loginOf(link.current).pass], [true, 'word'], url);
      assert.deepEqual(
        logged.map((line) => JSON.parse(line).wrong),
        [wrong],
      );
    }
  });
});

describe('a connection to NATS', () => {
  const certificateOf = (name: string) => ({ subject: { CN: name }, subjectaltname: `DNS:${name}` }) as PeerCertificate;

  it('a connection goes to the named servers within two seconds, with TLS only if the URL or the settings say so', () => {
    const plain = connectionOptions(() => plainNatsAccess('nats://one,two:1'));
    assert.deepEqual([plain.servers, plain.timeout, plain.tls], [['one:4222', 'two:1'], 2_000, undefined]);
    assert.notEqual(connectionOptions(() => plainNatsAccess('tls://one')).tls, undefined);
    assert.notEqual(connectionOptions(() => ({ ...plainNatsAccess('nats://one'), tls: {} })).tls, undefined);
  });

  it('each connection is made with the login and the certificates of its time', () => {
    const pem = (text: string) => Buffer.from(text);
    let access: NatsAccess = {
      ...plainNatsAccess('nats://ada:first@one'),
      tls: { ca: pem('ca'), cert: pem('cert'), key: pem('key') },
    };
    const { authenticator, tls } = connectionOptions(() => access);
    const now = () => {
      const { ca, cert, key } = tls as { ca?: string; cert?: string; key?: string };
      const login = typeof authenticator === 'function' ? authenticator('nonce') : undefined;
      return [(login as { pass?: string }).pass, ca, cert, key];
    };
    assert.deepEqual(now(), ['first', 'ca', 'cert', 'key']);
    access = {
      ...plainNatsAccess('nats://ada:second@one'),
      tls: { ca: pem('ca 2'), cert: pem('cert 2'), key: pem('key 2') },
    };
    assert.deepEqual(now(), ['second', 'ca 2', 'cert 2', 'key 2']);
    access = plainNatsAccess('nats://ada:third@one');
    assert.deepEqual(now(), ['third', undefined, undefined, undefined]);
  });

  it("a server's certificate must be of one of the named hosts, whichever server it is, or of the name in the settings alone", () => {
    for (const [serverName, name, isBelieved] of [
      [undefined, 'one', true],
      [undefined, 'two', true],
      [undefined, 'three', false],
      ['three', 'three', true],
      ['three', 'one', false],
    ] as const) {
      const access = { ...plainNatsAccess('tls://one,tls://two'), tls: { serverName } };
      const tls = connectionOptions(() => access).tls as ConnectionOptions;
      assert.equal(tls.servername, serverName);
      const refusal = tls.checkServerIdentity?.('192.0.2.1', certificateOf(name));
      assert.equal(refusal === undefined, isBelieved, `${serverName} ${name}`);
    }
  });
});
