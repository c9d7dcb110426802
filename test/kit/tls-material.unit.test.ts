import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { datesProblem, endOf, listsEnd, readMaterial } from '../../src/kit/tls-material.ts';
import { makeAuthority } from '../../src/sandbox/certificates.ts';
import { temporaryFolder } from '../support/folders.ts';

describe('files of certificates', () => {
  const texts = { authorities: '', certificate: '', key: '' };
  before(async () => {
    const [first, second] = await Promise.all(['first', 'second'].map(makeAuthority));
    assert.ok(first !== undefined && second !== undefined);
    const { cert, key } = await first.issue(['localhost']);
    Object.assign(texts, {
      authorities: `${first.cert}\n${second.cert}\n`,
      certificate: `${cert}\n${first.cert}\n`,
      key,
    });
  });

  const readWith = (changed: Partial<typeof texts>) => {
    const { authorities, certificate, key } = { ...texts, ...changed };
    return readMaterial({
      authorities: Buffer.from(authorities),
      certificate: Buffer.from(certificate),
      key: Buffer.from(key),
    });
  };

  it('are used if they are whole', () => {
    assert.deepEqual(Object.keys(readWith({})).sort(), ['ca', 'cert', 'key']);
  });

  for (const name of ['authorities', 'certificate', 'key'] as const) {
    it(`are refused if that of the ${name} is empty or cut, without a word of them`, () => {
      const whole = texts[name];
      for (const part of [0, 0.1, 0.4, 0.6, 0.9]) {
        const cut = whole.slice(0, whole.length * part);
        assert.throws(() => readWith({ [name]: cut }), {
          message: /^no certificate(s of authorities$| with its key: \S+$)/,
        });
      }
    });
  }

  it('are refused if the key is that of another certificate', async () => {
    const { key } = await (await makeAuthority('third')).issue(['localhost']);
    assert.throws(() => readWith({ key }), /^Error: no certificate with its key: \S+$/);
  });
});

describe('a file of revocation lists', () => {
  it('is read whole, with the lists of several authorities', async () => {
    const [first, second] = await Promise.all(['first', 'second'].map(makeAuthority));
    assert.ok(first !== undefined && second !== undefined);
    const { cert, key } = await first.issue(['localhost']);
    const [good, lost] = await Promise.all(['good', 'lost'].map((name) => second.issueClient(name)));
    assert.ok(good !== undefined && lost !== undefined);
    const lists = [await first.revoke([]), await second.revoke([lost.cert])];
    const material = readMaterial({
      authorities: Buffer.from(`${first.cert}\n${second.cert}\n`),
      revoked: Buffer.from(lists.join('\n')),
      certificate: Buffer.from(cert),
      key: Buffer.from(key),
    });
    const server = createServer({ ...material, requestCert: true, rejectUnauthorized: false });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const wrongWith = async (client: { readonly cert: string; readonly key: string }) => {
      const port = (server.address() as AddressInfo).port;
      const socket = connect({ ...client, port, host: '127.0.0.1', servername: 'localhost', ca: first.cert });
      const [met] = (await once(server, 'secureConnection')) as [TLSSocket];
      const wrong = met.authorized ? undefined : String(met.authorizationError);
      socket.destroy();
      return wrong;
    };
    try {
      assert.equal(await wrongWith(good), undefined);
      assert.equal(await wrongWith(lost), 'CERT_REVOKED');
    } finally {
      server.close();
    }
  });

  it('is refused if it is empty, cut, or something else', async () => {
    const authority = await makeAuthority('first');
    const list = `${await authority.revoke([])}\n`;
    const read = (text: string) => readMaterial({ revoked: Buffer.from(text) });
    assert.equal(read(list + list).crl?.length, 2);
    for (const text of [
      '',
      list.slice(0, 40),
      list.slice(0, -20),
      list + list.slice(0, 100),
      authority.cert,
      'nonsense',
    ]) {
      assert.throws(() => read(text), { message: 'no lists of revoked certificates' });
    }
  });
});

describe('the dates of what a connection needs', () => {
  const day = 86_400_000;
  const second = (at: number) => Math.floor(at / 1_000) * 1_000;

  it('are those of the certificate, or of the last authority if it ends before', async () => {
    const authority = await makeAuthority('first');
    const notAfter = new Date(second(Date.now() + 3 * day));
    const { cert, key } = await authority.issue(['localhost'], { notAfter });
    const identity = { certificate: Buffer.from(cert), key: Buffer.from(key) };
    const material = readMaterial({ ...identity, authorities: Buffer.from(authority.cert) });
    assert.equal(endOf(material), notAfter.getTime());
    assert.equal(datesProblem(material), undefined);
    assert.match(String(datesProblem(material, notAfter.getTime() + 1)), /^it ended on /);
    // An authority is not its own certificate here: it stands for one that has ended.
    const yesterday = second(Date.now() - day);
    const ended = await authority.issue(['ended'], { notAfter: new Date(yesterday) });
    const files = (...authorities: string[]) =>
      readMaterial({ ...identity, authorities: Buffer.from(authorities.join('\n')) });
    assert.equal(datesProblem(files(ended.cert, authority.cert)), undefined, 'one of them is still good');
    assert.match(String(datesProblem(files(ended.cert))), /^its authorities ended on \d{4}-\d\d-\d\dT[\d:]+Z$/);
    assert.equal(endOf(files(ended.cert)), yesterday);
  });

  it('are those of the first revocation list that ends, and a list from the future is none', async () => {
    const authority = await makeAuthority('first');
    for (const year of [2_031, 2_049, 2_050, 2_077]) {
      const ends = [Date.UTC(year, 1, 3, 4, 5, 6), Date.UTC(year + 1, 0)];
      const lists = await Promise.all(ends.map((end) => authority.revoke([authority.cert], new Date(end))));
      const material = readMaterial({ revoked: Buffer.from(lists.reverse().join('\n')) });
      assert.equal(listsEnd(material), ends[0], `${year}`);
      assert.equal(datesProblem(material), undefined);
      assert.match(
        String(datesProblem(material, Number(ends[0]) + 1)),
        /^a revocation list ended on \d{4}-02-03T04:05:06Z$/,
      );
      assert.match(String(datesProblem(material, 0)), /^a revocation list is not valid before \d{4}-/);
    }
    assert.equal(listsEnd(readMaterial({})), undefined);
  });

  it('are read of a list as OpenSSL makes it', () => {
    const folder = temporaryFolder();
    const run = (command: string) => execFileSync('bash', ['-euc', command], { cwd: folder, stdio: 'pipe' }).toString();
    writeFileSync(join(folder, 'index'), '');
    writeFileSync(join(folder, 'ca.cnf'), '[ca]\ndefault_ca=own\n[own]\ndatabase=index\ndefault_md=sha256\n');
    run('openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=test -days 9');
    run('openssl ca -config ca.cnf -gencrl -crldays 3 -keyfile ca.key -cert ca.pem -out list.pem');
    const said = run('openssl crl -in list.pem -noout -nextupdate').replace('nextUpdate=', '');
    assert.equal(listsEnd(readMaterial({ revoked: readFileSync(join(folder, 'list.pem')) })), Date.parse(said));
  });
});
