/** The body of a request of HTTP, over a stream that the test holds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { HttpRequest } from '../../../../src/gateway/edge/http/messages.ts';
import { ClientGone } from '../../../../src/gateway/edge/pipeline.ts';

/** A request with a body of 5 bytes, of which nothing has come, and which may take 5 s. */
function open() {
  const body = new PassThrough();
  const rawHeaders = ['Host', 'api.example.com', 'Content-Length', '5'];
  const request = Object.assign(body, { rawHeaders, httpVersion: '1.1', method: 'POST', url: '/v1/orders' });
  const exchange = { request, response: {}, awaitsContinue: false, isMalformed: false, hasUnreadBody: false };
  const limits = { bodyTimeoutMs: 5_000, passedOverBytes: 1_000 };
  return { body, exchange, read: () => new HttpRequest(exchange as never, limits as never).readBody() };
}

describe('the body of a request', () => {
  it('the body of a request is read whole', async () => {
    const { body, exchange, read } = open();
    const reading = read();
    body.write('hel');
    body.end('lo');
    assert.equal(String(await reading), 'hello');
    assert.equal(exchange.hasUnreadBody, false);
  });

  it('the body of a request is given up at once if its client leaves, also before anybody reads it', async () => {
    for (const isEarly of [false, true]) {
      const { body, read } = open();
      let reading = isEarly ? undefined : read();
      body.destroy();
      await once(body, 'close');
      reading ??= read();
      await assert.rejects(reading, ClientGone, isEarly ? 'before' : 'while it is read');
      assert.deepEqual([body.listenerCount('data'), body.listenerCount('end')], [0, 0], 'nothing waits any more');
    }
  });
});
