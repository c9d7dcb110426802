/**
 * A partner's first day: place an order, repeat it, lose an answer, settle it, follow events, verify webhooks.
 *
 *   MARINA_BASE_URL=http://127.0.0.1:8080 MARINA_KEY=marina_test_… MARINA_ACCOUNT=… node first-day.js
 *
 * With MARINA_WEBHOOK_SECRET and MARINA_WEBHOOK_PORT it also receives webhooks on that port, and verifies each.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorAnswer, Marina, NoAnswerError, OrderError, verifyWebhook } from '@marina/client';

/** The states that nothing follows. A state that is not here may still change, also one that is new. */
const finalStates = new Set(['filled', 'rejected', 'refused', 'cancelled', 'expired']);

const { MARINA_BASE_URL: baseUrl = '', MARINA_KEY: key = '', MARINA_ACCOUNT: account = '' } = process.env;
const { MARINA_WEBHOOK_SECRET: secret, MARINA_WEBHOOK_PORT: port } = process.env;
const received = new Set<string>();

try {
  await main();
} catch (error) {
  // After no answer, send it again with error.call.idempotencyKey as soon as the gateway can be reached.
  if (error instanceof NoAnswerError) console.error(error.message, error.cause);
  else if (error instanceof ErrorAnswer) console.error(`${error.message} (x-request-id ${error.requestId})`);
  else throw error;
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const server = startEndpoint();
  const replays = new Set<string | undefined>();
  const marina = new Marina({
    baseUrl,
    key,
    onAnswer: ({ isReplayed, idempotencyKey }) => isReplayed && replays.add(idempotencyKey),
  });

  // Earlier events are not news: the feed is followed from here.
  const feed = marina.followEvents({ pollMs: 100 });
  await feed.skipToEnd();

  const place = (symbol: string, idempotencyKey: string) =>
    marina.createOrder(
      { account, symbol, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000 },
      { idempotencyKey },
    );

  // Place an order. The key is stored before the order is sent, so that it can be sent again after a crash.
  const firstKey = randomUUID();
  const filled = await place('SIM-FILL', firstKey);
  console.log('placed', filled.id);

  // Repeat: the same request with the same key is the same order.
  const again = await place('SIM-FILL', firstKey);
  assert.ok(again.id === filled.id && replays.has(firstKey));
  console.log('repeated', again.id);

  // Lose an answer: the exchange has the order, and nobody knows.
  const lost = await place('SIM-LOST', randomUUID());
  console.log('lost', lost.id, lost.state);

  // Lose one that the exchange never took.
  const hung = await place('SIM-HANG', randomUUID());
  console.log('lost', hung.id, hung.state);

  // A refusal says why.
  try {
    await place('SIM-FUNDS', randomUUID());
  } catch (error) {
    if (!(error instanceof OrderError)) throw error;
    console.log('refused', error.code, error.rejectReason);
  }

  // Follow events until each order is where it belongs.
  const wanted = new Map([
    [filled.id, 'filled'],
    [lost.id, 'pending'],
    [hung.id, 'refused'],
  ]);
  const versions = new Map<string, bigint>();
  for await (const { data, version } of feed) {
    if (data.object !== 'order' || version <= (versions.get(data.id) ?? 0n)) continue;
    versions.set(data.id, version);
    if (wanted.get(data.id) === data.state) {
      wanted.delete(data.id);
      console.log('settled', data.id, data.state);
    }
    if (wanted.size === 0) break;
  }

  // The partner cancels the order that rests.
  const cancelled = await marina.cancelOrder({ id: lost.id });
  assert.ok(finalStates.has(cancelled.state));
  console.log('cancelled', cancelled.id);

  // A list is read to its end, page after page.
  const listed = new Set<string>();
  for await (const order of marina.listOrders({ account, limit: 2 })) listed.add(order.id);
  assert.ok([filled, lost, hung].every(({ id }) => listed.has(id)));
  console.log('listed', listed.size);

  // Each of these changes came as a webhook too.
  if (server === undefined) return;
  while (![filled, lost, hung].every(({ id }) => received.has(id))) await sleep(50);
  server.close();
  server.closeAllConnections();
  console.log('verified webhooks');
}

/** Receives webhooks: verify, store, answer. Work on an event comes after the answer. */
function startEndpoint() {
  if (secret === undefined) return undefined;
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    try {
      const event = await verifyWebhook(secret, request.headers, body);
      received.add(event.data.id);
      response.writeHead(204).end();
    } catch {
      response.writeHead(400).end();
    }
  });
  return server.listen(Number(port), '127.0.0.1');
}
