import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../../src/gateway/store/statement.ts';
import { type Answer, Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { Load } from '../../support/fault/load.ts';
import { FaultProxy, type Link } from '../../support/fault-proxy.ts';
import { patient } from '../../support/patience.ts';

/** Longer than any bound a request may run into. */
const tooLongMs = 19_000;

describe('a gateway whose link to the database fails', () => {
  let cluster: Cluster;
  let proxy: FaultProxy;
  /** Does the background work, over a link that holds. */
  let healthy: GatewayProcess;
  let gateway: GatewayProcess;
  const partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start();
    proxy = await FaultProxy.start(cluster.databaseUrl);
    healthy = await cluster.startGateway();
    gateway = await cluster.startGateway({ MARINA_DATABASE_URL: proxy.through(cluster.databaseUrl) });
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

  /** Meets the next bytes to the database that fit. */
  function meetNext(fits: (bytes: Buffer) => boolean, meet: (link: Link) => void): void {
    proxy.onBytes = (link, direction, bytes) => {
      if (direction !== 'toServer' || !fits(bytes)) return;
      proxy.onBytes = undefined;
      meet(link);
    };
  }

  function assertUnavailable({ status, body, headers }: Answer): void {
    assert.deepEqual([status, body?.error?.code], [503, 'service_unavailable'], JSON.stringify(body));
    assert.equal(headers?.get('retry-after'), '5');
    assert.equal(headers?.get('location'), null);
  }

  async function isAlive(): Promise<void> {
    const answer = await fetch(`http://127.0.0.1:${gateway.opsPort}/livez`);
    assert.equal(answer.status, 200);
  }

  it('vanishes with the partner locked: the lock is let go within seconds', async () => {
    const owner = await newPartner();
    await gateway.place(owner, { symbol: 'SIM-FILL' });
    meetNext(
      (bytes) => bytes.includes('INSERT INTO orders (') && bytes.includes(owner.id),
      (link) => link.set('both', { blackhole: true }),
    );
    const [vanished, other] = await Promise.all([
      gateway.place(owner, { symbol: 'SIM-FILL', quantity: 200 }),
      delay(300).then(() => healthy.place(owner, { symbol: 'SIM-FILL', quantity: 300 })),
    ]);
    assertUnavailable(vanished);
    assert.equal(other.status, 201, JSON.stringify(other.body));
    await checkEverything(cluster, healthy, partners);
  });

  it('swallows the answer to a statement that is prepared: the request is answered in bounded time', async () => {
    const owner = await newPartner();
    proxy.reset(); // A connection prepares each statement once; new ones have prepared none.
    await delay(50);
    const prepare = 0x16;
    meetNext(
      (bytes) => bytes[4] === prepare,
      (link) => link.set('toClient', { blackhole: true }),
    );
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => gateway.request('GET', '/v1/orders', { key: owner.key }))).then(
      (answers) => {
        for (const { status } of answers) assert.ok(status === 200 || status === 503, String(status));
      },
    );
    assert.equal(proxy.onBytes, undefined, 'an answer was swallowed');
    assert.ok(performance.now() - startedAt < patient(tooLongMs));
    await checkEverything(cluster, healthy, partners);
  });

  it('swallows everything: each request is answered in bounded time, and all is well once it holds', async () => {
    const owner = await newPartner();
    proxy.set('both', { blackhole: true });
    const logged = gateway.logged().length;
    const startedAt = performance.now();
    const asked = Array.from({ length: 60 }, (_, index) =>
      index % 2 === 0
        ? gateway.place(owner, { symbol: 'SIM-FILL', quantity: 100 + index })
        : gateway.request('GET', '/v1/orders', { key: owner.key }),
    );
    await eventually(async () => {
      const ready = await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`);
      assert.equal(ready.status, 503, await ready.text());
    });
    for (const answer of await Promise.all(asked)) assertUnavailable(answer);
    assert.ok(performance.now() - startedAt < patient(tooLongMs));
    const lines = gateway
      .logged()
      .slice(logged)
      .filter(({ msg }) => !msg.startsWith('request') && !msg.includes('not served'));
    assert.ok(lines.length < 200, `${lines.length} lines`);
    proxy.heal();
    proxy.reset();
    await eventually(async () => {
      const placed = await gateway.place(owner, { symbol: 'SIM-FILL' });
      assert.equal(placed.status, 201, JSON.stringify(placed.body));
    }, 15_000);
    await checkEverything(cluster, healthy, partners);
  });

  it('refuses: each request is refused at once, and all is well once it takes connections', async () => {
    const owner = await newPartner();
    await proxy.refuse();
    proxy.reset();
    await delay(50);
    const startedAt = performance.now();
    assertUnavailable(await gateway.place(owner, { symbol: 'SIM-FILL' }));
    assert.ok(performance.now() - startedAt < patient(2_000));
    await proxy.accept();
    await eventually(async () => assert.equal((await gateway.place(owner, { symbol: 'SIM-FILL' })).status, 201));
    await checkEverything(cluster, healthy, partners);
  });

  it('answers the settings of a new connection with an error: the connection is not used, and the process lives', async () => {
    const owner = await newPartner();
    let met = 0;
    proxy.onBytes = (link, direction, bytes) => {
      if (direction !== 'toServer' || !bytes.includes('sql_mode') || met >= 5) return;
      met += 1;
      link.toServer.set({ blackhole: true });
      link.toClient.inject(errorPacket(1053, '08S01', 'Server shutdown in progress'));
    };
    proxy.reset();
    await eventually(async () => {
      await Promise.all(Array.from({ length: 8 }, () => gateway.request('GET', '/v1/orders', { key: owner.key })));
      assert.ok(met > 0, 'no connection was opened');
    });
    await isAlive();
    await eventually(
      async () => assert.equal((await gateway.place(owner, { symbol: 'SIM-FILL' })).status, 201),
      15_000,
    );
    await checkEverything(cluster, healthy, partners);
  });

  const disturbances: readonly { name: string; disturb: (round: number) => void }[] = [
    { name: 'is reset', disturb: () => proxy.reset() },
    { name: 'is half-closed', disturb: () => proxy.set('toClient', { halfClose: true }, 'present') },
    {
      name: 'is cut in the middle of answers and requests',
      disturb: (round) =>
        proxy.set(round % 2 === 0 ? 'toClient' : 'toServer', { cutAfter: 50 + 37 * round }, 'present'),
    },
    {
      name: 'is slow, then stands still',
      disturb: (round) => proxy.set('both', round % 3 === 0 ? { hold: true } : { delayMs: 40 }),
    },
  ];
  for (const { name, disturb } of disturbances) {
    it(`${name} again and again under load: every key is settled, nothing is sent twice`, async () => {
      const owners = [await newPartner(), await newPartner()];
      const load = Load.start({
        gateways: () => [gateway],
        partners: owners,
        cancels: true,
        symbols: ['SIM-PARTS', 'SIM-REST'],
      });
      for (let round = 0; round < 12 || load.count <= 10; round += 1) {
        assert.ok(round < 100, `${load.count} orders`);
        await delay(150);
        disturb(round);
      }
      proxy.heal();
      await load.settle(gateway);
      await isAlive();
      await checkEverything(cluster, healthy, partners);
    });
  }

  it('is the only one with background work, and is reset: the work goes on over new connections', async () => {
    await healthy.stop();
    const owner = await newPartner();
    const load = Load.start({ gateways: () => [gateway], partners: [owner] });
    for (let round = 0; round < 10; round += 1) {
      await delay(200);
      proxy.reset();
    }
    await load.settle(gateway);
    await checkEverything(cluster, gateway, partners);
    const [row] = await cluster.database.read(statement('SELECT COUNT(*) AS count FROM outbox'));
    assert.equal(Number(row?.count), 0);
  });
});

/** A server's error in answer to a statement. */
function errorPacket(code: number, state: string, message: string): Buffer {
  const text = Buffer.from(`#${state}${message}`);
  const packet = Buffer.alloc(7 + text.length);
  packet.writeUIntLE(3 + text.length, 0, 3);
  packet.writeUInt8(1, 3);
  packet.writeUInt8(0xff, 4);
  packet.writeUInt16LE(code, 5);
  text.copy(packet, 7);
  return packet;
}
