import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { EventKey, OutboxEvent } from '../../../../src/gateway/delivery/events/outbox.ts';
import { Relay, type RelayOptions } from '../../../../src/gateway/delivery/events/relay.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../../src/kit/log.ts';

/** A read of the outbox that waits for its rows. */
interface Turn {
  /** The events whose bodies are not asked for. */
  readonly published: readonly string[];
  readonly withoutPartners: readonly string[];
  answer(ids: readonly string[]): void;
}

function row(id: string): SqlRow {
  const version = Number(id.replace(/\D/g, ''));
  const about = { type: 'order.pending', object_kind: 'order', object_id: 'ord_1' };
  return { partner_id: 'par_1', version, id, ...about, body: Buffer.from('{}') };
}

/** A relay whose parts note what they are asked, and whose clock stands until the test moves it. */
function startRelay({ mock }: TestContext, stored: (ids: readonly string[]) => readonly string[] = (ids) => ids) {
  const clock = { ms: 100_000 };
  mock.method(performance, 'now', () => clock.ms);
  const said: string[] = [];
  const resting: string[] = [];
  const turns: Turn[] = [];
  let hasCome = () => {};
  let held: readonly string[] = [];
  const database = {
    transaction: async () => 1n,
    write: async () => 1,
    readAll: ([{ values }]: readonly [Statement]) =>
      new Promise<SqlRow[][]>((resolve) => {
        const [[, ...published], withoutPartners] = values as unknown as [string[], unknown];
        turns.push({
          published,
          withoutPartners: Array.isArray(withoutPartners) ? withoutPartners : [],
          answer(ids) {
            said.splice(0);
            relay.wake();
            resolve([ids.map(row)]);
          },
        });
        hasCome();
      }),
  };
  const relay = new Relay({
    database,
    stream: {
      async publish(events: readonly OutboxEvent[]) {
        said.push(`to NATS: ${events.map(({ id }) => id)}`);
        const kept = stored(events.map(({ id }) => id));
        if (kept.length === 0) throw new Error('NATS stored nothing');
        return events.filter(({ id }) => kept.includes(id));
      },
      restore: async () => void said.push('restored'),
    },
    notifications: { publish: (name: string) => void said.push(`told ${name}`) },
    log: createLogger({ name: 'test', level: 'silent' }),
    holder: 'test',
    feedWatch: { wake: () => void said.push('feed woken') },
    consumer: {
      resting,
      consume: async (events: readonly EventKey[]) =>
        void said.push(`by hand: ${(events as OutboxEvent[]).map(({ id }) => id)}`),
    },
  } as unknown as RelayOptions);
  const nextTurn = async () => {
    while (turns.length === 0) {
      await new Promise<void>((resolve) => {
        hasCome = resolve;
      });
    }
    return turns[0] as Turn;
  };
  const whileRunning = async (work: () => Promise<void>) => {
    const stop = new AbortController();
    const running = relay.worker.run(stop.signal);
    try {
      await work();
    } finally {
      stop.abort();
      (await nextTurn()).answer(held);
      await running;
      turns.splice(0);
    }
  };
  /** Answers a read with the events that are in the outbox. Returns what was done with them, and the read after that. */
  const holding = async (...ids: readonly string[]) => {
    const turn = await nextTurn();
    turns.shift();
    held = ids;
    turn.answer(ids);
    const next = await nextTurn();
    return { did: [...said], next };
  };
  return { relay, clock, said, resting, whileRunning, holding };
}

describe('the relay of events', () => {
  it('an event that NATS stored is handed over by the relay only if it is there a second later, until it is gone', async (t) => {
    const { clock, whileRunning, holding } = startRelay(t);
    await whileRunning(async () => {
      const first = await holding('e1');
      assert.deepEqual([first.did, first.next.published], [['to NATS: e1'], ['e1']]);
      clock.ms += 500;
      assert.deepEqual((await holding('e1', 'e2')).did, ['to NATS: e2']);
      clock.ms += 499;
      assert.deepEqual((await holding('e1', 'e2')).did, ['restored']);
      clock.ms += 1;
      for (const again of ['first', 'second'])
        assert.deepEqual((await holding('e1', 'e2')).did, ['by hand: e1', 'restored'], again);
      assert.deepEqual((await holding('e2')).next.published, ['e2'], 'one that is gone is forgotten');
      assert.deepEqual((await holding()).next.published, []);
    });
  });

  it('events that NATS did not store are handed over at once, and tried at NATS again each time they stay', async (t) => {
    const down = { is: false };
    const { whileRunning, holding } = startRelay(t, (ids) => (down.is ? [] : ids.filter((id) => id !== 'e2')));
    await whileRunning(async () => {
      const partly = await holding('e1', 'e2', 'e3');
      assert.deepEqual(
        [partly.did, partly.next.published],
        [
          ['to NATS: e1,e2,e3', 'by hand: e2'],
          ['e1', 'e3'],
        ],
      );
      down.is = true;
      for (const which of ['first', 'second']) {
        const { did, next } = await holding('e2', 'e4');
        assert.deepEqual([did, next.published], [['to NATS: e2,e4', 'by hand: e2,e4'], []], which);
      }
    });
  });

  it('published events that fill a whole read are handed over at once, because they would hide newer ones', async (t) => {
    const { whileRunning, holding } = startRelay(t);
    const ids = Array.from({ length: 500 }, (_, at) => `e${at + 1}`);
    await whileRunning(async () => {
      await holding(...ids);
      assert.deepEqual((await holding(...ids.slice(1))).did, ['restored'], 'one less is all there is');
      const newer = [...ids.slice(1), 'e501'];
      assert.deepEqual((await holding(...newer)).did, ['to NATS: e501'], 'one of them was not published');
      assert.deepEqual((await holding(...newer)).did, [`by hand: ${newer}`, 'restored']);
    });
  });

  it('events of partners that rest are not read', async (t) => {
    const { resting, whileRunning, holding } = startRelay(t);
    await whileRunning(async () => {
      resting.push('par_2', 'par_3');
      assert.deepEqual((await holding()).next.withoutPartners, ['par_2', 'par_3']);
      resting.splice(0);
      assert.deepEqual((await holding()).next.withoutPartners, []);
    });
  });

  it('a process that becomes the publishing one again trusts nothing that it published before', async (t) => {
    const { whileRunning, holding } = startRelay(t);
    await whileRunning(async () => assert.deepEqual((await holding('e1')).next.published, ['e1']));
    await whileRunning(async () => assert.deepEqual((await holding('e1')).did, ['to NATS: e1']));
  });
});

describe('a notification of new events', () => {
  const windowMs = 30;

  it('a notification is sent at once, and once more after a moment for all that came meanwhile, as often as there is news', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { relay, said } = startRelay(t);
    const told = () => said.splice(0).filter((one) => one !== 'feed woken');
    for (const which of ['first', 'second']) {
      relay.notify();
      assert.deepEqual(said, ['feed woken', 'told feed', 'told relay'], which);
      told();
      for (let count = 0; count < 3; count += 1) relay.notify();
      assert.deepEqual(said, ['feed woken', 'feed woken', 'feed woken'], 'readers here are woken each time');
      t.mock.timers.tick(windowMs - 1);
      assert.deepEqual(told(), []);
      t.mock.timers.tick(1);
      assert.deepEqual(told(), ['told feed', 'told relay'], 'what came meanwhile shares one');
      relay.notify();
      assert.deepEqual(told(), [], 'the window is open again');
      t.mock.timers.tick(windowMs);
      assert.deepEqual(told(), ['told feed', 'told relay']);
      t.mock.timers.tick(windowMs);
      assert.deepEqual(told(), [], 'there is no news');
    }
  });

  it('a notification goes to the publishing process unless it is this one', async (t) => {
    const [running, ended] = [startRelay(t), startRelay(t)];
    await running.whileRunning(async () => {
      await running.holding();
      running.relay.notify();
      assert.deepEqual(running.said, ['restored', 'feed woken', 'told feed']);
    });
    await ended.whileRunning(async () => void (await ended.holding()));
    ended.said.splice(0);
    ended.relay.notify();
    assert.deepEqual(ended.said, ['feed woken', 'told feed', 'told relay'], 'it publishes no more');
  });
});
