import assert from 'node:assert/strict';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { DidNotHold } from '../../src/sandbox/demo-failure.ts';
import { Feed } from '../../src/sandbox/demo-feed.ts';
import { ReceiverLog } from '../../src/sandbox/demo-receiver.ts';
import { Screen } from '../../src/sandbox/demo-screen.ts';
import { until } from '../../src/sandbox/demo-until.ts';
import { logFile } from '../../src/sandbox/settings.ts';
import type { Marina } from '../../src/site/snippets/client.mts';
import { temporaryFolder } from '../support/folders.ts';

interface Event {
  readonly version: number;
  readonly type: string;
  readonly data: object;
}

/** A gateway's feed in pages of two, and a screen that keeps its lines. */
function start() {
  const events: Event[] = [];
  const cursors: (string | undefined)[] = [];
  const lines: string[] = [];
  const marina = {
    GET: async (_: string, { params }: { params: { query: { cursor?: string } } }) => {
      const { cursor } = params.query;
      cursors.push(cursor);
      const from = Number(cursor ?? 0);
      const data = events.slice(from, from + 2);
      const next = from + data.length;
      return { data: { data, has_more: next < events.length, next_cursor: String(next) }, response: new Response() };
    },
  } as unknown as Marina;
  const screen = new Screen({ write: (text: string) => lines.push(text.trim()) }, {});
  const happen = (object: string, id: string, state: string, more: object = {}) =>
    events.push({ version: events.length + 1, type: `${object}.${state}`, data: { object, id, state, ...more } });
  return { events, cursors, lines, marina, screen, happen };
}

describe('the event feed of a demo', () => {
  it('a demo shows the events since it began, and none from before, however many pages they have', async () => {
    const { cursors, lines, marina, screen, happen } = start();
    for (const state of ['pending', 'partially_filled', 'filled']) happen('order', 'ord_1', state);
    const feed = await Feed.open(marina, screen);
    assert.deepEqual([lines, feed.of('ord_1')], [[], []]);
    happen('order', 'ord_2', 'filled', { filled_quantity: 10, quantity: 30 });
    const order = await feed.follow('order', 'ord_2', 'filled');
    assert.equal(order.id, 'ord_2');
    assert.deepEqual(lines, ['event 4 order.filled ord_2 10/30']);
    assert.deepEqual(cursors, [undefined, '2', '3']);
  });

  it('an object is followed to the state that is asked for, past its other states and other objects', async () => {
    const { events, lines, marina, screen, happen } = start();
    const feed = await Feed.open(marina, screen);
    happen('withdrawal', 'ord_1', 'filled');
    happen('order', 'ord_2', 'filled', { filled_quantity: 1, quantity: 1 });
    happen('order', 'ord_1', 'pending', { filled_quantity: 0, quantity: 5 });
    events.push({ version: 4, type: 'object_to_come.made', data: { object: 'object_to_come' } });
    happen('order', 'ord_1', 'filled', { filled_quantity: 5, quantity: 5 });
    const order = await feed.follow('order', 'ord_1', 'filled');
    assert.deepEqual([order.object, order.id, order.filled_quantity], ['order', 'ord_1', 5]);
    assert.deepEqual(
      feed.of('ord_1').map(({ version }) => version),
      [1, 3, 5],
    );
    assert.deepEqual(lines, [
      'event 1 withdrawal.filled ord_1',
      'event 2 order.filled ord_2 1/1',
      'event 3 order.pending ord_1 0/5',
      'event 5 order.filled ord_1 5/5',
    ]);
  });

  it('an event that was read already is found without another read', async () => {
    const { cursors, marina, screen, happen } = start();
    const feed = await Feed.open(marina, screen);
    happen('allocation', 'all_1', 'booked');
    happen('order', 'ord_1', 'pending', { filled_quantity: 0, quantity: 5 });
    await feed.follow('order', 'ord_1', 'pending');
    const reads = cursors.length;
    assert.equal((await feed.follow('allocation', 'all_1', 'booked')).id, 'all_1');
    assert.equal(cursors.length, reads);
  });

  it('a feed that does not end is no reason to read for ever', async () => {
    const { marina, screen } = start();
    let pages = 0;
    const endless = {
      ...marina,
      GET: async () => {
        pages += 1;
        return { data: { data: [], has_more: true, next_cursor: 'c' }, response: new Response() };
      },
    } as unknown as Marina;
    await assert.rejects(Feed.open(endless, screen), /the feed does not end/);
    assert.ok(pages > 1_000 && pages < 1_100, `${pages}`);
  });
});

describe('the wait of a demo', () => {
  it('a thing that comes at a later look is found, also one that is 0 or false', async () => {
    for (const thing of ['it', 0, false]) {
      let looks = 0;
      const found = await until(start().screen, 'something', () => {
        looks += 1;
        return looks === 2 ? thing : undefined;
      });
      assert.deepEqual([found, looks], [thing, 2]);
    }
  });

  it('a thing that does not come within 30 seconds does not hold, and the hint says why', async (context) => {
    const times = [5_000, 34_999, 35_000, 35_001, 35_002];
    let looks = 0;
    context.mock.method(performance, 'now', () => times.shift() ?? Number.POSITIVE_INFINITY);
    const look = () => {
      looks += 1;
      return undefined;
    };
    await assert.rejects(
      until(start().screen, 'the event', look, () => ' It was refused.'),
      (error: Error) => {
        assert.equal(error.message, 'It did not come within 30 s: the event. It was refused.');
        return error instanceof DidNotHold;
      },
    );
    assert.equal(looks, 3, 'the last look is after 30 seconds');
  });

  it('a look that fails ends the wait at once', async () => {
    const failing = () => Promise.reject(new Error('the gateway is gone'));
    await assert.rejects(until(start().screen, 'the event', failing), /the gateway is gone/);
  });
});

describe('the lines of the webhook receiver in a demo', () => {
  it('the events of a demo came when each has a line since it began, in the order that is asked for', () => {
    const dataDir = temporaryFolder();
    const path = logFile(dataDir, 'receiver');
    writeFileSync(path, 'old Lagoon: event 1 order.filled ord_1 (evt_1)\nLagoon: something that is refused\n');
    const log = new ReceiverLog(dataDir, 'Lagoon');
    assert.equal(log.linesOf(['evt_1']), undefined, 'it came before the demo');
    assert.equal(log.whyNot(), '', 'it was refused before the demo');
    appendFileSync(path, 'Lagoon: event 3 (evt_3)\nLagoon: event 2 (evt_2)\n');
    assert.deepEqual(log.linesOf(['evt_2', 'evt_3']), ['Lagoon: event 2 (evt_2)', 'Lagoon: event 3 (evt_3)']);
    assert.equal(log.linesOf(['evt_2', 'evt_4']), undefined, 'one of two is missing');
    assert.deepEqual(log.linesOf([]), []);
    appendFileSync(path, 'Harmattan: something that its secret does not verify was refused\n');
    assert.equal(log.whyNot(), '', 'an event of the other partner was refused');
    appendFileSync(path, 'Lagoon: something that its secret does not verify was refused\n');
    assert.match(log.whyNot(), /It refused events/);
    rmSync(dataDir, { recursive: true });
  });
});
