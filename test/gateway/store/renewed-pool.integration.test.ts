import assert from 'node:assert/strict';
import { type AddressInfo, createServer } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { createConnection, type PoolConnection, type RowDataPacket } from 'mysql2';
import { accessOptions } from '../../../src/gateway/store/access.ts';
import { databaseAddress } from '../../../src/gateway/store/address.ts';
import { RenewedPool } from '../../../src/gateway/store/renewed-pool.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';

const size = 2;

describe('a pool of database connections that is renewed', () => {
  let test: TestDatabase;
  let port: number;
  let pool: RenewedPool | undefined;
  before(async () => {
    test = await createTestDatabase();
    port = databaseAddress(test.url).hosts[0].port;
  });
  afterEach(async () => {
    await pool?.close();
    pool = undefined;
    await eventually(async () => assert.equal(await openAtServer(), 0));
  });
  after(() => test.drop());

  /** A pool that connects to the port which `where` answers. */
  function poolTo(where: () => number): RenewedPool {
    const { database, hosts } = databaseAddress(test.url);
    const way = () => accessOptions({ url: test.url, tls: undefined }, { ...hosts[0], port: where() });
    pool = new RenewedPool(size, { database, maxIdle: 1 }, way, () => {});
    return pool;
  }

  const take = (from: RenewedPool) =>
    new Promise<PoolConnection>((resolve, reject) => {
      from.getConnection((error, taken) => (taken === undefined ? reject(error) : resolve(taken)));
    });

  /** How many connections to this test's database the server has, without the one that asks. */
  async function openAtServer(): Promise<number> {
    const asking = createConnection({ uri: test.url });
    try {
      const sql =
        'SELECT COUNT(*) AS open FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()';
      const [rows] = await asking.promise().query<RowDataPacket[]>(sql);
      return Number(rows[0]?.open);
    } finally {
      asking.destroy();
    }
  }

  const numberOf = async (one: PoolConnection) => {
    const [rows] = await one.promise().query<RowDataPacket[]>('SELECT CONNECTION_ID() AS number');
    return Number(rows[0]?.number);
  };

  it('gives the same connection again until it is renewed, and then a new one', async () => {
    const one = poolTo(() => port);
    const first = await take(one);
    const number = await numberOf(first);
    first.release();
    const again = await take(one);
    assert.equal(await numberOf(again), number);
    again.release();
    one.renew();
    const renewed = await take(one);
    assert.notEqual(await numberOf(renewed), number);
    renewed.release();
    await eventually(async () => assert.equal(await openAtServer(), 1));
  });

  it('it never has more connections than its size, with those of before it was renewed', async () => {
    const one = poolTo(() => port);
    const former = [await take(one), await take(one)];
    one.renew();
    const waiting = Array.from({ length: 4 }, () => take(one));
    // Connections in use go on.
    for (const connection of former) await numberOf(connection);
    assert.equal(await openAtServer(), size);
    former[0]?.release();
    const next = await waiting[0];
    assert.ok(next);
    await numberOf(next);
    await eventually(async () => assert.equal(await openAtServer(), size));
    for (const connection of [former[1], next]) connection?.release();
    for (const later of waiting.slice(1)) (await later).release();
    await eventually(async () => assert.ok((await openAtServer()) <= size));
  });

  it('counts a connection that is destroyed and released, or released twice, once', async () => {
    const one = poolTo(() => port);
    const first = await take(one);
    first.destroy();
    first.release();
    const second = await take(one);
    second.release();
    second.release();
    const both = [await take(one), await take(one)];
    let isThere = false;
    const third = take(one).then((connection) => {
      isThere = true;
      return connection;
    });
    await Promise.all(both.map(numberOf));
    assert.equal(isThere, false);
    for (const connection of both) connection.release();
    (await third).release();
  });

  it('gives what waits for a host that is lost a connection to the next host', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    let current = (silent.address() as AddressInfo).port;
    const one = poolTo(() => current);
    const waiting = [take(one), take(one), take(one)];
    current = port;
    one.renew(true);
    for (const taken of waiting) {
      const connection = await taken;
      await numberOf(connection);
      connection.release();
    }
    await new Promise((resolve) => silent.close(resolve));
  });

  it('a pool has all its connections after hosts were lost while they were asked, again and again', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    let current = port;
    const one = poolTo(() => current);
    for (let losses = 0; losses < 2 * size; losses += 1) {
      current = (silent.address() as AddressInfo).port;
      one.renew(true);
      const waiting = take(one);
      current = port;
      one.renew(true);
      (await waiting).release();
    }
    const all = await Promise.all(Array.from({ length: size }, () => take(one)));
    for (const connection of all) connection.release();
    await new Promise((resolve) => silent.close(resolve));
  });

  it('fails what a lost host was asked, and what waits when it is closed', async () => {
    const one = poolTo(() => port);
    const both = [await take(one), await take(one)];
    const asked = both.map((connection) => connection.promise().query('SELECT SLEEP(1)'));
    const failed = Promise.all(asked.map((answer) => assert.rejects(answer)));
    one.renew(true);
    await failed;
    const waiting = assert.rejects(take(one), /closed/);
    await one.close();
    await waiting;
    for (const connection of both) connection.release();
  });

  it('fails what was asked at any former host when the present one is lost', async () => {
    const one = poolTo(() => port);
    const first = await take(one);
    const asked = assert.rejects(first.promise().query('SELECT SLEEP(1)'));
    one.renew();
    const second = await take(one);
    second.release();
    one.renew(true);
    await asked;
    first.release();
    (await take(one)).release();
  });

  it('gives no connection once it is closed, also when it is renewed afterwards', async () => {
    const one = poolTo(() => port);
    (await take(one)).release();
    await one.close();
    one.renew();
    await assert.rejects(take(one), /the database is closed/);
  });
});
