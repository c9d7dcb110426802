import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  JsonNumber,
  JsonObject,
  type JsonTree,
  MalformedJson,
  maxDepth,
  readJson,
} from '../../../../src/gateway/edge/json/reader.ts';
import { fc } from '../../../support/properties.ts';

/** The tree as JSON.parse would have given it. */
function toPlain(tree: JsonTree): unknown {
  if (tree instanceof JsonNumber) return Number(tree.text);
  if (tree instanceof JsonObject) {
    const entries = tree.names.map((name, at): [string, unknown] => [name, toPlain(tree.values[at] as JsonTree)]);
    return Object.fromEntries(entries);
  }
  return Array.isArray(tree) ? tree.map(toPlain) : tree;
}

type Outcome = { ok: true; value: unknown } | { ok: false };

function ours(text: string): Outcome {
  try {
    return { ok: true, value: toPlain(readJson(Buffer.from(text))) };
  } catch (error) {
    assert.ok(error instanceof MalformedJson);
    return { ok: false };
  }
}

function theirs(text: string): Outcome {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return { ok: false };
  }
}

test('every JSON value is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.constantFrom('', ' ', '\n\t'), (value, space) => {
      const text = JSON.stringify(value, undefined, space);
      assert.deepEqual(ours(text), theirs(text));
    }),
    { numRuns: 500 },
  );
});

test('a text with something changed in it is taken exactly when JSON.parse takes it', () => {
  const piece = fc.constantFrom(
    ...'{}[]",:\\ \n\t\r0123456789.-+eEtruefalsn/b'.split(''),
    '\u0000',
    '\u001f',
    '\ufeff',
    'é',
    '\\u00',
    '\\ud83d',
  );
  const mutation = fc.record({ at: fc.nat(), remove: fc.nat(2), insert: fc.array(piece, { maxLength: 3 }) });
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      fc.array(mutation, { minLength: 1, maxLength: 3 }),
      (value, mutations) => {
        let text = JSON.stringify(value);
        for (const { at, remove, insert } of mutations) {
          const position = at % (text.length + 1);
          text = text.slice(0, position) + insert.join('') + text.slice(position + remove);
        }
        // A text cut inside a surrogate pair is no UTF-8, and so another test's business.
        fc.pre(!/\p{Surrogate}/u.test(text));
        assert.deepEqual(ours(text), theirs(text));
      },
    ),
    { numRuns: 3_000 },
  );
});

test('texts made of JSON tokens at random are taken exactly when JSON.parse takes them', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\n"',
    '1',
    '-0',
    '01',
    '1.5e3',
    '-',
    'true',
    'null',
    ' ',
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 10 }), (tokens) => {
      assert.deepEqual(ours(tokens.join('')), theirs(tokens.join('')));
    }),
    { numRuns: 5_000 },
  );
});

test('numbers keep the text they were written in', () => {
  for (const text of ['9007199254740993', '-0', '1.0', '1e400', '123456789012345678901234567890']) {
    assert.deepEqual(readJson(Buffer.from(text)), new JsonNumber(text));
  }
});

test('repeated members are all kept, in the order written', () => {
  const tree = readJson(Buffer.from('{"b":1,"a":2,"b":3,"__proto__":4}'));
  assert.ok(tree instanceof JsonObject);
  assert.deepEqual(tree.names, ['b', 'a', 'b', '__proto__']);
  assert.deepEqual(tree.values.map(toPlain), [1, 2, 3, 4]);
});

test('nesting is taken to its bound and refused beyond it', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  assert.equal(ours(nested(maxDepth)).ok, true);
  assert.equal(ours(nested(maxDepth + 1)).ok, false);
  assert.equal(ours('{"a":'.repeat(20_000)).ok, false);
});

test('bytes that are not UTF-8, and a byte order mark, are refused', () => {
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0xef, 0xbb, 0xbf, 0x31],
  ]) {
    assert.throws(() => readJson(Buffer.from(bytes)), MalformedJson);
  }
  assert.throws(() => readJson(Buffer.from('"a"', 'utf16le')), MalformedJson);
});
