import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { statement } from '../../../src/gateway/store/statement.ts';
import { BulkCancelState } from '../../../src/gen/marina/admin/v1/trading_pb.ts';
import { goodApplication } from '../../support/applications.ts';
import type { Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { registerEndpoints } from '../../support/fault/arrivals.ts';
import { describeMoments, rest } from '../../support/fault/moments/cases.ts';
import type { WatchedCluster } from '../../support/fault/moments/watched-cluster.ts';

/** An object with the request that made it. */
interface Made {
  readonly id: string;
  readonly path: string;
  readonly body: object;
  readonly idempotencyKey: string;
}

/** A partner's objects when 32 days go by. */
interface Case {
  readonly partner: Partner;
  /** Objects that are final by then, and ones that are not. */
  readonly final: readonly Made[];
  readonly open: readonly Made[];
  /** The last version of that time. */
  readonly lastOld: number;
  /** A job that ended long before, and one that ended at that time. */
  readonly jobs: { readonly old: string; readonly young: string };
}

const dayMs = 86_400_000;
/** Deliveries leave the database 28 h 51 min after their events. */
const days = 32;

await describeMoments<Case>({
  name: 'what leaves the database, on the first start after 32 days',
  only: /^commit (update \w+, insert positions|insert feed_purges, |delete (feed_events|webhook_|bulk_cancel))/,
  // Old rows are removed at once.
  maxOccurrences: 1,
  async prepare(watched) {
    const one = await live(watched);
    await rest(watched);
    await watched.restart();
    await watched.letPass(days * dayMs);
    return one;
  },
  async run(watched, { partner, jobs }) {
    await place(watched, partner, { symbol: 'SIM-PARTS' }, /^filled$/);
    await eventually(async () => {
      // A gateway that was killed is followed by the next one.
      await watched.gateway();
      assert.deepEqual(await oldRows(watched, partner, jobs.old), [], 'old rows are still there');
    }, 30_000);
  },
  async check(watched, gateway, { partner, final, open, lastOld, jobs }) {
    const { database } = watched.cluster;
    const { key, id: partnerId } = partner;
    const [row] = await database.read(statement('SELECT version FROM partners WHERE id = ?', partnerId));
    const { body: feed } = await gateway.request('GET', '/v1/events?limit=100', { key });
    const versions: number[] = feed.data.map(({ version }: { version: number }) => version);
    const young = Array.from({ length: Number(row?.version) - lastOld }, (_, at) => lastOld + 1 + at);
    assert.ok(young.length > 0);
    assert.deepEqual(versions, young, 'the feed has each young event once, and no old one');
    const sent = statement('SELECT version, state FROM webhook_deliveries WHERE partner_id = ? ORDER BY 1', partnerId);
    const deliveries = (await database.read(sent)).map(({ version, state }) => `${version} ${state}`);
    assert.deepEqual(
      deliveries,
      young.map((version) => `${version} delivered`),
      'each young event was sent',
    );
    const arrived = new Set(watched.receiver.at(`/${partnerId}`).map(({ id }) => id));
    for (const { id } of feed.data) assert.ok(arrived.has(id), `${id} has arrived`);
    const attempted = statement(
      'SELECT DISTINCT version FROM webhook_attempts WHERE partner_id = ? ORDER BY 1',
      partnerId,
    );
    const attempts = (await database.read(attempted)).map(({ version }) => Number(version));
    assert.ok(
      attempts.every((version) => version > lastOld),
      'the attempts of old events are gone',
    );
    for (const { id, path } of [...final, ...open]) {
      assert.equal((await gateway.request('GET', `${path}/${id}`, { key })).status, 200, `${id} stays`);
    }
    for (const { id, path, body, idempotencyKey } of open) {
      const again = await gateway.request('POST', path, { key, idempotencyKey, body });
      assert.deepEqual([again.status, again.body.id], [200, id], 'the key of an object that is not final leads to it');
    }
    await checkJobs(watched, jobs);
  },
});

/** A partner with objects of each kind, an endpoint, and two jobs that have cancelled an order. */
async function live(watched: WatchedCluster): Promise<Case> {
  const partner = await watched.cluster.newPartner();
  const { id: partnerId, account } = partner;
  await watched.cluster.fund(partner, 10_000_000n);
  await registerEndpoints(await watched.gateway(), watched.receiver, [partner]);
  const old = await cancelAll(watched, partner);
  const young = await cancelAll(watched, partner);
  const { database } = watched.cluster;
  await database.write(statement('UPDATE bulk_cancels SET ended_at = ended_at - INTERVAL 370 DAY WHERE id = ?', old));
  const order = await place(watched, partner, { symbol: 'SIM-PARTS' }, /^filled$/);
  const final = [
    order,
    await make(watched, partner, '/v1/allocations', { account, amount_kobo: 40_000 }, /^booked$/),
    await make(
      watched,
      partner,
      '/v1/withdrawals',
      { account, amount_kobo: 30_000, destination: 'wallet' },
      /^completed$/,
    ),
    await apply(watched, partner, 'SIM-REJECT-INVALID', /^rejected$/),
  ];
  const open = [
    await place(watched, partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }, /^pending$/),
    await apply(watched, partner, 'SIM-WAIT', /^documents_required$/),
  ];
  const [row] = await database.read(statement('SELECT version FROM partners WHERE id = ?', partnerId));
  return { partner, final, open, lastOld: Number(row?.version), jobs: { old, young } };
}

function place(watched: WatchedCluster, partner: Partner, fields: object, until: RegExp): Promise<Made> {
  const order = { account: partner.account, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000, ...fields };
  return make(watched, partner, '/v1/orders', order, until);
}

function apply(watched: WatchedCluster, partner: Partner, last_name: string, until: RegExp): Promise<Made> {
  return make(watched, partner, '/v1/applications', { ...goodApplication, last_name }, until);
}

/** Makes an object, and waits for a state of it. One that was not sent is made again. */
async function make(
  watched: WatchedCluster,
  partner: Partner,
  path: string,
  body: object,
  until: RegExp,
): Promise<Made> {
  const idempotencyKey = randomUUID();
  const answer = await watched.ask(partner, 'POST', path, { idempotencyKey, body });
  const id = answer.body.id ?? answer.headers?.get('location')?.split('/').at(-1);
  const state = await eventually(async () => {
    const { body: object } = await watched.ask(partner, 'GET', `${path}/${id}`);
    assert.match(object.state, /^(?!sending|uncertain)/);
    if (object.state !== 'refused') assert.match(object.state, until);
    return object.state as string;
  }, 20_000);
  return state === 'refused' ? make(watched, partner, path, body, until) : { id, path, body, idempotencyKey };
}

/** Places an order and has a job cancel it. Returns the job. */
async function cancelAll(watched: WatchedCluster, partner: Partner): Promise<string> {
  await place(watched, partner, { symbol: 'SIM-REST', time_in_force: 'gtc' }, /^pending$/);
  const wanted = { partnerId: partner.id, atMost: 1, reason: 'a test' };
  const { bulkCancel } = await watched.operate(({ trading, options }) => trading.cancelOpenOrders(wanted, options));
  const id = bulkCancel?.id ?? '';
  await eventually(async () => {
    const job = await watched.operate(({ trading, options }) => trading.getBulkCancel({ id }, options));
    assert.equal(job.bulkCancel?.state, BulkCancelState.DONE);
  }, 20_000);
  return id;
}

/** The rows that must leave the database, in short. */
async function oldRows({ cluster: { database } }: WatchedCluster, { id }: Partner, job: string): Promise<string[]> {
  const [row] = await database.read(statement('SELECT clock_offset_ms FROM environment WHERE id = 1'));
  const before = new Date(Date.now() + Number(row?.clock_offset_ms) - dayMs);
  const counts: readonly (readonly [what: string, query: string, ...values: (string | Date)[]])[] = [
    ['event', 'SELECT version FROM feed_events WHERE partner_id = ? AND occurred_at < ?', id, before],
    ['attempt', 'SELECT version FROM webhook_attempts WHERE partner_id = ? AND at < ?', id, before],
    ['delivery', 'SELECT version FROM webhook_deliveries WHERE partner_id = ? AND occurred_at < ?', id, before],
    ['job', 'SELECT id FROM bulk_cancels WHERE id = ?', job],
    ['order of a job', 'SELECT order_id FROM bulk_cancel_orders WHERE bulk_cancel_id = ?', job],
    ...(['orders', 'allocations', 'withdrawals', 'applications'] as const).map(
      (table) =>
        [
          `key of ${table}`,
          `SELECT id FROM ${table} WHERE partner_id = ? AND created_at < ? AND idempotency_key IS NOT NULL
            AND state NOT IN ('pending', 'documents_required')`,
          id,
          before,
        ] as const,
    ),
  ];
  const found: string[] = [];
  for (const [what, query, ...values] of counts) {
    const rows = await database.read(statement(query, ...values));
    found.push(...rows.map((each) => `${what} ${Object.values(each)[0]}`));
  }
  return found;
}

/** The young job stays with its order, and both orders stay. */
async function checkJobs({ cluster: { database } }: WatchedCluster, { old, young }: Case['jobs']): Promise<void> {
  const query = statement('SELECT id, cancelled FROM bulk_cancels WHERE id = ? OR id = ?', old, young);
  const jobs = (await database.read(query)).map(({ id, cancelled }) => [id, Number(cancelled)]);
  assert.deepEqual(jobs, [[young, 1]], 'the young job stays');
  const orders = statement('SELECT order_id FROM bulk_cancel_orders WHERE bulk_cancel_id = ?', young);
  assert.equal((await database.read(orders)).length, 1, 'the young job has its order');
}
