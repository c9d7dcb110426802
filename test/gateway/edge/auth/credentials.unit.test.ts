import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { crc32 } from 'node:zlib';
import { areTooWide } from '../../../../src/gateway/edge/auth/key-addresses.ts';
import { makeKey, parseKey, sameHash } from '../../../../src/gateway/edge/auth/keys.ts';
import { isAddressOrRange, isLoopback, isRegistered } from '../../../../src/kit/addresses.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';

const macKeys = onlyKey(randomBytes(32));

describe('the addresses of a live key', () => {
  it('are at most a /16 of IPv4 and a /32 of IPv6, all ranges together', () => {
    for (const ranges of [
      ['10.1.0.0/16'],
      ['10.1.0.0/17', '10.2.0.0/17'],
      ['2001:db8::/32', '192.0.2.0/24'],
      ['192.0.2.1', '2001:db8::1'],
      [],
    ]) {
      assert.equal(areTooWide(ranges), false, ranges.join());
    }
    for (const ranges of [
      ['0.0.0.0/1', '128.0.0.0/1'],
      ['10.0.0.0/15'],
      ['10.1.0.0/16', '192.0.2.1'],
      ['::/1', '8000::/1'],
      ['2001:db8::/32', '2001:db9::1'],
      Array.from({ length: 20 }, (_, at) => `${at}.0.0.0/17`),
    ]) {
      assert.equal(areTooWide(ranges), true, ranges.join());
    }
  });
});

describe('the addresses a key works from', () => {
  it('are those registered, and not the ones next to them', () => {
    for (const [registered, inside, outside] of [
      ['192.0.2.7', ['192.0.2.7', '::ffff:192.0.2.7'], ['192.0.2.6', '192.0.2.8', '::c000:207']],
      ['192.0.2.8/30', ['192.0.2.8', '192.0.2.11'], ['192.0.2.7', '192.0.2.12']],
      ['2001:db8::7', ['2001:db8::7', '2001:0db8:0:0::7'], ['2001:db8::6', '2001:db8::8', '2001:db8::1:7']],
      ['2001:db8::/64', ['2001:db8::', '2001:db8::ffff:0:0:1'], ['2001:db8:0:1::', '2001:db7:ffff::']],
    ] as const) {
      for (const address of inside) assert.ok(isRegistered(address, [registered]), `${address} of ${registered}`);
      for (const address of outside) assert.ok(!isRegistered(address, [registered]), `${address} of ${registered}`);
    }
    assert.ok(isRegistered('192.0.2.1', ['2001:db8::/32', '192.0.2.1']), 'one of several');
    for (const none of ['', 'nonsense', '192.0.2.1.1']) assert.ok(!isRegistered(none, ['0.0.0.0/0', '::/0']), none);
  });

  it('are written as addresses or ranges', () => {
    const texts = ['192.0.2.1', '192.0.2.0/24', '2001:db8::/32', '192.0.2.0/33', 'x', '192.0.2.1/', ''];
    assert.deepEqual(texts.map(isAddressOrRange), [true, true, true, false, false, false, false]);
  });

  it('are this machine alone where the host is loopback', () => {
    const hosts = [
      '127.0.0.1',
      '127.9.9.9',
      '::1',
      '::ffff:127.0.0.1',
      'localhost',
      '0.0.0.0',
      '::',
      '10.0.0.1',
      'local',
    ];
    assert.deepEqual(hosts.map(isLoopback), [true, true, true, true, true, false, false, false, false]);
  });
});

describe('the text of a key', () => {
  const { key } = makeKey('sandbox', macKeys, 'abcdefghijklmn');
  const parsed = (text: string) => parseKey('sandbox', macKeys, text);

  /** A text with the checksum that belongs to it. */
  function summed(body: string): string {
    let bits = crc32(body);
    let sum = '';
    for (; sum.length < 6; bits >>>= 5) sum += 'abcdefghijklmnopqrstuvwxyz234567'[bits & 31];
    return body + sum;
  }

  it('has its length and its letters, whatever its checksum says', () => {
    const body = key.slice(0, -6);
    assert.equal(summed(body), key);
    assert.equal(typeof parsed(key), 'object');
    for (const text of [
      `${body}a`,
      `${body}1`,
      body.slice(0, -1),
      `${body.slice(0, -1)}A`,
      `x${body}`,
      body.slice(12),
    ]) {
      assert.equal(parsed(summed(text)), 'malformed', text);
    }
    assert.equal(parsed(`${key}\n`), 'malformed');
  });
});

describe('the hash of a secret', () => {
  it('is the same as itself alone', () => {
    const hash = randomBytes(32);
    const other = Buffer.from(hash);
    other.writeUInt8(hash.readUInt8(31) ^ 1, 31);
    assert.ok(sameHash(hash, Buffer.from(hash)));
    for (const wrong of [other, hash.subarray(1), Buffer.concat([hash, hash]), Buffer.alloc(0)]) {
      assert.equal(sameHash(hash, wrong), false, `${wrong.length} bytes`);
      assert.equal(sameHash(wrong, hash), false, `${wrong.length} bytes`);
    }
  });
});
