import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { listen } from '../../clients/typescript/src/listen/listen.ts';
import { readSettings } from '../../clients/typescript/src/listen/settings.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { temporaryFolder } from '../support/folders.ts';

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
