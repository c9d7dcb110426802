import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import type { Slot } from '../../../../src/gateway/edge/limits/shared-slots.ts';
import type { Origin } from '../../../../src/gateway/edge/origin.ts';
import { firstBroker, nameAt } from '../../../../src/gateway/trading/broker/broker.ts';
import { ReadQueue } from '../../../../src/gateway/trading/broker/read-queue.ts';
import type { ReadTime } from '../../../../src/gateway/trading/broker/records.ts';
import { eventually } from '../../../support/eventually.ts';
import { slotsOfOne } from '../../../support/slots.ts';

/** A read that ends when it is told to. */
function held() {
  let finish = () => {};
  const ended = new Promise<void>((resolve) => {
    finish = resolve;
  });
  return { ended, finish };
}

/** A read of a partner's. */
function of(partnerId: string): Origin {
  return { partnerId, requestId: null, traceParent: null };
}

/** A queue, and the reads it has begun in order. */
function startQueue(timeoutMs = 30_000) {
  const queue = new ReadQueue(firstBroker, slotsOfOne(), timeoutMs);
  const begun: string[] = [];
  const read = (name: string) => {
    const { ended, finish } = held();
    const done = queue.read(of(name.slice(0, 1)), async () => {
      begun.push(name);
      await ended;
      return name;
    });
    return { done, finish };
  };
  return { queue, begun, read };
}

/** Slots that are acquired slowly, as over a network: every caller waits until `answer` is called. */
class SlowSlots {
  readonly #slots = slotsOfOne();
  readonly #held: string[] = [];
  readonly #asked: Promise<unknown>[] = [];
  #answering = held();

  acquire(name: string, most: number): Promise<Slot | undefined> {
    const acquired = this.#answering.ended.then(() => this.#acquire(name, most));
    this.#asked.push(acquired);
    return acquired;
  }

  async #acquire(name: string, most: number): Promise<Slot | undefined> {
    const slot = await this.#slots.acquire(name, most);
    if (slot === undefined) return undefined;
    this.#held.push(name);
    return {
      release: () => {
        this.#held.splice(this.#held.indexOf(name), 1);
        slot.release();
      },
    };
  }

  /** How often slots were asked for. */
  get asked(): number {
    return this.#asked.length;
  }

  answer(): void {
    this.#answering.finish();
  }

  /** Waits until everyone who asked was answered and has done something with it. */
  async settled(): Promise<void> {
    for (let answered = -1; answered < this.#asked.length; ) {
      answered = this.#asked.length;
      await Promise.all(this.#asked);
      await setImmediate();
    }
  }

  /** The names of slots that are in use. */
  held(): readonly string[] {
    return this.#held;
  }
}

const unavailable = (error: unknown) => error instanceof ApiError && error.code === 'exchange_unavailable';

describe('reads of the broker', () => {
  it('begin two of a partner and four in all, and partners take turns', async () => {
    const { begun, read } = startQueue();
    const names = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'a4', 'b3'];
    const reads = new Map(names.map((name) => [name, read(name)]));
    const finish = async (name: string, next: readonly string[]) => {
      const before = begun.length;
      reads.get(name)?.finish();
      await reads.get(name)?.done;
      await eventually(() => assert.deepEqual(begun.slice(before), next));
    };
    await eventually(() => assert.deepEqual(begun, ['a1', 'b1', 'c1', 'a2']));
    await finish('b1', ['b2']);
    await finish('a1', ['a3']);
    await finish('c1', ['b3']);
    await finish('a2', ['a4']);
    for (const { finish: end } of reads.values()) end();
    assert.deepEqual(await Promise.all([...reads.values()].map(({ done }) => done)), names);
  });

  it('reads that have no turn in their time are unavailable, and are not begun later', async () => {
    const { queue, begun, read } = startQueue(300);
    const hanging = held();
    const stuck = ['one', 'two'].map(() => queue.read(of('a'), () => hanging.ended));
    const waiting = read('a3');
    await Promise.all([...stuck, waiting.done].map((each) => assert.rejects(each, unavailable)));
    hanging.finish();
    const next = read('a4');
    next.finish();
    assert.equal(await next.done, 'a4');
    assert.deepEqual(begun, ['a4']);
  });

  it('reads of one partner never fill the queue: others are still begun next', async () => {
    const { queue, begun, read } = startQueue();
    const reads = Array.from({ length: 2_500 }, (_, at) => read(`a${at}`));
    const settled = Promise.allSettled(reads.map(({ done }) => done));
    assert.equal(queue.waiting, 1_000);
    const others = Array.from({ length: 100 }, (_, at) => read(`b${at}`));
    await eventually(() => assert.deepEqual(begun.toSorted(), ['a0', 'a1', 'b0', 'b1']));
    for (const { finish } of [...others, ...reads]) finish();
    await Promise.all(others.map(({ done }) => done));
    assert.ok(begun.indexOf('b99') < 220, 'the others did not wait for all of the first partner');
    const refused = (await settled).filter(({ status }) => status === 'rejected');
    assert.equal(refused.length, 1_500);
    for (const each of refused) assert.ok(each.status === 'rejected' && unavailable(each.reason));
  });

  it('give their slots back whatever became of them', async () => {
    const { queue } = startQueue();
    for (let count = 0; count < 20; count += 1) {
      await assert.rejects(
        queue.read(of('a'), async () => {
          throw new Error('failed');
        }),
        /failed/,
      );
    }
    assert.equal(await queue.read(of('a'), async () => 'done'), 'done');
  });

  it('reads that find all slots taken by other replicas keep none of their own, and begin when one is free', async () => {
    const slots = new SlowSlots();
    slots.answer();
    const others = await Promise.all([1, 2, 3, 4].map(() => slots.acquire(nameAt(firstBroker, 'reads'), 4)));
    const taken = [...slots.held()];
    const queue = new ReadQueue(firstBroker, slots, 30_000);
    const reads = ['a', 'a', 'a', 'b', 'b'].map((partner) => queue.read(of(partner), async () => partner));
    for (let rounds = 0; rounds < 5; rounds += 1) {
      const asked = slots.asked;
      await eventually(() => assert.ok(slots.asked > asked, 'the slots are asked for again'));
      await slots.settled();
    }
    assert.deepEqual(slots.held(), taken, 'none is in use but those of other replicas');
    for (const other of others) other?.release();
    assert.deepEqual(await Promise.all(reads), ['a', 'a', 'a', 'b', 'b']);
    assert.deepEqual(slots.held(), []);
  });

  it('reads that ran out of time while their slots were asked for leave none of them in use', async () => {
    const slots = new SlowSlots();
    const queue = new ReadQueue(firstBroker, slots, 20, 1, 1);
    await assert.rejects(
      queue.read(of('a'), async () => assert.fail('it was begun after its time')),
      unavailable,
    );
    slots.answer();
    await slots.settled();
    assert.deepEqual(slots.held(), [], 'these slots stayed in use although no read is under way');
    assert.deepEqual([queue.waiting, queue.underWay], [0, 0], 'reads that wait and that are under way');
  });

  it('a read has what is left of its time once it begins, and one of the gateway never more than a partner has', async (t) => {
    let now = 1_000;
    t.mock.method(performance, 'now', () => now);
    const queue = new ReadQueue(firstBroker, slotsOfOne(), 30_000, 1, 1);
    const first = held();
    const times: ReadTime[] = [];
    const note = async (time: ReadTime) => void times.push(time);
    const done = [
      queue.read(of('a'), () => first.ended),
      queue.read(of('b'), note),
      queue.readFor('own', note),
      queue.readFor('short', note, 5_000),
      queue.readFor('long', note, 60_000),
      // Its time ran out in the moment in which it begins.
      queue.readFor('late', note, 10_000),
    ];
    await setImmediate();
    now += 10_000;
    first.finish();
    await Promise.all(done);
    const seen = times.map(({ timeoutMs, origin }) => [timeoutMs, origin?.partnerId]);
    assert.deepEqual(seen, [
      [20_000, 'b'],
      [20_000, undefined],
      [1, undefined],
      [20_000, undefined],
      [1, undefined],
    ]);
  });
});
