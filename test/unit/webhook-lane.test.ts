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
