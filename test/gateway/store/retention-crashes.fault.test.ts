import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { compileEncoder } from '../../../src/gateway/edge/json/encoder.ts';
import { Cursors } from '../../../src/gateway/edge/paging.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { OrderSchema } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { onlyKey, subkey } from '../../../src/kit/key-ring.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { insertRows } from '../../support/insert-rows.ts';
import { secretKey } from '../../support/keys.ts';
import { order } from '../edge/fixture.ts';

const dayMs = 86_400_000;
const own = 4_000;
/** The last events of each partner, which are young. */
const young = 5;

describe('a gateway that is killed while it removes old events', () => {
  const cursors = new Cursors(onlyKey(subkey(Buffer.from(secretKey, 'hex'), 'cursors')));
  let cluster: Cluster;
  let partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start();
    partners = await Promise.all(Array.from({ length: 12 }, () => cluster.newPartner()));
    const now = Date.now();
    const data = JSON.parse(compileEncoder(OrderSchema)(order));
    const columns = ['partner_id', 'version', 'id', 'body', 'occurred_at'];
    for (const [at, { id }] of partners.entries()) {
      await cluster.database.write(statement('UPDATE partners SET version = ? WHERE id = ?', own, id));
      const rows = Array.from({ length: own }, (_, index) => {
        const version = index + 1;
        const occurredAt = version > own - young ? now - dayMs : now - 33 * dayMs + version * 1_000;
        const body = {
          object: 'event',
          id: `msg_${at}`,
          type: 'order.pending',
          timestamp: new Date(occurredAt),
          version,
          data,
        };
        return [id, version, `msg_${at}_${version}`, JSON.stringify(body), new Date(occurredAt)];
      });
      await cluster.database.write(insertRows('feed_events', columns, rows));
    }
  });
  after(() => cluster.stop());

  /** Reads a partner's rows in one consistent read. */
  async function held({ id }: Partner): Promise<{ first: number; count: number; purged: number }> {
    const [row] = await cluster.database.read(
      statement(
        `SELECT MIN(version) AS first, COUNT(*) AS count,
          COALESCE((SELECT purged_version FROM feed_purges p WHERE p.partner_id = ?), 0) AS purged
          FROM feed_events WHERE partner_id = ?`,
        id,
        id,
      ),
    );
    return { first: Number(row?.first), count: Number(row?.count), purged: Number(row?.purged) };
  }

  async function assertNothingBetween(): Promise<number> {
    let left = 0;
    for (const partner of partners) {
      const { first, count, purged } = await held(partner);
      assert.equal(first, purged + 1, 'the feed begins after the last event that is noted as removed');
      assert.equal(count, own - purged, 'no event after it is missing');
      left += count - young;
    }
    return left;
  }

  /** A reader who has seen version 1 is refused as soon as a later event is gone, and reads on before. */
  async function assertPromise(gateway: GatewayProcess): Promise<void> {
    for (const { id, key } of partners.slice(0, 3)) {
      const cursor = cursors.issue(['events', id], '1');
      const { status, body } = await gateway.request('GET', `/v1/events?cursor=${cursor}`, { key });
      if (status === 200) assert.equal(body.data[0].version, 2);
      else assert.deepEqual([status, body.error.code, body.error.param], [400, 'invalid_request', 'cursor']);
    }
  }

  it('leaves a feed that says what is gone, and the next one goes on, until only young events are left', async () => {
    let left = own * partners.length;
    for (const afterMs of [60, 250, 700]) {
      const gateway = await cluster.startGateway();
      await eventually(async () => assert.ok((await assertNothingBetween()) < left, 'nothing is removed'), 20_000);
      await delay(afterMs);
      await delay(afterMs);
      await assertPromise(gateway);
      await gateway.kill();
      left = await assertNothingBetween();
    }
    const last = await cluster.startGateway();
    await eventually(async () => assert.equal(await assertNothingBetween(), 0), 60_000);
    for (const { id, key } of partners) {
      const cursor = cursors.issue(['events', id], '1');
      const { body } = await last.request('GET', `/v1/events?cursor=${cursor}`, { key });
      assert.equal(body.error.param, 'cursor');
      assert.match(body.error.message, new RegExp(`The oldest version held is ${own - young + 1};`));
    }
  });
});
