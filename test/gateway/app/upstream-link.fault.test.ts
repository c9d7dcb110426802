import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Cluster, callTimeout, type GatewayProcess, isTraffic, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { Load } from '../../support/fault/load.ts';
import type { Fault } from '../../support/fault-one-way.ts';
import { type Direction, FaultProxy, type Link } from '../../support/fault-proxy.ts';
import { patient } from '../../support/patience.ts';

describe('a gateway whose link to the exchange fails', () => {
  let cluster: Cluster;
  let proxy: FaultProxy;
  let gateway: GatewayProcess;
  const partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start();
    proxy = await FaultProxy.start(cluster.gatewayVariables.MARINA_BROKER_ADDRESS ?? '');
    gateway = await cluster.startGateway({ MARINA_BROKER_ADDRESS: proxy.address });
  });
  afterEach(() => {
    proxy.heal();
    proxy.reset();
  });
  after(async () => {
    await cluster.stop();
    await proxy.close();
  });

  async function newPartner(): Promise<Partner> {
    const partner = await cluster.newPartner();
    partners.push(partner);
    return partner;
  }

  /**
   * The connections of the streams of reports, of orders and of applications: those on which something comes each second
   * without being asked for.
   */
  async function streamLinks(): Promise<readonly Link[]> {
    const heard = new Map<Link, { readonly first: number; last: number }>();
    proxy.onBytes = (link, direction) => {
      const now = performance.now();
      const before = heard.get(link) ?? { first: now, last: now };
      if (direction === 'toClient') heard.set(link, { ...before, last: now });
    };
    proxy.reset();
    const links = await eventually(() => {
      const found = proxy.links.filter((link) => {
        const { first = 0, last = 0 } = heard.get(link) ?? {};
        return last - first > 900;
      });
      assert.equal(found.length, 2, 'both streams are open again');
      return found;
    });
    proxy.onBytes = undefined;
    return links;
  }

  /** Sets a fault of all that a stream of reports brings. */
  function setAll(links: readonly Link[], direction: Direction | 'both', fault: Fault): void {
    for (const link of links) link.set(direction, fault);
  }

  async function state(partner: Partner, id: string): Promise<string> {
    const { body } = await gateway.request('GET', `/v1/orders/${id}`, { key: partner.key });
    return body.state;
  }

  const disturbances: readonly { name: string; disturb: (round: number) => void; rounds?: number }[] = [
    { name: 'is reset again and again', disturb: () => proxy.reset() },
    { name: 'is slow', disturb: () => proxy.set('both', { delayMs: 150 }), rounds: 1 },
    { name: 'stands still again and again', disturb: (round) => proxy.set('both', { hold: round % 2 === 0 }) },
    { name: 'swallows answers', disturb: () => proxy.set('toClient', { blackhole: true }, 'present'), rounds: 1 },
    { name: 'swallows all', disturb: () => proxy.set('both', { blackhole: true }, 'present'), rounds: 1 },
    { name: 'is half-closed by the exchange', disturb: () => proxy.set('toClient', { halfClose: true }, 'present') },
    { name: 'is half-closed to the exchange', disturb: () => proxy.set('toServer', { halfClose: true }, 'present') },
    {
      name: 'is cut in the middle of answers',
      disturb: (round) => proxy.set('toClient', { cutAfter: 1 + 23 * round }, 'present'),
    },
    {
      name: 'is cut in the middle of orders',
      disturb: (round) => proxy.set('toServer', { cutAfter: 1 + 23 * round }, 'present'),
    },
  ];
  for (const { name, disturb, rounds = 8 } of disturbances) {
    it(`${name} while orders and cancels are under way: each order is sent once and settled`, async () => {
      const owners = [await newPartner(), await newPartner()];
      const load = Load.start({
        gateways: () => [gateway],
        partners: owners,
        symbols: ['SIM-PARTS', 'SIM-REST', 'SIM-HALF'],
        cancels: true,
        restMs: 20,
      });
      for (let round = 0; round < rounds; round += 1) {
        await delay(200);
        disturb(round);
      }
      await delay(500);
      proxy.heal();
      await load.settle(gateway);
      await checkEverything(cluster, gateway, partners);
    });
  }

  it('swallows the stream of reports: the silence is noticed, and the gateway goes on in seconds', async () => {
    const owner = await newPartner();
    setAll(await streamLinks(), 'both', { blackhole: true });
    const { status, body } = await gateway.place(owner, { symbol: 'SIM-PARTS' });
    assert.equal(status, 201, JSON.stringify(body));
    const startedAt = performance.now();
    await eventually(async () => assert.equal(await state(owner, body.id), 'filled'), 20_000);
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs > 1_000, 'what was swallowed did not come');
    assert.ok(tookMs < patient(8_000), `it took ${Math.round(tookMs)} ms`);
    await checkEverything(cluster, gateway, partners);
  });

  it('cuts the stream of reports again and again: none is lost', async () => {
    const owner = await newPartner();
    const links = await streamLinks();
    const load = Load.start({ gateways: () => [gateway], partners: [owner] });
    for (let round = 0; round < 6; round += 1) {
      setAll(round === 0 ? links : proxy.links.slice(0, 2), 'toClient', { cutAfter: 10 + 40 * round });
      await delay(200);
    }
    await load.settle(gateway);
    await checkEverything(cluster, gateway, partners);
  });

  it('brings a cancel before the trades that came before it: none of them is lost', async () => {
    const owner = await newPartner();
    const links = await streamLinks();
    const { body } = await gateway.place(owner, { symbol: 'SIM-REST', quantity: 100 });
    setAll(links, 'toClient', { hold: true });
    await cluster.controls.fillOrder({ clientOrderId: body.id, quantity: 40n }, callTimeout);
    const cancelled = await gateway.request('DELETE', `/v1/orders/${body.id}`, { key: owner.key });
    assert.deepEqual([cancelled.status, cancelled.body.filled_quantity], [200, 40], JSON.stringify(cancelled.body));
    setAll(links, 'toClient', {});
    await checkEverything(cluster, gateway, partners);
  });

  it('is down: new orders are refused and nothing is stored, and reads and replays go on', async () => {
    const [owner, fresh] = [await newPartner(), await newPartner()];
    const key = randomUUID();
    const placed = await gateway.place(owner, { symbol: 'SIM-FILL' }, key);
    const resting = await gateway.place(owner, { symbol: 'SIM-REST' });
    assert.deepEqual([placed.status, resting.status], [201, 201]);
    await proxy.refuse();
    proxy.reset();

    const refusedKey = randomUUID();
    const refused = await gateway.place(fresh, { symbol: 'SIM-FILL' }, refusedKey);
    assert.deepEqual([refused.status, refused.body.error.code], [503, 'exchange_unavailable']);
    assert.equal(refused.headers?.get('retry-after'), '5');
    const stored = await cluster.database.read(statement('SELECT id FROM orders WHERE partner_id = ?', fresh.id));
    assert.deepEqual(stored, []);

    // The instrument is still remembered, so this one is stored; that there was no connection proves it was not sent.
    const unsentKey = randomUUID();
    for (const expected of ['first', 'again']) {
      const unsent = await gateway.place(owner, { symbol: 'SIM-FILL', quantity: 7 }, unsentKey);
      assert.deepEqual([unsent.status, unsent.body.error.code], [503, 'order_not_sent'], expected);
      assert.match(unsent.headers?.get('location') ?? '', /^\/v1\/orders\/ord_/);
      assert.equal(unsent.headers?.get('retry-after'), null);
    }

    const cancel = await gateway.request('DELETE', `/v1/orders/${resting.body.id}`, { key: owner.key });
    assert.deepEqual([cancel.status, cancel.body.error.code], [503, 'cancel_unconfirmed']);
    assert.equal((await gateway.place(owner, { symbol: 'SIM-FILL' }, key)).status, 200);
    for (const path of ['/v1/orders', `/v1/orders/${placed.body.id}`, '/v1/events']) {
      assert.equal((await gateway.request('GET', path, { key: owner.key })).status, 200);
    }
    const ready = await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`);
    assert.equal(ready.status, 200, 'reads and replays are still served');
    const { degraded } = (await ready.json()) as { degraded: { part: string }[] };
    assert.ok(
      degraded.some(({ part }) => part === 'broker'),
      JSON.stringify(degraded),
    );

    const before = gateway.logged().length;
    await delay(4_000);
    const lines = gateway
      .logged()
      .slice(before)
      .filter((line) => !isTraffic(line));
    assert.ok(lines.length < 20, `${lines.length} lines in 4 seconds`);

    await proxy.accept();
    await eventually(async () => {
      const again = await gateway.place(fresh, { symbol: 'SIM-FILL' }, refusedKey);
      assert.equal(again.status, 201, JSON.stringify(again.body));
    }, 5_000);
    await eventually(async () => {
      const { status } = await gateway.request('DELETE', `/v1/orders/${resting.body.id}`, { key: owner.key });
      assert.equal(status, 200);
    });
    await checkEverything(cluster, gateway, partners);
  });

  it('goes down and up again under load: each order is refused cleanly or sent once', async () => {
    const owners = [await newPartner(), await newPartner()];
    const load = Load.start({ gateways: () => [gateway], partners: owners, symbols: ['SIM-FILL', 'SIM-PARTS'] });
    for (let round = 0; round < 3; round += 1) {
      await delay(400);
      await proxy.refuse();
      proxy.reset();
      await delay(600);
      await proxy.accept();
    }
    await delay(500);
    await load.settle(gateway);
    await checkEverything(cluster, gateway, partners);
  });
});
