/** Access of a link, and secrets, from files that change. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { channelTls, type LinkTls, openLink, openSecret, secretValue } from '../../src/kit/link.ts';
import { createLogger } from '../../src/kit/log.ts';
import { makeAuthority } from '../../src/sandbox/certificates.ts';
import { checkFiles } from '../support/check-files.ts';
import { temporaryFolder } from '../support/folders.ts';

const folder = temporaryFolder();
const logged: string[] = [];
const write = (line: string) => void logged.push(JSON.parse(line).wrong);
const log = createLogger({ name: 'test', level: 'error', destination: { write } });
after(() => rmSync(folder, { recursive: true }));

function put(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const upper = (text: string) => {
  if (text === 'bad') throw new Error('it is bad');
  return text.toUpperCase();
};

describe('a link with secrets in files', () => {
  const open = (file: string | undefined, more: object = {}) =>
    openLink({
      name: 'here',
      secrets: { token: file, other: undefined },
      make: ({ token, other }, tls, former?: { token: string; tls: LinkTls | undefined }) => {
        assert.equal(other, undefined);
        if (former !== undefined && token === 'other place') throw new Error(`not after ${former.token}`);
        return { token: `${token}`, tls };
      },
      log,
      ...more,
    });

  it('a link gets the texts of its files without the space around them', async () => {
    assert.deepEqual((await open(put('token', ' a b \n'))).current, { token: 'a b', tls: undefined });
    assert.deepEqual((await open(undefined)).current, { token: 'undefined', tls: undefined });
  });

  it('a link with a file that is empty or missing cannot be used, and the error names the link', async () => {
    await assert.rejects(open(put('empty', ' \n')), {
      message: 'the link to here cannot be used: a file of a secret is empty',
    });
    await assert.rejects(open(join(folder, 'missing')), /the link to here cannot be used: ENOENT/);
  });

  it('a changed secret of a link is used once it is proven, and one that the link cannot follow is refused', async () => {
    const proven: string[] = [];
    const prove = async ({ token }: { token: string }) => {
      proven.push(token);
      if (token === 'closed') throw Object.assign(new Error('canary'), { code: 'ECONNREFUSED' });
    };
    const link = await open(put('changing', 'one'), { prove });
    assert.deepEqual(proven, [], 'the first one is tried by the gateway itself');
    for (const [text, token, wrong] of [
      ['two', 'two', []],
      ['closed', 'two', ['it does not work: ECONNREFUSED']],
      ['other place', 'two', ['not after two']],
      ['', 'two', ['a file of a secret is empty']],
      ['three', 'three', []],
    ] as const) {
      logged.length = 0;
      put('changing', text);
      await checkFiles(link);
      assert.deepEqual([link.current.token, logged], [token, wrong]);
    }
    assert.deepEqual(proven, ['two', 'closed', 'three']);
  });
});

describe('a link that speaks TLS', () => {
  const files = { authorities: '', certificate: '', key: '' };
  before(async () => {
    const authority = await makeAuthority('servers');
    const { cert, key } = await authority.issue(['localhost']);
    Object.assign(files, {
      authorities: put('ca', authority.cert),
      certificate: put('cert', cert),
      key: put('key', key),
    });
  });
  const open = (tls: object) =>
    openLink({
      name: 'here',
      tls: { ...files, serverName: 'name', speaksTls: true, ...tls },
      secrets: {},
      make: (_, material) => ({ tls: material }),
      log,
    });

  it('a link gets its certificates and the name of the other end only if it speaks TLS', async () => {
    const { tls } = (await open({})).current;
    assert.deepEqual([Object.keys(tls ?? {}).sort(), tls?.serverName], [['ca', 'cert', 'key', 'serverName'], 'name']);
    assert.equal((await open({ speaksTls: false })).current.tls, undefined);
  });

  it('a link with an expired certificate is used at the start, which is logged', async () => {
    const authority = await makeAuthority('servers');
    const [notBefore, notAfter] = [new Date(0), new Date(1_000)];
    const { cert, key } = await authority.issue(['localhost'], { notBefore, notAfter });
    logged.length = 0;
    await open({ certificate: put('old cert', cert), key: put('old key', key) });
    assert.equal(logged.length, 1);
    assert.match(String(logged[0]), /^it ended on /);
  });

  it('a channel speaks plain text without TLS, and checks the name that the settings say', async () => {
    const plain = channelTls(undefined);
    assert.deepEqual([plain.options, plain.credentials._isSecure()], [{}, false]);
    const { tls } = (await open({})).current;
    const named = channelTls(tls);
    assert.deepEqual(
      [named.options, named.credentials._isSecure()],
      [{ 'grpc.ssl_target_name_override': 'name' }, true],
    );
    assert.deepEqual(channelTls({ ...tls, serverName: undefined }).options, {});
  });
});

describe('a secret of its own', () => {
  const open = (file: string | undefined, more: object = {}) =>
    openSecret({ name: 'word', secret: { first: 'FIRST', file, read: upper }, log, ...more });

  it('a secret is read from its file, and is the value of the settings without one', async () => {
    assert.equal((await open(undefined)).current, 'FIRST');
    assert.equal((await open(put('word', 'word\n'))).current, 'WORD');
    await assert.rejects(open(put('bad word', 'bad')), /it is bad/);
    assert.equal(secretValue({ first: 'FIRST', file: undefined, read: upper }, ''), '');
  });

  it('a changed secret is used if it may follow the former one and works', async () => {
    const seen: string[] = [];
    const check = (value: string, former: string) => {
      seen.push(`${former} ${value}`);
      if (value === 'NO') throw new Error('it cannot follow');
    };
    const prove = async (value: string) => {
      if (value === 'UNPROVEN') throw Object.assign(new Error('canary'), { code: 'ECLOSED' });
    };
    const secret = await open(put('changing word', 'one'), { check, prove });
    assert.deepEqual(seen, []);
    for (const [text, value, wrong] of [
      ['two', 'TWO', []],
      ['no', 'TWO', ['it cannot follow']],
      ['unproven', 'TWO', ['it does not work: ECLOSED']],
      ['bad', 'TWO', ['it is bad']],
      ['three', 'THREE', []],
    ] as const) {
      logged.length = 0;
      put('changing word', text);
      await checkFiles(secret);
      assert.deepEqual([secret.current, logged], [value, wrong]);
    }
    assert.deepEqual(seen, ['ONE TWO', 'TWO NO', 'TWO UNPROVEN', 'TWO THREE']);
  });
});
