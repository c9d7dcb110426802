import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { UncaughtErrors } from '../../../src/gateway/edge/uncaught.ts';
import { createLogger } from '../../../src/kit/log.ts';

/** Makes a handler of uncaught errors whose lines, outcomes and stops are recorded. */
function handled() {
  const lines: string[] = [];
  const outcomes: string[] = [];
  let stops = 0;
  const log = createLogger({ name: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } });
  const { handle } = new UncaughtErrors(
    log,
    (outcome) => outcomes.push(outcome),
    () => {
      stops += 1;
    },
  );
  return { handle, lines, outcomes, stops: () => stops };
}

/** An error made in a file. */
function errorIn(file: string): Error {
  const error = new Error('no stream');
  error.stack = `Error: no stream\n    at respond (${file}:1:2)\n    at node:internal/http2/core:2600:11`;
  return error;
}

const source = new URL('../../../src/', import.meta.url).pathname;

describe('an error that nobody caught', () => {
  it('is survived when it came from a connection: from Node, a library, or protocol code', () => {
    const { handle, outcomes, lines, stops } = handled();
    handle(errorIn('node:internal/http2/core'), 'uncaughtException');
    handle(errorIn('/app/node_modules/@grpc/grpc-js/build/src/server.js'), 'uncaughtException');
    handle(errorIn(`${source}gateway/edge/grpc/listener.ts`), 'unhandledRejection');
    handle(errorIn(`${source}gateway/edge/pipeline.ts`), 'unhandledRejection');
    assert.deepEqual(outcomes, ['survived', 'survived', 'survived', 'survived']);
    assert.equal(stops(), 0);
    assert.match(lines[0] ?? '', /an error of a connection was not caught/);
  });

  it('stops the process when work of the gateway may stay unfinished', () => {
    const cases: unknown[] = [
      errorIn(`${source}gateway/store/group-commit.ts`),
      errorIn(`${source}gateway/edge/limits/shared-counter.ts`),
      errorIn(`${source}gateway/edge/auth/authenticate.ts`),
      errorIn(`${source}kit/worker.ts`),
      'a text',
      undefined,
      { message: 'an object' },
    ];
    for (const error of cases) {
      const { handle, outcomes, stops, lines } = handled();
      handle(error, 'unhandledRejection');
      assert.deepEqual(outcomes, ['stopped']);
      assert.equal(stops(), 1);
      assert.match(lines[0] ?? '', /the process stops/);
    }
  });

  it('stops the process when there are too many', () => {
    const { handle, outcomes, stops } = handled();
    for (let count = 0; count < 21; count += 1) handle(errorIn('node:net'), 'uncaughtException');
    assert.equal(outcomes.filter((outcome) => outcome === 'survived').length, 20);
    assert.equal(stops(), 1);
  });

  it('is known by the stack of a real one', () => {
    const { handle, outcomes } = handled();
    try {
      new EventEmitter().emit('error', new Error('of a library'));
    } catch (error) {
      handle(error, 'uncaughtException');
    }
    assert.deepEqual(outcomes, ['survived'], 'this test is outside the source');
  });
});
