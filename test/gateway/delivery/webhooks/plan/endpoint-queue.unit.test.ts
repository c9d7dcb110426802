import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  EndpointQueue,
  firstSlots,
  maxSlots,
  type NextTry,
} from '../../../../../src/gateway/delivery/webhooks/plan/endpoint-queue.ts';
import type { QueueRead } from '../../../../../src/gateway/delivery/webhooks/plan/queue-store.ts';
import {
  type AttemptResult,
  type EndpointHealth,
  rowServesMs,
} from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import type { Endpoint } from '../../../../../src/gateway/delivery/webhooks/table.ts';
import { delivery, endpoint } from '../../../../support/webhook-rows.ts';

const plenty = 1_000;
const paused: EndpointHealth = { streak: 3, pausedAt: 0, probeAt: 60_000, probedVersion: 0n, failingSince: 0 };
const probe = { part: 'probe', after: 0n, most: 1 };

function start(change: Partial<Endpoint> = {}, askedAt = performance.now()): EndpointQueue {
  return new EndpointQueue(endpoint(change), askedAt);
}

/** Gives a queue what was read of a part of it. */
function take(queue: EndpointQueue, versions: readonly number[], part: QueueRead['part'] = 'new'): void {
  const found = versions.map((version) => delivery(version, part === 'retries'));
  queue.take({ part, after: 0n, most: plenty }, found);
}

/** Begins all it may, and answers with their versions. */
function beginAll(queue: EndpointQueue, totalUnderWay = 0): { versions: number[]; tries: NextTry[] } {
  const tries: NextTry[] = [];
  for (;;) {
    const next = queue.next(totalUnderWay);
    if (next === 'nothing' || next === 'no shared slot') break;
    tries.push(next);
  }
  return { versions: tries.map(({ delivery: { version } }) => Number(version)), tries };
}

function end(queue: EndpointQueue, next: NextTry, outcome: AttemptResult, generation = 1, durationMs = 0): void {
  const { isProbe, delivery } = next;
  const { version, tries } = delivery;
  const answer = { outcome, status: null, errorClass: null, durationMs };
  queue.ended(next, { partnerId: 'par_1', version, number: tries + 1, at: 0, isProbe, ...answer }, generation);
}

/** An endpoint whose last attempt was delivered, after a time. */
function proven(durationMs = 5_000): EndpointQueue {
  const queue = start();
  take(queue, [1]);
  end(queue, beginAll(queue).tries[0] as NextTry, 'delivered', 1, durationMs);
  queue.recorded([1n], endpoint());
  return queue;
}

/** The parts of the queue that are to be read. */
const parts = (queue: EndpointQueue) => queue.wants(60_000, plenty).map(({ part }) => part);

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe('what is sent to an endpoint next', () => {
  it('is the oldest, at most four at once at first, and nothing twice that is under way or not recorded', () => {
    const queue = start();
    take(queue, [1, 2, 3, 4, 5, 6]);
    const { versions, tries } = beginAll(queue);
    assert.deepEqual(versions, [1, 2, 3, 4]);
    end(queue, tries[0] as NextTry, 'delivered');
    // It is read again before it is recorded.
    take(queue, [1, 2, 5]);
    assert.deepEqual(beginAll(queue).versions, [5], 'what was read again is not sent again');
    for (const next of tries.slice(1)) end(queue, next, 'delivered');
    assert.deepEqual(beginAll(queue).versions, [6]);
    queue.recorded([1n], endpoint());
    assert.deepEqual([...queue.versions], [2n, 3n, 4n, 5n, 6n], 'what must not be read again');
  });

  it('is one that others would overtake, alone, until it is ahead of them', () => {
    const queue = start();
    take(queue, [1, 2]);
    const first = queue.next(0) as NextTry;
    queue.block(first);
    assert.equal(queue.next(0), 'nothing');
    assert.equal(queue.unblock(first), true);
    assert.equal(queue.unblock(first), false, 'once');
    assert.deepEqual(beginAll(queue).versions, [2]);
  });

  it('is a retry first when none of its retries is under way, and one at a time while new events come', () => {
    const queue = start();
    take(queue, [5, 6, 7]);
    take(queue, [1, 2, 3], 'retries');
    assert.deepEqual(beginAll(queue).versions, [5, 1, 6, 7]);
    const retriesOnly = start();
    take(retriesOnly, [1, 2, 3, 4], 'retries');
    assert.deepEqual(beginAll(retriesOnly).versions, [1, 2], 'half of its slots are for retries');
  });

  it('is nothing by a row that was asked for 3 seconds ago, until the row is asked for again', () => {
    const queue = start({}, performance.now() - rowServesMs - 1);
    take(queue, [1]);
    assert.equal(queue.next(0), 'nothing', 'an operator may have changed the row since');
    queue.refresh(endpoint(), performance.now());
    assert.deepEqual(beginAll(queue).versions, [1]);
  });

  it('is nothing while an operator holds it, and what waited is read again afterwards', () => {
    const queue = start();
    take(queue, [1]);
    queue.adopt(endpoint({ heldAt: 5, revision: 2n }));
    assert.deepEqual([beginAll(queue).versions, queue.versions.size], [[], 0]);
    assert.deepEqual(queue.wants(0, plenty), []);
    take(queue, [1]);
    assert.equal(queue.versions.size, 0, 'what was asked for before it was held is not taken');
    queue.adopt(endpoint({ revision: 3n }));
    assert.deepEqual(parts(queue), ['new', 'retries']);
  });

  it('follows the newest row: one that was read before is not gone back to', () => {
    const queue = start({ revision: 5n, url: 'https://new.example.com/' });
    queue.adopt(endpoint({ revision: 4n }));
    assert.equal(queue.endpoint.url, 'https://new.example.com/');
    queue.adopt(endpoint({ revision: 5n, url: 'https://newer.example.com/' }));
    assert.equal(queue.endpoint.url, 'https://newer.example.com/');
  });

  it('is nothing more once 512 attempts wait to be recorded', () => {
    const queue = start();
    for (let version = 1; version <= 512; version += 1) {
      assert.notDeepEqual(queue.wants(0, plenty), [], `${version - 1} wait to be recorded`);
      take(queue, [version]);
      end(queue, queue.next(0) as NextTry, 'delivered');
    }
    take(queue, [513]);
    assert.deepEqual([queue.wants(0, plenty), queue.next(0)], [[], 'nothing']);
    queue.recorded([1n], endpoint());
    assert.deepEqual(beginAll(queue).versions, [513]);
  });
});

describe('what of an endpoint is held in memory', () => {
  it('is 64 new events and no more than its share, read when half of them are gone', () => {
    const wanted = (count: number, retries: number, share = plenty) => {
      const queue = start();
      take(queue, range(1, count));
      take(queue, range(101, 100 + retries), 'retries');
      return queue.wants(0, share).map(({ part, most }) => `${most} ${part}`);
    };
    assert.deepEqual(wanted(0, 0), ['64 new', '4 retries']);
    assert.deepEqual(wanted(0, 0, 6), ['6 new', '4 retries']);
    assert.deepEqual(wanted(32, 2), ['32 new', '2 retries']);
    assert.deepEqual(wanted(33, 2), ['2 retries']);
    assert.deepEqual(wanted(32, 3), ['32 new']);
    assert.deepEqual(wanted(33, 3), []);
  });

  it('is nothing while an endpoint that answers nothing has enough for its next attempts', () => {
    const queue = start();
    take(queue, range(1, 9));
    assert.deepEqual(parts(queue), ['new', 'retries'], 'its slots are free');
    const { tries } = beginAll(queue);
    assert.deepEqual(parts(queue), [], 'four are under way, and five wait');
    queue.reread();
    assert.deepEqual(parts(queue), [], 'nor if there may be more');
    end(queue, tries[0] as NextTry, 'endpoint-failed');
    beginAll(queue);
    assert.deepEqual(parts(queue), [], 'three are under way, as many as may be after a failure');
    end(queue, tries[1] as NextTry, 'event-failed');
    beginAll(queue);
    assert.deepEqual(parts(queue), ['new', 'retries'], 'it answers, so it is read ahead');
    const hanging = start();
    take(hanging, range(1, 7));
    beginAll(hanging);
    assert.deepEqual(parts(hanging), ['new', 'retries'], 'three wait, which is less than four');
  });

  it('is read until the database has no more, and again when new events come', () => {
    const queue = start();
    const reads = queue.beginReading(0, plenty);
    assert.deepEqual(queue.wants(0, plenty), [], 'it is being read');
    for (const read of reads) queue.take(read, [delivery(1)]);
    assert.deepEqual(queue.wants(0, plenty), [], 'there was less than was asked for');
    queue.grow();
    assert.deepEqual(queue.wants(0, plenty), [{ part: 'new', after: 1n, most: 63 }]);
    const full = start();
    for (const read of full.beginReading(0, 4))
      full.take(
        read,
        range(1, 4).map((version) => delivery(version)),
      );
    beginAll(full);
    assert.deepEqual(parts(full), ['new', 'retries'], 'as much came as was asked for');
  });

  it('is read on from the newest new event, and from the start when anything may have changed', () => {
    const queue = start();
    take(queue, [7, 3]);
    take(queue, [9], 'retries');
    assert.deepEqual([queue.wants(0, plenty)[0]?.after, queue.oldestDue], [7n, 7]);
    queue.reread();
    assert.equal(queue.wants(0, plenty)[0]?.after, 0n);
    const retries = start();
    assert.equal(retries.oldestDue, undefined);
    take(retries, [9], 'retries');
    assert.equal(retries.oldestDue, 9);
    take(retries, [12]);
    assert.equal(retries.oldestDue, 9);
  });

  it('is read from the start again if that was asked for while a read was in progress', () => {
    const queue = start();
    const [read] = queue.beginReading(0, plenty);
    assert.ok(read !== undefined);
    // An operator asks for event 3 again, which that read does not see.
    queue.reread();
    queue.take(read, [delivery(7)]);
    const [again] = queue.beginReading(0, plenty);
    assert.equal(again?.after, 0n);
    queue.take(again, [delivery(3)]);
    queue.grow();
    assert.equal(queue.wants(0, plenty)[0]?.after, 3n, 'events that are in memory are left out by their versions');
  });
});

describe('the slots of an endpoint', () => {
  it('are given back by an attempt that ends, of a retry too', () => {
    const retries = start();
    take(retries, range(1, 6), 'retries');
    end(retries, beginAll(retries).tries[0] as NextTry, 'event-failed');
    assert.deepEqual(beginAll(retries).versions, [3]);
  });

  it('are as many as it takes for 200 deliveries a second, from 4 to 16', () => {
    for (const [answerMs, slots] of [
      [0, 4],
      [20, 4],
      [50, 10],
      [80, 16],
      [5_000, 16],
    ] as const) {
      const queue = proven(answerMs);
      take(queue, range(2, 40));
      assert.equal(beginAll(queue).versions.length, slots, `${answerMs} ms`);
    }
  });

  it('are by the shortest answer of late: what answers wait for each other says nothing', () => {
    const slotsAfter = (...answersMs: number[]) => {
      const queue = proven(answersMs[0]);
      for (const [index, answerMs] of answersMs.slice(1).entries()) {
        take(queue, [index + 2]);
        end(queue, queue.next(0) as NextTry, 'delivered', 1, answerMs);
      }
      take(queue, range(500, 520));
      return beginAll(queue).versions.length;
    };
    assert.equal(slotsAfter(90, 12, 40, 60), firstSlots);
    assert.equal(slotsAfter(12, ...Array(100).fill(40)), 8, 'it is forgotten slowly');
  });

  it('are few until it is known to answer, more while it does, and few again after a failure of its own', () => {
    const queue = proven();
    take(queue, range(2, 40));
    const { versions, tries } = beginAll(queue);
    assert.deepEqual(versions, range(2, 1 + maxSlots));
    end(queue, tries[0] as NextTry, 'event-failed');
    assert.deepEqual(beginAll(queue).versions, [2 + maxSlots], 'an event is at fault');
    for (const next of tries.slice(2)) end(queue, next, 'delivered', 1, 5_000);
    end(queue, tries[1] as NextTry, 'endpoint-failed');
    assert.equal(beginAll(queue).versions.length, firstSlots - 2, 'one is under way, and one taken by the failure');
  });

  it('are no more than at first for an endpoint that hangs, until it is paused', () => {
    const queue = start();
    take(queue, range(1, 10));
    for (const next of beginAll(queue).tries.slice(0, 3)) {
      end(queue, next, 'endpoint-failed');
      assert.deepEqual(beginAll(queue).versions, []);
    }
    assert.equal(queue.isPaused, true);
  });

  it('are few for every endpoint while very many attempts are under way', () => {
    for (const [total, slots] of [
      [511, maxSlots],
      [512, firstSlots],
    ] as const) {
      const queue = proven();
      take(queue, range(2, 40));
      assert.equal(beginAll(queue, total).versions.length, slots, `${total} under way`);
    }
  });

  it('are the last there are only after an attempt was delivered', () => {
    const queue = start();
    take(queue, range(1, 8));
    assert.equal(queue.next(768), 'no shared slot');
    const [first, second, third] = beginAll(queue).tries;
    end(queue, first as NextTry, 'delivered');
    assert.equal(typeof queue.next(1_023), 'object');
    end(queue, second as NextTry, 'endpoint-failed');
    end(queue, third as NextTry, 'event-failed');
    assert.equal(queue.next(1_023), 'no shared slot');
    const answering = proven();
    take(answering, [2]);
    assert.equal(answering.next(1_024), 'no shared slot');
  });
});

describe('an endpoint that fails three times in a row', () => {
  function failing(): EndpointQueue {
    const queue = start();
    take(queue, [1, 2, 3, 4, 5]);
    for (const next of beginAll(queue).tries.slice(0, 3)) end(queue, next, 'endpoint-failed');
    return queue;
  }

  it('is tried again though a clock that was a day ahead paused it', () => {
    const ahead = 86_400_000;
    const queue = start({ ...paused, pausedAt: ahead, probeAt: ahead + 60_000 });
    assert.deepEqual(queue.wants(0, plenty), [probe]);
  });

  it('is paused at once, before that is recorded: nothing more begins, and a probe is read when it is due', () => {
    const queue = failing();
    assert.equal(queue.isPaused, true);
    assert.deepEqual(beginAll(queue).versions, []);
    assert.deepEqual(queue.wants(59_999, plenty), [], 'before the probe is due');
    assert.deepEqual(queue.wants(60_000, plenty), [probe]);
  });

  it('is tried with one event at a time', () => {
    const queue = start(paused);
    take(queue, [7]);
    assert.equal(queue.versions.size, 0, 'what was read as if it were not paused is not taken');
    take(queue, [7], 'probe');
    const [first] = beginAll(queue).tries;
    assert.deepEqual([first?.isProbe, Number(first?.delivery.version)], [true, 7]);
    assert.deepEqual(queue.wants(60_000, plenty), [], 'the probe is under way');
    end(queue, first as NextTry, 'endpoint-failed');
    assert.deepEqual([queue.isPaused, queue.health.probedVersion], [true, 7n]);
    assert.deepEqual(queue.wants(60_000, plenty), [{ ...probe, after: 7n }], 'the next probe, when it is due');
  });

  it('stays paused by what is known here alone, though a row from before says that it is well', () => {
    const queue = failing();
    queue.adopt(endpoint({ revision: 2n }));
    assert.equal(queue.isPaused, true, 'its failures are not recorded yet');
    queue.recorded([1n, 2n, 3n], endpoint({ ...paused, revision: 3n }));
    assert.equal(queue.isPaused, true);
    queue.adopt(endpoint({ revision: 4n }));
    assert.equal(queue.isPaused, false, 'an operator ended the pause');
  });

  it('reads nothing after a probe is delivered until all that waited was moved to the front', () => {
    const queue = start(paused);
    take(queue, [7], 'probe');
    end(queue, beginAll(queue).tries[0] as NextTry, 'delivered');
    assert.equal(queue.isPaused, false);
    assert.deepEqual(queue.wants(60_000, plenty), [], 'it is not recorded yet that the pause has ended');
    queue.recorded([7n], endpoint({ draining: true, revision: 2n }));
    assert.deepEqual(queue.wants(60_000, plenty), [], 'what waited is not at the front yet');
    queue.adopt(endpoint({ revision: 3n }));
    assert.deepEqual(parts(queue), ['new', 'retries']);
  });

  it('is well again after a move, whatever an attempt at the old URL came to', () => {
    const queue = failing();
    queue.adopt(endpoint({ generation: 2, revision: 2n }));
    assert.equal(queue.isPaused, false);
    take(queue, [6]);
    const [next] = beginAll(queue).tries;
    for (let count = 0; count < 3; count += 1) end(queue, next as NextTry, 'endpoint-failed', 1);
    assert.deepEqual([queue.health.streak, queue.isPaused], [0, false]);
  });
});
