/** How a replica changes an entry that it shares with the others, over a store that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UntrustedEntryError } from '../../../../src/gateway/edge/limits/sealed-entry.ts';
import { type EntryChange, SharedCounter } from '../../../../src/gateway/edge/limits/shared-counter.ts';
import type { Purpose, Sharing } from '../../../../src/gateway/edge/limits/sharing.ts';

/** A counter of tickets: the entry has those that nobody drew, and each draw takes as many as requests wait. */
class Tickets extends SharedCounter<number> {
  protected readonly folder = 'tickets';
  held = 0;
  share = 0;
  empty = false;
  others: string[] = [];
  changed: Purpose[] = [];
  mostPerDraw = 10;
  prepared: Purpose[] = [];
  made: boolean[] = [];
  inLine = false;

  get count(): number {
    return this.waiting.length;
  }

  request(): boolean | Promise<boolean> {
    this.isInLine = this.inLine;
    return this.take();
  }

  protected takeHeld(): boolean {
    if (this.held === 0) return false;
    this.held -= 1;
    return true;
  }

  protected takeOfShare(): boolean {
    if (this.share === 0) return false;
    this.share -= 1;
    return true;
  }

  protected isEmpty(): boolean {
    return this.empty;
  }

  protected valueFrom(read: unknown): number | undefined {
    return typeof read === 'number' ? read : undefined;
  }

  protected newValue(isUntrusted: boolean): number {
    this.made.push(isUntrusted);
    return 0;
  }

  protected prepare(purpose: Purpose): void {
    this.prepared.push(purpose);
  }

  protected change(value: number, purpose: Purpose): EntryChange<number> {
    const drawn = purpose === 'draw' ? Math.min(value, this.waiting.length, this.mostPerDraw) : 0;
    const done = () => {
      this.held += drawn;
      return drawn > 0;
    };
    return drawn > 0 ? { value: value - drawn, done } : { done };
  }

  protected othersToAsk(): string[] {
    return this.others;
  }

  protected hasChange(purpose: Purpose): boolean {
    return this.changed.includes(purpose);
  }
}

const key = 'tickets.p';

function open(stored?: unknown) {
  const state = { now: 1_000, isShared: true, losses: 0, undecided: undefined as Promise<void> | undefined };
  const entries = new Map<string, { value: unknown; revision: number }>();
  if (stored !== undefined) entries.set(key, { value: stored, revision: 5 });
  const done: string[] = [];
  const hooks: { read?: () => void; write?: () => void; ask?: () => void } = {};
  const failures: [unknown, number][] = [];
  const sharing = {
    time: { now: () => state.now },
    get isShared() {
      return state.isShared;
    },
    get losses() {
      return state.losses;
    },
    get undecided() {
      return state.undecided;
    },
    store: {
      read: async (name: string) => {
        done.push(`read ${name}`);
        const entry = entries.get(name) ?? { value: undefined, revision: 0 };
        hooks.read?.();
        return entry;
      },
      write: async (name: string, { value, revision }: { value: unknown; revision: number }) => {
        done.push(`write ${name} ${value}`);
        hooks.write?.();
        if ((entries.get(name)?.revision ?? 0) !== revision) return undefined;
        entries.set(name, { value, revision: revision + 1 });
        return revision + 1;
      },
      untrusted: (reason: 'nonsense', revision: number) => new UntrustedEntryError(reason, revision),
    },
    ask: async (replicas: readonly string[], name: string, isInLine: boolean) => {
      done.push(`ask ${replicas} ${name} ${isInLine}`);
      hooks.ask?.();
    },
    fail: (error: unknown, lossesBefore: number) => void failures.push([error, lossesBefore]),
  };
  const counter = new Tickets(sharing as unknown as Sharing, 'p');
  return { state, entries, done, hooks, failures, counter };
}

describe('a request at a shared counter', () => {
  it('a request takes from what the replica holds, without asking the store', () => {
    const { counter, done } = open(9);
    counter.held = 1;
    assert.equal(counter.request(), true);
    assert.deepEqual([counter.held, done], [0, []]);
  });

  it('a request is refused at once if it is known that nothing is left', () => {
    const { counter, done } = open(9);
    counter.empty = true;
    assert.equal(counter.request(), false);
    assert.deepEqual([counter.count, done], [0, []]);
  });

  it('a request takes from the share while the replicas do not count together, and never from the store', () => {
    const { counter, state, done } = open(9);
    state.isShared = false;
    Object.assign(counter, { share: 1, held: 1 });
    assert.deepEqual([counter.request(), counter.request(), counter.held, done], [true, false, 1, []]);
  });

  it('a request waits until it is decided whether the replicas count together', async () => {
    const { counter, state } = open(9);
    let decide = () => {};
    state.undecided = new Promise((resolve) => {
      decide = resolve;
    });
    Object.assign(counter, { share: 1, held: 0 });
    const taken = counter.request();
    assert.equal(counter.share, 1);
    state.isShared = false;
    state.undecided = undefined;
    decide();
    assert.deepEqual([await taken, counter.share], [true, 0]);
  });

  it('requests that wait share one draw, and get what it brought in the order of their arrival', async () => {
    const { counter, entries, done } = open(2);
    const settled: string[] = [];
    const asked = ['first', 'second', 'third'].map(async (name) => {
      const taken = await counter.request();
      settled.push(`${name} ${taken}`);
    });
    await Promise.all(asked);
    assert.deepEqual(settled, ['first true', 'second true', 'third false']);
    assert.equal(entries.get(key)?.value, 0);
    assert.equal(done.filter((each) => each.startsWith('read')).length, 1, 'the entry that it wrote is known');
  });

  it('a draw that brought some goes on until all requests have theirs, without asking other replicas', async () => {
    const { counter, done } = open(3);
    Object.assign(counter, { mostPerDraw: 1, others: ['r1'] });
    assert.deepEqual(await Promise.all([counter.request(), counter.request(), counter.request()]), [true, true, true]);
    assert.deepEqual(done, [`read ${key}`, `write ${key} 2`, `write ${key} 1`, `write ${key} 0`]);
  });

  it('other replicas are asked once for unused parts, and the entry is read again after that', async () => {
    for (const [given, inLine, taken] of [
      [1, false, true],
      [0, true, false],
    ] as const) {
      const { counter, entries, done, hooks } = open(0);
      Object.assign(counter, { others: ['r1', 'r2'], inLine });
      hooks.ask = () => entries.set(key, { value: given, revision: 6 });
      assert.equal(await counter.request(), taken);
      const asked = `ask r1,r2 p ${inLine}`;
      const written = given > 0 ? [`write ${key} 0`] : [];
      assert.deepEqual(done, [`read ${key}`, asked, `read ${key}`, ...written]);
    }
  });

  it('a failed draw is reported with the losses before it, its requests get the share, and the next request draws again', async () => {
    const { counter, state, hooks, failures, entries } = open(9);
    for (const failure of [1, 2]) {
      state.isShared = true;
      state.losses = failure;
      hooks.read = () => {
        state.isShared = false;
        counter.share = 1;
        throw new Error(`failure ${failure}`);
      };
      assert.equal(await counter.request(), true);
      assert.deepEqual([failures.length, failures.at(-1)?.[1], counter.share], [failure, failure, 0]);
    }
    delete hooks.read;
    state.isShared = true;
    assert.equal(await counter.request(), true);
    assert.equal(entries.get(key)?.value, 8);
  });

  it('a request is refused if its draw failed while the replicas still count together', async () => {
    const { counter, hooks } = open(9);
    counter.share = 1;
    hooks.read = () => {
      throw new Error('timeout');
    };
    assert.deepEqual([await counter.request(), counter.share], [false, 1]);
  });
});

describe('a change of a shared entry', () => {
  it('a change is tried again with the newer entry if another replica wrote in between', async () => {
    const { counter, entries, hooks } = open(4);
    hooks.write = () => {
      delete hooks.write;
      entries.set(key, { value: 7, revision: 6 });
    };
    assert.equal(await counter.request(), true);
    assert.deepEqual([entries.get(key), counter.held], [{ value: 6, revision: 7 }, 0]);
  });

  it('a change ends without effect once other replicas have won for half a second', async () => {
    for (const [stepMs, tries] of [
      [500, 1],
      [499, 2],
      [250, 2],
    ] as const) {
      const { counter, state, entries, hooks, done } = open(4);
      hooks.write = () => {
        state.now += stepMs;
        entries.set(key, { value: 4, revision: state.now });
      };
      assert.equal(await counter.request(), false);
      assert.deepEqual([done.filter((each) => each.startsWith('write')).length, counter.held], [tries, 0], `${stepMs}`);
    }
  });

  it('a change counts only if the replicas counted together from its begin to its end', async () => {
    for (const moment of ['read', 'write'] as const) {
      const { counter, state, hooks, failures, done } = open(4);
      hooks[moment] = () => {
        state.losses += 1;
      };
      assert.equal(await counter.request(), false);
      assert.match(String(failures[0]?.[0]), /the other replicas were lost/);
      assert.deepEqual([failures[0]?.[1], counter.held], [0, 0], moment);
      assert.equal(done.includes(`write ${key} 3`), moment === 'write');
    }
  });

  it('changes are made one after the other, also after one that failed', async () => {
    const { counter, hooks, done } = open(4);
    hooks.read = () => {
      delete hooks.read;
      throw new Error('timeout');
    };
    const changes = await Promise.allSettled([counter.update('sweep'), counter.update('leave')]);
    assert.deepEqual(
      changes.map(({ status }) => status),
      ['rejected', 'fulfilled'],
    );
    assert.deepEqual(counter.prepared, ['sweep', 'leave']);
    assert.deepEqual(done, [`read ${key}`, `read ${key}`]);
  });

  it('a draw uses the entry that is known, and every other change and a loss have it read again', async () => {
    const { counter, done } = open(9);
    const reads = async (work: () => unknown) => {
      done.length = 0;
      await work();
      return done.filter((each) => each.startsWith('read')).length;
    };
    assert.equal(await reads(() => counter.request()), 1);
    assert.equal(await reads(() => counter.request()), 0);
    for (const purpose of ['give', 'yield', 'sweep', 'settle', 'leave'] as const) {
      assert.equal(await reads(() => counter.update(purpose)), 1, purpose);
    }
    assert.equal(await reads(() => counter.request()), 0);
    counter.lost();
    assert.equal(await reads(() => counter.request()), 1);
  });

  it('an entry that does not exist is made of a new value', async () => {
    const { counter, done } = open();
    await counter.update('sweep');
    assert.deepEqual([counter.made, done], [[false], [`read ${key}`]]);
  });
});

describe('a shared entry that is not believed', () => {
  it('an entry that is not believed fails each change, and needs one before the replicas count together', async () => {
    const { counter } = open('nonsense');
    assert.equal(counter.needs('settle'), false);
    for (const purpose of ['sweep', 'draw'] as const) {
      await assert.rejects(counter.update(purpose), (error) => {
        assert.ok(error instanceof UntrustedEntryError);
        return error.revision === 5;
      });
    }
    assert.deepEqual([counter.needs('settle'), counter.needs('leave')], [true, false]);
  });

  it('an entry that is not believed is replaced before the replicas count together, even if nothing else is to be written', async () => {
    const { counter, entries, state } = open('nonsense');
    await assert.rejects(counter.update('draw'));
    state.now += 20_000;
    assert.equal(counter.isUnused, false, 'it must be written first');
    await counter.update('settle');
    assert.deepEqual(entries.get(key), { value: 0, revision: 6 });
    assert.deepEqual(counter.made, [true]);
    assert.deepEqual([counter.needs('settle'), counter.isUnused], [false, true]);
    await counter.update('settle');
    assert.equal(entries.get(key)?.revision, 6, 'it is written once');
  });

  it('an entry is believed again as soon as another replica has written a good one', async () => {
    const { counter, entries } = open('nonsense');
    await assert.rejects(counter.update('sweep'));
    entries.set(key, { value: 3, revision: 9 });
    await counter.update('sweep');
    assert.deepEqual([counter.needs('settle'), entries.get(key)?.revision], [false, 9]);
  });

  it('any other error of the store is passed on, and leaves the entry believed', async () => {
    const { counter, hooks } = open(3);
    hooks.read = () => {
      throw new Error('timeout');
    };
    await assert.rejects(counter.update('settle'), /timeout/);
    assert.equal(counter.needs('settle'), false);
  });
});

describe('a shared counter that nobody uses', () => {
  it('a counter may be dropped more than ten seconds after its last request, if nothing of it is to be written', () => {
    for (const [laterMs, isUnused] of [
      [9_999, false],
      [10_000, false],
      [10_001, true],
    ] as const) {
      const { counter, state } = open(3);
      counter.held = 1;
      counter.request();
      state.now += laterMs;
      assert.equal(counter.isUnused, isUnused, `${laterMs}`);
      for (const purpose of ['settle', 'leave'] as const) {
        counter.changed = [purpose];
        assert.equal(counter.isUnused, false, purpose);
      }
    }
  });

  it('a counter is in use while requests wait at it', async () => {
    const { counter, state } = open(3);
    const waiting = counter.request();
    state.now += 20_000;
    assert.equal(counter.isUnused, false);
    await waiting;
    assert.equal(counter.isUnused, true);
  });
});
