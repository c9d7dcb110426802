import { mock } from 'node:test';

/**
 * A method that is mocked twice in a test is restored to what it was before the test. Node restores mocks in the order in which they
 * were made, so the first mock would stay for all tests after it in the process. `test/run.ts` loads this into every test process.
 */
const tracker = Object.getPrototypeOf(mock) as {
  method: (object: object, name: string, ...more: unknown[]) => unknown;
};
const { method } = tracker;
tracker.method = function (object, name, ...more) {
  const former = (object as Record<string, { mock?: { restore?(): void } } | undefined>)[name];
  former?.mock?.restore?.();
  return method.call(this, object, name, ...more);
};
