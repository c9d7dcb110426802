import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import ipaddr from 'ipaddr.js';
import {
  checkEndpointUrl,
  dialableLookup,
  mayDial,
} from '../../../../../src/gateway/delivery/webhooks/attempt/addresses.ts';
import { SendFailure } from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import { refusalOf } from '../../../../../src/gateway/edge/errors.ts';
import { startNameServer } from '../../../../support/name-server.ts';

/** IANA's special-purpose registries of IPv4 and IPv6 addresses, and what its lists of whole spaces reserve. */
const specialRanges = [
  ...['0.0.0.0/8', '0.0.0.0/32', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.0.0/29', '192.0.0.8/32', '192.0.0.9/32', '192.0.0.10/32', '192.0.0.170/32'],
  ...['192.0.0.171/32', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.88.99.2/32'],
  ...['192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'],
  ...['255.255.255.255/32', '224.0.0.0/4'],
  ...['::1/128', '::/128', '::/96', '64:ff9b:1::/48', '100::/64', '100:0:0:1::/64', '2001::/23', '2001:1::1/128'],
  ...['2001:1::2/128', '2001:1::3/128', '2001:2::/48', '2001:3::/32', '2001:4:112::/48', '2001:10::/28'],
  ...['2001:20::/28', '2001:30::/28', '2001:db8::/32', '2620:4f:8000::/48', '3fff::/20', '5f00::/16', 'fc00::/7'],
  ...['fe80::/10', 'fec0::/10', 'ff00::/8', '200::/7', '400::/6', '4000::/3', '8000::/2', 'e000::/4'],
];

const publicAddresses = ['1.1.1.1', '8.8.8.8', '41.58.0.1', '102.89.0.1', '192.0.1.1', '223.255.255.254'];
const publicIPv6 = ['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450::1', '2c0f:f248::1', '2400:cb00::1'];

/** The ways an IPv6 address stands for an IPv4 address. */
const embeddings: Record<string, (address: string) => string> = {
  'mapped into IPv6': (address) => `::ffff:${address}`,
  'behind NAT64': (address) => `64:ff9b::${address}`,
  'in 6to4': (address) => `2002:${hexWords(address)}::1`,
  "as Teredo's server": (address) => `2001:0:${hexWords(address)}:0:0:f7f7:f7f7`,
  "as Teredo's client": (address) => `2001:0:808:808:0:0:${hexWords(address, 0xff)}`,
};

function hexWords(address: string, turned = 0): string {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map((octet) => Number(octet) ^ turned);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

/** The first, the last and some address between them. */
function samplesOf(range: string): string[] {
  const [network, bits] = ipaddr.parseCIDR(range);
  const bytes = network.toByteArray();
  const filled = (host: (index: number) => number) =>
    ipaddr
      .fromByteArray(
        bytes.map((byte, index) => {
          const ownBits = Math.min(Math.max(bits - index * 8, 0), 8);
          const mask = (0xff << (8 - ownBits)) & 0xff;
          return (byte & mask) | (host(index) & ~mask & 0xff);
        }),
      )
      .toString();
  return [filled(() => 0), filled(() => 0xff), filled((index) => 37 * index)];
}

const strict = { allowLoopback: false };
const sandbox = { allowLoopback: true };

describe('an address that events may be sent to', () => {
  for (const range of specialRanges) {
    it(`is never in ${range}`, () => {
      for (const address of samplesOf(range)) assert.equal(mayDial(address, strict), false, address);
    });
  }

  for (const [how, embed] of Object.entries(embeddings)) {
    it(`is never a special IPv4 address ${how}`, () => {
      for (const address of specialRanges.filter((range) => !range.includes(':')).flatMap(samplesOf)) {
        assert.equal(mayDial(embed(address), strict), false, `${embed(address)} is ${address}`);
      }
    });

    it(`may be a public IPv4 address ${how}`, () => {
      for (const address of publicAddresses) assert.equal(mayDial(embed(address), strict), true, embed(address));
    });
  }

  it('is any other', () => {
    for (const address of [...publicAddresses, ...publicIPv6]) assert.equal(mayDial(address, strict), true, address);
  });

  it('has one spelling', () => {
    for (const text of ['', '1', '8.8.8', '010.8.8.8', '0x8.8.8.8', '8.8.8.8.', '8.8.8.8/32', '2606:4700::1%eth0']) {
      assert.equal(mayDial(text, sandbox), false, text);
    }
  });

  it('may be loopback where that is allowed, and nothing else private', () => {
    for (const address of ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1']) {
      assert.equal(mayDial(address, sandbox), true, address);
    }
    const others = specialRanges.flatMap(samplesOf).filter((address) => ipaddr.process(address).range() !== 'loopback');
    for (const address of others) assert.equal(mayDial(address, sandbox), false, address);
  });
});

describe('the URL of an endpoint', () => {
  const accepted = {
    'https://partner.com/hooks': 'https://partner.com/hooks',
    'HTTPS://Partner.COM': 'https://partner.com/',
    'https://partner.com:8443/a%20b/': 'https://partner.com:8443/a%20b/',
    'https://partner.com:443/': 'https://partner.com/',
    'https://xn--bcher-kva.ng/': 'https://xn--bcher-kva.ng/',
    'https://bücher.ng/@/': 'https://xn--bcher-kva.ng/@/',
    'https://8.8.8.8/hooks': 'https://8.8.8.8/hooks',
    'https://[2606:4700:4700::1111]:444/': 'https://[2606:4700:4700::1111]:444/',
    'https://localhost.partner.com/': 'https://localhost.partner.com/',
  };
  for (const [text, url] of Object.entries(accepted)) {
    it(`may be ${text}`, () => assert.equal(checkEndpointUrl(text, strict), url));
  }

  const refused: Record<string, readonly string[]> = {
    'https:': [
      '',
      'http://partner.com/',
      'partner.com/hooks',
      '//partner.com/',
      'https:partner.com',
      'https:///x.com/',
    ],
    read: ['https://', 'https://partner.com:99999/', 'https://[::1'],
    // From version 24 on Node reads it.
    'read|public host': ['https://xn--a/'],
    'user name': [
      'https://me@partner.com/',
      'https://me:secret@partner.com/',
      'https://:@partner.com/',
      'https://@x.ng',
    ],
    query: ['https://partner.com/?', 'https://partner.com/?a=b', 'https://partner.com?x'],
    fragment: ['https://partner.com/#', 'https://partner.com/#a'],
    spaces: [
      ' https://partner.com/',
      'https://a b/',
      'https://partner.com/\n',
      'https://part\tner.com/',
      'https:\\\\partner.com/',
    ],
    'port 0': ['https://partner.com:0/'],
    characters: [`https://partner.com/${'a'.repeat(1_100)}`],
    'public host': [
      ...['https://localhost/', 'https://LOCALHOST:8443/', 'https://localhost./', 'https://a.localhost/'],
      ...['https://intranet/', 'https://printer.local/', 'https://db.internal/', 'https://nas.home.arpa/'],
      // Every spelling of 127.0.0.1, 10.0.0.1 and 169.254.169.254 that the URL parser takes.
      ...['https://127.0.0.1/', 'https://127.1/', 'https://127.0.1/', 'https://2130706433/', 'https://0x7f000001/'],
      ...['https://0x7f.1/', 'https://0177.0.0.1/', 'https://017700000001/', 'https://127.0.0.1./', 'https://0/'],
      ...['https://１２７.０.０.１/', 'https://127。0。0。1/', 'https://①②⑦.⓪.⓪.①/', 'https://%31%32%37.0.0.1/'],
      ...['https://10.1/', 'https://0xa000001/', 'https://012.0.0.1/', 'https://169.254.169.254/latest/meta-data'],
      ...['https://2852039166/', 'https://0xa9fea9fe/', 'https://0251.0376.0251.0376/', 'https://169.254.43518/'],
      ...['https://[::1]/', 'https://[0:0:0:0:0:0:0:1]/', 'https://[::]/', 'https://[::ffff:127.0.0.1]/'],
      ...['https://[::ffff:7f00:1]/', 'https://[64:ff9b::127.0.0.1]/', 'https://[64:ff9b::a9fe:a9fe]/'],
      ...[
        'https://[2002:7f00:1::]/',
        'https://[2001:0:808:808::80ff:fffe]/',
        'https://[fe80::1]/',
        'https://[fd00::1]/',
      ],
    ],
  };
  for (const [rule, texts] of Object.entries(refused)) {
    for (const text of texts) {
      it(`is never ${JSON.stringify(text.slice(0, 60))}`, () => {
        const refusal = refusalOf(() => checkEndpointUrl(text, strict));
        assert.equal(refusal.code, 'invalid_request');
        assert.equal(refusal.param, 'url');
        assert.match(refusal.message, new RegExp(rule));
      });
    }
  }

  it('may lead to loopback in a sandbox that allows it, and to nothing else private', () => {
    for (const url of ['https://127.0.0.1:9/x', 'https://[::1]:9/', 'https://localhost:9/']) {
      assert.equal(checkEndpointUrl(url, sandbox), url);
    }
    for (const url of ['https://10.0.0.1/', 'https://169.254.169.254/', 'https://[fd00::1]/', 'https://db.internal/']) {
      assert.equal(refusalOf(() => checkEndpointUrl(url, sandbox)).param, 'url');
    }
  });
});

describe("the addresses of an endpoint's host", () => {
  const [publicAddress, privateAddress] = ['93.184.216.34', 'fd00::1'];

  /** Looks a host up whose second family is answered a moment after the first, or never. */
  async function lookUp(first: readonly string[], second: readonly string[] | 'silence') {
    const server = await startNameServer(async (_, family) => {
      if (family === 4) return first;
      await delay(50);
      return second;
    });
    const lookup = dialableLookup({ ...strict, nameServers: [server.address] });
    try {
      return await new Promise<readonly unknown[]>((resolve) =>
        lookup('hooks.partner.com', { all: true }, (error, found) => {
          const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [];
          resolve([error instanceof SendFailure ? error.errorClass : error, addresses.sort()]);
        }),
      );
    } finally {
      server.close();
    }
  }

  it("the addresses of an endpoint's host are those of both families, also if one of them is answered a moment later", async () => {
    const other = '2606:2800:220:1::1';
    assert.deepEqual(await lookUp([publicAddress], [other]), [null, [other, publicAddress]]);
  });

  it("the addresses of an endpoint's host are all blocked by a private one, also if it is answered a moment later", async () => {
    assert.deepEqual(await lookUp([publicAddress], [privateAddress]), ['blocked_address', []]);
  });

  it("the addresses of an endpoint's host are those of one family if the other one is never answered", async () => {
    assert.deepEqual(await lookUp([publicAddress], 'silence'), [null, [publicAddress]]);
  });
});
