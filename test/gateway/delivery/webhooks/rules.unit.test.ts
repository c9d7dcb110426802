import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  type AttemptFacts,
  type AttemptResult,
  attemptsKeptMs,
  type DeliveryProgress,
  type EndpointHealth,
  freshHealth,
  healthAfter,
  isTooOld,
  judgeError,
  judgeStatus,
  nextDue,
  progressAfter,
  rotationMs,
  SendFailure,
  signsWithOld,
} from '../../../../src/gateway/delivery/webhooks/rules.ts';
import { onlyKey, Seal } from '../../../../src/kit/key-ring.ts';

const minute = 60_000;

/** An attempt that ended at an instant. */
function attempt({ endedAt, ...facts }: Omit<AttemptFacts, 'at' | 'durationMs'> & { endedAt: number }): AttemptFacts {
  return { at: endedAt - 10, durationMs: 10, ...facts };
}

describe('the schedule of a delivery', () => {
  const table = [1, 5, 15, 30, 60, 120, 240, 480, 720, 720, 720];

  it('waits after each failure as the contract says', () => {
    let progress: DeliveryProgress = { state: 'waiting', attempts: 0, dueAt: null };
    let endedAt = 0;
    for (const [index, minutes] of table.entries()) {
      progress = progressAfter(progress, attempt({ version: 1n, outcome: 'endpoint-failed', isProbe: false, endedAt }));
      assert.equal(progress.attempts, index + 1);
      assert.equal((progress.dueAt ?? 0) - endedAt, minutes * minute);
      endedAt = progress.dueAt ?? 0;
    }
  });

  it('sends an event until it is 28 hours and 51 minutes old, and not at that age', () => {
    const occurredAt = Date.UTC(2026, 10, 26);
    for (const [age, isOld] of [
      [-1, false],
      [0, false],
      [28 * 60 * minute + 51 * minute - 1, false],
      [28 * 60 * minute + 51 * minute, true],
      [28 * 60 * minute + 51 * minute + 1, true],
    ] as const) {
      assert.equal(isTooOld(occurredAt, occurredAt + age), isOld, `${age} ms`);
    }
  });

  it('makes ten attempts at most: the next one would come after 28 hours and 51 minutes', () => {
    const starts = [0];
    for (const minutes of table) starts.push((starts.at(-1) ?? 0) + minutes);
    assert.equal(starts.filter((start) => !isTooOld(0, start * minute)).length, 10);
    assert.equal(isTooOld(0, 28 * 60 * minute + 51 * minute - 1), false);
    assert.equal(isTooOld(0, 28 * 60 * minute + 51 * minute), true);
    assert.equal(isTooOld(1_000_000, 1_000_000 + 28 * 60 * minute + 51 * minute - 1), false);
  });

  it('counts a probe that fails because of the endpoint for nothing, and one the event fails by as an attempt', () => {
    const waiting: DeliveryProgress = { state: 'waiting', attempts: 2, dueAt: 5 };
    const probe = { version: 1n, isProbe: true, endedAt: 100 };
    assert.deepEqual(progressAfter(waiting, attempt({ ...probe, outcome: 'endpoint-failed' })), waiting);
    assert.deepEqual(progressAfter(waiting, attempt({ ...probe, outcome: 'event-failed' })), {
      state: 'waiting',
      attempts: 3,
      dueAt: 100 + 15 * minute,
    });
    assert.deepEqual(progressAfter(waiting, attempt({ ...probe, outcome: 'delivered' })), {
      state: 'delivered',
      attempts: 3,
      dueAt: null,
    });
  });

  it('leaves what is over as it is when a late attempt fails, and takes a late success', () => {
    const late = { version: 1n, isProbe: false, endedAt: 9 };
    const expired: DeliveryProgress = { state: 'expired', attempts: 9, dueAt: null };
    assert.equal(progressAfter(expired, attempt({ ...late, outcome: 'endpoint-failed' })).state, 'expired');
    assert.equal(progressAfter(expired, attempt({ ...late, outcome: 'delivered' })).state, 'delivered');
    const delivered: DeliveryProgress = { state: 'delivered', attempts: 1, dueAt: null };
    assert.equal(progressAfter(delivered, attempt({ ...late, outcome: 'endpoint-failed' })).state, 'delivered');
  });
});

describe('how an endpoint fares', () => {
  const after = (outcomes: readonly AttemptResult[], from: EndpointHealth = freshHealth, isProbe = false) =>
    outcomes.reduce<EndpointHealth>(
      (health, outcome, index) =>
        healthAfter(health, attempt({ version: BigInt(index + 1), outcome, isProbe, endedAt: index })),
      from,
    );

  it('three failures of its own in a row pause it, and nothing less', () => {
    assert.equal(after(['endpoint-failed', 'endpoint-failed']).pausedAt, null);
    assert.equal(after(['endpoint-failed', 'endpoint-failed', 'delivered', 'endpoint-failed']).pausedAt, null);
    assert.equal(after(['endpoint-failed', 'endpoint-failed', 'event-failed', 'endpoint-failed']).pausedAt, null);
    assert.equal(after(Array(9).fill('event-failed')).pausedAt, null);
    const paused = after(['endpoint-failed', 'endpoint-failed', 'endpoint-failed']);
    assert.deepEqual(paused, { streak: 3, pausedAt: 2, probeAt: 2 + minute, probedVersion: 0n, failingSince: 0 });
  });

  it('only a 2xx ends the pause; a probe that fails moves on to the next event a minute later', () => {
    const paused: EndpointHealth = { streak: 3, pausedAt: 0, probeAt: minute, probedVersion: 0n, failingSince: 0 };
    const probe = { version: 7n, isProbe: true, endedAt: minute };
    assert.deepEqual(healthAfter(paused, attempt({ ...probe, outcome: 'endpoint-failed' })), {
      streak: 4,
      pausedAt: 0,
      probeAt: 2 * minute,
      probedVersion: 7n,
      failingSince: 0,
    });
    assert.deepEqual(healthAfter(paused, attempt({ ...probe, outcome: 'event-failed' })), {
      streak: 0,
      pausedAt: 0,
      probeAt: 2 * minute,
      probedVersion: 7n,
      failingSince: 0,
    });
    assert.deepEqual(healthAfter(paused, attempt({ ...probe, outcome: 'delivered' })), freshHealth);
  });

  it('delivers nothing since its first failure, of whatever kind, until a 2xx', () => {
    assert.equal(after(['event-failed', 'endpoint-failed', 'event-failed']).failingSince, 0);
    assert.equal(after(['delivered', 'event-failed', 'event-failed']).failingSince, 1);
    assert.equal(after(['event-failed', 'delivered']).failingSince, null);
    const paused = after(Array(5).fill('endpoint-failed'));
    assert.equal(paused.failingSince, 0);
    assert.equal(after(['endpoint-failed'], paused, true).failingSince, 0);
  });

  it('an attempt from before the pause that ends in it moves no probe', () => {
    const paused: EndpointHealth = { streak: 3, pausedAt: 0, probeAt: minute, probedVersion: 0n, failingSince: 0 };
    const late = healthAfter(paused, attempt({ version: 9n, outcome: 'endpoint-failed', isProbe: false, endedAt: 5 }));
    assert.deepEqual(late, { ...paused, streak: 4 });
  });

  it('signs with the old secret up to the end of the 24 hours and not at it', () => {
    assert.equal(signsWithOld(null, 0), false);
    assert.equal(signsWithOld(100, 99), true);
    assert.equal(signsWithOld(100, 100), false);
    assert.equal(signsWithOld(null, -1), false);
    assert.equal(rotationMs, 24 * 60 * minute);
  });

  it('is shown by its attempts of the last 30 days', () => assert.equal(attemptsKeptMs, 30 * 24 * 60 * minute));
});

describe('what an answer says', () => {
  it('is by its status: only 2xx delivers, and 408, 429, redirects and 5xx speak against the endpoint', () => {
    const statuses: [from: number, to: number, outcome: AttemptResult, errorClass: string | null][] = [
      [100, 199, 'endpoint-failed', 'status'],
      [200, 299, 'delivered', null],
      [300, 399, 'endpoint-failed', 'redirect'],
      [400, 407, 'event-failed', 'status'],
      [408, 408, 'endpoint-failed', 'status'],
      [409, 428, 'event-failed', 'status'],
      [429, 429, 'endpoint-failed', 'status'],
      [430, 499, 'event-failed', 'status'],
      [500, 599, 'endpoint-failed', 'status'],
    ];
    for (const [from, to, outcome, errorClass] of statuses) {
      for (let status = from; status <= to; status += 1) {
        assert.deepEqual(judgeStatus(status), { outcome, errorClass }, `the status ${status}`);
      }
    }
  });

  it('is by its error when there is no answer', () => {
    const error = (name: string, code?: string) => Object.assign(new Error('broken'), { name, code });
    for (const [what, errorClass] of [
      [new SendFailure('blocked_address', 'it may not be dialled'), 'blocked_address'],
      [error('ConnectTimeoutError', 'UND_ERR_CONNECT_TIMEOUT'), 'timeout'],
      [error('HTTPParserError', 'HPE_INVALID_CONSTANT'), 'invalid_response'],
      [error('HeadersOverflowError', 'UND_ERR_HEADERS_OVERFLOW'), 'invalid_response'],
      [error('ResponseContentLengthMismatchError', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'), 'invalid_response'],
      [error('ResponseExceededMaxSizeError', 'UND_ERR_RES_EXCEEDED_MAX_SIZE'), 'invalid_response'],
      [error('Error', 'ECONNREFUSED'), 'unreachable'],
      [error('SocketError', 'UND_ERR_SOCKET'), 'unreachable'],
      [error('Error'), 'unreachable'],
    ] as const) {
      assert.equal(judgeError(what), errorClass, `${what.name} ${(what as NodeJS.ErrnoException).code}`);
    }
  });
});

describe('when there is something to do for an endpoint', () => {
  const well = { ...freshHealth, heldAt: null, draining: false };
  const paused = { ...well, streak: 3, pausedAt: 0, probeAt: 70, probedVersion: 0n };
  const nothing = { isReady: false, retryAt: null };
  const retry = { isReady: false, retryAt: 90 };
  const ready = { isReady: true, retryAt: 90 };
  for (const [what, endpoint, waiting, due] of [
    ['never, while nothing waits', well, nothing, null],
    ['when the first retry is due', well, retry, 90],
    ['at once, when something is ready', well, ready, 50],
    ['at once, when what waits is to be moved to the front', { ...well, draining: true }, retry, 50],
    ['at its probe, while it is paused', paused, ready, 70],
    ['never, while it is paused and nothing waits', paused, nothing, null],
    ['never, while an operator holds it', { ...paused, heldAt: 1 }, ready, null],
  ] as const) {
    it(what, () => assert.equal(nextDue(endpoint, waiting, 50), due));
  }
});

describe('a sealed secret', () => {
  const seal = new Seal(onlyKey(randomBytes(32)));
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

  it('opens to what it was, and shows nothing of it', () => {
    const sealed = seal.seal('par_one', secret);
    assert.equal(seal.open('par_one', sealed), secret);
    assert.ok(!sealed.includes('MfKQ9r8GKYq'), 'it cannot be read');
    assert.notDeepEqual(seal.seal('par_one', secret), sealed);
  });

  it('does not open for another partner, under another key, or changed', () => {
    const sealed = seal.seal('par_one', secret);
    assert.throws(() => seal.open('par_two', sealed), /cannot be opened/);
    assert.throws(() => new Seal(onlyKey(randomBytes(32))).open('par_one', sealed), /cannot be opened/);
    const changed = Buffer.from(sealed);
    changed.writeUInt8((changed.at(-1) ?? 0) ^ 1, changed.length - 1);
    assert.throws(() => seal.open('par_one', changed), /cannot be opened/);
    assert.throws(() => seal.open('par_one', Buffer.alloc(40)), /not known/);
  });
});
