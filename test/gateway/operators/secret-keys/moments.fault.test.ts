import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { makeSecret } from '../../../../src/gateway/delivery/webhooks/attempt/signature.ts';
import { newEndpoint } from '../../../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import { endpoints } from '../../../../src/gateway/delivery/webhooks/table.ts';
import { sealedSecrets, webhookSeal } from '../../../../src/gateway/operators/secret-keys/sealed-endpoints.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { AccountStatus } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { createKey, createPartner, creditWallet, linkAccount } from '../../../../src/sandbox/provision.ts';
import { Cluster, callTimeout, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { checkEverything } from '../../../support/fault/checker.ts';
import { describeMoments } from '../../../support/fault/moments/cases.ts';
import { type Command, type CommandScenario, describeCommandMoments } from '../../../support/fault/moments/commands.ts';
import type { WatchedCluster } from '../../../support/fault/moments/watched-cluster.ts';
import { checkMoney } from '../../../support/fault/money.ts';
import { secretKey as former } from '../../../support/keys.ts';
import { SecretFile } from '../../../support/secret-files.ts';
import { verify, WebhookReceiver } from '../../../support/webhook-receiver.ts';

const current = randomBytes(32).toString('hex');
const [{ id: formerId }, { id: currentId }] = [parseKeyRing(former)[0], parseKeyRing(current)[0]];
const paidKobo = 1_000_000n;
/** The status says so if something is not sealed, or not with the current secret. */
const isNeeded =
  /until keys reseal|are not sealed: see keys seal|wrong seal and are refused|[1-9]\d* webhook secrets open under no key/;
const dayMs = 86_400_000;

/** A partner whose rows the former secret sealed. */
interface Sealed extends Partner {
  /** The secrets of its endpoint, which is being rotated. */
  readonly webhookSecrets: readonly [secret: string, former: string];
}

const receiver = await WebhookReceiver.start();
/** The gateway has the current secret only, so it can use only what is sealed again. */
const cluster = await Cluster.start({
  ...receiver.variables,
  MARINA_SECRET_KEY: current,
  MARINA_UNSEALED_ROWS: 'refused',
});
const gateway = await cluster.startGateway();
const { MARINA_DATABASE_URL = '', MARINA_ENVIRONMENT = '' } = cluster.gatewayVariables;
/** A command of `keys` with both secrets. */
function keysCommand(verb: string, variables: Record<string, string> = {}): Command {
  const ring = { MARINA_SECRET_KEY: `${current}\n${former}` };
  return { args: ['keys', verb], variables: { MARINA_DATABASE_URL, MARINA_ENVIRONMENT, ...ring, ...variables } };
}

const resealing: CommandScenario<readonly Sealed[]> = {
  name: 'keys reseal',
  prepare: () => Promise.all([newSealed(), newSealed()]),
  command: () => keysCommand('reseal'),
  async check(partners, printed) {
    assert.match(printed, new RegExp(`key ${currentId}: current`));
    assert.match(printed, new RegExp(`key ${formerId}: not current, never noted as current\n`));
    assert.doesNotMatch(printed, isNeeded, 'nothing stored needs it');
    await checkSecrets(partners);
    for (const partner of partners) await checkUse(partner);
    await checkMoney(cluster, gateway, partners);
  },
};

const sealing: CommandScenario<readonly Sealed[]> = {
  name: 'keys seal',
  async prepare() {
    const partners = await Promise.all([newSealed(current), newSealed(current)]);
    for (const { id } of partners) {
      await cluster.database.write(statement('UPDATE wallets SET seal = NULL WHERE partner_id = ?', id));
      await cluster.database.write(statement('UPDATE api_keys SET seal = NULL WHERE partner_id = ?', id));
      await cluster.database.write(
        statement(
          `INSERT INTO audit_entries (at, operator, action, subject, detail, partner_id)
            SELECT NOW(3), 'ada', 'Keys.CreateKey', id, '{}', partner_id FROM api_keys WHERE partner_id = ?`,
          id,
        ),
      );
    }
    return partners;
  },
  command: () => keysCommand('seal', { MARINA_UNSEALED_ROWS: 'accepted' }),
  async check(partners, printed) {
    assert.doesNotMatch(printed, isNeeded);
    for (const partner of partners) await checkUse(partner);
    await checkMoney(cluster, gateway, partners);
  },
};

await describeCommandMoments([resealing, sealing], async () => {
  await cluster.stop();
  await receiver.close();
});

/** A partner with an order, made while another secret was current. */
interface Rotation {
  readonly partner: Partner;
  readonly idempotencyKey: string;
  readonly orderId: string;
}

const file = new SecretFile(former, current);
const lines = [former, current];
const placed = { side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000, symbol: 'SIM-REST' };

await describeMoments<Rotation>({
  name: 'a former secret that becomes current in its file',
  variables: { MARINA_SECRET_KEY: '', MARINA_SECRET_KEY_FILE: file.path },
  only: /secret_keys/,
  async prepare(watched) {
    const partner = await watched.cluster.newPartner();
    const idempotencyKey = randomUUID();
    const body = { account: partner.account, ...placed };
    const answer = await watched.ask(partner, 'POST', '/v1/orders', { idempotencyKey, body });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return { partner, idempotencyKey, orderId: answer.body.id };
  },
  async run(watched) {
    lines.reverse();
    const { id } = parseKeyRing(lines.join('\n'))[0];
    const query = statement('SELECT last_used_at FROM secret_keys WHERE id = ?', id);
    const before = await watched.cluster.database.read(query);
    file.put(...lines);
    await eventually(async () => {
      // A gateway that was killed is followed by the next one.
      await watched.gateway();
      assert.notDeepEqual(await watched.cluster.database.read(query), before, 'the secret is noted as current');
    }, 20_000);
  },
  async check(watched, gateway, { partner, idempotencyKey, orderId }) {
    const { database } = watched.cluster;
    const { id } = parseKeyRing(lines.join('\n'))[0];
    await eventually(async () => assert.equal(await macOfNewKey(watched, partner), id), 20_000);
    const body = { account: partner.account, ...placed };
    const again = await gateway.request('POST', '/v1/orders', { key: partner.key, idempotencyKey, body });
    assert.deepEqual([again.status, again.body.id], [200, orderId], 'a repeated request finds its order');
    const [last] = await database.read(statement('SELECT id FROM secret_keys ORDER BY last_used_at DESC LIMIT 1'));
    assert.equal(last?.id, id, 'the secret that is in use is noted');
    await checkEverything(watched.cluster, gateway, [partner]);
  },
});

/** Makes an API key, and returns the secret that its MAC is made with. A partner may have ten active keys. */
async function macOfNewKey(watched: WatchedCluster, { id: partnerId }: Partner): Promise<unknown> {
  const about = { reason: 'a test' };
  const made = await watched.operate(({ keys, options }) =>
    keys.createKey({ ...about, partnerId, scopes: [Scope.READ] }, options),
  );
  const keyId = made.key?.id ?? '';
  await watched.operate(({ keys, options }) => keys.revokeKey({ ...about, keyId }, options));
  const [row] = await watched.cluster.database.read(statement('SELECT mac_key FROM api_keys WHERE id = ?', keyId));
  return row?.mac_key;
}

/** Makes a partner with a key, a wallet and an endpoint that a secret has sealed. */
async function newSealed(secretKey = former): Promise<Sealed> {
  const { database, controls } = cluster;
  const id = await createPartner(database, { name: 'Sealed Partner' });
  const { key } = await createKey(database, { partnerId: id, scopes: [Scope.READ, Scope.FUND], secretKey });
  const account = `S${randomBytes(6).toString('hex').toUpperCase()}`;
  await linkAccount(database, { partnerId: id, account });
  await controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
  const credit = { partnerId: id, amountKobo: paidKobo, bankReference: randomUUID(), secretKey };
  await creditWallet(database, credit);
  const seal = webhookSeal(parseKeyRing(secretKey));
  const webhookSecrets = [makeSecret(), makeSecret()] as const;
  const [secret, oldSecret] = webhookSecrets.map((text) => seal.seal(id, text)) as [Buffer, Buffer];
  const endpoint = { partnerId: id, url: receiver.url(`/${id}`), afterVersion: 0n, registeredAt: Date.now() };
  const rotated = { ...newEndpoint({ ...endpoint, secret }), oldSecret, oldSecretUntil: Date.now() + dayMs };
  await database.write(endpoints.insert(rotated));
  return { id, key, account, webhookSecrets };
}

/** Each secret opens under the current key alone, and is what it was. */
async function checkSecrets(partners: readonly Sealed[]): Promise<void> {
  const opened = new Map<string, string | undefined>();
  for await (const some of sealedSecrets(cluster.database, webhookSeal(parseKeyRing(current)))) {
    for (const sealed of some) opened.set(`${sealed.partnerId} ${sealed.field}`, sealed.opened?.text);
  }
  for (const { id, webhookSecrets } of partners) {
    assert.deepEqual([opened.get(`${id} secret`), opened.get(`${id} oldSecret`)], webhookSecrets);
  }
}

/** The API key works, the wallet moves money, and the webhook about it is signed with both secrets. */
async function checkUse(partner: Sealed): Promise<void> {
  await eventually(async () => {
    const { status, body } = await gateway.request('GET', '/v1/wallet', { key: partner.key });
    assert.equal(status, 200, JSON.stringify(body));
  }, 15_000);
  const { status, body } = await gateway.allocate(partner, { amount_kobo: 5_000 });
  assert.equal(status, 201, JSON.stringify(body));
  await eventually(() => {
    const arrived = receiver.at(`/${partner.id}`);
    assert.ok(
      arrived.some((one) => one.body.includes(body.id)),
      'the event arrives',
    );
    for (const one of arrived) for (const secret of partner.webhookSecrets) verify(one, secret);
  }, 15_000);
}
