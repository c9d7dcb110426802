import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from '../../../../src/gateway/edge/limits/counter-store.ts';
import {
  type Bucket,
  bucketFrom,
  type Draw,
  draw,
  waitForToken,
} from '../../../../src/gateway/edge/limits/shared-buckets.ts';

/** A draw by replica `a`, at an instant that is known exactly. */
function by(nowMs: number, fields: Partial<Draw> = {}): Draw {
  const usual = { replica: 'a', own: 0, ownSince: 0, given: 0, charge: 0, needed: 0, spare: 0 };
  return { ...usual, now: { atLeast: nowMs, atMost: nowMs }, ...fields };
}

function bucket(level: number, at = 0, held: Bucket['held'] = {}): Bucket {
  return { level, at, held };
}

const rate = { perSecond: 10, burst: 10 };

describe('a bucket of tokens', () => {
  it('gives what is needed, and of what is left at most half', () => {
    const { bucket: after, drawn } = draw(bucket(10), rate, by(0, { needed: 1, spare: 100 }));
    assert.equal(drawn, 5);
    assert.deepEqual(after, { level: 5, at: 0, held: { a: { tokens: 5, until: 2_000 } } });
    assert.equal(draw(bucket(10), rate, by(0, { needed: 1, spare: 2 })).drawn, 3);
    assert.equal(draw(bucket(2.9), rate, by(0, { needed: 5, spare: 5 })).drawn, 2);
    assert.equal(draw(bucket(10), rate, by(0, { needed: 3 })).drawn, 3);
  });

  it('fills with time to what it holds and no further', () => {
    assert.equal(draw(bucket(0), rate, by(250, { needed: 10 })).drawn, 2);
    assert.equal(draw(bucket(0), rate, by(60_000, { needed: 20 })).drawn, 10);
  });

  it('fills more slowly by as much as two replicas may differ about the time', () => {
    const now = { atLeast: 1_000, atMost: 1_100 };
    const { bucket: after, drawn } = draw(bucket(0), rate, by(0, { needed: 10, now }));
    assert.equal(drawn, 9);
    assert.equal(after.held.a?.until, 3_100);
    const unsure = { atLeast: 1_000, atMost: 2_500 };
    assert.equal(draw(bucket(0), rate, by(0, { needed: 10, now: unsure })).drawn, 0);
  });

  it('counts what other replicas hold as if it were in it', () => {
    const held = { b: { tokens: 6, until: 5_000 } };
    const { bucket: after, drawn } = draw(bucket(10, 0, held), rate, by(1_000, { needed: 10 }));
    assert.equal(drawn, 4);
    assert.deepEqual(after.held.b, held.b);
  });

  it('fills with what another replica held only from when its time is over', () => {
    const before = bucket(4, 0, { b: { tokens: 6, until: 1_000 } });
    const { bucket: after, drawn } = draw(before, rate, by(1_200, { needed: 10 }));
    assert.equal(drawn, 6);
    assert.equal(after.held.b, undefined);
    const two = bucket(0, 0, { b: { tokens: 5, until: 1_000 }, c: { tokens: 5, until: 500 } });
    assert.equal(draw(two, rate, by(1_100, { needed: 10 })).drawn, 6, 'five from 500 on, and one after 1,000');
  });

  it('fills with what its own replica used only from when it was used', () => {
    const before = bucket(0, 0, { a: { tokens: 5, until: 2_000 } });
    const used = { own: 3, ownSince: 500, needed: 5 };
    assert.equal(draw(before, { perSecond: 2, burst: 5 }, by(1_000, used)).drawn, 1);
    assert.equal(draw(before, { perSecond: 2, burst: 5 }, by(9_000, used)).drawn, 2, 'it holds three already');
  });

  it('takes back what is given, and can owe what was taken while nobody could be asked', () => {
    assert.equal(draw(bucket(1), rate, by(0, { given: 3, needed: 9 })).drawn, 4);
    const { bucket: after, drawn } = draw(bucket(1), rate, by(0, { charge: 4, needed: 2 }));
    assert.deepEqual([drawn, after], [0, { level: -3, at: 0, held: {} }]);
  });

  it('is not believed with a time that only a clock can have written that was set back since', () => {
    const now = { atLeast: 1_000, atMost: 1_000 };
    const near = bucket(0, 6_000, { b: { tokens: 10, until: 8_000 } });
    assert.deepEqual(bucketFrom(near, now), near);
    assert.equal(bucketFrom({ ...near, at: 6_001 }, now), undefined);
    assert.equal(bucketFrom({ ...near, held: { b: { tokens: 10, until: 8_001 } } }, now), undefined);
    assert.deepEqual(draw(bucket(0, 6_000), rate, by(1_000)).bucket, { level: 0, at: 6_000, held: {} });
  });

  it('says how long it takes until it has a token', () => {
    assert.equal(waitForToken(0.4, { perSecond: 2, burst: 5 }), 300);
    assert.equal(waitForToken(-1, rate), 200);
    assert.equal(waitForToken(1, rate), 0);
    assert.equal(waitForToken(5, rate), 0);
    assert.equal(waitForToken(0, { perSecond: 0, burst: 0 }), Number.POSITIVE_INFINITY);
  });

  it('is read from its text, and what is none is not', () => {
    const whole = bucket(-2.5, 7, { b: { tokens: 0, until: 8 } });
    assert.deepEqual(bucketFrom({ ...whole, more: 1 }, { atLeast: 0, atMost: 0 }), whole);
    const none = [
      '',
      'null',
      '1',
      '{}',
      '{"level":"1","at":1,"held":{}}',
      '{"level":1,"held":{}}',
      '{"level":1,"at":1}',
      '{"level":1,"at":1,"held":null}',
      '{"level":1,"at":1,"held":"x"}',
      '{"level":1,"at":1,"held":{"b":null}}',
      '{"level":1,"at":1,"held":{"b":{"tokens":-1,"until":1}}}',
      '{"level":1,"at":1,"held":{"b":{"tokens":"1","until":1}}}',
      '{"level":1,"at":1,"held":{"b":{"tokens":1}}}',
      '{"level":1,"at":1,"held":{"a":{"tokens":1,"until":1},"b":{"until":1}}}',
    ];
    for (const text of none) assert.equal(bucketFrom(parse(text), { atLeast: 0, atMost: 0 }), undefined, text);
  });
});
