import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { listen } from '../../clients/typescript/src/listen/listen.ts';
import { type ListenSettings, readSettings } from '../../clients/typescript/src/listen/settings.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { temporaryFolder } from '../support/folders.ts';
import { patient } from '../support/patience.ts';

const environment = { MARINA_KEY: 'marina_test_key', MARINA_WEBHOOK_SECRET: `whsec_${'A'.repeat(32)}` };

/** The address of a server that ends with the test. */
async function serve(context: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function settingsFor(...args: string[]) {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const settings = readSettings([...args, '--state', join(folder, 'state'), '--from', 'oldest'], environment);
  assert.ok(settings !== 'help');
  return settings;
}

describe('marina-listen', () => {
  it('posts every event that has the form of one, and says which it does not post', async (context) => {
    const good = { type: 'order.filled', timestamp: '2026-03-02T09:30:00Z' };
    const data = [
      ...['msg_₦', 'msg_é', 'msg 1', 'msg\n', '', 'm'.repeat(256), 5, null, { toString: 1 }].map((id, at) => {
        return { ...good, id, version: at + 1 };
      }),
      { ...good, id: 'msg_type', type: 5, version: 20 },
      { ...good, id: 'msg_time', timestamp: null, version: 21 },
      { ...good, id: 'msg_version', version: '22' },
      { ...good, id: 'msg_marks', type: `order.${'\u0301'.repeat(300)}`, version: 23 },
      { ...good, id: 'msg_good', version: 24 },
    ];
    const stop = new AbortController();
    const gateway = await serve(context, (_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ has_more: false, next_cursor: 'c', data }));
    });
    const posted: unknown[] = [];
    const endpoint = await serve(context, (request, response) => {
      request.resume();
      posted.push(request.headers['webhook-id']);
      response.end();
      if (posted.at(-1) === 'msg_good') stop.abort();
    });
    const lines: string[] = [];
    const running = listen(settingsFor('--forward', endpoint, '--base-url', gateway), {
      signal: stop.signal,
      write: (line) => lines.push(line),
    });
    await assert.rejects(running, { name: 'AbortError' });
    assert.deepEqual(posted, ['msg_marks', 'msg_good']);
    const notPosted = lines.filter((line) => line.includes('is not posted'));
    assert.equal(notPosted.length, 12);
    assert.ok(notPosted.some((line) => line.startsWith('! msg_₦ is not posted')));
    assert.doesNotMatch(lines.join('\n'), /\p{M}|no answer/u);
  });

  it('names the argument of the command line that would let the key travel in plain text', async () => {
    const settings = settingsFor('--forward', 'http://127.0.0.1:3000/', '--base-url', 'http://gateway.example');
    const running = listen(settings, { signal: AbortSignal.abort(), write: () => assert.fail('it begins nothing') });
    await assert.rejects(running, (error) => {
      assert.match(String(error), /plain text\. --allow-plaintext permits it/);
      assert.doesNotMatch(String(error), /allowPlaintext/);
      return true;
    });
  });
});

/** Events in pages of two, by the number of the event before them as the cursor. */
function pageOf(url: string, count: number): object {
  const after = Number(new URL(url, 'http://gateway').searchParams.get('cursor') ?? 0);
  const next = Math.min(after + 2, count);
  const data = Array.from({ length: next - after }, (_, at) => ({
    ...{
      id: `msg_${after + at + 1}`,
      version: after + at + 1,
      type: 'order.filled',
      timestamp: '2026-03-02T09:30:00Z',
    },
  }));
  return { has_more: next < count, next_cursor: String(next), data };
}

/** Runs the listener until it is stopped; for a bounded time. */
async function runs(settings: ListenSettings, stop: AbortController): Promise<void> {
  const bound = setTimeout(() => stop.abort(), patient(5_000));
  try {
    await assert.rejects(listen(settings, { signal: stop.signal, write: () => {} }));
  } finally {
    clearTimeout(bound);
  }
}

describe('marina-listen after it was stopped', () => {
  const count = 5;
  const all = Array.from({ length: count }, (_, at) => `msg_${at + 1}`);

  for (const from of ['oldest', 'last'] as const) {
    for (let stopAt = 1; stopAt <= count; stopAt += 1) {
      for (const answer of [200, 500, undefined]) {
        const when = answer === undefined ? 'while it waits for an answer' : `when the answer is ${answer}`;
        it(`marina-listen goes on at event ${stopAt} if it began at the ${from} and was stopped at it ${when}`, async (context) => {
          let stop = new AbortController();
          let isStopped = false;
          /** The events that there are: none before the first run has begun, if it begins at those to come. */
          let there = from === 'last' ? 0 : count;
          const gateway = await serve(context, (request, response) => {
            response.setHeader('content-type', 'application/json');
            response.end(JSON.stringify(pageOf(request.url ?? '', there)));
            there = count;
          });
          const taken: string[] = [];
          const endpoint = await serve(context, (request, response) => {
            request.resume();
            const id = String(request.headers['webhook-id']);
            if (!isStopped && id === all[stopAt - 1]) {
              isStopped = true;
              if (answer === 200) taken.push(id);
              if (answer !== undefined) response.writeHead(answer).end();
              return void setImmediate(() => stop.abort());
            }
            taken.push(id);
            response.end();
            if (isStopped && id === all.at(-1)) stop.abort();
          });
          const first = settingsFor('--forward', endpoint, '--base-url', gateway, '--poll-ms', '100');
          for (const settings of [
            { ...first, from },
            { ...first, from: 'last' as const },
          ]) {
            stop = new AbortController();
            await runs(settings, stop);
          }
          assert.deepEqual([...new Set(taken)], all, 'each event was taken, in order');
          assert.ok(taken.length <= count + 1, 'and at most the one at which it was stopped twice');
        });
      }
    }
  }

  it('marina-listen begins at the oldest event again if it was stopped before there was any', async (context) => {
    let there = 0;
    let stop = new AbortController();
    const gateway = await serve(context, (request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(pageOf(request.url ?? '', there)));
      if (there === 0) stop.abort();
    });
    const taken: unknown[] = [];
    const endpoint = await serve(context, (request, response) => {
      request.resume();
      taken.push(request.headers['webhook-id']);
      response.end();
      if (taken.length === count) stop.abort();
    });
    const first = settingsFor('--forward', endpoint, '--base-url', gateway);
    await runs(first, stop);
    there = count;
    stop = new AbortController();
    await runs({ ...first, from: 'last' }, stop);
    assert.deepEqual(taken, all);
  });
});
