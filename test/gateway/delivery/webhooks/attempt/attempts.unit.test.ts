import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  Attempts,
  type AttemptsOptions,
  type MadeAttempt,
} from '../../../../../src/gateway/delivery/webhooks/attempt/attempts.ts';
import { makeSecret, signingKeys } from '../../../../../src/gateway/delivery/webhooks/attempt/signature.ts';
import { EndpointQueue, type NextTry } from '../../../../../src/gateway/delivery/webhooks/plan/endpoint-queue.ts';
import { sentForMs } from '../../../../../src/gateway/delivery/webhooks/rules.ts';
import { Metrics } from '../../../../../src/gateway/edge/metrics.ts';
import { SystemClock } from '../../../../../src/kit/clock.ts';
import { onlyKey, Seal } from '../../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { passingTracer } from '../../../../../src/kit/trace.ts';
import { eventually } from '../../../../support/eventually.ts';
import { delivery, endpoint } from '../../../../support/webhook-rows.ts';

const seal = new Seal(onlyKey(randomBytes(32)));
const secret = seal.seal('par_1', makeSecret());

/** Makes attempts of one queue, which waits with some events. */
function start(
  options: Partial<AttemptsOptions> & { partnerId?: string; body?: Buffer | null; occurredAt?: number } = {},
) {
  const { partnerId = 'par_1', body = Buffer.from('{}'), occurredAt } = options;
  const ended: MadeAttempt[] = [];
  const unblocked: EndpointQueue[] = [];
  const queue = new EndpointQueue(endpoint({ partnerId, secret }), performance.now());
  const attempts = new Attempts(
    {
      clock: new SystemClock(),
      log: createLogger({ name: 'test', level: 'silent' }),
      metrics: new Metrics(),
      tracer: passingTracer,
      sender: { send: async () => ({ outcome: 'delivered', status: 200, errorClass: null, durationMs: 1 }) },
      keysOf: signingKeys(seal),
      ...options,
    },
    { ended: (_, attempt) => ended.push(attempt), unblocked: (free) => unblocked.push(free) },
  );
  queue.take(
    { part: 'new', after: 0n, most: 10 },
    [1, 2].map((version) => ({ ...delivery(version), body, ...(occurredAt === undefined ? {} : { occurredAt }) })),
  );
  const begin = () => attempts.begin(queue, queue.next(0) as NextTry);
  return { queue, attempts, begin, ended, unblocked };
}

describe('an attempt', () => {
  it('an attempt that cannot be signed fails because of the endpoint, so that operators see the endpoint paused', async () => {
    const { begin, ended } = start({ partnerId: 'par_2' });
    begin();
    const [attempt] = await eventually(() => {
      assert.equal(ended.length, 1);
      return ended;
    });
    assert.deepEqual([attempt?.outcome, attempt?.status, attempt?.errorClass], ['endpoint-failed', null, 'internal']);
  });

  for (const [ageMs, isSent] of [
    [sentForMs - 1, true],
    [sentForMs, false],
    [sentForMs + 1, false],
  ] as const) {
    it(`is ${isSent ? '' : 'not '}made of an event that is ${ageMs - sentForMs} ms from its bound when it is its turn`, async () => {
      const now = Date.now();
      let sent = 0;
      const { queue, attempts, ended } = start({
        clock: { now: () => now, realNow: () => now },
        sender: {
          send: async () => {
            sent += 1;
            return { outcome: 'delivered', status: 200, errorClass: null, durationMs: 1 };
          },
        },
        occurredAt: now - ageMs,
      });
      attempts.begin(queue, queue.next(0) as NextTry);
      if (isSent) await eventually(() => assert.equal(ended.length, 1));
      assert.deepEqual([sent, attempts.underWay], [isSent ? 1 : 0, 0]);
      assert.equal(queue.versions.has(1n), isSent, 'what is not sent is out of memory');
      // The next one has its turn.
      assert.equal((queue.next(0) as NextTry).delivery.version, 2n);
    });
  }

  it('an attempt of a probe that is too old leaves the probe to another event', () => {
    const now = Date.now();
    const health = { streak: 3, pausedAt: now - 120_000, probeAt: now - 1, probedVersion: 0n, failingSince: now };
    const queue = new EndpointQueue(endpoint({ partnerId: 'par_1', secret, ...health }), performance.now());
    const { attempts } = start({ clock: { now: () => now, realNow: () => now } });
    const read = () => queue.beginReading(now, 10).map(({ part }) => part);
    assert.deepEqual(read(), ['probe']);
    queue.take({ part: 'probe', after: 0n, most: 1 }, [{ ...delivery(1), occurredAt: now - sentForMs }]);
    attempts.begin(queue, queue.next(0) as NextTry);
    assert.deepEqual(read(), ['probe']);
  });

  it('an attempt of an event that is gone fails because of the event, and others go on', async () => {
    const { begin, ended } = start({ body: null });
    begin();
    await eventually(() =>
      assert.deepEqual(
        ended.map(({ outcome }) => outcome),
        ['event-failed'],
      ),
    );
  });

  it('keeps later ones back until it is ahead of them', async () => {
    let goAhead: () => void = () => undefined;
    const { queue, begin, unblocked } = start({
      sender: {
        send: (_, onAhead = () => undefined) => {
          goAhead = onAhead;
          return new Promise(() => undefined);
        },
      },
    });
    begin();
    assert.equal(queue.next(0), 'nothing');
    goAhead();
    goAhead();
    assert.deepEqual(unblocked, [queue], 'once');
    assert.equal(typeof queue.next(0), 'object');
  });

  it('keeps later ones back for a second and no longer', async () => {
    const { queue, begin, unblocked } = start({ sender: { send: () => new Promise(() => undefined) } });
    const startedAt = performance.now();
    begin();
    await eventually(() => assert.deepEqual(unblocked, [queue]));
    assert.ok(performance.now() - startedAt > 950);
  });

  it('keeps nothing back on a connection that stands', () => {
    const { queue, begin, unblocked } = start({
      sender: {
        send: (_, onAhead) => {
          onAhead?.();
          return new Promise(() => undefined);
        },
      },
    });
    begin();
    assert.deepEqual(unblocked, []);
    assert.equal(typeof queue.next(0), 'object');
  });
});

describe('the keys of an endpoint', () => {
  it('are opened for its own partner only, though they were opened for that before', () => {
    const keysOf = signingKeys(seal);
    const row = { secret, oldSecret: null, oldSecretUntil: null };
    assert.equal(keysOf({ ...row, partnerId: 'par_1' }, 0).length, 1);
    assert.throws(() => keysOf({ ...row, partnerId: 'par_2' }, 0), /cannot be opened/);
  });
});
