import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { before, describe, it } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { makeAuthority } from '../../src/dev/certificates.ts';
import { readMaterial } from '../../src/lib/tls-material.ts';

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
