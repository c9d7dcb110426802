import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { activeChildren, type KeyLine } from '../../../../src/gateway/edge/auth/key-rules.ts';
import { isRegistered, isWithin, normalAddress } from '../../../../src/kit/addresses.ts';
import { fc } from '../../../support/properties.ts';

describe('the addresses of a key', () => {
  const forms: readonly (readonly [string, string | undefined])[] = [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1/32', '192.0.2.1'],
    ['192.0.2.77/24', '192.0.2.0/24'],
    ['203.0.113.255/25', '203.0.113.128/25'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8:0:0::1', '2001:db8::1'],
    ['2001:db8:ffff::1/36', '2001:db8:f000::/36'],
    ['::/0', '::/0'],
    ['::ffff:192.0.2.1', undefined],
    ['::ffff:0:0/96', undefined],
    ['192.0.2.1/33', undefined],
    ['2001:db8::/129', undefined],
    ['192.0.2.1/', undefined],
    ['192.0.2.1/024', undefined],
    ['192.0.2.0/24/24', undefined],
    ['192.0.2.0/-1', undefined],
    ['192.0.2', undefined],
    ['010.0.0.1', undefined],
    ['0x7f.0.0.1', undefined],
    ['3221225985', undefined],
    ['fe80::1%eth0', undefined],
    [' 192.0.2.1', undefined],
    ['example.com', undefined],
  ];
  for (const [text, kept] of forms) {
    it(`${text} is ${kept === undefined ? 'refused' : `kept as ${kept}`}`, () => {
      assert.equal(normalAddress(text), kept);
      if (kept !== undefined) assert.equal(normalAddress(kept), kept);
    });
  }

  const octet = fc.integer({ min: 0, max: 255 });
  const address = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'));
  const range = fc.tuple(address, fc.integer({ min: 0, max: 32 })).map(([each, bits]) => `${each}/${bits}`);

  it('a range within another one works only from where the outer one does', () => {
    const property = fc.property(range, range, address, (inner, outer, client) => {
      if (!isWithin(inner, [outer])) return;
      const kept = [inner, outer].map((each) => normalAddress(each) ?? '');
      if (isRegistered(client, kept.slice(0, 1))) assert.ok(isRegistered(client, kept.slice(1)));
      assert.ok(isRegistered(kept[0]?.split('/')[0] ?? '', kept.slice(1)));
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it('every range lies within itself, everything within everywhere, and no kind within the other', () => {
    fc.assert(
      fc.property(range, (each) => {
        assert.ok(isWithin(each, [each]));
        assert.ok(isWithin(each, ['198.51.100.1', '0.0.0.0/0']));
        assert.ok(!isWithin(each, ['::/0']));
      }),
    );
  });
});

describe('the children of a key', () => {
  const made = (id: string, createdBy?: string, isActive = true): KeyLine => ({ id, createdBy, isActive });

  it('are the active keys that were made with it, or with one of those', () => {
    const lines = [made('a'), made('b', 'a'), made('c', 'b', false), made('d', 'c'), made('e', 'a'), made('f')];
    assert.deepEqual(activeChildren('a', lines), ['b', 'd', 'e']);
    assert.deepEqual(activeChildren('b', lines), ['d']);
    assert.deepEqual(activeChildren('c', lines), ['d']);
    assert.deepEqual(activeChildren('f', lines), []);
  });

  it('count among them a key whose line is too long to follow, and no other', () => {
    const lines = [made('0', undefined, false), ...Array.from({ length: 6 }, (_, at) => made(`${at + 1}`, `${at}`))];
    assert.deepEqual(activeChildren('leaked', lines, 7), []);
    assert.deepEqual(activeChildren('leaked', lines, 6), ['6']);
  });
});
