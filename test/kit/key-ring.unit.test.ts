/** The keys of a ring, in each place that one can have. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KeyedDigest, type Keys, keysFor, parseKeyRing, RowSeal, Seal } from '../../src/kit/key-ring.ts';
import { fixed } from '../../src/kit/watched-files.ts';

const names = ['11', '22', '33', '44', '55'];
const keysOf = (...ring: readonly string[]): Keys =>
  keysFor(fixed(parseKeyRing(ring.map((name) => name.repeat(32)).join('\n'))), 'a use');

const digest = (keys: Keys, content: string) => new KeyedDigest(keys, (hmac) => hmac.update(content));
/** Each way in which something is made under a key and read under a ring. */
const ways: Readonly<Record<string, (maker: Keys, reader: Keys, made: string, read: string) => boolean>> = {
  'a digest': (maker, reader, made, read) => digest(reader, read).matches(digest(maker, made).current),
  'a seal of a row': (maker, reader, made, read) => {
    const id = new RowSeal(reader).keyOf(new RowSeal(maker).make(made), read);
    if (id !== undefined) assert.equal(id, maker.all[0].id);
    return id !== undefined;
  },
  'a sealed text': (maker, reader, made, read) => {
    const sealed = new Seal(maker).seal(made, 'text');
    try {
      const { text, keyId } = new Seal(reader).openNamed(read, sealed);
      assert.deepEqual([text, keyId], ['text', maker.all[0].id]);
      return true;
    } catch {
      return false;
    }
  },
};

for (const [what, isRead] of Object.entries(ways)) {
  describe(`${what} under a key of a ring`, () => {
    for (let length = 1; length <= names.length; length += 1) {
      for (let at = 0; at < length; at += 1) {
        it(`${what} is right if its key is number ${at + 1} of ${length}, and only with the same content`, () => {
          const ring = names.slice(0, length);
          const [maker, reader] = [keysOf(ring[at] ?? ''), keysOf(...ring)];
          assert.equal(isRead(maker, reader, 'content', 'content'), true);
          assert.equal(isRead(maker, reader, 'content', 'another'), false);
        });
      }

      it(`${what} is wrong if its key is none of ${length}`, () => {
        assert.equal(isRead(keysOf('66'), keysOf(...names.slice(0, length)), 'content', 'content'), false);
      });
    }

    it(`${what} is made under the first key`, () => {
      assert.equal(isRead(keysOf('11', '22'), keysOf('11'), 'content', 'content'), true);
      assert.equal(isRead(keysOf('11', '22'), keysOf('22'), 'content', 'content'), false);
    });
  });
}
