import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { Cursors } from '../../../../src/gateway/edge/paging.ts';
import {
  checkSuccessor,
  KeyedDigest,
  type KeyRing,
  keysFor,
  onlyKey,
  parseKeyRing,
  Seal,
  subkey,
} from '../../../../src/kit/key-ring.ts';
import { identifyOperators, newOperatorToken, parseOperatorTokens } from '../../../../src/kit/operator-tokens.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';

const [one, two] = ['11'.repeat(32), '22'.repeat(32)];
const keys = (text: string) => keysFor(fixed(parseKeyRing(text)), 'a use');

describe('a ring of keys', () => {
  it('is lines of 64 hex characters, the current one first, and a single one is a ring', () => {
    const bytes = (text: string) => parseKeyRing(text).map(({ key }) => key.toString('hex'));
    assert.deepEqual(bytes(one), [one]);
    assert.deepEqual(bytes(`${one}\r\n\n ${two} \n`), [one, two]);
    assert.deepEqual(bytes(`${two},${one}`), [two, one]);
  });

  it('is refused without a word of it if a line is wrong, there twice, or the sixth', () => {
    const six = ['3a', '3b', '3c', '3d', '3e', '3f'].map((pair) => pair.repeat(32)).join('\n');
    for (const [text, why] of [
      ['', /^Error: must be 64 hex characters$/],
      [`${one}\ncanary`, /^Error: must be 64 hex characters$/],
      [`${one}\n${one.toUpperCase()}`, /^Error: must not have the same key twice$/],
      [six, /^Error: must be at most 5 keys$/],
    ] as const) {
      assert.throws(() => parseKeyRing(text), why);
    }
  });

  it('names its keys by an id that is none of the keys derived from them', () => {
    const [{ id, key }] = parseKeyRing(one);
    assert.match(id, /^[0-9a-f]{16}$/);
    assert.ok(!one.startsWith(id));
    assert.deepEqual(keys(one).all, [{ id, key: subkey(key, 'a use') }]);
  });

  it('can follow another one only with the key that was current', () => {
    checkSuccessor(parseKeyRing(`${two}\n${one}`), parseKeyRing(one));
    assert.throws(() => checkSuccessor(parseKeyRing(two), parseKeyRing(one)), /must stay as a former one/);
    assert.throws(() => checkSuccessor(parseKeyRing(two), parseKeyRing(`${one}\n${two}`)), /must stay/);
  });

  it('gives new keys to their users when it changes', () => {
    let tell = (_: KeyRing) => {};
    const onChange = (listener: typeof tell) => {
      tell = listener;
    };
    const live = { current: parseKeyRing(one), onChange };
    const used = keysFor(live, 'a use');
    tell(parseKeyRing(`${two}\n${one}`));
    assert.deepEqual(used.all, keys(`${two}\n${one}`).all);
  });

  it('opens seals of any of its keys, whatever their order, and seals with the current one', () => {
    const sealed = new Seal(keys(one)).seal('par_1', 'a secret');
    for (const ring of [`${one}\n${two}`, `${two}\n${one}`]) {
      assert.equal(new Seal(keys(ring)).open('par_1', sealed), 'a secret');
      assert.equal(new Seal(keys(ring)).openNamed('par_1', sealed).keyId, parseKeyRing(one)[0].id);
      assert.throws(() => new Seal(keys(ring)).open('par_2', sealed), /cannot be opened/);
    }
    assert.throws(() => new Seal(keys(two)).open('par_1', sealed), /lacks the key/);
    const resealed = new Seal(keys(`${two}\n${one}`)).seal('par_1', 'a secret');
    assert.equal(new Seal(keys(two)).open('par_1', resealed), 'a secret');
  });

  it('reads cursors of any of its keys, and no others', () => {
    const cursor = new Cursors(keys(one)).issue(['orders'], 'ord_1');
    assert.equal(new Cursors(keys(`${two}\n${one}`)).read(['orders'], cursor), 'ord_1');
    assert.throws(() => new Cursors(keys(two)).read(['orders'], cursor), /was not issued/);
    assert.throws(() => new Cursors(keys(`${two}\n${one}`)).read(['events'], cursor), /was not issued/);
  });

  it('finds a digest under any of its keys, with one MAC if the current one made it', () => {
    const digestOf = (ring: string, text: string) => {
      let macs = 0;
      const digest = new KeyedDigest(keys(ring), (hmac) => {
        macs += 1;
        return hmac.update(text);
      });
      return { digest, macs: () => macs };
    };
    const stored = digestOf(one, 'a request').digest.current;
    const same = digestOf(`${one}\n${two}`, 'a request');
    assert.deepEqual([same.digest.matches(stored), same.macs()], [true, 1]);
    assert.equal(digestOf(`${two}\n${one}`, 'a request').digest.matches(stored), true);
    assert.equal(digestOf(`${two}\n${one}`, 'another').digest.matches(stored), false);
    assert.equal(digestOf(two, 'a request').digest.matches(stored), false);
    const key = Buffer.alloc(32, 7);
    const expected = createHmac('sha256', key).update('x').digest();
    assert.deepEqual(new KeyedDigest(onlyKey(key), (hmac) => hmac.update('x')).current, expected, 'as versions before');
  });
});

describe("operators' tokens", () => {
  const names = (text: string) => parseOperatorTokens(text).map(({ name }) => name);
  const { token, line } = newOperatorToken('ada', Date.parse('2030-01-02T03:04:05.678Z'));

  it('stand in pairs with commas, as before, or in lines of both forms', () => {
    assert.deepEqual(names(''), []);
    assert.deepEqual(names(`ada:${'x'.repeat(24)},grace:a:colon:in:the:middle:of:it`), ['ada', 'grace']);
    assert.deepEqual(names(`ada:${'x'.repeat(24)}\r\n${line}\n`), ['ada', 'ada']);
    assert.match(line, /^ada sha256:[0-9a-f]{64} 2030-01-02T03:04:05Z role=admin$/);
    assert.ok(!line.includes(token));
  });

  it('are refused without a word of them if a line has no expiry, no date or no hash', () => {
    const hex = 'canary00'.repeat(8);
    for (const text of [
      `ada sha256:${'ab'.repeat(32)}`,
      `ada sha256:${'ab'.repeat(32)} 2030-13-01T00:00:00Z`,
      `ada sha256:${'ab'.repeat(32)} 2030-02-31T00:00:00Z`,
      `ada sha256:${'ab'.repeat(32)} 2030-01-01T25:00:00Z`,
      `ada sha256:${hex} 2030-01-01T00:00:00Z`,
      'ada:canary',
    ]) {
      assert.throws(
        () => parseOperatorTokens(text),
        (error: Error) => !/canary|abab/.test(error.message),
      );
    }
  });

  it('identify their operator until they expire', () => {
    let now = Date.parse('2030-01-02T03:04:04.999Z');
    const identify = identifyOperators(fixed(parseOperatorTokens(line)), () => now);
    assert.equal(identify([`Bearer ${token}`])?.name, 'ada');
    assert.equal(identify([`Bearer ${token}x`]), undefined);
    assert.equal(identify([]), undefined);
    now += 1;
    assert.equal(identify([`Bearer ${token}`]), undefined);
  });
});
