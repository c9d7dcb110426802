import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkFeedOptions } from '../../clients/typescript/src/pages.ts';
import { leavesUnknown, waitBeforeRepeat } from '../../clients/typescript/src/retries.ts';

const get = { method: 'GET', takesKey: false } as const;
const post = { method: 'POST', takesKey: false } as const;
const failure = (status: number, more: { code?: string; retryAfterSeconds?: number } = {}) => ({
  ...{ status, code: undefined, retryAfterSeconds: undefined },
  ...more,
});
const waitOf = (attempt: number, random: number, retryAfterSeconds?: number) =>
  waitBeforeRepeat(failure(503, { code: 'service_unavailable', retryAfterSeconds }), get, attempt, () => random);

describe('the wait of the client for TypeScript before it repeats a request', () => {
  it('the wait before a repeat doubles from attempt to attempt up to a bound, and lies between half of it and all of it', () => {
    const waits = [1, 2, 3, 5, 6, 30].map((attempt) => waitBeforeRepeat(failure(500), get, attempt, () => 1));
    assert.deepEqual(waits, [500, 1_000, 2_000, 8_000, 10_000, 10_000]);
    for (const attempt of [1, 2, 30]) {
      const most = waitBeforeRepeat(failure(500), get, attempt, () => 1) ?? 0;
      assert.equal(
        waitBeforeRepeat(failure(500), get, attempt, () => 0),
        most / 2,
      );
    }
  });

  it("a wait that the gateway asks for is kept, is a quarter longer at most, and never shorter than the client's own", () => {
    assert.equal(waitOf(1, 0, 60), 60_000);
    assert.equal(waitOf(1, 1, 60), 75_000);
    assert.equal(
      waitOf(3, 1, 0),
      waitBeforeRepeat(failure(500), get, 3, () => 1),
    );
  });

  it('an answer without a code is followed by a repeat if it is a 408 or a 5xx, and otherwise by none', () => {
    for (const [status, isRepeated] of [
      [400, false],
      [407, false],
      [408, true],
      [409, false],
      [429, true],
      [499, false],
      [500, true],
      [599, true],
    ] as const) {
      assert.equal(waitBeforeRepeat(failure(status), get, 1) !== undefined, isRepeated, `${status}`);
      if (status !== 429) assert.equal(waitBeforeRepeat(failure(status), post, 1), undefined, `POST, ${status}`);
    }
  });

  it('a 503 with a code is followed by a repeat only if it says when', () => {
    for (const [status, retryAfterSeconds, isRepeated] of [
      [499, undefined, false],
      [500, undefined, true],
      [502, undefined, true],
      [503, undefined, false],
      [503, 0, true],
      [504, undefined, true],
    ] as const) {
      const answer = failure(status, { code: 'another', retryAfterSeconds });
      assert.equal(waitBeforeRepeat(answer, get, 1) !== undefined, isRepeated, `${status}`);
    }
  });

  it('an answer outside 400 to 499 leaves the outcome unknown', () => {
    for (const [status, isUnknown] of [
      [399, true],
      [400, false],
      [407, false],
      [408, true],
      [409, false],
      [499, false],
      [500, true],
    ] as const) {
      assert.equal(leavesUnknown(failure(status)), isUnknown, `${status}`);
    }
    assert.equal(leavesUnknown(failure(408, { code: 'another' })), false);
  });
});

describe('the options of an event feed of the client for TypeScript', () => {
  it('an event feed takes a limit from 1 to 100', () => {
    for (const [limit, isRight] of [
      [0, false],
      [1, true],
      [1.5, false],
      [100, true],
      [101, false],
    ] as const) {
      const check = () => checkFeedOptions({ limit });
      if (isRight) assert.doesNotThrow(check, `${limit}`);
      else assert.throws(check, /from 1 to 100/, `${limit}`);
    }
  });
});
