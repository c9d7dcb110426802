import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Delivery } from '../../src/webhooks/delivery-store.ts';
import type { StoredEndpoint } from '../../src/webhooks/endpoint-store.ts';
import { Lane, type NextTry } from '../../src/webhooks/lane.ts';
import { freshHealth, type Health, type Outcome, rowServesMs } from '../../src/webhooks/rules.ts';

const idle = { underWay: 0, retriesUnderWay: 0 };
const plenty = 1_000;
const paused: Health = { streak: 3, pausedAt: 0, probeAt: 60_000, probedVersion: 0n };

function endpoint(change: Partial<StoredEndpoint> = {}): StoredEndpoint {
  return {
    partnerId: 'par_1',
    url: 'https://example.com/',
    secret: Buffer.alloc(0),
    oldSecret: null,
    oldSecretUntil: null,
    afterVersion: 0n,
    registeredAt: 0,
    generation: 1,
    health: freshHealth,
    heldAt: null,
    draining: false,
    fence: 1n,
    revision: 1n,
    changedRevision: 0n,
    seenRevision: 0n,
    ...change,
  };
}

function delivery(version: number, isRetry = false): Delivery {
  return {
    version: BigInt(version),
    eventId: `msg_${version}`,
    type: 'order.pending',
    committedAt: 0,
    dueSince: version,
    tries: isRetry ? 1 : 0,
    round: 0,
    isRetry,
    requestId: null,
    traceParent: null,
    body: Buffer.from('{}'),
  };
}

function start(change: Partial<StoredEndpoint> = {}, askedAt = performance.now()): Lane {
  return new Lane(endpoint(change), askedAt);
}

/** Begins all it may, and answers with their versions. */
function beginAll(lane: Lane): { versions: number[]; tries: NextTry[] } {
  const tries: NextTry[] = [];
  for (;;) {
    const next = lane.next(idle);
    if (next === 'nothing' || next === 'no shared place') break;
    tries.push(next);
  }
  return { versions: tries.map(({ delivery: { version } }) => Number(version)), tries };
}

function end(lane: Lane, next: NextTry, outcome: Outcome, generation = 1): void {
  const { version } = next.delivery;
  lane.end(next, { version, outcome, isProbe: next.isProbe, endedAt: 0, durationMs: 5 }, generation);
}

describe('what is sent to an endpoint next', () => {
  it('is the oldest, at most four at once at first, and nothing twice that is under way or not recorded', () => {
    const lane = start();
    lane.take(
      [1, 2, 3, 4, 5, 6].map((version) => delivery(version)),
      false,
    );
    const { versions, tries } = beginAll(lane);
    assert.deepEqual(versions, [1, 2, 3, 4]);
    end(lane, tries[0] as NextTry, 'delivered');
    // It is read again before it is recorded.
    lane.take(
      [1, 2, 5].map((version) => delivery(version)),
      false,
    );
    assert.deepEqual(beginAll(lane).versions, [5]);
    for (const next of tries.slice(1)) end(lane, next, 'delivered');
    assert.deepEqual(beginAll(lane).versions, [6], 'what was read again is not sent again');
    lane.recorded([1n], endpoint());
    assert.deepEqual(lane.known, [2n, 3n, 4n, 5n, 6n], 'what must not be read again');
  });

  it('is one that others would overtake, alone, until it is ahead of them', () => {
    const lane = start();
    lane.take([delivery(1), delivery(2)], false);
    const first = lane.next(idle) as NextTry;
    lane.letAhead(first);
    assert.equal(lane.next(idle), 'nothing');
    assert.equal(lane.isAhead(first), true);
    assert.equal(lane.isAhead(first), false, 'once');
    assert.deepEqual(beginAll(lane).versions, [2]);
  });

  it('is a retry first when none of its retries is under way, and one at a time while new events come', () => {
    const lane = start();
    lane.take([delivery(5), delivery(6), delivery(7), delivery(1, true), delivery(2, true), delivery(3, true)], false);
    assert.deepEqual(beginAll(lane).versions, [5, 1, 6, 7]);
    const retriesOnly = start();
    retriesOnly.take(
      [1, 2, 3, 4].map((version) => delivery(version, true)),
      false,
    );
    assert.deepEqual(beginAll(retriesOnly).versions, [1, 2], 'half of its places are for retries');
  });

  it('is nothing by a row that was asked for 3 seconds ago, until the row is confirmed', () => {
    const lane = start({}, performance.now() - rowServesMs - 1);
    lane.take([delivery(1)], false);
    assert.equal(lane.next(idle), 'nothing', 'an operator may have changed the row since');
    lane.confirm(performance.now());
    assert.deepEqual(beginAll(lane).versions, [1]);
  });

  it('is nothing while an operator holds it, and what waited is read anew afterwards', () => {
    const lane = start();
    lane.take([delivery(1)], false);
    lane.adopt(endpoint({ heldAt: 5, revision: 2n }));
    assert.deepEqual([beginAll(lane).versions, lane.isEmpty], [[], true]);
    assert.equal(lane.wants(0, plenty), undefined);
    lane.take([delivery(1)], false);
    assert.equal(lane.isEmpty, true, 'what was asked for before it was held is not taken');
    lane.adopt(endpoint({ revision: 3n }));
    assert.equal(lane.wants(0, plenty)?.kind, 'waiting');
  });

  it('follows the newest row: one that was read before is not gone back to', () => {
    const lane = start({ revision: 5n, url: 'https://new.example.com/' });
    lane.adopt(endpoint({ revision: 4n }));
    assert.equal(lane.endpoint.url, 'https://new.example.com/');
    lane.adopt(endpoint({ revision: 5n, url: 'https://newer.example.com/' }));
    assert.equal(lane.endpoint.url, 'https://newer.example.com/');
  });

  it('is nothing more once 512 attempts wait to be recorded', () => {
    const lane = start();
    for (let version = 1; version <= 512; version += 1) {
      assert.notEqual(lane.wants(0, plenty), undefined, `${version - 1} wait to be recorded`);
      lane.take([delivery(version)], false);
      end(lane, lane.next(idle) as NextTry, 'delivered');
    }
    lane.take([delivery(513)], false);
    assert.deepEqual([lane.wants(0, plenty), lane.next(idle)], [undefined, 'nothing']);
    lane.recorded([1n], endpoint());
    assert.deepEqual(beginAll(lane).versions, [513]);
  });
});

describe('what of an endpoint is held in memory', () => {
  it('is four deliveries for each place and no more than its share, read when half of them are gone', () => {
    const wanted = (fresh: number, retries: number, share = plenty) => {
      const lane = start();
      lane.take(
        Array.from({ length: fresh }, (_, at) => delivery(at + 1)),
        false,
      );
      lane.take(
        Array.from({ length: retries }, (_, at) => delivery(at + 101, true)),
        false,
      );
      const wish = lane.wants(0, share);
      return wish?.kind === 'waiting' ? [wish.fresh, wish.retries] : wish?.kind;
    };
    assert.deepEqual(wanted(0, 0), [16, 4]);
    assert.deepEqual(wanted(0, 0, 6), [6, 4]);
    assert.deepEqual(wanted(8, 2), [8, 2]);
    assert.deepEqual(wanted(9, 2), [0, 2]);
    assert.deepEqual(wanted(8, 3), [8, 0]);
    assert.equal(wanted(9, 3), undefined);
    const lane = start();
    lane.mayHaveMore = { fresh: false, retries: false };
    assert.equal(lane.wants(0, plenty), undefined, 'the queue has no more');
    lane.grow();
    assert.deepEqual(lane.wants(0, plenty), { kind: 'waiting', fresh: 16, retries: 0 }, 'new events have come');
    lane.isLoading = true;
    assert.equal(lane.wants(0, plenty), undefined, 'it is being read');
  });

  it('is read on from the newest new event, and from the start when anything may have changed', () => {
    const lane = start();
    lane.take([delivery(7), delivery(3), delivery(9, true)], false);
    assert.deepEqual([lane.readUpTo, lane.oldestDue], [7n, 7]);
    lane.stir();
    assert.deepEqual([lane.readUpTo, lane.mayHaveMore], [0n, { fresh: true, retries: true }]);
    const retries = start();
    assert.equal(retries.oldestDue, undefined);
    retries.take([delivery(9, true)], false);
    assert.deepEqual([retries.oldestDue, retries.isEmpty], [9, false]);
    retries.take([delivery(12)], false);
    assert.equal(retries.oldestDue, 9);
  });
});

describe('the places of an endpoint', () => {
  const many = (count: number, isRetry = false) => Array.from({ length: count }, (_, at) => delivery(at + 1, isRetry));

  it('are given back by an attempt that ends, of a retry too, and by one that is not made after all', () => {
    const retries = start();
    retries.take(many(6, true), false);
    const [first, second] = beginAll(retries).tries;
    end(retries, first as NextTry, 'event-failed');
    assert.deepEqual(beginAll(retries).versions, [3]);
    retries.pass(second as NextTry);
    assert.deepEqual(beginAll(retries).versions, [4]);
    assert.ok(retries.known.includes(2n), 'what is gone is not read again and again');
    const fresh = start();
    fresh.take(many(6), false);
    fresh.pass(beginAll(fresh).tries[0] as NextTry);
    assert.deepEqual(beginAll(fresh).versions, [5]);
  });

  it('are half as many after a failure of its own, and as many as before when an event is at fault', () => {
    for (const [outcome, after] of [
      ['endpoint-failed', []],
      ['event-failed', [5]],
      ['delivered', [5]],
    ] as const) {
      const lane = start();
      lane.take(many(8), false);
      const { tries } = beginAll(lane);
      end(lane, tries[0] as NextTry, outcome);
      assert.deepEqual(beginAll(lane).versions, after, `after ${outcome}, with three under way`);
    }
  });

  it('are the last there are only after an attempt was delivered', () => {
    const lane = start();
    const crowd = { underWay: 800, retriesUnderWay: 0 };
    lane.take(many(8), false);
    assert.equal(lane.next(crowd), 'no shared place');
    const [first, second] = beginAll(lane).tries;
    end(lane, first as NextTry, 'delivered');
    assert.equal(typeof lane.next(crowd), 'object');
    end(lane, second as NextTry, 'endpoint-failed');
    assert.notEqual(typeof lane.next(crowd), 'object');
  });

  it('stay empty for a while when its events cannot be signed; what was about to be sent is read anew', () => {
    const lane = start();
    lane.take(many(3), false);
    const next = lane.next(idle) as NextTry;
    lane.pass(next);
    lane.rest(next);
    assert.deepEqual([lane.isEmpty, lane.wants(0, plenty), lane.next(idle)], [true, undefined, 'nothing']);
  });
});

describe('an endpoint that fails three times in a row', () => {
  function failing(): Lane {
    const lane = start();
    lane.take(
      [1, 2, 3, 4, 5].map((version) => delivery(version)),
      false,
    );
    for (const next of beginAll(lane).tries.slice(0, 3)) end(lane, next, 'endpoint-failed');
    return lane;
  }

  it('is tried again though a clock that was a day ahead paused it', () => {
    const ahead = 86_400_000;
    const lane = start({ health: { ...paused, pausedAt: ahead, probeAt: ahead + 60_000 } });
    assert.deepEqual(lane.wants(0, plenty), { kind: 'probe' });
  });

  it('is paused at once, before that is recorded: nothing more begins, and a probe is read when it is due', () => {
    const lane = failing();
    assert.equal(lane.isPaused, true);
    assert.deepEqual(beginAll(lane).versions, []);
    assert.equal(lane.wants(59_999, plenty), undefined, 'before the probe is due');
    assert.deepEqual(lane.wants(60_000, plenty), { kind: 'probe' });
  });

  it('is tried with one event at a time', () => {
    const lane = start({ health: paused });
    lane.take([delivery(7)], false);
    assert.equal(lane.isEmpty, true, 'what was read as if it were not paused is not taken');
    lane.take([delivery(7)], true);
    const [probe] = beginAll(lane).tries;
    assert.deepEqual([probe?.isProbe, Number(probe?.delivery.version)], [true, 7]);
    assert.equal(lane.wants(60_000, plenty), undefined, 'the probe is under way');
    end(lane, probe as NextTry, 'endpoint-failed');
    assert.deepEqual([lane.isPaused, lane.health.probedVersion], [true, 7n]);
    assert.deepEqual(lane.wants(60_000, plenty), { kind: 'probe' }, 'the next probe, when it is due');
  });

  it('stays paused by what is known here alone, though a row from before says that it is well', () => {
    const lane = failing();
    lane.adopt(endpoint({ revision: 2n }));
    assert.equal(lane.isPaused, true, 'its failures are not recorded yet');
    lane.recorded([1n, 2n, 3n], endpoint({ health: paused, revision: 3n }));
    assert.equal(lane.isPaused, true);
    lane.adopt(endpoint({ revision: 4n }));
    assert.equal(lane.isPaused, false, 'an operator ended the pause');
  });

  it('reads nothing after a probe is delivered until all that waited was moved to the front', () => {
    const lane = start({ health: paused });
    lane.take([delivery(7)], true);
    end(lane, beginAll(lane).tries[0] as NextTry, 'delivered');
    assert.equal(lane.isPaused, false);
    assert.equal(lane.wants(60_000, plenty), undefined, 'it is not recorded yet that the pause has ended');
    lane.recorded([7n], endpoint({ draining: true, revision: 2n }));
    assert.equal(lane.wants(60_000, plenty), undefined, 'what waited is not at the front yet');
    lane.adopt(endpoint({ revision: 3n }));
    assert.equal(lane.wants(60_000, plenty)?.kind, 'waiting');
  });

  it('is well again after a move, whatever an attempt at the old URL came to', () => {
    const lane = failing();
    lane.adopt(endpoint({ generation: 2, revision: 2n }));
    assert.equal(lane.isPaused, false);
    lane.take([delivery(6)], false);
    const [next] = beginAll(lane).tries;
    for (let count = 0; count < 3; count += 1) end(lane, next as NextTry, 'endpoint-failed', 1);
    assert.deepEqual([lane.health.streak, lane.isPaused], [0, false]);
  });
});
