import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { eventually } from '../support/eventually.ts';

interface Event {
  readonly id: number;
}
/** The module is JavaScript for browsers, and has no types. */
interface Workbench {
  follow(cursor: string | null, onEvents: (events: Event[]) => void, onState: (state: string) => void): Promise<void>;
  close(): void;
}
const asset = new URL('../../src/site/assets/workbench-gateway.js', import.meta.url).href;

const pageSize = 100;
/** More pages are not read at once: the latest events are shown then. */
const maxPages = 10;

/** The events of a feed of so many that the workbench shows, and the cursors after which it asks for the next ones. */
async function followed(t: TestContext, count: number): Promise<{ shown: number[]; cursors: (string | null)[] }> {
  const cursors: (string | null)[] = [];
  const latest = Array.from({ length: pageSize }, (_, at) => ({ id: count - at }));
  const answer = (response: ServerResponse, body: object) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://gateway');
    if (pathname.endsWith('/WatchEvents')) {
      // One message, and the stream goes on.
      response.writeHead(200).write(Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]));
    } else if (pathname === '/v1/sandbox/events') {
      answer(response, { data: latest, feed_cursor: String(count) });
    } else {
      const cursor = searchParams.get('cursor');
      cursors.push(cursor);
      const from = Number(cursor ?? 0);
      const data = Array.from({ length: Math.min(pageSize, count - from) }, (_, at) => ({ id: from + at + 1 }));
      answer(response, { data, next_cursor: String(from + data.length), has_more: from + data.length < count });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { Gateway } = await import(asset);
  const gateway: Workbench = new Gateway(
    'marina_test_key',
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
  t.after(() => {
    gateway.close();
    server.closeAllConnections();
    server.close();
  });
  const shown: number[] = [];
  const following = gateway.follow(
    null,
    (events) => shown.push(...events.map(({ id }) => id)),
    () => {},
  );
  await eventually(() => assert.equal(shown.at(-1), count), 10_000);
  gateway.close();
  await following;
  return { shown, cursors };
}

describe('the events of a key in the workbench', () => {
  const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

  it('all events are shown in their order, page by page, as long as they are few', async (t) => {
    const { shown, cursors } = await followed(t, maxPages * pageSize);
    assert.deepEqual(shown, numbers(1, 1_000));
    assert.deepEqual(cursors, [null, ...numbers(1, 9).map((page) => String(page * pageSize))]);
  });

  it('only the latest events of very many are shown after ten pages, the oldest of them first', async (t) => {
    const { shown } = await followed(t, 5_000);
    assert.deepEqual(shown, [...numbers(1, 1_000), ...numbers(4_901, 5_000)]);
  });
});
