import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { type Database, openDatabase } from '../../../../src/gateway/store/database.ts';
import { WithdrawalReportKind } from '../../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { dump, restore } from '../../../support/dump.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryFolder } from '../../../support/folders.ts';
import {
  callTimeout,
  type RestAnswer,
  restCaller,
  startGateway,
  type TestGateway,
  type TestPartner,
} from '../../../support/gateway.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/servers.ts';
import { checkWorld } from '../../../support/world.ts';

/** A request with its key, and the object it led to as its partner saw it last. */
interface Made {
  readonly path: string;
  readonly key: string;
  readonly body: object;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: compared whole with what GET returns later.
  last: any;
}

const { PAID, RETURNED } = WithdrawalReportKind;

/** The amounts that the simulated broker holds, and pays without an answer. */
const amounts = { held: 998_010, 'paid without an answer': 998_016 };

describe('withdrawals, when the database is restored from a backup made some time before', () => {
  let gateway: TestGateway;
  let restored: TestDatabase;
  let database: Database | undefined;
  let next: App | undefined;
  before(async () => {
    gateway = await startGateway();
    restored = await createTestDatabase();
  });
  after(async () => {
    await next?.stop();
    await gateway.stop();
    await database?.close();
    await restored.drop();
  });

  let partner: TestPartner;
  /** Calls the gateway that was started last. */
  let rest: TestGateway['rest'];
  const read = async (path: string) => (await rest('GET', path, { key: partner.key })).body;

  async function make(path: string, fields: object): Promise<Made> {
    const [key, body] = [randomUUID(), { account: partner.account, ...fields }];
    const answer = await send({ path, key, body });
    assert.equal(answer.status, 201, answer.text);
    return { path, key, body, id: answer.body.id, last: answer.body };
  }

  function send({ path, key, body }: Pick<Made, 'path' | 'key' | 'body'>): Promise<RestAnswer> {
    return rest('POST', path, { key: partner.key, idempotencyKey: key, body });
  }

  const withdraw = (destination: string, amount_kobo: number) => make('/v1/withdrawals', { destination, amount_kobo });

  /** Waits until an object is in a state, and keeps how it is then. */
  async function until(made: Made, state: string): Promise<Made> {
    await eventually(async () => {
      made.last = await read(`${made.path}/${made.id}`);
      assert.equal(made.last.state, state, JSON.stringify(made.last));
    }, 20_000);
    return made;
  }

  async function decide(made: Made, kind: WithdrawalReportKind, state: string): Promise<Made> {
    await gateway.controls.decideWithdrawal({ clientWithdrawalId: made.id, kind }, callTimeout);
    return until(made, state);
  }

  it('each is restored, was sent once and is credited once, whether the backup has it as it ended, earlier or not at all', async () => {
    rest = gateway.rest;
    partner = await gateway.newPartner();
    const paidBefore = await until(await withdraw('wallet', 1_001), 'completed');
    const paidMeanwhile = await withdraw('wallet', amounts.held);
    const returnedMeanwhile = await until(await withdraw('bank_account', 1_002), 'completed');
    const returnedBefore = await until(await withdraw('bank_account', 1_003), 'completed');
    await decide(returnedBefore, RETURNED, 'returned');
    const file = join(temporaryFolder(), 'backup.sql');
    await dump(gateway.databaseUrl, file);

    await decide(paidMeanwhile, PAID, 'completed');
    await decide(returnedMeanwhile, RETURNED, 'returned');
    const paidAfter = await until(await withdraw('wallet', 1_004), 'completed');
    const withoutAnswer = await until(await withdraw('wallet', amounts['paid without an answer']), 'completed');
    const paidToBankAfter = await until(await withdraw('bank_account', 1_005), 'completed');
    const returnedAfter = await until(await withdraw('bank_account', 1_006), 'completed');
    await decide(returnedAfter, RETURNED, 'returned');
    const stillHeld = await withdraw('bank_account', amounts.held);
    // It needs the money of all withdrawals to the wallet, of which the backup lacks most.
    const toWallet = [paidBefore, paidMeanwhile, paidAfter, withoutAnswer];
    const available = toWallet.reduce((sum, { last }) => sum + last.amount_kobo, 0);
    const allocated = await until(await make('/v1/allocations', { amount_kobo: available }), 'booked');
    const wallet = await read('/v1/wallet');
    assert.deepEqual(
      [wallet.available_kobo, wallet.reserved_kobo, wallet.posted_kobo, wallet.withdrawn_kobo],
      [0, 0, available, available],
    );

    await gateway.app.stop();
    await restore(file, restored.url);
    database = await openDatabase({ url: restored.url, environment: 'sandbox', poolSize: 4 });
    const config = readConfig({ ...gateway.variables, MARINA_DATABASE_URL: restored.url });
    next = await startApp(config, createLogger({ name: 'test', level: 'silent' }));
    rest = restCaller(next);

    const all = [
      ...[paidBefore, paidMeanwhile, returnedMeanwhile, returnedBefore, paidAfter, withoutAnswer],
      ...[paidToBankAfter, returnedAfter, stillHeld, allocated],
    ];
    for (const made of all) {
      // The allocation waits for its money, and holds back others like it until then.
      const again = await eventually(async () => {
        const answer = await send(made);
        assert.equal(answer.status, 200, answer.text);
        return answer;
      }, 20_000);
      assert.deepEqual([again.body.id, again.headers.get('idempotent-replayed')], [made.id, 'true']);
      const { updated_at: _, ...before } = made.last;
      await eventually(async () => {
        const { updated_at: __, ...now } = await read(`${made.path}/${made.id}`);
        assert.deepEqual(now, before);
      }, 20_000);
      const { messages } = await gateway.controls.listMessages({ clientOrderId: made.id }, callTimeout);
      const sends = messages.filter(({ call }) => [Call.SUBMIT_WITHDRAWAL, Call.SUBMIT_ALLOCATION].includes(call));
      assert.equal(sends.length, 1, `${made.id} was sent ${sends.length} times`);
    }
    await eventually(async () => assert.deepEqual(await read('/v1/wallet'), wallet), 20_000);
    const { data } = await read('/v1/wallet/transfers?limit=100');
    assert.deepEqual(
      data.flatMap(({ withdrawal }: { withdrawal: string | null }) => withdrawal ?? []).sort(),
      toWallet.map(({ id }) => id).sort(),
      'each withdrawal to the wallet has one entry',
    );
    await checkWorld({ database, controls: gateway.controls, gateways: [next] });
  });
});
