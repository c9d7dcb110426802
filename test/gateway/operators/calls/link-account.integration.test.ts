import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
} from '../../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, operatorToken, startGateway, type TestGateway } from '../../../support/gateway.ts';
import type { Found } from '../../../support/operator.ts';
import { ReflectedClient } from '../../../support/reflected.ts';

const live = { MARINA_ENVIRONMENT: 'live', MARINA_SIMULATOR_ADDRESS: '', MARINA_SINGLE_OPERATOR: 'true' };
const allCapabilities = { honoursNotAfter: true, accountTransactions: true, accountStatus: true };
const newCode = () => `L${randomBytes(6).toString('hex').toUpperCase()}`;

for (const environment of ['live', 'sandbox'] as const) {
  describe(`an account that an operator links to a partner of a ${environment} gateway`, () => {
    let gateway: TestGateway;
    let client: ReflectedClient;
    before(async () => {
      gateway = await startGateway(environment === 'live' ? live : {});
      client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`);
    });
    after(async () => {
      client.close();
      await gateway.stop();
    });

    const newPartner = () => gateway.newPartner({ addresses: ['127.0.0.1'] });
    const call = (name: string, request: JsonObject): Promise<Found> =>
      client.call(`marina.admin.v1.Accounts.${name}`, request, operatorToken);
    const link = (partnerId: string, account: string, more: JsonObject = {}) =>
      call('LinkAccount', { partner_id: partnerId, account, reason: 'ticket 7', ...more });

    async function newAccount(): Promise<string> {
      const account = newCode();
      await gateway.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
      return account;
    }

    async function refusedLink(partnerId: string, account: string, more: JsonObject = {}): Promise<ServiceError> {
      return link(partnerId, account, more).then(
        () => assert.fail('it was linked'),
        (error: ServiceError) => error,
      );
    }

    async function linksOf(account: string): Promise<number> {
      return (await call('ListAccounts', { account })).accounts.length;
    }

    async function auditOf(account: string, name = 'LinkAccount'): Promise<Found[]> {
      const { entries } = await client.call('marina.admin.v1.Audit.ListEntries', { subject: account }, operatorToken);
      const ofCall = entries.filter(({ action }: Found) => action === `Accounts.${name}`);
      return ofCall.map(({ detail }: Found) => JSON.parse(detail));
    }

    /** The ways in which the broker does not say whether it has an account, each with what operators see of it. */
    const silences: Record<string, { begin: () => Promise<unknown>; answer: string }> = {
      'does not answer': {
        begin: () =>
          gateway.controls.injectFault({ call: Call.GET_ACCOUNT_STATUS, fault: WireFault.HANG, times: 1 }, callTimeout),
        answer: 'BROKER_ANSWER_NONE',
      },
      'answers nonsense': {
        begin: () =>
          gateway.controls.injectFault(
            { call: Call.GET_ACCOUNT_STATUS, fault: WireFault.NONSENSE, times: 1 },
            callTimeout,
          ),
        answer: 'BROKER_ANSWER_NONE',
      },
    };

    it('is looked up with its state, its restrictions, the initials of its holder and its partner', async () => {
      const account = await newAccount();
      const free = await call('LookUpAccount', { account: account.toLowerCase() });
      assert.equal(free.account, account);
      assert.equal(free.at_broker.answer, 'BROKER_ANSWER_FOUND');
      assert.equal(free.at_broker.state, 'ACCOUNT_STATE_ACTIVE');
      assert.equal(free.at_broker.has_chn, true);
      assert.match(free.at_broker.holder_initials, /^[A-Z]\. [A-Z]\.$/);
      assert.deepEqual([free.linked, free.partner_name], [undefined, '']);

      const partner = await newPartner();
      const restrictions = [{ code: AccountRestrictionCode.BROKER_HOLD, forbids: [AccountActivity.BUY] }];
      const restricted = { account: partner.account, state: AccountState.RESTRICTED, restrictions };
      await gateway.controls.setAccountState(restricted, callTimeout);
      const held = await call('LookUpAccount', { account: partner.account });
      assert.equal(held.at_broker.state, 'ACCOUNT_STATE_RESTRICTED');
      const [restriction] = held.at_broker.restrictions;
      assert.deepEqual(
        [restriction.code, restriction.forbids],
        ['ACCOUNT_RESTRICTION_CODE_BROKER_HOLD', ['ACCOUNT_ACTIVITY_BUY']],
      );
      assert.deepEqual([held.linked.partner_id, held.partner_name], [partner.id, 'Test Partner']);
      const asked = { asked: { account: partner.account } };
      assert.deepEqual(await auditOf(partner.account, 'LookUpAccount'), [asked], 'who looked it up is in the audit');
    });

    it('is linked with an answer that shows whose it is, and linking it again asks the broker nothing', async () => {
      const partner = await newPartner();
      const account = await newAccount();
      const { at_broker: seen } = await call('LookUpAccount', { account });
      const linked = await link(partner.id, account);
      assert.deepEqual([linked.changed, linked.at_broker.holder_initials], [true, seen.holder_initials]);
      const again = await link(partner.id, account);
      assert.deepEqual(
        [again.changed, again.at_broker],
        [false, undefined],
        'no initials without an entry of the audit',
      );
      assert.deepEqual(await auditOf(account), [{ reason: 'ticket 7', atBroker: 'found' }]);
    });

    it('is refused before the broker is asked if another partner has it', async () => {
      const [one, other] = [await newPartner(), await newPartner()];
      const error = await refusedLink(other.id, one.account);
      assert.equal(error.code, status.ALREADY_EXISTS);
      assert.equal(await linksOf(one.account), 1);
    });

    it('shows the initials of its holder to operators only, and nothing of them is logged or stored', async () => {
      const partner = await newPartner();
      const { at_broker: found } = await call('LookUpAccount', { account: partner.account });
      const account = await newAccount();
      const { at_broker: linked } = await link(partner.id, account);
      const all = [found.holder_initials, linked.holder_initials] as string[];
      const shown = await gateway.rest('GET', `/v1/accounts/${partner.account}/status`, { key: partner.key });
      assert.equal(shown.status, 200, shown.text);
      const members = ['object', 'account', 'state', 'restrictions', 'chn', 'as_of'];
      assert.deepEqual(Object.keys(shown.body), members);
      const stored = await everythingStored(gateway);
      for (const initials of all) {
        assert.match(initials, /^[A-Z]\. [A-Z]\.$/);
        for (const text of [shown.text, stored, gateway.logged.join('')]) assert.ok(!text.includes(initials));
      }
    });

    if (environment === 'live') {
      it('is refused if the broker does not have it, also unchecked, and nothing is stored', async () => {
        const partner = await newPartner();
        const account = newCode();
        for (const more of [{}, { unchecked: true }] as JsonObject[]) {
          const error = await refusedLink(partner.id, account, more);
          assert.equal(error.code, status.FAILED_PRECONDITION);
          assert.match(error.details, /the broker does not have this account/);
        }
        assert.deepEqual([await linksOf(account), await auditOf(account)], [0, []]);
        const { at_broker: answer } = await call('LookUpAccount', { account });
        assert.equal(answer.answer, 'BROKER_ANSWER_NOT_FOUND');
      });

      for (const [what, { begin, answer }] of Object.entries(silences)) {
        it(`is linked only unchecked if the broker ${what}, and the audit says so`, async () => {
          const partner = await newPartner();
          const account = await newAccount();
          await begin();
          const error = await refusedLink(partner.id, account);
          assert.equal(error.code, status.UNAVAILABLE, error.details);
          assert.deepEqual([await linksOf(account), await auditOf(account)], [0, []]);
          await begin();
          const linked = await link(partner.id, account, { unchecked: true });
          assert.deepEqual([linked.changed, linked.at_broker.answer], [true, answer]);
          assert.deepEqual(await auditOf(account), [{ reason: 'ticket 7', atBroker: 'none', unchecked: true }]);
        });
      }

      it('is linked only unchecked if the broker does not offer the status of accounts', async () => {
        const partner = await newPartner();
        const account = await newAccount();
        await gateway.controls.setCapabilities({ ...allCapabilities, accountStatus: false }, callTimeout);
        try {
          // A capability that the broker stated is relied on for 5 s, so a gateway that has not asked yet is called.
          const fresh = await startOther(gateway);
          try {
            const request = { partner_id: partner.id, account, reason: 'ticket 7' };
            const name = 'marina.admin.v1.Accounts.LinkAccount';
            const refused = await fresh.client.call(name, request, operatorToken).catch((error: ServiceError) => error);
            assert.equal(refused.code, status.UNAVAILABLE);
            assert.match(refused.details, /does not offer the status of accounts/);
            const linked = await fresh.client.call(name, { ...request, unchecked: true }, operatorToken);
            assert.deepEqual([linked.changed, linked.at_broker.answer], [true, 'BROKER_ANSWER_NOT_OFFERED']);
          } finally {
            await fresh.stop();
          }
          const [detail] = await auditOf(account);
          assert.deepEqual(detail, { reason: 'ticket 7', atBroker: 'not_offered', unchecked: true });
        } finally {
          await gateway.controls.setCapabilities(allCapabilities, callTimeout);
        }
      });
    } else {
      it('is linked before the broker has it, and the answer says that the broker does not have it', async () => {
        const partner = await newPartner();
        const account = newCode();
        const linked = await link(partner.id, account);
        assert.deepEqual([linked.changed, linked.at_broker.answer], [true, 'BROKER_ANSWER_NOT_FOUND']);
        const order = { account, symbol: 'SIM-REST' };
        assert.equal((await gateway.place(partner, order)).body.error.code, 'account_not_at_broker');
        await gateway.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
        await eventually(async () => assert.equal((await gateway.place(partner, order)).status, 201));
      });

      for (const [what, { begin, answer }] of Object.entries(silences)) {
        it(`is linked also if the broker ${what}`, async () => {
          const partner = await newPartner();
          const account = await newAccount();
          await begin();
          const linked = await link(partner.id, account);
          assert.deepEqual([linked.changed, linked.at_broker.answer], [true, answer]);
          assert.equal(await linksOf(account), 1);
        });
      }
    }
  });
}

/** A further gateway on the same database and broker. */
async function startOther(gateway: TestGateway) {
  const app = await startApp(readConfig(gateway.variables), createLogger({ name: 'marina', level: 'silent' }));
  const client = await ReflectedClient.connect(`127.0.0.1:${app.adminPort}`);
  return {
    client,
    stop: async () => {
      client.close();
      await app.stop();
    },
  };
}

/** All rows of all tables of a gateway's database, as one text. */
async function everythingStored({ database }: TestGateway): Promise<string> {
  const names = await database.read(
    statement(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'`,
    ),
  );
  assert.ok(names.length > 20);
  const texts: string[] = [];
  for (const { name } of names) {
    const rows = await database.read(statement(`SELECT * FROM ${String(name)}`));
    for (const value of rows.flatMap((row) => Object.values(row))) {
      texts.push(Buffer.isBuffer(value) ? value.toString('utf8') : String(value));
    }
  }
  return texts.join('\n');
}
