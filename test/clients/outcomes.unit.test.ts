import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ErrorAnswer, Marina, type MarinaError, type MarinaOptions, NoAnswerError } from '@marina/client';
import { leavesUnknown, settles, waitBeforeRepeat } from '../../clients/typescript/src/retries.ts';
import { ApiError, catalogue, type ErrorCode } from '../../src/gateway/edge/errors.ts';
import outcomes from '../support/client-outcomes.json' with { type: 'json' };

const buy = { account: 'LAG0012345', symbol: 'ZENITHBANK', side: 'buy', quantity: 100, type: 'market' } as const;
const codes = Object.keys(catalogue) as ErrorCode[];

type Step = () => Promise<Response>;
const lost: Step = async () => {
  throw new TypeError('fetch failed');
};
const json =
  (status: number, body: unknown, headers = {}): Step =>
  async () =>
    Response.json(body, { status, headers });
const refused = (code: ErrorCode, headers = {}): Step => {
  const { type, status, message } = new ApiError(code);
  return json(status, { error: { type, code, message } }, headers);
};

/** A client that gets these answers in turn, the last one again and again, and waits hardly. */
function answering(steps: readonly Step[], options: Partial<MarinaOptions> = {}) {
  const sent: string[] = [];
  const answer: typeof fetch = async (_url, init) => {
    sent.push(new Headers(init?.headers).get('idempotency-key') ?? '');
    return (steps[Math.min(sent.length, steps.length) - 1] ?? lost)();
  };
  return { sent, marina: new Marina({ baseUrl: 'http://127.0.0.1:1', key: 'key', fetch: answer, ...options }) };
}

async function thrownBy(call: Promise<unknown>): Promise<MarinaError & { call: NoAnswerError['call'] }> {
  return call.then(
    () => assert.fail('it did not fail'),
    (error) => error,
  );
}

/** Waits take no time: `sleep` ends at the next turn. */
function withoutWaiting(context: { mock: typeof import('node:test').mock }): number[] {
  const waits: number[] = [];
  const set = globalThis.setTimeout;
  context.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
    // The bound of an attempt stays.
    if (ms > 20_000) return set(run, ms);
    waits.push(ms);
    return set(run, 0);
  });
  return waits;
}

describe('the table of outcomes that the clients of both languages are held to', () => {
  it('has one row for each code of the catalogue, with its status', () => {
    const rows = outcomes.flatMap(({ code, status }) => (code === null ? [] : [[code, status]]));
    assert.deepEqual(new Map(rows as [string, number][]), new Map(codes.map((code) => [code, catalogue[code].status])));
    assert.equal(rows.length, codes.length);
  });

  it('is what the client for TypeScript does', () => {
    for (const { status, code, leaves_unknown: unknown, settles: settled } of outcomes) {
      const failure = { ...(status === null ? {} : { status }), ...(code === null ? {} : { code }) };
      assert.deepEqual([leavesUnknown(failure), settles(failure)], [unknown, settled], JSON.stringify(failure));
    }
  });
});

describe('an outcome that is unknown in the client for TypeScript', () => {
  const proofs: ErrorCode[] = [
    ...([
      'order_rejected',
      'application_rejected',
      'allocation_rejected',
      'withdrawal_rejected',
      'document_rejected',
    ] as const),
    ...(['order_not_sent', 'application_not_sent', 'allocation_not_sent', 'withdrawal_not_sent'] as const),
    ...(['duplicate_order', 'duplicate_application', 'duplicate_allocation', 'duplicate_withdrawal'] as const),
    ...(['order_not_cancelable', 'document_already_delivered'] as const),
  ];

  it('is known only after an answer that proves what became of the key', async (context) => {
    withoutWaiting(context);
    for (const code of codes) {
      const { sent, marina } = answering([lost, refused(code)], { maxAttempts: 3 });
      const error = await thrownBy(marina.createOrder(buy, { idempotencyKey: 'mine' }));
      assert.equal(error.call.isOutcomeUnknown, !proofs.includes(code), code);
      assert.equal(error.call.idempotencyKey, 'mine');
      assert.ok(sent.every((key) => key === 'mine'));
    }
  });

  it('stays unknown after any status of a proxy', async (context) => {
    withoutWaiting(context);
    for (const status of [301, 308, 400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 417, 421, 422, 429, 431]) {
      const { marina } = answering([lost, json(status, {})], { maxAttempts: 3 });
      assert.equal((await thrownBy(marina.createOrder(buy))).call.isOutcomeUnknown, true, String(status));
    }
  });

  it('is unknown after a redirect, which is not the gateway’s answer, unless the request only reads', async () => {
    for (const status of [300, 301, 302, 303, 304, 307, 308]) {
      const redirect: Step = async () => new Response(null, { status, headers: { location: 'http://127.0.0.1:1/' } });
      const { sent, marina } = answering([redirect]);
      for (const [call, isUnknown] of [
        [marina.createOrder(buy), true],
        [marina.cancelOrder({ id: 'ord_1' }), true],
        [marina.getWallet(), false],
      ] as const) {
        const error = await thrownBy(call);
        assert.ok(error instanceof ErrorAnswer);
        assert.deepEqual([error.status, error.call.isOutcomeUnknown], [status, isUnknown]);
      }
      assert.equal(sent.length, 3);
    }
  });

  it('is none if the first answer refuses the request', async () => {
    for (const code of ['invalid_request', 'order_not_found', 'unsupported_media_type', 'order_rejected'] as const) {
      const { marina } = answering([refused(code)]);
      assert.equal((await thrownBy(marina.createOrder(buy))).call.isOutcomeUnknown, false, code);
    }
  });

  it('is known after an answer with the object', async (context) => {
    withoutWaiting(context);
    const { marina } = answering([lost, refused('rate_limited'), json(200, { id: 'ord_1' })]);
    assert.equal((await marina.createOrder(buy)).id, 'ord_1');
  });
});

describe('an answer that is not the gateway’s in the client for TypeScript', () => {
  const wrong = [null, [], 'x', 5, true, [{ id: 'ord_1' }]];

  it('is a NoAnswerError with the key, whose outcome is unknown, if it is JSON but no object', async (context) => {
    withoutWaiting(context);
    for (const body of wrong) {
      const { sent, marina } = answering([json(201, body)], { maxAttempts: 2 });
      const error = await thrownBy(marina.createOrder(buy, { idempotencyKey: 'mine' }));
      assert.ok(error instanceof NoAnswerError, JSON.stringify(body));
      assert.deepEqual(error.call, {
        ...{ operation: 'createOrder', idempotencyKey: 'mine', attempts: 2, isOutcomeUnknown: true },
      });
      assert.equal(sent.length, 2);
    }
  });

  const pages = [
    ...wrong,
    {},
    { has_more: false, next_cursor: 'c' },
    { has_more: false, next_cursor: 'c', data: null },
    { has_more: false, next_cursor: 'c', data: {} },
    { has_more: false, next_cursor: 'c', data: [null] },
    { has_more: false, next_cursor: 5, data: [] },
    { has_more: 'yes', next_cursor: 'c', data: [] },
    { has_more: true, next_cursor: null, data: [] },
  ];

  it('is a NoAnswerError of a list if it is no page', async (context) => {
    withoutWaiting(context);
    for (const body of pages) {
      const { marina } = answering([json(200, body)], { maxAttempts: 2 });
      const error = await thrownBy(marina.listOrders().toArray());
      assert.ok(error instanceof NoAnswerError, JSON.stringify(body));
    }
  });

  it('is trouble for the feed, which goes on where it was', async (context) => {
    withoutWaiting(context);
    for (const body of [...pages, { has_more: false, data: [] }, { has_more: false, next_cursor: '', data: [] }]) {
      const event = { id: 'msg_1', version: 1 };
      const good = json(200, { has_more: false, next_cursor: 'c', data: [event] });
      const { marina } = answering([json(200, body), json(200, body), json(200, body), good]);
      const troubles: unknown[] = [];
      const feed = marina.followEvents({ cursor: 'before', onTrouble: (error) => troubles.push(error) });
      for await (const each of feed) {
        assert.equal(each.id, 'msg_1');
        break;
      }
      assert.equal(troubles.length, 1, JSON.stringify(body));
      assert.ok(troubles[0] instanceof NoAnswerError);
      assert.equal(feed.cursor, 'before');
    }
  });

  it('is an ErrorAnswer with the call if it is an error of any form', async () => {
    const odd = { toString: 1, valueOf: 1 };
    const values = [odd, null, [], [odd], 5, true, { toJSON: 1 }];
    const errors = values.flatMap((value) => [
      ...[value, { code: value }, { message: value }, { type: value }, { code: 'x', message: value }],
      { ...{ code: value, message: value, type: value, param: value, doc_url: value, reject_reason: value } },
    ]);
    for (const body of [...errors.map((error) => ({ error })), ...values]) {
      const { marina } = answering([json(502, body)], { maxAttempts: 1 });
      const error = await thrownBy(marina.createOrder(buy, { idempotencyKey: 'mine' }));
      assert.ok(error instanceof ErrorAnswer, JSON.stringify(body));
      assert.deepEqual([error.status, error.call.idempotencyKey], [502, 'mine']);
      assert.match(error.message, /^createOrder was answered 502( x)?$/);
    }
  });
});

describe('the waits of the client for TypeScript', () => {
  it('are at least its own, also if Retry-After asks for none', async (context) => {
    for (const status of [429, 503]) {
      for (const retryAfterSeconds of [0, 1]) {
        const failure = { status, code: status === 429 ? 'rate_limited' : 'service_unavailable', retryAfterSeconds };
        for (let attempt = 1; attempt < 12; attempt += 1) {
          const own = waitBeforeRepeat({}, { method: 'GET', takesKey: false }, attempt, () => 0) ?? 0;
          const waitMs = waitBeforeRepeat(failure, { method: 'POST', takesKey: true }, attempt, () => 0) ?? 0;
          assert.ok(waitMs >= own && waitMs >= retryAfterSeconds * 1_000, `${status} ${attempt}: ${waitMs}`);
        }
      }
    }
    const waits = withoutWaiting(context);
    const { sent, marina } = answering([refused('rate_limited', { 'retry-after': '0' })]);
    await thrownBy(marina.createOrder(buy));
    assert.equal(sent.length, 12);
    assert.ok(waits.every((ms) => ms >= 250));
  });
});

describe('a signal in the client for TypeScript', () => {
  it('ends a call that waits after an answer with a NoAnswerError at once', async () => {
    for (const [step, isOutcomeUnknown] of [
      [refused('rate_limited', { 'retry-after': '60' }), false],
      [refused('service_unavailable', { 'retry-after': '60' }), true],
      [json(502, {}), true],
      [lost, true],
    ] as const) {
      const stop = new AbortController();
      const { sent, marina } = answering([step]);
      const failing = thrownBy(marina.createOrder(buy, { signal: stop.signal, idempotencyKey: 'mine' }));
      while (sent.length === 0) await turn();
      await turn();
      stop.abort(new Error('enough'));
      const error = await failing;
      assert.ok(error instanceof NoAnswerError);
      assert.deepEqual(error.call, {
        ...{ operation: 'createOrder', idempotencyKey: 'mine', attempts: 1, isOutcomeUnknown },
      });
    }
  });

  it('a signal that was aborted before sends nothing, and nothing is unknown', async () => {
    const { sent, marina } = answering([json(201, { id: 'ord_1' })]);
    const signal = AbortSignal.abort(new Error('enough'));
    for (const call of [marina.createOrder(buy, { signal }), marina.getWallet({ signal })]) {
      const error = await thrownBy(call);
      assert.ok(error instanceof NoAnswerError);
      assert.equal((error.cause as Error).message, 'enough');
      assert.deepEqual([error.call.attempts, error.call.isOutcomeUnknown], [0, false]);
    }
    assert.deepEqual(sent, []);
  });
});

describe('the numbers among the options of the client for TypeScript', () => {
  const noTimes = [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5', {}, true, 5n] as number[];
  const noCounts = [...noTimes, 1.5, -0];

  it('are refused if no call could be made with them', async () => {
    for (const value of noTimes) {
      assert.throws(() => answering([lost], { attemptMs: value }), TypeError, String(value));
      assert.throws(() => answering([lost], { deadlineMs: value }), TypeError, String(value));
    }
    for (const value of noCounts) assert.throws(() => answering([lost], { maxAttempts: value }), TypeError);
    assert.ok(answering([lost], { attemptMs: 0.5, deadlineMs: 1e12, maxAttempts: 1 }));
  });

  it('are refused in a call and in a feed, and nothing is sent', async () => {
    const { sent, marina } = answering([json(200, { id: 'x' })]);
    for (const deadlineMs of noTimes) await assert.rejects(marina.getWallet({ deadlineMs }), TypeError);
    for (const maxAttempts of noCounts) await assert.rejects(marina.createOrder(buy, { maxAttempts }), TypeError);
    for (const pollMs of noTimes) assert.throws(() => marina.followEvents({ pollMs }), TypeError);
    for (const limit of [...noCounts, 101]) assert.throws(() => marina.followEvents({ limit }), TypeError);
    for (const most of [-1, Number.NaN, '5', null] as number[]) {
      await assert.rejects(marina.listOrders().toArray(most), TypeError);
    }
    await assert.rejects(marina.getWallet({ signal: {} as AbortSignal }), TypeError);
    await assert.rejects(marina.getWallet({ onAnswer: 'log' as never }), TypeError);
    assert.deepEqual(sent, []);
  });
});
