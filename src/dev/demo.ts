/** `make demo`: an order's life against the running sandbox, and a check that everything shown holds. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controls } from '../gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../lib/grpc-client.ts';
import { explain } from './advice.ts';
import { type DemoOrder, type Partner, partnerClient } from './demo-client.ts';
import { runningSandbox, type Sandbox } from './sandbox-file.ts';
import { dataFolder, receiverLog } from './settings.ts';

const symbol = 'ZENITHBANK';
const waitMs = 20_000;
const bold = (text: string) => (process.stdout.isTTY ? `\u001b[1m${text}\u001b[0m` : text);

demo(runningSandboxOrExit()).catch((error: unknown) => {
  process.stderr.write(`\nThe demo failed: ${explain(error)}\n`);
  process.exit(1);
});

async function demo(sandbox: Sandbox): Promise<void> {
  const [seeded] = sandbox.partners;
  if (seeded === undefined) throw new Error('the sandbox has no partner');
  const partner = partnerClient(sandbox.rest_url, seeded.key);
  const price = await restingPrice(sandbox);
  const feed = await partner.openFeed();

  title(`1. ${seeded.name} buys 100 shares of ${symbol} at the market for ${seeded.account}`);
  const market = { account: seeded.account, symbol, side: 'buy', quantity: 100, type: 'market' };
  const key = `demo-${process.pid}-${Date.now()}`;
  const placed = await partner.placeOrder(market, key);
  say(`201 ${placed.order.id} ${placed.order.state}`);

  title('2. The same request again, as after a lost answer, finds the same order');
  const repeated = await partner.placeOrder(market, key);
  say(`${repeated.status} ${repeated.order.id} Idempotent-Replayed: ${repeated.replayed}`);
  check(repeated.order.id === placed.order.id && repeated.replayed, 'the repeated request must find the first order');

  title('3. It trades; every change is an event');
  const filled = await follow(partner, feed, placed.order.id, 'filled');
  check(filled.filled_quantity === market.quantity, 'all shares must have traded');
  say(`filled at ${filled.average_fill_price_kobo_decimal} kobo on average`);

  title(`4. A limit order at ${price} kobo, too low to trade, rests until it is cancelled`);
  const limit = { ...market, type: 'limit', price_kobo: price, time_in_force: 'gtc' };
  const resting = await partner.placeOrder(limit, `${key}-limit`);
  say(`201 ${resting.order.id} ${resting.order.state}`);
  await follow(partner, feed, resting.order.id, 'pending');
  const cancelled = await partner.cancelOrder(resting.order.id);
  say(`200 ${cancelled.id} ${cancelled.state}`);
  check(cancelled.state === 'cancelled', 'the answer to the cancel must show the order cancelled');
  await follow(partner, feed, resting.order.id, 'cancelled');

  title("5. The same events have come to the partner's webhook receiver, which verified their signatures");
  for (const line of await received(feed.seen)) say(line);

  process.stdout.write(`\n${bold('Everything held.')}\n`);
}

/** Shows events as they come until one says the order is in the state, and checks it against the order itself. */
async function follow(
  partner: Partner,
  feed: Awaited<ReturnType<Partner['openFeed']>>,
  id: string,
  state: string,
): Promise<DemoOrder> {
  const deadline = performance.now() + waitMs;
  while (performance.now() < deadline) {
    for (const event of await feed.next()) {
      say(`event ${event.version} ${event.type} ${event.data.id} ${event.data.filled_quantity}/${event.data.quantity}`);
      if (event.data.id !== id || event.data.state !== state) continue;
      const order = await partner.getOrder(id);
      const same = JSON.stringify(order) === JSON.stringify(event.data);
      check(same || order.state !== state, 'an event must carry the order as its GET shows it');
      return event.data;
    }
  }
  const { state: now } = await partner.getOrder(id);
  throw new Error(`no event said within ${waitMs / 1000} s that ${id} is ${state}; it is ${now}`);
}

/** The receiver's lines of events, in the order in which they came. */
async function received(eventIds: readonly string[]): Promise<string[]> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const lines = readFileSync(receiverLog(dataFolder(process.env)), 'utf8').split('\n');
    const found = lines.filter((line) => eventIds.some((id) => line.includes(id)));
    const missing = eventIds.filter((id) => !found.some((line) => line.includes(id)));
    if (missing.length === 0) return found;
    if (performance.now() > deadline) throw new Error(`the receiver did not get ${missing.join(', ')}`);
    await sleep(150);
  }
}

/** The lowest price of the day: as far from the market as an order may be. */
async function restingPrice(sandbox: Sandbox): Promise<number> {
  const controls = createGrpcClient(Controls, sandbox.simulator_address);
  try {
    const { instruments } = await controls.listInstruments({}, { timeoutMs: 10_000 });
    const instrument = instruments.find((each) => each.symbol === symbol);
    if (instrument === undefined) throw new Error(`the simulator does not know ${symbol}`);
    return Number(instrument.lowerPriceKobo);
  } finally {
    controls.close();
  }
}

function runningSandboxOrExit(): Sandbox {
  try {
    return runningSandbox(dataFolder(process.env));
  } catch (error) {
    process.stderr.write(`${explain(error)}\n`);
    process.exit(1);
  }
}

function title(text: string): void {
  process.stdout.write(`\n${bold(text)}\n`);
}

function say(text: string): void {
  process.stdout.write(`   ${text}\n`);
}

function check(holds: boolean, rule: string): void {
  if (!holds) throw new Error(rule);
}
