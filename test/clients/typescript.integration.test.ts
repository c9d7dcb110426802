import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, describe, it } from 'node:test';
import {
  ApplicationError,
  AuthenticationError,
  type ErrorAnswer,
  IdempotencyError,
  InvalidRequestError,
  LimitError,
  Marina,
  type MarinaOptions,
  NoAnswerError,
  OrderError,
  PermissionError,
  RateLimitError,
  verifyWebhook,
  WalletError,
  WebhookVerificationError,
} from '@marina/client';
import { goodApplication } from '../support/applications.ts';
import { type ClientGateway, failingPartners, startClientGateway } from '../support/client-gateway.ts';
import { eventually } from '../support/eventually.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import type { TestPartner } from '../support/gateway.ts';

let clients: ClientGateway;
before(async () => {
  clients = await startClientGateway();
});
after(() => clients?.stop());

function marinaOf({ key }: Pick<TestPartner, 'key'>, options: Partial<MarinaOptions> = {}): Marina {
  return new Marina({ baseUrl: clients.baseUrl, key, ...options });
}

function order({ account }: TestPartner, symbol = 'SIM-REST') {
  return { account, symbol, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000 } as const;
}

/** Returns the error that a call throws. */
async function thrownBy(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error('it did not throw');
}

describe('the client for TypeScript', () => {
  it('places an order once, although the answer is lost and it makes the key itself', async () => {
    const partner = await clients.gateway.newPartner();
    const attempts: unknown[] = [];
    const marina = marinaOf(partner, {
      baseUrl: clients.lossyUrl,
      onAnswer: ({ status, isReplayed, attempt }) => attempts.push([status, isReplayed, attempt]),
    });
    const placed = await marina.createOrder(order(partner), { idempotencyKey: `lose-${randomUUID()}` });
    assert.equal(placed.state, 'pending');
    assert.deepEqual(attempts, [[200, true, 2]]);
    assert.equal((await marina.listOrders().toArray()).length, 1);
    await marina.createOrder(order(partner));
    assert.equal((await marina.listOrders().toArray()).length, 2);
  });

  it('says that the outcome is unknown, and with which key to ask again, if it may send only once', async () => {
    const partner = await clients.gateway.newPartner();
    const marina = marinaOf(partner, { baseUrl: clients.lossyUrl, maxAttempts: 1 });
    const idempotencyKey = `lose-${randomUUID()}`;
    const error = await thrownBy(marina.createOrder(order(partner), { idempotencyKey }));
    assert.ok(error instanceof NoAnswerError);
    assert.deepEqual(error.call, { operation: 'createOrder', idempotencyKey, attempts: 1, isOutcomeUnknown: true });
    const placed = await marina.createOrder(order(partner), { idempotencyKey: error.call.idempotencyKey });
    assert.deepEqual(
      (await marina.listOrders().toArray()).map(({ id }) => id),
      [placed.id],
    );
  });

  it('makes no second key when the answer to the first is lost', async () => {
    const partner = await clients.gateway.newPartner();
    const marina = marinaOf(partner);
    let sent = 0;
    const losing = marinaOf(partner, {
      fetch: async (...request) => {
        sent += 1;
        await (await fetch(...request)).arrayBuffer();
        throw new TypeError('the connection broke');
      },
    });
    const error = await thrownBy(losing.createKey({ scopes: ['read'] }));
    assert.ok(error instanceof NoAnswerError && error.call.isOutcomeUnknown);
    assert.equal(sent, 1);
    assert.equal((await marina.listKeys().toArray()).length, 2);
  });

  it('waits as long as Retry-After says when there are too many requests, and then they succeed', async () => {
    const { slow } = await failingPartners(clients.gateway);
    const statuses: number[] = [];
    const marina = marinaOf(slow, { onAnswer: ({ status }) => statuses.push(status), maxAttempts: 8 });
    const began = performance.now();
    await Promise.all(Array.from({ length: 5 }, () => marina.getWallet()));
    assert.equal(statuses.filter((status) => status === 200).length, 5);
    assert.ok(statuses.includes(429), `${statuses}`);
    assert.ok(performance.now() - began >= 1_000, 'it waited');
    const impatient = marinaOf(slow, { maxAttempts: 1 });
    const error = await thrownBy(Promise.all(Array.from({ length: 9 }, () => impatient.getWallet())));
    assert.ok(error instanceof RateLimitError);
    assert.deepEqual([error.retryAfterSeconds, error.call.isOutcomeUnknown], [1, false]);
  });

  it('ends a call at its deadline, and at once when its signal is aborted', async (test) => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    test.after(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const { port } = await eventually(() => {
      const address = silent.address();
      assert.ok(typeof address === 'object' && address !== null);
      return address;
    });
    const marina = marinaOf({ key: 'marina_test_key' }, { baseUrl: `http://127.0.0.1:${port}`, attemptMs: 300 });
    const began = performance.now();
    const late = await thrownBy(marina.getWallet({ deadlineMs: 700 }));
    assert.ok(late instanceof NoAnswerError && performance.now() - began < 10_000);
    const stop = new AbortController();
    const call = marina.getWallet({ signal: stop.signal, deadlineMs: 60_000 });
    stop.abort(new Error('enough'));
    const error = await thrownBy(call);
    assert.ok(error instanceof NoAnswerError);
    assert.equal(error.call.attempts, 1);
  });

  it('throws a class of its own for each family of errors, with the code, the field and the reason', async () => {
    const { good, reader, small } = await failingPartners(clients.gateway);
    const marina = marinaOf(good);
    const idempotencyKey = randomUUID();
    const placed = await marina.createOrder(order(good, 'SIM-FILL'), { idempotencyKey });
    const other = { ...order(good), quantity: 7 };
    const account = good.account;
    const cases: [() => Promise<unknown>, typeof ErrorAnswer, Partial<ErrorAnswer>][] = [
      [
        () => marinaOf({ key: 'marina_test_nobody' }).getWallet(),
        AuthenticationError,
        { status: 401, code: 'unauthorized' },
      ],
      [() => marinaOf(reader).createOrder(order(reader)), PermissionError, { status: 403, code: 'insufficient_scope' }],
      [() => marina.getOrder({ id: 'ord_none' }), InvalidRequestError, { status: 404, code: 'order_not_found' }],
      [
        () => marina.createOrder({ ...other, quantity: 0 }),
        InvalidRequestError,
        { code: 'invalid_request', param: 'quantity' },
      ],
      [() => marina.createOrder(other, { idempotencyKey }), IdempotencyError, { status: 409, code: 'duplicate_order' }],
      [
        () => marina.createOrder(order(good, 'SIM-FUNDS')),
        OrderError,
        { status: 422, code: 'order_rejected', rejectReason: 'insufficient_funds' },
      ],
      [
        () => marina.createApplication({ ...goodApplication, last_name: 'SIM-REJECT-INVALID' }),
        ApplicationError,
        { status: 422, code: 'application_rejected' },
      ],
      [
        () => marina.createAllocation({ account, amount_kobo: 1_000n }),
        WalletError,
        { status: 422, code: 'wallet_too_low' },
      ],
      [() => marinaOf(small).createOrder(order(small)), LimitError, { status: 422, code: 'limit_exceeded' }],
    ];
    for (const [call, Class, expected] of cases) {
      const error = await thrownBy(call());
      assert.ok(error instanceof Class, `${error} is a ${Class.name}`);
      for (const [name, value] of Object.entries(expected)) {
        assert.equal(error[name as keyof ErrorAnswer], value, `${error.message}: ${name}`);
      }
      assert.match(error.requestId ?? '', /./);
      assert.equal(error.docUrl, `${clients.baseUrl}/docs/errors#${error.code}`);
      assert.equal(error.call.isOutcomeUnknown, false);
    }
    assert.equal((await marina.getOrder({ id: placed.id })).id, placed.id);
  });

  it('reads whole numbers with all their digits, however long', async () => {
    const partner = await clients.gateway.newPartner();
    await clients.gateway.fund(partner, 100_000_000_000_000_007n);
    const wallet = await marinaOf(partner).getWallet();
    assert.equal(wallet.available_kobo, 100_000_000_000_000_007n);
    // JavaScript's own numbers do not have it.
    assert.notEqual(BigInt(Number(wallet.available_kobo)), wallet.available_kobo);
    await assert.rejects(marinaOf(partner).createAllocation({ account: 'A', amount_kobo: 2 ** 53 }), RangeError);
  });

  it('goes through a list page by page, each item once', async () => {
    const partner = await clients.gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    const marina = marinaOf(partner);
    const ids: string[] = [];
    for (let quantity = 1; quantity <= 5; quantity += 1) {
      ids.unshift((await marina.createOrder({ ...order(partner), quantity })).id);
    }
    const pages: number[] = [];
    for await (const { data } of marina.listOrders({ limit: 2 }).pages()) pages.push(data.length);
    assert.deepEqual(pages, [2, 2, 1]);
    assert.deepEqual(
      (await marina.listOrders({ limit: 2 }).toArray()).map(({ id }) => id),
      ids,
    );
    assert.deepEqual(
      (await marina.listOrders({ limit: 2 }).toArray(3)).map(({ id }) => id),
      ids.slice(0, 3),
    );
    const { data, has_more: hasMore } = await marina.listOrders({ limit: 2, state: 'pending' }).page();
    assert.deepEqual([data.length, hasMore], [2, true]);
  });

  it('follows the feed through an outage, and goes on later where it was', async () => {
    const partner = await clients.gateway.newPartner();
    const own = await FaultProxy.start(`127.0.0.1:${clients.gateway.app.restPort}`);
    const marina = marinaOf(partner, { baseUrl: `http://${own.address}`, maxAttempts: 1 });
    const versions: bigint[] = [];
    const troubles: number[] = [];
    const options = { pollMs: 20, onTrouble: () => void troubles.push(1) };
    const feed = marina.followEvents(options);
    const direct = marinaOf(partner);
    const place = async (...quantities: number[]) => {
      for (const quantity of quantities) await direct.createOrder({ ...order(partner), quantity });
    };
    await place(1, 2, 3);
    for await (const event of feed) {
      versions.push(event.version);
      if (versions.length === 3) {
        await own.refuse();
        own.reset();
        // By the time it is back something has happened that the feed has not seen.
        void eventually(() => assert.ok(troubles.length > 0)).then(() => own.accept());
        await place(4, 5, 6);
      }
      if (versions.length === 6) break;
    }
    assert.deepEqual(versions, [1n, 2n, 3n, 4n, 5n, 6n]);
    assert.ok(troubles.length > 0);
    const later = marina.followEvents({ ...options, cursor: feed.cursor });
    const again: bigint[] = [];
    for await (const { version } of later) {
      again.push(version);
      if (version >= 6n) break;
    }
    assert.deepEqual(again, versions.slice(-again.length), 'nothing is left out');
    await own.close();
  });

  it('ends the feed when the key is revoked, and when its signal is aborted', async () => {
    const partner = await clients.gateway.newPartner();
    const marina = marinaOf(partner);
    const stop = new AbortController();
    const ended = thrownBy(
      (async () => {
        for await (const _ of marina.followEvents({ signal: stop.signal, pollMs: 60_000 }));
      })(),
    );
    stop.abort(new Error('enough'));
    assert.match(String(await ended), /enough|no answer/);
    await marina.revokeKey({ id: partner.keyId });
    const refused = await thrownBy(
      (async () => {
        for await (const _ of marina.followEvents({ pollMs: 10 }));
      })(),
    );
    assert.ok(refused instanceof AuthenticationError);
  });

  it('verifies what the gateway delivers, with either secret while one is changed, and nothing else', async () => {
    const partner = await clients.gateway.newPartner();
    const old = await clients.register(partner, '/typescript');
    const { secret } = await clients.admin.webhooks.rotateSecret({ partnerId: partner.id }, clients.admin.options);
    const placed = await marinaOf(partner).createOrder(order(partner));
    const [received] = await eventually(() => {
      const all = clients.receiver.at('/typescript');
      assert.ok(all.length > 0);
      return all;
    });
    assert.ok(received !== undefined);
    const { headers, body } = received;
    for (const each of [old, secret]) {
      const event = await verifyWebhook(each, headers, Buffer.from(body));
      assert.deepEqual([event.data.id, event.version], [placed.id, 1n]);
    }
    assert.equal((await verifyWebhook(secret, new Headers(headers), body)).data.id, placed.id);
    const wrong: [string, Record<string, string>, string][] = [
      [`whsec_${Buffer.alloc(32, 1).toString('base64')}`, headers, body],
      [secret, headers, body.replace('"quantity":100', '"quantity":900')],
      [secret, { ...headers, 'webhook-id': 'msg_000000000000000000000000' }, body],
      [secret, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 301) }, body],
      [secret, { ...headers, 'webhook-signature': 'v1,AAAA v2,x v1,' }, body],
      [secret, { 'webhook-id': headers['webhook-id'] ?? '' }, body],
    ];
    for (const [each, given, text] of wrong) {
      await assert.rejects(verifyWebhook(each, given, text), WebhookVerificationError);
    }
    const late = { now: Date.now() + 301_000 };
    await assert.rejects(verifyWebhook(secret, headers, body, late), /too old/);
    await verifyWebhook(secret, headers, body, { ...late, toleranceSeconds: 600 });
  });
});
