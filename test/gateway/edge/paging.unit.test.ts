import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { Cursors } from '../../../src/gateway/edge/paging.ts';
import { keysFor, onlyKey, parseKeyRing } from '../../../src/kit/key-ring.ts';
import { fixed } from '../../../src/kit/watched-files.ts';
import { fc } from '../../support/properties.ts';

const issuedFor = ['orders', 'p', '{}'];

function assertRefused(cursors: Cursors, context: readonly string[], text: string): void {
  assert.throws(
    () => cursors.read(context, text),
    (error) => error instanceof ApiError && error.code === 'invalid_request' && error.param === 'cursor',
    text,
  );
}

describe('cursors', () => {
  const cursors = new Cursors(onlyKey(Buffer.alloc(32, 1)));

  it('cursors return any position they were issued with, also that before anything', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 60 });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 4 }), text, (context, position) => {
        assert.equal(cursors.read(context, cursors.issue(context, position)), position);
      }),
    );
    assert.equal(cursors.read(issuedFor, cursors.issue(issuedFor, '')), '');
    assert.equal(cursors.issue(issuedFor, 'ord_x'), cursors.issue(issuedFor, 'ord_x'), 'the same is the same');
  });

  it('cursors are refused elsewhere, changed, or made up', () => {
    for (const position of ['ord_x', '']) {
      const cursor = cursors.issue(issuedFor, position);
      for (const other of [['orders', 'q', '{}'], ['events', 'p', '{}'], ['orders', 'p', '{"a":1}'], []]) {
        assertRefused(cursors, other, cursor);
      }
      for (const text of [`${cursor}A`, `${cursor}=`, cursor.slice(1), cursor.slice(0, -1), `${cursor} `]) {
        assertRefused(cursors, issuedFor, text);
      }
      const foreign = new Cursors(onlyKey(Buffer.alloc(32, 2)));
      assertRefused(cursors, issuedFor, foreign.issue(issuedFor, position));
    }
    for (const text of ['', 'x', '!!!!', 'A'.repeat(21), 'A'.repeat(22), 'A'.repeat(24)]) {
      assertRefused(cursors, issuedFor, text);
    }
  });

  it('cursors are believed under each secret of the ring, wherever it stands there, and under no other', () => {
    const secrets = ['11', '22', '33'].map((pair) => pair.repeat(32));
    const under = (ring: readonly string[]) => new Cursors(keysFor(fixed(parseKeyRing(ring.join('\n'))), 'a use'));
    for (const issuing of secrets) {
      const cursor = under([issuing]).issue(issuedFor, 'ord_x');
      const others = secrets.filter((secret) => secret !== issuing);
      assertRefused(under(others), issuedFor, cursor);
      for (let at = 0; at <= others.length; at += 1) {
        const ring = under(others.toSpliced(at, 0, issuing));
        assert.equal(ring.read(issuedFor, cursor), 'ord_x', `at place ${at}`);
        assertRefused(ring, ['events', 'p', '{}'], cursor);
      }
    }
  });
});
