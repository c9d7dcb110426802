import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { clientAddressBehind, unknownAddress } from '../../../src/kit/addresses.ts';

describe('the client of a request', () => {
  const behind = clientAddressBehind(['10.0.0.0/8', '192.0.2.7', '2001:db8:1::/48']);
  const cases: readonly (readonly [string, string, string | undefined, string])[] = [
    ['is the peer when nothing was forwarded', '203.0.113.5', undefined, '203.0.113.5'],
    ['is the proxy itself when it forwards for nobody', '10.0.0.1', undefined, '10.0.0.1'],
    ['is a peer that is no trusted proxy, whatever it says', '203.0.113.5', '198.51.100.1', '203.0.113.5'],
    ['is whom a trusted proxy names', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['is named by a proxy known by its address', '192.0.2.7', '198.51.100.1', '198.51.100.1'],
    ['is named by a proxy whose address comes mapped into IPv6', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['is found behind several trusted proxies', '10.0.0.1', '198.51.100.1, 192.0.2.7,10.9.9.9', '198.51.100.1'],
    ['is not what the client itself wrote', '10.0.0.1', '10.0.0.9, 1.1.1.1, 198.51.100.1', '198.51.100.1'],
    ['may write what it likes left of its own address', '10.0.0.1', 'unknown, "x", 198.51.100.1', '198.51.100.1'],
    ['is an IPv6 address', '2001:db8:1::1', '2001:db8:2::5', '2001:db8:2::5'],
    ['is an IPv4 address with a port', '10.0.0.1', '198.51.100.1:443', '198.51.100.1'],
    ['is an IPv6 address in brackets', '10.0.0.1', '[2001:db8:2::5]', '2001:db8:2::5'],
    ['is an IPv6 address in brackets with a port', '10.0.0.1', '[2001:DB8:2::5]:65535', '2001:DB8:2::5'],
    ['is an IPv4 address mapped into IPv6 with a port', '10.0.0.1', '[::ffff:198.51.100.1]:1', '::ffff:198.51.100.1'],
    ['is found behind a trusted proxy with a port', '10.0.0.1', '198.51.100.1:50123, 192.0.2.7:443', '198.51.100.1'],
    ['is found behind a trusted proxy in brackets', '10.0.0.1', '198.51.100.1,[2001:db8:1::9]:80', '198.51.100.1'],
    ['is the left-most when all are trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['is found beside empty elements', '10.0.0.1', ' , 198.51.100.1,, 192.0.2.7 ,', '198.51.100.1'],
    ...[
      '',
      ' ',
      ',',
      'unknown',
      '198.51.100.1:',
      '198.51.100.1:65536',
      '198.51.100.1:-1',
      '198.51.100.1:443:1',
      '[198.51.100.1]',
      '[198.51.100.1]:443',
      '[2001:db8::1',
      '2001:db8::1]',
      '[2001:db8::1]443',
      '[2001:db8::1]:',
      '[2001:db8::1]:x',
      '[[2001:db8::1]]',
      '[]:80',
      ':443',
      '127.1:443',
      '010.0.0.1:443',
      '"198.51.100.1:443"',
      'fe80::1%eth0',
      '[fe80::1%eth0]:443',
      '1',
      '127.1',
      '0x7f.0.0.1',
      '010.0.0.1',
      '198.51.100.1, x, 10.0.0.2',
      '198.51.100.0/24',
    ].map((text) => [`is unknown behind ${JSON.stringify(text)}`, '10.0.0.1', text, unknownAddress] as const),
  ];
  for (const [name, peer, forwardedFor, client] of cases) {
    it(name, () => assert.equal(behind(peer, forwardedFor), client));
  }

  it('is the peer when no proxy is trusted', () => {
    assert.equal(clientAddressBehind([])('127.0.0.1', '198.51.100.1'), '127.0.0.1');
  });
});

describe('MARINA_TRUSTED_PROXIES', () => {
  const rest = {
    MARINA_DATABASE_URL: 'mysql://a@b/c',
    MARINA_NATS_URL: 'n',
    MARINA_BROKER_ADDRESS: 'b:1',
    MARINA_SECRET_KEY: '42'.repeat(32),
  };
  const read = (text: string) => readConfig({ ...rest, MARINA_TRUSTED_PROXIES: text }).trustedProxies;

  it('is a list of addresses and ranges, empty by default', () => {
    assert.deepEqual(read(''), []);
    assert.deepEqual(read('10.0.0.0/8, 192.0.2.7,2001:db8::/32'), ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32']);
  });

  for (const text of ['proxy.example', '10.0.0.0/33', '10.0.0.1,', '10.0.0.1;10.0.0.2', '10.0.0.1,0.0.0.0/0', '::/0']) {
    it(`${text} stops the start`, () => assert.throws(() => read(text), /MARINA_TRUSTED_PROXIES must be addresses/));
  }
});
