import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { LaneSlots } from '../../../../src/gateway/trading/submission/lane-slots.ts';
import { maxWaiting, ReportLanes } from '../../../../src/gateway/trading/submission/report-lanes.ts';
import { eventually } from '../../../support/eventually.ts';

interface Report {
  readonly number: bigint;
}

const numbered = (...numbers: number[]): Report[] => numbers.map((number) => ({ number: BigInt(number) }));
const numbersOf = (reports: readonly Report[]) => reports.map(({ number }) => Number(number));

/** Lanes whose partners the test locks and frees. */
class Scene {
  readonly applied: [partner: string, numbers: number[]][] = [];
  readonly failures: [partner: string, failures: number][] = [];
  readonly recovered: string[] = [];
  readonly readAgain: bigint[] = [];
  /** How often reports were applied. */
  moves = 0;
  readonly stopping = new AbortController();
  readonly #locks = new Map<string, Promise<void>>();
  readonly #failing = new Set<string>();
  readonly #failingNext = new Set<string>();
  readonly lanes: ReportLanes<Report>;

  constructor(slots = new LaneSlots()) {
    this.lanes = new ReportLanes<Report>({
      signal: this.stopping.signal,
      slots,
      canLeaveOut: () => true,
      readAgain: (from) => void this.readAgain.push(from),
      apply: async (partner, reports) => {
        await this.#locks.get(partner);
        if (this.#failing.has(partner)) throw new Error('the partner is locked');
        this.applied.push([partner, numbersOf(reports)]);
        if (this.#failingNext.delete(partner)) this.#failing.add(partner);
        return undefined;
      },
      applied: () => {
        this.moves += 1;
      },
      failed: (partner, _, failures) => void this.failures.push([partner, failures]),
      recovered: (partner) => void this.recovered.push(partner),
    });
  }

  /** Locks a partner; the answer frees it. */
  lock(partner: string): () => void {
    let free = () => {};
    const locked = new Promise<void>((resolve) => {
      free = resolve;
    });
    this.#locks.set(partner, locked);
    return () => {
      this.#locks.delete(partner);
      free();
    };
  }

  /** Lets a partner's next reports be applied, and fails those after them. */
  failAfterNext(partner: string): void {
    this.#failingNext.add(partner);
  }

  fail(partner: string, fails: boolean): void {
    if (fails) this.#failing.add(partner);
    else this.#failing.delete(partner);
  }
}

describe('the reports that wait for their partners', () => {
  it('are applied although as many other partners as are worked on at once are locked', async () => {
    const scene = new Scene();
    const locked = ['a', 'b', 'c', 'd', 'e'];
    const free = locked.map((partner) => scene.lock(partner));
    for (const [index, partner] of locked.entries()) scene.lanes.add(partner, numbered(index + 1));
    scene.lanes.add('other', numbered(6));
    await eventually(() => assert.deepEqual(scene.applied, [['other', [6]]]));
    assert.equal(scene.lanes.firstWaiting, 1n);
    for (const release of free) release();
    await scene.lanes.idle();
    assert.equal(scene.lanes.firstWaiting, undefined);
    assert.equal(scene.applied.length, 6);
  });

  it('are applied although many more partners than there are slots fail again and again by waiting for their locks', async () => {
    const scene = new Scene();
    const locked = Array.from({ length: 30 }, (_, index) => `locked-${index}`);
    for (const [index, partner] of locked.entries()) {
      scene.fail(partner, true);
      scene.lanes.add(partner, numbered(index + 1));
    }
    await eventually(() => assert.ok(locked.every((partner) => scene.failures.some(([failed]) => failed === partner))));
    const free = locked.map((partner) => scene.lock(partner));
    await eventually(() => assert.ok(scene.lanes.underWay >= 5, 'they wait for their locks'));
    for (const number of [101, 102, 103, 104, 105]) {
      scene.lanes.add(`other-${number}`, numbered(number));
      await eventually(() => assert.deepEqual(scene.applied.at(-1), [`other-${number}`, [number]]), 2_000);
    }
    assert.equal(scene.lanes.underWay, 5);
    for (const partner of locked) scene.fail(partner, false);
    for (const release of free) release();
    await eventually(() => assert.equal(scene.lanes.firstWaiting, undefined));
  });

  it('reports of one partner are applied together with those that came while it was locked', async () => {
    const scene = new Scene();
    const free = scene.lock('a');
    scene.lanes.add('a', numbered(1));
    scene.lanes.add('a', numbered(2));
    scene.lanes.add('a', numbered(4));
    await turn();
    free();
    await scene.lanes.idle();
    assert.deepEqual(scene.applied, [
      ['a', [1]],
      ['a', [2, 4]],
    ]);
  });

  it('reports are tried again when they fail, and that is told once they are applied: the failures after that are counted anew', async () => {
    const scene = new Scene();
    scene.fail('a', true);
    scene.lanes.add('a', numbered(1));
    scene.lanes.add('b', numbered(2));
    await eventually(() => assert.ok(scene.lanes.failing.length > 0));
    const counts = () => scene.failures.map(([, failures]) => failures);
    assert.deepEqual([scene.applied, counts()], [[['b', [2]]], [1, 2, 3]]);
    assert.equal(scene.lanes.firstWaiting, 1n);
    const free = scene.lock('a');
    scene.fail('a', false);
    await eventually(() => assert.equal(scene.lanes.underWay, 1));
    // More come, so that its lane goes on.
    scene.lanes.add('a', numbered(3));
    scene.failAfterNext('a');
    free();
    await eventually(() => assert.equal(counts().length, 4));
    assert.deepEqual([scene.applied.at(-1), scene.recovered, scene.lanes.failing], [['a', [1]], ['a'], []]);
    assert.equal(counts().at(-1), 1);
    scene.stopping.abort();
    await scene.lanes.idle();
  });

  it('are bounded: no more are taken until some of them are applied', async () => {
    const scene = new Scene();
    const free = scene.lock('a');
    scene.lanes.add('a', numbered(...Array.from({ length: maxWaiting }, (_, at) => at + 1)));
    let hasRoom = false;
    const room = scene.lanes.room().then(() => {
      hasRoom = true;
    });
    await turn();
    assert.equal(hasRoom, false);
    free();
    await room;
    assert.equal(hasRoom, true);
    await scene.lanes.idle();
  });

  it('further reports are taken as soon as there is room, and not a moment later', async (t) => {
    // So the wait for a stuck partner never ends by itself.
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const scene = new Scene();
    const free = scene.lock('a');
    scene.lanes.add('a', numbered(...Array.from({ length: maxWaiting }, (_, at) => at + 1)));
    const room = scene.lanes.room();
    await turn();
    free();
    await room;
    assert.equal(scene.moves, 1);
    await scene.lanes.idle();
    assert.equal(scene.moves, maxWaiting / 1_000, 'the position moves with each thousand');
  });

  it('keep their room while they could not be applied', async () => {
    let calls = 0;
    let go = () => {};
    const again = new Promise<void>((resolve) => {
      go = resolve;
    });
    const stopping = new AbortController();
    const lanes = new ReportLanes<Report>({
      signal: stopping.signal,
      slots: new LaneSlots(),
      canLeaveOut: () => false,
      readAgain: () => {},
      apply: async (_, reports) => {
        calls += 1;
        // Of the first ones all but one remain, and they are tried again when the test says so.
        if (calls === 1) return { reports: reports.slice(1), error: new Error('damaged') };
        await again;
        return undefined;
      },
      applied: () => {},
      failed: () => {},
      recovered: () => {},
    });
    lanes.add('a', numbered(...Array.from({ length: maxWaiting }, (_, at) => at + 1)));
    await lanes.room();
    lanes.add('b', numbered(maxWaiting + 1));
    let hasRoom = false;
    const room = lanes.room().then(() => {
      hasRoom = true;
    });
    await turn();
    assert.equal(hasRoom, false);
    go();
    await room;
    stopping.abort();
    await lanes.idle();
  });

  it('reports of a partner that is stuck are left out, so that others go on, and are read again when it has what came before', async () => {
    const scene = new Scene();
    scene.fail('a', true);
    scene.lanes.add('a', numbered(...Array.from({ length: maxWaiting }, (_, at) => at + 1)));
    await eventually(() => assert.deepEqual(scene.failures[0], ['a', 1]));
    await scene.lanes.room();
    scene.lanes.add('b', numbered(maxWaiting + 1));
    scene.lanes.add('a', numbered(maxWaiting + 2));
    await eventually(() => assert.deepEqual(scene.applied, [['b', [maxWaiting + 1]]]));
    assert.equal(scene.lanes.firstWaiting, 1n);
    scene.fail('a', false);
    await eventually(() => assert.equal(scene.readAgain.length, 1));
    const applied = scene.applied.filter(([partner]) => partner === 'a').flatMap(([, numbers]) => numbers);
    assert.deepEqual(
      applied,
      [...applied].sort((one, other) => one - other),
    );
    assert.equal(scene.readAgain[0], BigInt((applied.at(-1) ?? 0) + 1));
    assert.equal(scene.lanes.firstWaiting, scene.readAgain[0], 'the position would pass what was left out');
  });

  it('the position does not pass reports from before others of their partner', async () => {
    const scene = new Scene();
    const free = scene.lock('a');
    scene.lanes.add('a', numbered(5, 9));
    scene.lanes.add('a', numbered(3, 11));
    assert.equal(scene.lanes.firstWaiting, 3n);
    free();
    await scene.lanes.idle();
    assert.deepEqual(scene.applied, [
      ['a', [5, 9]],
      ['a', [3, 11]],
    ]);
  });

  it('reports of a new stream wait for the work of an earlier one that is still under way', async () => {
    const slots = new LaneSlots();
    const [earlier, later] = [new Scene(slots), new Scene(slots)];
    const locked = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];
    const free = locked.map((partner) => earlier.lock(partner));
    for (const [index, partner] of locked.entries()) earlier.lanes.add(partner, numbered(index + 1));
    await eventually(() => assert.ok(!slots.isFree(false) && earlier.lanes.underWay === 10), 15_000);
    earlier.stopping.abort();
    later.lanes.add('other', numbered(1));
    await turn();
    assert.deepEqual(later.applied, [], 'more database connections are used than a stream may have');
    free[0]?.();
    await eventually(() => assert.deepEqual(later.applied, [['other', [1]]]));
    let isIdle = false;
    const idle = slots.idle().then(() => {
      isIdle = true;
    });
    await turn();
    assert.equal(isIdle, false, 'a stop waits for earlier streams too');
    for (const release of free) release();
    await idle;
  });

  it('are given up when the process stops', async () => {
    const scene = new Scene();
    scene.fail('a', true);
    scene.lanes.add('a', numbered(1));
    await eventually(() => assert.deepEqual(scene.failures, [['a', 1]]));
    scene.stopping.abort();
    scene.lanes.add('b', numbered(2));
    await scene.lanes.idle();
    await scene.lanes.room();
    assert.deepEqual([scene.applied, scene.lanes.firstWaiting], [[], 1n]);
  });

  it('are applied each once and in order, whatever fails and however they come', async () => {
    const batch = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { maxLength: 20 }), fc.infiniteStream(fc.nat(9)), async (batches, chance) => {
        const applied = new Map<string, bigint[]>();
        const sent = new Map<string, bigint[]>();
        const lanes = new ReportLanes<Report>({
          signal: new AbortController().signal,
          slots: new LaneSlots(),
          canLeaveOut: () => true,
          readAgain: () => {},
          apply: async (partner, reports) => {
            const turns = chance.next().value;
            for (let count = 0; count < turns; count += 1) await turn();
            // Sometimes the last ones remain, as those of a damaged object do.
            const count = turns === 9 ? Math.max(1, reports.length - 1) : reports.length;
            const done = applied.get(partner) ?? [];
            applied.set(partner, [...done, ...reports.slice(0, count).map(({ number }) => number)]);
            return count === reports.length
              ? undefined
              : { reports: reports.slice(count), error: new Error('damaged') };
          },
          applied: () => {},
          failed: () => {},
          recovered: () => {},
        });
        let number = 0n;
        for (const partners of batches) {
          for (const partner of partners) {
            number += 1n;
            sent.set(partner, [...(sent.get(partner) ?? []), number]);
            lanes.add(partner, [{ number }]);
          }
          await turn();
          const all = [...sent.values()].flat();
          const done = new Set([...applied.values()].flat());
          const first = lanes.firstWaiting;
          for (const one of all)
            if (first === undefined || one < first) assert.ok(done.has(one), `${one} is not applied`);
        }
        await eventually(() => assert.equal(lanes.firstWaiting, undefined));
        assert.deepEqual(new Map([...applied].sort()), new Map([...sent].sort()));
      }),
      { numRuns: 30 },
    );
  });
});
