import assert, { AssertionError } from 'node:assert/strict';

/**
 * Makes a failing `assert.ok(value)` cheap. To say what failed, Node reads the source file and parses it again and again.
 * On files that tsx transforms this finds nothing and blocks the process for seconds, and the gateway under test with it.
 * `eventually` fails such an assertion on purpose until it holds. `test/run.ts` loads this into every test process.
 */
function ok(value: unknown, ...messages: [(string | Error)?]): asserts value {
  if (value) return;
  const [message = `${typeof value === 'string' ? "''" : String(value)} is not true`] = messages;
  if (message instanceof Error) throw message;
  throw new AssertionError({ message, actual: value, expected: true, operator: '==', stackStartFn: ok });
}

Object.assign(assert, { ok });
