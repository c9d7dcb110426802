import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Advice, explain } from '../../src/sandbox/advice.ts';
import { adviceOn, check, DidNotHold } from '../../src/sandbox/demo-failure.ts';
import type { Sandbox } from '../../src/sandbox/sandbox-file.ts';
import { MarinaError } from '../../src/site/snippets/client.mts';

const running = { rest_url: 'http://127.0.0.1:8080', pids: { gateway: process.pid } } as Sandbox;

function told(failure: unknown, sandbox = running): string {
  return explain(adviceOn(failure, sandbox, '/data'));
}

describe('a demo that ended early', () => {
  it('says what did not hold or was refused, and where the logs are, without a stack', () => {
    assert.throws(() => check(false, 'it must be delivered'), { message: 'It does not hold: it must be delivered.' });
    const response = { status: 422, url: 'http://127.0.0.1:8080/v1/orders', headers: new Headers() } as Response;
    const error = { type: 'limit_error', code: 'limit_exceeded', message: 'Too much.', doc_url: 'http://docs' };
    for (const [failure, words] of [
      [new DidNotHold('It does not hold: it must be delivered.'), /^It does not hold: it must be delivered\.\n/],
      [new MarinaError(response, { error }), /^\/v1\/orders was answered 422 limit_exceeded: Too much\./],
    ] as const) {
      const text = told(failure);
      assert.match(text, words);
      assert.match(
        text,
        /\nThe logs may say why: \/data\/gateway\.log, \/data\/simulator\.log, \/data\/receiver\.log$/,
      );
    }
  });

  it('says that nobody answered, or that the sandbox is gone', async () => {
    const nobody = await fetch('http://127.0.0.1:1').catch((error: unknown) => error);
    const late = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    assert.match(told(nobody), /^The gateway at http:\/\/127\.0\.0\.1:8080 does not answer: .+\.\nThe logs/);
    assert.match(told(late), /^The gateway at .+ does not answer: it takes too long\.\nThe logs/);
    const stopped = { ...running, pids: {} };
    for (const failure of [nobody, new DidNotHold('It did not come.')]) {
      assert.match(told(failure, stopped), /^The sandbox stopped meanwhile\.\n.+ make run$/);
    }
  });

  it('keeps advice as it is, and the stack of a mistake of its own', () => {
    const advice = new Advice('No sandbox is running.', 'Start one.');
    assert.equal(adviceOn(advice, running, '/data'), advice);
    assert.match(told(new TypeError('x is not a function')), /^TypeError: x is not a function\n {4}at /);
  });
});
