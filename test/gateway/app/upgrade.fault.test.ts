import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { migrations } from '../../../migrations/index.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Feature, Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { grantRights } from '../../../src/sandbox/databases.ts';
import { lastRelease, whyNotHere } from '../../../src/tools/release.ts';
import { adminClient, newPartnerByOperator } from '../../support/admin.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { apply, goodFields } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { checkArrivals, type Endpoint, registerEndpoints } from '../../support/fault/arrivals.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { Load } from '../../support/fault/load.ts';
import { checkMoney } from '../../support/fault/money.ts';
import { lists, readAll, UpgradeLoad } from '../../support/fault/upgrade-load.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { noisePng } from '../../support/images.ts';
import { verifyLedger } from '../../support/ledger.ts';
import { installRelease, migrateBy } from '../../support/release.ts';
import { accountHost } from '../../support/servers.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';

const release = lastRelease('.');
const skip = (await whyNotHere('.', release)) ?? false;
/** How many orders, allocations, documents and readings of all lists are enough to go on. */
const least = [10, 3, 1, 1];
/** How this version's `main` is started. */
const ownMain =
  process.env.MARINA_TEST_BUILD === undefined
    ? ['--import', 'tsx', 'src/main.ts']
    : [`${process.env.MARINA_TEST_BUILD}/src/main.js`];

/** Changes that a later release may make: a column for every table, and a table. */
class Later1999999999999 implements MigrationInterface {
  readonly name = 'Later1999999999999';

  async up(runner: QueryRunner): Promise<void> {
    for (const { name } of await runner.query(
      'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
    )) {
      if (name !== 'migrations') await runner.query(`ALTER TABLE ${name} ADD COLUMN later VARCHAR(20) NULL`);
    }
    await runner.query('CREATE TABLE later (id BIGINT NOT NULL PRIMARY KEY)');
  }

  async down(): Promise<void> {}
}

/**
 * The release and this version on one database and one NATS, in the order in which an operator upgrades, rolls back and goes
 * forward again. Each test goes on from the state that the one before it left.
 */
describe(`this version and release ${release.version}, side by side`, { skip }, () => {
  const folder = temporaryFolder();
  let receiver: WebhookReceiver;
  let cluster: Cluster;
  let releaseMain: string;
  let releaseUrl: string;
  /** The gateways that clients call. */
  let gateways: GatewayProcess[] = [];
  /** All that ever ran. */
  const started: GatewayProcess[] = [];
  let old: GatewayProcess;
  let own: GatewayProcess;
  let endpoints: Endpoint[];
  let file: Buffer;
  /** The funder with a key that may withdraw, once this version has made it. */
  let withdrawer: Partner | undefined;
  /**
   * The first three are under load. The endpoint of `failing` is paused, that of `refusing` has retries due later, an operator
   * holds that of `held`, and `idle` has no event until the rollback.
   */
  const partners = {} as Record<(typeof names)[number], Partner>;
  const names = ['trader', 'funder', 'applicant', 'failing', 'refusing', 'held', 'idle'] as const;

  before(async () => {
    [releaseMain, receiver, file] = await Promise.all([
      installRelease(release, folder),
      WebhookReceiver.start(),
      noisePng(),
    ]);
    cluster = await Cluster.start(receiver.variables, { migrate: (url) => migrateBy([releaseMain], url) });
    releaseUrl = await cluster.grantGateway(`${new URL(cluster.databaseUrl).pathname.slice(1)}_old`);
    old = await startRelease();
    gateways = [old];
  });
  after(async () => {
    gateways = [];
    await cluster?.stop();
    await receiver?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function startRelease(): Promise<GatewayProcess> {
    const gateway = await cluster.startGateway({ MARINA_DATABASE_URL: releaseUrl }, releaseMain);
    started.push(gateway);
    return gateway;
  }

  async function startOwn(): Promise<GatewayProcess> {
    const gateway = await cluster.startGateway();
    started.push(gateway);
    return gateway;
  }

  const admin = async <T>(
    call: (client: ReturnType<typeof adminClient>) => Promise<T>,
    gateway = gateways[0] as GatewayProcess,
  ): Promise<T> => {
    const client = adminClient(gateway.adminPort);
    return call(client).finally(() => client.close());
  };

  /** Lets the funder withdraw, which the release does not know of. An operator would wait until the release is gone. */
  async function allowWithdrawals(): Promise<void> {
    const { id: partnerId, account } = partners.funder;
    const features = [Feature.ACCOUNT_OPENING, Feature.WITHDRAWALS];
    await admin(async ({ partners: calls, keys, options }) => {
      await calls.setFeatures({ partnerId, features, reason: 'test' }, options);
      const { secret } = await keys.createKey({ partnerId, scopes: [Scope.READ, Scope.WITHDRAW] }, options);
      withdrawer = { id: partnerId, key: secret, account };
    }, own);
  }

  async function newPartner(name: string): Promise<Partner> {
    return admin((client) => newPartnerByOperator(client, cluster.controls, name));
  }

  function place(partner: Partner, symbol: string, quantity = 100) {
    return (gateways[0] as GatewayProcess).place(partner, { symbol, quantity });
  }

  /** All clients at once while something happens, and then until each of them has done more. */
  async function underLoad(happens: (more: (name: string) => Promise<void>) => Promise<void>): Promise<void> {
    const { trader, funder, applicant } = partners;
    const orders = Load.start({
      gateways: () => gateways,
      partners: [trader],
      hands: 2,
      symbols: ['SIM-PARTS', 'SIM-REST', 'SIM-HALF', 'SIM-LAPSE'],
      restMs: 80,
      cancels: true,
      longestMs: 300_000,
    });
    const withdrawing = () => gateways.filter((gateway) => gateway === own);
    const withdrawals = () => withdrawer && { partner: withdrawer, gateways: withdrawing() };
    const others = UpgradeLoad.start({ gateways: () => gateways, trader, funder, applicant, withdrawals, file });
    const counts = () => [orders.clearCount, others.allocated, others.delivered, others.rounds, others.withdrawn];
    const more = async (name: string) => {
      const before = counts();
      const wanted = [...least, withdrawer === undefined ? 0 : Math.min(3, 3 * withdrawing().length)];
      await eventually(() => {
        const grown = counts().map((count, index) => count - (before[index] ?? 0));
        assert.ok(
          grown.every((count, index) => count >= (wanted[index] ?? 1)),
          `${name}: ${grown} more orders, allocations, documents, readings of all lists and withdrawals`,
        );
      }, 40_000);
    };
    try {
      await more('at first');
      await happens(more);
      await more('at last');
    } finally {
      await Promise.all([orders.settle(gateways[0] as GatewayProcess), others.settle()]);
    }
  }

  async function check(gateway: GatewayProcess, arrived: readonly Endpoint[], arrivedWithinMs?: number): Promise<void> {
    const { trader, funder, applicant } = partners;
    await checkEverything(cluster, gateway, [trader]);
    await checkMoney(cluster, gateway, [funder]);
    await eventually(async () => {
      const unclear = await cluster.database.read(
        statement(`SELECT id, state FROM applications WHERE state IN ('sending', 'uncertain', 'submitted')`),
      );
      assert.deepEqual(unclear, [], 'every application that has its documents is decided');
    }, 30_000);
    await checkArrivals(cluster.database, receiver, arrived, arrivedWithinMs);
    for (const { key } of [trader, funder, applicant]) {
      // Those of a process that was killed come back after a while.
      await eventually(async () => {
        const { body } = await gateway.request('GET', '/v1/limits', { key });
        assert.equal(body.requests_under_way.used, 0, 'no slot is lost');
      }, 15_000);
    }
  }

  const endpointsOf = (...wanted: readonly (typeof names)[number][]) =>
    endpoints.filter(({ partnerId }) => wanted.some((name) => partners[name].id === partnerId));

  it('the release makes data in every state', async () => {
    for (const name of names) partners[name] = await newPartner(name);
    const { trader, funder, applicant, failing, refusing, held } = partners;
    endpoints = await registerEndpoints(old, receiver, Object.values(partners));
    await admin(({ wallets, options }) =>
      wallets.creditWallet({ partnerId: funder.id, amountKobo: 10n ** 10n, bankReference: 'upgrade' }, options),
    );
    receiver.reply(`/${failing.id}`, () => 500);
    receiver.reply(`/${refusing.id}`, () => 400);
    await admin(({ webhooks, options }) => webhooks.pauseEndpoint({ partnerId: held.id, reason: 'test' }, options));
    for (const partner of [failing, refusing, held]) await place(partner, 'SIM-PARTS');
    for (const symbol of ['REST', 'FILL', 'PARTS', 'HALF', 'LAPSE', 'KILLED', 'REJECT', 'LOST', 'HANG']) {
      await place(trader, `SIM-${symbol}`);
    }
    for (const amount of [1_000, 999_002, 999_005, 999_006]) await old.allocate(funder, { amount_kobo: amount });
    await apply(old.request, applicant.key);
    for (const last_name of ['SIM-REJECT', 'SIM-LOST']) {
      await old.request('POST', '/v1/applications', {
        key: applicant.key,
        idempotencyKey: last_name,
        body: { ...goodFields, last_name },
      });
    }
    await underLoad(async () => {});
    await eventually(async () => {
      const rows = await cluster.database.read(
        statement('SELECT partner_id, paused_at FROM webhook_endpoints WHERE paused_at IS NOT NULL'),
      );
      assert.deepEqual(
        rows.map(({ partner_id }) => partner_id),
        [failing.id],
        'an endpoint is paused',
      );
    });
    await check(old, endpointsOf('trader', 'funder', 'applicant'));
  });

  it('is migrated by this version, and by one that adds to every table, while the release works on it', async () => {
    await underLoad(async (more) => {
      await migrateBy(ownMain, cluster.databaseUrl);
      await more('migrated');
      await migrate(cluster.databaseUrl, [...migrations, Later1999999999999]);
    });
    for (const url of [releaseUrl, cluster.gatewayVariables.MARINA_DATABASE_URL ?? '']) {
      await grantRights(cluster.databaseUrl, new URL(url).username, accountHost);
    }
    await check(old, endpointsOf('trader', 'funder', 'applicant'));
  });

  it('serves with both, whichever of them is killed', async () => {
    await underLoad(async (more) => {
      own = await startOwn();
      gateways = [old, own];
      await allowWithdrawals();
      await more('both');
      gateways = [own];
      await old.kill();
      await more('without the release');
      old = await startRelease();
      gateways = [old, own];
      await more('both again');
      gateways = [old];
      await own.kill();
      await more('without this version');
      own = await startOwn();
      gateways = [own, old];
    });
    await check(own, endpointsOf('trader', 'funder', 'applicant'));
    const { key } = partners.trader;
    for (const [made, other] of [
      [old, own],
      [own, old],
    ] as const) {
      const { status, body } = await made.request('POST', '/v1/keys', { key, body: { scopes: ['read'] } });
      assert.equal(status, 201, JSON.stringify(body));
      const use = () => made.request('GET', '/v1/orders', { key: body.secret });
      assert.equal(
        (await other.request('GET', '/v1/orders', { key: body.secret })).status,
        200,
        'a key is good in both',
      );
      assert.equal((await use()).status, 200);
      assert.equal((await other.request('DELETE', `/v1/keys/${body.id}`, { key })).status, 200);
      await eventually(async () =>
        assert.equal((await use()).status, 401, 'a key that one revoked is refused by both'),
      );
    }
    for (const [partner, path] of lists(partners)) {
      const seen = await readAll(() => old, partner, path);
      const now = await readAll(() => own, partner, path);
      // A later version may show more of an object, and everything else as before.
      assert.deepEqual(
        now.map((item, index) => only(asReleased(item), seen[index])),
        seen,
        `${path} says the same in both`,
      );
    }
  });

  it('an operator goes back to the release, and forward again', async () => {
    const { idle, failing, refusing, held } = partners;
    await underLoad(async (more) => {
      gateways = [old];
      await own.stop();
      await more('rolled back');
      // Nothing was ever sent to this endpoint: the release queues its first event.
      receiver.reply(`/${idle.id}`, () => 'hang');
      assert.equal((await place(idle, 'SIM-REST')).status, 201);
      await eventually(() => assert.ok(receiver.at(`/${idle.id}`).length > 0, 'it is tried'));
      await more('with an endpoint that hangs');
      own = await startOwn();
      gateways = [own];
      await old.kill();
      for (const { id } of [idle, failing, refusing, held]) receiver.reply(`/${id}`, () => 200);
    });
    await admin(({ webhooks, options }) => webhooks.resumeEndpoint({ partnerId: held.id, reason: 'test' }, options));
    // The time of the next retry, and of the next attempt at the paused endpoint.
    await admin(({ clock, options }) => clock.advanceClock({ by: { seconds: 3_600n, nanos: 0 } }, options));
    // An endpoint that is not marked as having work is found by the scan of all endpoints, which comes once a minute.
    await check(own, endpoints, 90_000);
  });

  it('refuses rows without a seal: the release has sealed all that it wrote', async () => {
    const { funder, trader } = partners;
    await own.stop();
    own = await cluster.startGateway({ MARINA_UNSEALED_ROWS: 'refused' });
    started.push(own);
    gateways = [own];
    assert.equal((await own.request('GET', '/v1/orders', { key: trader.key })).status, 200);
    assert.equal((await own.allocate(funder, { amount_kobo: 1_000 })).status, 201);
    assert.deepEqual(await admin((client) => verifyLedger(client, funder.id)), []);
  });

  it('neither met a table or a value that it cannot use', () => {
    const unusable = /ER_(?:BAD_FIELD|NO_SUCH_TABLE|TABLEACCESS_DENIED|NO_DEFAULT_FOR_FIELD|PARSE)/;
    for (const gateway of started) {
      const lines = gateway.logged().filter(({ msg, level, ...line }) => {
        return level === 'fatal' || msg === 'a request failed' || unusable.test(JSON.stringify(line));
      });
      assert.deepEqual(lines, [], gateway.logPath);
    }
  });
});

/** An entry of the ledger for a withdrawal as the release shows it: with its type and its object as they are stored. */
function asReleased(item: Record<string, unknown>): Record<string, unknown> {
  return item.type === 'withdrawal' ? { ...item, type: 'withdraw', allocation: item.withdrawal } : item;
}

/** Of an item what another version shows of it. */
function only(item: Record<string, unknown>, seen: Record<string, unknown> | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).filter(([name]) => seen !== undefined && name in seen));
}
