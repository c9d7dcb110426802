import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { goodApplication } from '../../support/applications.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { registerEndpoints } from '../../support/fault/arrivals.ts';
import { Backup } from '../../support/fault/backup.ts';
import { describeMoments, rest } from '../../support/fault/moments/cases.ts';
import { type CommandScenario, describeCommandMoments } from '../../support/fault/moments/commands.ts';
import type { WatchedCluster } from '../../support/fault/moments/watched-cluster.ts';
import { checkWorld, partsAtWork } from '../../support/world.ts';

/** A request with its key, and the object that it led to as its partner saw it last. */
interface Made {
  readonly path: string;
  readonly idempotencyKey: string;
  readonly body: object;
  // biome-ignore lint/suspicious/noExplicitAny: compared with what GET returns later.
  readonly last: any;
}

interface Case {
  readonly partner: Partner;
  /** Made before the backup, and changed after it. */
  readonly changed: Made;
  /** Made after the backup. */
  readonly lost: readonly Made[];
  /** The ids of the events that the partner has seen, by their versions. */
  readonly events: ReadonlyMap<number, string>;
}

/** How many versions of a partner a restore leaves out. */
const gapLength = 100_000_000n;
const submitCalls = [Call.SUBMIT_ORDER, Call.SUBMIT_ALLOCATION, Call.SUBMIT_APPLICATION, Call.SUBMIT_WITHDRAWAL];
const isOver = /^(filled|cancelled|booked|completed|documents_required)$/;

await describeMoments<Case>({
  name: "a database that was put back to a backup, completed from the notes in the broker's record",
  // Webhooks and the feed have cases of their own.
  only: /^(call|commit (?!.*(webhook|delete outbox)))/,
  async prepare(watched) {
    const { cluster, receiver } = watched;
    const partner = await cluster.newPartner();
    await cluster.fund(partner, 1_000_000n);
    await registerEndpoints(await watched.gateway(), receiver, [partner]);
    const resting = await place(watched, partner, 'SIM-REST', /^pending$/);
    await rest(watched);
    const backup = await Backup.take(cluster.databaseUrl);

    const changed = await cancel(watched, partner, resting);
    const lost = [
      await place(watched, partner, 'SIM-PARTS', isOver),
      await cancel(watched, partner, await place(watched, partner, 'SIM-REST', /^pending$/)),
      await make(watched, partner, '/v1/allocations', { account: partner.account, amount_kobo: 40_000 }, isOver),
      await make(watched, partner, '/v1/withdrawals', withdrawal(partner), isOver),
      await make(watched, partner, '/v1/applications', goodApplication, isOver),
    ];
    await rest(watched);
    const events = new Map((await readFeed(await watched.gateway(), partner)).map(({ version, id }) => [version, id]));
    await watched.restart();
    await backup.putBack();
    return { partner, changed, lost, events };
  },
  async run(watched, { partner, lost }) {
    // Partners whose requests broke off, and those who are not sure, repeat them at once.
    await Promise.all(
      lost.map(async ({ path, idempotencyKey, body, last }) => {
        const again = await watched.ask(partner, 'POST', path, { idempotencyKey, body });
        assert.deepEqual([again.status, again.body.id], [200, last.id], JSON.stringify(again.body));
      }),
    );
  },
  async check(watched, gateway, { partner, changed, lost, events }) {
    const { database, controls } = watched.cluster;
    for (const { path, last } of [changed, ...lost]) {
      await eventually(async () => {
        const { body } = await gateway.request('GET', `${path}/${last.id}`, { key: partner.key });
        const { updated_at, ...lasting } = last;
        assert.deepEqual({ ...body, updated_at: undefined }, { ...lasting, updated_at: undefined });
      }, 20_000);
      const { messages } = await controls.listMessages({ clientOrderId: last.id }, callTimeout);
      assert.equal(messages.filter(({ call }) => submitCalls.includes(call)).length, 1, 'it was sent once');
    }
    await checkWorld({ database, controls, gateways: [gateway] });
    for (const { version, id } of await readFeed(gateway, partner)) {
      assert.equal(events.get(version) ?? id, id, `version ${version} was used for another event before`);
    }
  },
});

const cluster = await Cluster.start();
const worked = await backupOfWork();

const declaring: CommandScenario<void> = {
  name: 'restored',
  prepare: () => worked.backup.putBack(),
  command: () => ({ args: ['restored'], variables: cluster.gatewayVariables }),
  async check(_, printed) {
    assert.match(printed, /declared: no event version is used again/);
    const { database, controls } = cluster;
    const [position] = await database.read(statement("SELECT position FROM positions WHERE name = 'order-reports'"));
    assert.equal(position?.position, '0', 'all reports are read again');
    const [partner] = await database.read(statement('SELECT version FROM partners WHERE id = ?', worked.partnerId));
    const skipped = BigInt(String(partner?.version)) - worked.version;
    assert.ok(skipped > 0n && skipped % gapLength === 0n, `${skipped} versions are left out`);
    await checkWorld({ database, controls, gateways: [] }, partsAtWork);
  },
};

await describeCommandMoments([declaring], () => cluster.stop());

/** A database with events and with a position of reports. */
async function backupOfWork(): Promise<{ backup: Backup; partnerId: string; version: bigint }> {
  const gateway = await cluster.startGateway();
  const partner = await cluster.newPartner();
  const placed = await gateway.place(partner, { symbol: 'SIM-PARTS' });
  assert.equal(placed.status, 201, JSON.stringify(placed.body));
  await eventually(async () => {
    const query = "SELECT position FROM positions WHERE name = 'order-reports' AND position > 0";
    assert.equal((await cluster.database.read(statement(query))).length, 1, 'the position of reports is stored');
    assert.deepEqual(await cluster.database.read(statement('SELECT version FROM outbox')), [], 'events on their way');
  });
  await gateway.stop();
  const [row] = await cluster.database.read(statement('SELECT version FROM partners WHERE id = ?', partner.id));
  const backup = await Backup.take(cluster.databaseUrl);
  return { backup, partnerId: partner.id, version: BigInt(String(row?.version)) };
}

function withdrawal({ account }: Partner): object {
  return { account, destination: 'wallet', amount_kobo: 5_000 };
}

/** Makes an object and waits for a state of it. */
async function make(
  watched: WatchedCluster,
  partner: Partner,
  path: string,
  body: object,
  until: RegExp,
): Promise<Made> {
  const idempotencyKey = randomUUID();
  const answer = await watched.ask(partner, 'POST', path, { idempotencyKey, body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const last = await eventually(async () => {
    const { body: now } = await watched.ask(partner, 'GET', `${path}/${answer.body.id}`);
    assert.match(now.state, until);
    return now;
  }, 20_000);
  return { path, idempotencyKey, body, last };
}

function place(watched: WatchedCluster, partner: Partner, symbol: string, until: RegExp): Promise<Made> {
  const { account } = partner;
  const order = { account, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000, symbol };
  return make(watched, partner, '/v1/orders', order, until);
}

async function cancel(watched: WatchedCluster, partner: Partner, made: Made): Promise<Made> {
  const { status, body } = await watched.ask(partner, 'DELETE', `${made.path}/${made.last.id}`);
  assert.deepEqual([status, body.state], [200, 'cancelled'], JSON.stringify(body));
  return { ...made, last: body };
}

async function readFeed(gateway: GatewayProcess, { key }: Partner): Promise<{ version: number; id: string }[]> {
  const { status, body } = await gateway.request('GET', '/v1/events?limit=100', { key });
  assert.deepEqual([status, body.has_more], [200, false], JSON.stringify(body));
  return body.data;
}
