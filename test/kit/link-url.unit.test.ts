import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseLinkUrl } from '../../src/kit/link-url.ts';

const protocols = ['nats:', 'tls:'];
const plain = { protocol: 'nats:', host: 'one', port: undefined, user: '', password: '', path: '' };

describe("a link's URL", () => {
  it('a URL of a link is read with its parts decoded', () => {
    for (const [url, parts] of [
      ['nats://one', {}],
      ['tls://one', { protocol: 'tls:' }],
      ['nats://one:4000', { port: 4_000 }],
      ['nats://one/', {}],
      ['nats://one/a', { path: 'a' }],
      ['nats://one/a%2Fb/c', { path: 'a/b/c' }],
      ['nats://ada@one', { user: 'ada' }],
      ['nats://ada:word@one:1/a', { user: 'ada', password: 'word', port: 1, path: 'a' }],
      ['nats://a%40b:%3A%2F%3F%23%2C%25@one', { user: 'a@b', password: ':/?#,%' }],
      ['nats://:word@one', { password: 'word' }],
      ['nats://[2001:db8::1]:4222', { host: '2001:db8::1', port: 4_222 }],
      ['nats://[::1]', { host: '::1' }],
      ['nats://192.0.2.1', { host: '192.0.2.1' }],
      ['nats://one?', {}],
    ] as const) {
      assert.deepEqual(parseLinkUrl(url, protocols), { ...plain, ...parts }, url);
    }
  });

  it('a URL of a link is refused with what is wrong, and without a part of its user or password', () => {
    for (const [url, wrong] of [
      ['', /^must be nats:\/\/ or tls:\/\/ and one host; in a name or password/],
      ['one', /^must be nats:\/\//],
      ['http://one', /^must be nats:\/\//],
      ['nats://', /^must be nats:\/\//],
      ['nats:///path', /^must be nats:\/\//],
      ['nats://canary:canary', /^must be nats:\/\//],
      ['nats://canary@one,two', /^must name one host$/],
      ['nats://one?tls=true', /^has an unknown parameter tls$/],
      ['nats://one?tls=true&b=c', /^has an unknown parameter tls$/],
      ['nats://one?1=true', /^has an unknown parameter; in a name/],
      ['nats://one?a/b=true', /^has an unknown parameter; in a name/],
      [`nats://one?${'a'.repeat(41)}=1`, new RegExp(`^has an unknown parameter ${'a'.repeat(41)}$`)],
      [`nats://one?${'a'.repeat(42)}=1`, /^has an unknown parameter; in a name/],
      ['nats://ada:1?canary@one', /^has an unknown parameter; in a name|^must be/],
      ['nats://ada:1?canary=2@one', /^has an unknown parameter; in a name|^must be/],
      ['nats://ada?canary=2@one', /^has an unknown parameter; in a name/],
      ['nats://ada?canary@one', /^has an unknown parameter; in a name/],
      ['nats://one#canary', /^has an unknown part after #; in a name/],
      ['nats://canary%zz@one', /^has a % that begins no code; in a name/],
      ['nats://ada:canary%e2@one', /^has a % that begins no code; in a name/],
      ['nats://one/canary%zz', /^has a % that begins no code; in a name/],
    ] as const) {
      assert.throws(
        () => parseLinkUrl(url, protocols),
        ({ message }: Error) => {
          assert.match(message, wrong, url);
          assert.ok(!message.includes('canary'), message);
          return true;
        },
        url,
      );
    }
  });
});
