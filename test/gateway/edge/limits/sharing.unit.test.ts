/** When a replica counts together with the others, and when it keeps to its share. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StoreLostError } from '../../../../src/gateway/edge/limits/counter-store.ts';
import { UntrustedEntryError } from '../../../../src/gateway/edge/limits/sealed-entry.ts';
import type { Purpose } from '../../../../src/gateway/edge/limits/sharing.ts';
import { SharingBench } from '../../../support/sharing-bench.ts';

const untrusted = new UntrustedEntryError('forged', 1);

describe('the start of counting together', () => {
  it('a replica counts with the others when all had the time to write what they took, and at once in an older store', async () => {
    for (const [ageMs, others, afterMs, isFirst] of [
      [0, [], 600, true],
      [1_000, [], 500, true],
      [1_499, [], 1, true],
      [1_500, [], 0, false],
      [1_501, [], 0, false],
      [0, ['r1'], 1_500, false],
      [500, ['r1'], 1_000, false],
      [1_000, ['r1'], 700, false],
      [1_500, ['r1'], 0, false],
    ] as const) {
      const bench = new SharingBench();
      bench.open = async () => ageMs;
      bench.sharing.start();
      for (const other of others) bench.receive('here', `${other} 1`);
      await bench.connect(true);
      const name = `${ageMs} ms, ${others.length} others`;
      assert.equal(await bench.joinedAfter(5_000, ...others), afterMs, name);
      assert.equal(bench.sharing.isFirst, isFirst, name);
    }
  });

  it('a replica that was away waits in an old store too, until all have written', async () => {
    for (const [others, afterMs] of [
      [[], 600],
      [['r1'], 1_500],
    ] as const) {
      const bench = await SharingBench.started(0, (made) => {
        made.open = async () => 60_000;
      });
      assert.equal(bench.sharing.isShared, true);
      await bench.connect(false);
      await bench.connect(true);
      assert.equal(await bench.joinedAfter(5_000, ...others), afterMs);
    }
  });

  it('what a replica took is written before the wait and after it, and it is the last thing before it counts with others', async () => {
    const bench = await SharingBench.started(0, (made) => made.counter('a'));
    assert.deepEqual(bench.done, ['a lost', 'a settle']);
    await bench.run(599);
    assert.equal(bench.sharing.isShared, false);
    await bench.run(1);
    assert.deepEqual(bench.done, ['a lost', 'a settle', 'a settle']);
    const stuck = await SharingBench.started(0, (made) => {
      made.counter('b', { update: (purpose) => (purpose === 'settle' ? new Promise(() => {}) : Promise.resolve()) });
    });
    assert.equal(await stuck.joinedAfter(2_000), undefined);
  });

  it('only the counters that need it are written, at most thirty-two at a time', async () => {
    let [underWay, most, written] = [0, 0, 0];
    const asked = new Set<Purpose>();
    const bench = new SharingBench();
    for (let count = 0; count < 70; count += 1) {
      bench.counter(`c${count}`, {
        needs: (purpose) => {
          asked.add(purpose);
          return count < 65;
        },
        update: async () => {
          underWay += 1;
          most = Math.max(most, underWay);
          await new Promise(setImmediate);
          underWay -= 1;
          written += 1;
        },
      });
    }
    bench.open = async () => 60_000;
    bench.sharing.start();
    await bench.connect(true);
    for (let turns = 0; turns < 20 && !bench.sharing.isShared; turns += 1) await bench.run(0);
    assert.deepEqual([most, written, [...asked]], [32, 130, ['settle']]);
  });

  it('a failed start is tried again every 250 ms, however often it fails', async () => {
    let tries = 0;
    const bench = await SharingBench.started(0, (made) => {
      made.open = async () => {
        tries += 1;
        if (tries <= 3) throw new Error('timeout');
        return 60_000;
      };
    });
    for (const [ms, expected] of [
      [249, 1],
      [1, 2],
      [249, 2],
      [1, 3],
    ] as const) {
      await bench.run(ms);
      assert.equal(tries, expected);
    }
    assert.equal(bench.sharing.isShared, false);
    await bench.run(250);
    assert.equal(bench.sharing.isShared, true);
  });

  it('a start during which NATS went away or another replica paused does not count, and is made anew', async () => {
    const away = await SharingBench.started(300);
    await away.connect(false);
    await away.connect(true);
    await away.run(300);
    assert.equal(away.sharing.isShared, false, 'the first start is over');
    await away.run(5_000);
    assert.equal(away.sharing.isShared, true);
    const paused = await SharingBench.started(300);
    paused.receive('alone', 'r1 4000');
    await paused.run(3_900);
    assert.equal(paused.sharing.isShared, false);
    await paused.run(5_000);
    assert.equal(paused.sharing.isShared, true);
  });

  it('requests wait for the first start, at most three seconds, and for the last write of any start, at most a second', async () => {
    const first = await SharingBench.started(0, (made) => {
      made.open = () => new Promise(() => {});
    });
    await first.run(2_999);
    assert.notEqual(first.sharing.undecided, undefined);
    await first.run(1);
    assert.equal(first.sharing.undecided, undefined);
    const later = await SharingBench.started(600);
    assert.deepEqual([later.sharing.isShared, later.sharing.undecided], [true, undefined]);
    later.counter('a', { update: () => new Promise(() => {}) });
    later.sharing.fail(new Error('timeout'), later.sharing.losses);
    assert.equal(later.sharing.undecided, undefined, 'requests have the share meanwhile');
    const stuck = await SharingBench.started(600);
    let writes = 0;
    stuck.counter('a', {
      update: () => {
        writes += 1;
        return writes === 1 ? Promise.resolve() : new Promise(() => {});
      },
    });
    stuck.open = async () => 60_000;
    stuck.sharing.fail(new Error('timeout'), stuck.sharing.losses);
    await stuck.run(999);
    assert.notEqual(stuck.sharing.undecided, undefined);
    await stuck.run(1);
    assert.equal(stuck.sharing.undecided, undefined);
  });
});

describe('replicas that know each other by heartbeats', () => {
  it('a replica is dead when no heartbeat of it came for a lease, and never before all had a lease to send one', async () => {
    const bench = await SharingBench.started();
    bench.receive('here', 'r1 1');
    assert.equal(bench.sharing.isDead('unknown'), false);
    await bench.run(4_999);
    assert.deepEqual([bench.sharing.isDead('r1'), bench.sharing.isDead('unknown')], [false, false]);
    await bench.run(1);
    assert.deepEqual([bench.sharing.isDead('r1'), bench.sharing.isDead('unknown')], [true, true]);
    assert.equal(bench.sharing.isDead('own'), false);
    bench.receive('here', 'r1 1');
    assert.equal(bench.sharing.isDead('r1'), false);
    await bench.connect(false);
    await bench.run(20_000);
    await bench.connect(true);
    assert.equal(bench.sharing.isDead('r1'), false, 'it could not be heard while NATS was away');
    await bench.run(5_000);
    assert.equal(bench.sharing.isDead('r1'), true);
  });

  it('the replicas are those that were heard within a lease, also while NATS is away, without one that said its end', async () => {
    const bench = await SharingBench.started(0);
    for (const name of ['r1', 'r2', 'r2']) bench.receive('here', `${name} 1`);
    assert.equal(bench.sharing.replicas, 3);
    bench.receive('gone', 'r1');
    assert.equal(bench.sharing.replicas, 2);
    await bench.run(4_500);
    assert.equal(bench.sharing.replicas, 2);
    await bench.run(500);
    assert.equal(bench.sharing.replicas, 1);
    bench.receive('here', 'r3 1');
    await bench.connect(false);
    await bench.run(60_000);
    assert.equal(bench.sharing.replicas, 2);
  });

  it('a heartbeat is sent five times in a lease while NATS is connected', async () => {
    const bench = await SharingBench.started();
    const heartbeats = () => bench.published.filter((each) => each.startsWith('p.peers.here own '));
    bench.published.length = 0;
    await bench.run(5_000);
    assert.equal(heartbeats().length, 5);
    assert.equal(heartbeats()[0], 'p.peers.here own 1001000.000');
    await bench.connect(false);
    bench.published.length = 0;
    await bench.run(5_000);
    assert.deepEqual(heartbeats(), []);
  });

  it('a replica keeps to its share one heartbeat before the others take it for dead', async () => {
    const bench = await SharingBench.started(0, (made) => {
      made.open = async () => 60_000;
    });
    bench.echoes = false;
    await bench.run(3_999);
    assert.equal(bench.sharing.isShared, true);
    await bench.run(1);
    assert.equal(bench.sharing.isShared, false);
    const { losses } = bench.sharing;
    bench.receive('here', `own ${bench.now - 4_000}`);
    assert.deepEqual([bench.sharing.isShared, bench.sharing.losses], [false, losses], 'this heartbeat is too old');
    bench.counter('a');
    bench.receive('here', `own ${bench.now - 3_999}`);
    assert.deepEqual([bench.sharing.losses, bench.done], [losses + 1, ['a lost']], 'others may have taken its part');
    await bench.run(0);
    assert.equal(bench.sharing.isShared, true, 'it counts with the others again');
  });

  it('a heartbeat of this replica that seems to come from later counts as one of now, and an older one takes nothing back', async () => {
    const bench = await SharingBench.started(0, (made) => {
      made.open = async () => 60_000;
    });
    bench.receive('here', `own ${bench.now + 900_000}`);
    bench.receive('here', 'own 1');
    bench.echoes = false;
    await bench.run(3_999);
    assert.equal(bench.sharing.isShared, true);
    await bench.run(1);
    assert.equal(bench.sharing.isShared, false);
  });

  it('a message of no replica is counted and has no effect', async () => {
    const bench = await SharingBench.started(600);
    for (const [subject, text] of [
      ['here', 'r1'],
      ['here', ' 1'],
      ['here', 'r_1 1'],
      ['alone', 'r1'],
      ['alone', 'r1 12345678'],
    ] as const) {
      bench.receive(subject, text);
    }
    assert.deepEqual(bench.untrusted, Array(5).fill('message nonsense'));
    assert.deepEqual([bench.sharing.isShared, bench.sharing.replicas], [true, 1]);
  });

  it('the 257th replica is not believed, and all keep to their shares', async () => {
    const bench = await SharingBench.started(600);
    for (let count = 1; count <= 255; count += 1) bench.receive('here', `r${count} 1`);
    bench.receive('here', 'r1 2');
    assert.deepEqual([bench.untrusted, bench.sharing.replicas, bench.sharing.isShared], [[], 256, true]);
    bench.receive('here', 'r256 1');
    assert.deepEqual(
      [bench.untrusted, bench.sharing.replicas, bench.sharing.isShared],
      [['replica too_many'], 256, false],
    );
    assert.equal(bench.published.at(-1), 'p.peers.alone own 30000');
    bench.receive('here', 'r256 1');
    assert.equal(
      bench.published.filter((each) => each.startsWith('p.peers.alone')).length,
      1,
      'a pause is not prolonged',
    );
  });
});

describe('failures of counting together', () => {
  it('a failure of work that began before the last loss changes nothing', async () => {
    const bench = await SharingBench.started(600);
    const before = bench.sharing.losses - 1;
    bench.sharing.fail(new Error('timeout'), before);
    bench.sharing.fail(untrusted, before);
    assert.deepEqual([bench.sharing.isShared, bench.logged.slice(1)], [true, []]);
  });

  it('a failure makes the replica keep to its share until it has joined again, and is logged if it counted with others', async () => {
    const bench = await SharingBench.started(600);
    bench.counter('a');
    bench.logged.length = 0;
    for (const failure of [1, 2]) {
      const { now } = bench;
      bench.sharing.fail(new Error('timeout'), bench.sharing.losses);
      assert.deepEqual([bench.sharing.isShared, bench.sharing.lostAt], [false, now], `failure ${failure}`);
      assert.equal(bench.done.filter((each) => each === 'a lost').length, failure);
      await bench.run(600);
      assert.deepEqual([bench.sharing.isShared, bench.sharing.lostAt], [true, bench.now]);
    }
    const [lost, again] = [
      'warn limits are not counted across replicas now',
      'info limits are counted across replicas again',
    ];
    assert.deepEqual(bench.logged, [lost, again, lost, again]);
  });

  it('a replica knows since when it keeps to its share, and a further loss does not change that', async () => {
    const bench = await SharingBench.started(0);
    assert.equal(bench.sharing.lostAt, Number.NEGATIVE_INFINITY, 'it never counted with others');
    await bench.run(600);
    await bench.connect(false);
    const lostAt = bench.now;
    await bench.run(10_000);
    bench.sharing.fail(new Error('timeout'), bench.sharing.losses);
    assert.equal(bench.sharing.lostAt, lostAt);
  });

  it('all replicas pause after an entry that is not believed, for half a minute at first and twice as long each time', async () => {
    const bench = await SharingBench.started(600);
    for (const ms of [30_000, 60_000, 120_000]) {
      bench.sharing.fail(untrusted, bench.sharing.losses);
      assert.equal(bench.published.at(-1), `p.peers.alone own ${ms}`);
      await bench.run(ms - 1);
      assert.equal(bench.sharing.isShared, false);
      const afterMs = (await bench.joinedAfter(2_000)) ?? Number.NaN;
      assert.ok(afterMs > 600 && afterMs <= 1_101, `everybody writes what they took, ${afterMs}`);
    }
  });

  it('a store that lost its entries is joined again at once, and only the second time within a minute all replicas pause', async () => {
    const bench = await SharingBench.started(0, (made) => {
      made.open = async () => 60_000;
    });
    const pauses = () => bench.published.filter((each) => each.startsWith('p.peers.alone')).length;
    for (const [laterMs, paused] of [
      [0, 0],
      [61_000, 0],
      [50_000, 1],
    ] as const) {
      await bench.run(laterMs);
      bench.sharing.fail(new StoreLostError('lost'), bench.sharing.losses);
      assert.deepEqual([bench.sharing.isShared, pauses()], [false, paused], `${laterMs}`);
      await bench.run(599);
      assert.equal(bench.sharing.isShared, false, 'everybody writes what they took');
    }
  });

  it('a store that was found lost by work of before the last loss has everybody write too', async () => {
    const bench = await SharingBench.started(0, (made) => {
      made.open = async () => 60_000;
    });
    bench.sharing.fail(new StoreLostError('lost'), -1);
    assert.equal(bench.sharing.isShared, true);
    bench.sharing.fail(new Error('timeout'), bench.sharing.losses);
    assert.equal(await bench.joinedAfter(2_000), 600);
  });

  it('a pause of another replica is kept to, and its own is none when it comes back', async () => {
    const bench = await SharingBench.started(600);
    bench.receive('alone', 'own 5000');
    assert.equal(bench.sharing.isShared, true);
    bench.logged.length = 0;
    bench.receive('alone', 'r1 5000');
    bench.receive('alone', 'r1 5000');
    assert.equal(bench.sharing.isShared, false);
    assert.deepEqual(bench.logged, ['warn limits are not counted across replicas for a while']);
    assert.deepEqual(
      bench.published.filter((each) => each.startsWith('p.peers.alone')),
      [],
    );
    await bench.run(5_000);
    assert.equal(bench.sharing.isShared, false);
    assert.ok(((await bench.joinedAfter(2_000)) ?? 0) >= 600);
  });

  it('the clock is read every ten seconds while replicas count together, and only a lost store is a failure of it', async () => {
    let reads = 0;
    let error = new Error('timeout');
    const bench = await SharingBench.started(0, (made) => {
      made.open = async () => 60_000;
      made.readClock = async () => {
        reads += 1;
        throw error;
      };
    });
    await bench.run(10_000);
    await bench.run(10_000);
    assert.deepEqual([reads, bench.sharing.losses, bench.sharing.isShared], [2, 1, true]);
    error = new StoreLostError('lost');
    await bench.run(10_000);
    assert.deepEqual([reads, bench.sharing.losses], [3, 2]);
  });
});

describe('what replicas ask of each other', () => {
  it('each replica is asked by its name, and told if a request waits in line', async () => {
    const bench = await SharingBench.started(600);
    await bench.sharing.ask(['r1', 'r2'], 'requests.p', false);
    await bench.sharing.ask(['r3'], 'requests.p', true);
    assert.deepEqual(bench.asked, [
      'p.peers.ask.r1 requests.p 250',
      'p.peers.ask.r2 requests.p 250',
      'p.peers.ask.r3 requests.p line 250',
    ]);
  });

  it('a replica that is asked gives of each kind of counter with that name, and answers when it has', async () => {
    const bench = await SharingBench.started(600);
    for (const name of ['a', 'b', 'a']) bench.counter(name);
    const answered: string[] = [];
    const ask = async (text: string) => {
      bench.done.length = 0;
      bench.receive('ask.own', text, { respond: () => void answered.push(text) });
      await bench.run(0);
      return [...bench.done, ...answered.splice(0).map((each) => `answered ${each}`)];
    };
    assert.deepEqual(await ask('a'), ['a give', 'a give', 'answered a']);
    assert.deepEqual(await ask('b line'), ['b yield', 'answered b line']);
    assert.deepEqual(await ask('c'), ['answered c'], 'it has none');
    await bench.connect(false);
    assert.deepEqual(await ask('a'), ['answered a'], 'it keeps to its share');
  });

  it('a replica that fails to give answers all the same, and keeps to its share', async () => {
    const bench = await SharingBench.started(600);
    bench.counter('a', { update: () => Promise.reject(new Error('timeout')) });
    let hasAnswered = false;
    bench.open = () => new Promise(() => {});
    bench.receive('ask.own', 'a', {
      respond: () => {
        hasAnswered = true;
      },
    });
    await bench.run(0);
    assert.deepEqual([hasAnswered, bench.sharing.isShared], [true, false]);
  });

  it('counters are kept in order every half second while replicas count together, and an unused one is dropped', async () => {
    const bench = await SharingBench.started(600);
    let isUnused = false;
    const made: string[] = [];
    const counterOf = bench.sharing.counters((name) => {
      made.push(name);
      return {
        get isUnused() {
          return isUnused;
        },
        needs: (purpose) => purpose === 'sweep',
        update: async (purpose) => void bench.done.push(purpose),
        lost: () => {},
      };
    });
    assert.equal(counterOf('a'), counterOf('a'));
    await bench.run(1_000);
    assert.deepEqual([bench.done, made], [['sweep', 'sweep'], ['a']]);
    isUnused = true;
    await bench.run(500);
    counterOf('a');
    assert.deepEqual([bench.done.length, made], [2, ['a', 'a']]);
  });
});

describe('the end of a replica', () => {
  it('a replica that ends gives back what it holds, says so, and counts alone from then on', async () => {
    const bench = await SharingBench.started(600);
    bench.counter('a');
    bench.done.length = 0;
    bench.published.length = 0;
    await bench.sharing.close();
    assert.deepEqual(bench.done, ['a leave', 'a lost', 'flush']);
    assert.deepEqual(bench.published, ['p.peers.gone own']);
    assert.equal(bench.sharing.isShared, false);
    await bench.run(20_000);
    assert.deepEqual([bench.published.length, bench.sharing.isShared], [1, false]);
  });

  it('a replica that ends says so although it cannot give back, and gives back nothing while it keeps to its share', async () => {
    const failing = await SharingBench.started(600);
    failing.counter('a', { update: () => Promise.reject(new Error('timeout')) });
    await failing.sharing.close();
    assert.equal(failing.published.at(-1), 'p.peers.gone own');
    const alone = await SharingBench.started(600);
    alone.counter('a');
    await alone.connect(false);
    alone.done.length = 0;
    await alone.sharing.close();
    assert.deepEqual(alone.done, ['a lost', 'flush']);
  });

  it('a replica that ends while it starts to count with others does not begin', async () => {
    const bench = await SharingBench.started(300);
    await bench.sharing.close();
    await bench.run(5_000);
    assert.deepEqual([bench.sharing.isShared, bench.published.at(-1)], [false, 'p.peers.gone own']);
  });
});
