import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { Feature } from '../../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call, WireFault } from '../../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../../support/admin.ts';
import { eventually } from '../../../../support/eventually.ts';
import {
  callTimeout,
  operatorToken,
  startGateway,
  type TestGateway,
  type TestPartner,
} from '../../../../support/gateway.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

const above = 100_000;

describe('withdrawals above an agreed amount', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  let partner: TestPartner;
  before(async () => {
    gateway = await startGateway({ MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`) });
    operators = await TwoOperators.connect(gateway.app.adminPort);
  });
  after(async () => {
    operators.close();
    await gateway.stop();
  });
  beforeEach(async () => {
    partner = await gateway.newPartner();
    const request = { partner_id: partner.id, above_kobo: String(above), reason: 'as agreed' };
    assert.equal((await operators.as('ada', 'Releases.SetReleaseAmount', request)).changed, true);
  });

  const withdraw = (amount_kobo: number, key?: string) => gateway.withdraw(partner, { amount_kobo }, key);

  async function read(id: string) {
    const answer = await gateway.rest('GET', `/v1/withdrawals/${id}`, { key: partner.key });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  /** A withdrawal that waits. */
  async function held(key?: string): Promise<string> {
    const answer = await withdraw(above + 1, key);
    assert.deepEqual([answer.status, answer.body.state], [201, 'sending'], answer.text);
    assert.match(answer.body.reason, /waits for its release/);
    return answer.body.id;
  }

  async function propose(id: string): Promise<string> {
    const request = { withdrawal_id: id, evidence: 'the customer was called' };
    return (await operators.as('ada', 'Releases.ProposeRelease', request)).proposal.id as string;
  }

  async function countSent(id: string): Promise<number> {
    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    return messages.filter((message) => message.call === Call.SUBMIT_WITHDRAWAL && message.clientOrderId === id).length;
  }

  async function available(): Promise<number> {
    return (await gateway.rest('GET', '/v1/wallet', { key: partner.key })).body.available_kobo;
  }

  async function listed(): Promise<string[]> {
    const { withdrawals = [] } = await operators.as('ada', 'Releases.ListHeldWithdrawals', { limit: 100 });
    const own = withdrawals.filter((one: { partner_id: string }) => one.partner_id === partner.id);
    return own.map(({ withdrawal }: { withdrawal: { id: string } }) => withdrawal.id);
  }

  it('one of exactly the amount is sent at once, and one of a kobo more waits', async () => {
    assert.equal((await withdraw(above)).body.state, 'completed');
    const id = await held();
    assert.equal(await countSent(id), 0);
    assert.deepEqual(await listed(), [id]);
    assert.equal(await available(), above);
  });

  it('one that waits is sent once when a second operator approves, and the wallet is credited once', async () => {
    const id = await held('mine');
    const proposal = await propose(id);
    assert.equal(await propose(id), proposal, 'the same proposal is one');
    const own = await operators.refused('ADA', 'Proposals.ApproveProposal', { id: proposal, reason: 'my own' });
    assert.equal(own.code, status.PERMISSION_DENIED);
    assert.equal(await countSent(id), 0);
    const approvals = await Promise.allSettled([operators.approve(proposal), operators.approve(proposal)]);
    assert.deepEqual(
      approvals.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : [])),
      [],
    );
    assert.deepEqual([(await read(id)).state, await countSent(id), await available()], ['completed', 1, above + 1]);
    assert.equal((await operators.approve(proposal)).changed, false, 'it was applied before');
    assert.equal(await countSent(id), 1);
    assert.deepEqual(await listed(), []);
    const again = await withdraw(above + 1, 'mine');
    assert.deepEqual([again.status, again.body.id, again.body.state], [200, id, 'completed']);
    const { data } = (await gateway.rest('GET', `/v1/withdrawals/${id}/history`, { key: partner.key })).body;
    assert.deepEqual(
      data.slice(0, 2).map(({ kind }: { kind: string }) => kind),
      ['stored', 'release'],
    );
    const audited = await gateway.database.read(
      statement('SELECT action FROM audit_entries WHERE subject = ? ORDER BY id', id),
    );
    assert.deepEqual(
      audited.map((row) => row.action),
      ['Releases.ProposeRelease', 'Proposals.ApproveProposal'],
    );
  });

  it('the first answer stays, whatever the broker says after the release', async () => {
    const id = await held('mine');
    await gateway.controls.setAccount({ account: partner.account, status: 2 }, callTimeout).catch(() => undefined);
    const proposal = await propose(id);
    await operators.approve(proposal);
    const now = await read(id);
    const again = await withdraw(above + 1, 'mine');
    assert.deepEqual([again.status, again.body.id, again.body.state], [200, id, now.state]);
  });

  it('one that waits is refused by one operator, is never sent, and its key answers with it', async () => {
    const id = await held('mine');
    const proposal = await propose(id);
    const request = { withdrawal_id: id, reason: 'the customer did not order it' };
    assert.equal((await operators.as('ada', 'Releases.RefuseWithdrawal', request)).changed, true);
    assert.equal((await operators.as('ada', 'Releases.RefuseWithdrawal', request)).changed, false);
    const { state, reason } = await read(id);
    assert.deepEqual([state, reason], ['refused', 'The operators refused it. It never left the gateway.']);
    const late = await operators
      .as('bola', 'Proposals.ApproveProposal', { id: proposal, reason: 'late' })
      .catch((e) => e);
    assert.equal(late.code, status.FAILED_PRECONDITION);
    assert.deepEqual([await countSent(id), await available()], [0, 0]);
    const again = await withdraw(above + 1, 'mine');
    assert.deepEqual([again.status, again.body.state], [200, 'refused']);
    const events = await gateway.rest('GET', `/v1/withdrawals/${id}/events`, { key: partner.key });
    assert.deepEqual(
      events.body.data.map(({ type }: { type: string }) => type),
      ['withdrawal.refused'],
    );
  });

  it('a stop keeps one that waits from being released, and it is released after the stop', async () => {
    const id = await held();
    const proposal = await propose(id);
    const admin = adminClient(gateway.app.adminPort);
    try {
      const target = { account: partner.account, actions: [4], reason: 'a theft is reported' };
      const { stop } = await admin.trading.addStop(target, admin.options);
      const refused = await operators.refused('bola', 'Proposals.ApproveProposal', { id: proposal, reason: 'called' });
      assert.equal(refused.code, status.FAILED_PRECONDITION);
      assert.match(refused.details, /Withdrawals of this account are stopped/);
      assert.deepEqual([(await read(id)).state, await countSent(id)], ['sending', 0]);
      await admin.trading.endStop({ id: stop?.id ?? '', reason: 'settled' }, admin.options);
    } finally {
      admin.close();
    }
    await operators.approve(proposal);
    assert.equal((await read(id)).state, 'completed');
  });

  it('one that waits is not sent once the partner has lost the account, the feature or its right to call', async () => {
    const admin = adminClient(gateway.app.adminPort);
    const partnerId = partner.id;
    const features = [Feature.ACCOUNT_OPENING, Feature.WITHDRAWALS];
    try {
      const { account } = partner;
      const another = { partnerId: (await gateway.newPartner()).id };
      const losses: Record<string, [() => Promise<unknown>, () => Promise<unknown>]> = {
        'not the partner': [
          async () => {
            await admin.accounts.unlinkAccount({ partnerId, account, reason: 'moved' }, admin.options);
            await admin.accounts.linkAccount({ ...another, account, reason: 'moved' }, admin.options);
          },
          async () => {
            await admin.accounts.unlinkAccount({ ...another, account, reason: 'moved' }, admin.options);
            await admin.accounts.linkAccount({ partnerId, account, reason: 'moved' }, admin.options);
          },
        ],
        'suspended or may not': [
          () => admin.partners.suspendPartner({ partnerId, reason: 'a theft' }, admin.options),
          () => admin.partners.resumePartner({ partnerId, reason: 'settled' }, admin.options),
        ],
        'may not withdraw': [
          () => admin.partners.setFeatures({ partnerId, features: [], reason: 'ended' }, admin.options),
          () => admin.partners.setFeatures({ partnerId, features, reason: 'again' }, admin.options),
        ],
      };
      const id = await held();
      const proposal = await propose(id);
      for (const [why, [lose, get]] of Object.entries(losses)) {
        await lose();
        const refused = await operators.refused('bola', 'Proposals.ApproveProposal', {
          id: proposal,
          reason: 'called',
        });
        assert.equal(refused.code, status.FAILED_PRECONDITION, why);
        assert.ok(refused.details.includes(why), refused.details);
        await get();
      }
      assert.equal(await countSent(id), 0);
      await operators.approve(proposal);
      assert.deepEqual([(await read(id)).state, await countSent(id)], ['completed', 1]);
    } finally {
      admin.close();
    }
  });

  it('one that waits is not sent again if a restored database forgot the release: the broker is asked first', async () => {
    // To a bank, because the wallet would be restored too.
    const { body } = await gateway.withdraw(partner, { amount_kobo: above + 1, destination: 'bank_account' });
    const { id } = body;
    const rows = statement('SELECT held_until FROM withdrawals WHERE id = ?', id);
    const [before] = await gateway.database.read(rows);
    await operators.approve(await propose(id));
    await eventually(async () => assert.equal((await read(id)).state, 'completed'), 20_000);
    assert.equal(await countSent(id), 1);
    // The stream repeats the report of the answer. It has come before the rows are changed, so it does not settle them.
    await eventually(async () => {
      const [row] = await gateway.database.read(
        statement(
          `SELECT (SELECT position FROM positions WHERE name = 'withdrawal-reports') + 0 >= last_report AS has_come
            FROM withdrawals WHERE id = ?`,
          id,
        ),
      );
      assert.equal(Number(row?.has_come), 1);
    }, 20_000);
    // As in a backup from before the release, whose reports were not read again yet.
    for (const change of [
      statement(
        `UPDATE withdrawals SET state = 'sending', held_until = ?, released_at = NULL, last_report = 0, steps = 1,
          broker_reference = NULL, check_at = NULL WHERE id = ?`,
        before?.held_until as Date,
        id,
      ),
      statement('DELETE FROM object_steps WHERE object_id = ? AND sequence > 1', id),
    ])
      await gateway.database.write(change);
    await operators.approve(await propose(id));
    await eventually(async () => assert.equal((await read(id)).state, 'completed'), 20_000);
    assert.deepEqual([await countSent(id), await listed()], [1, []]);
  });

  it('one whose answer is lost after the release is settled by the record, and paid once', async () => {
    const id = await held();
    const fault = { call: Call.SUBMIT_WITHDRAWAL, fault: WireFault.LOSE_ANSWER, times: 1 };
    await gateway.controls.injectFault(fault, callTimeout);
    await operators.approve(await propose(id));
    await eventually(async () => assert.equal((await read(id)).state, 'completed'), 20_000);
    assert.deepEqual([await countSent(id), await available()], [1, above + 1]);
  });

  it('nothing is sent while the broker cannot be asked', async () => {
    const id = await held();
    const proposal = await propose(id);
    await gateway.controls.injectFault(
      { call: Call.LOOK_UP_WITHDRAWAL, fault: WireFault.UNAVAILABLE_BEFORE, times: 1 },
      callTimeout,
    );
    const refused = await operators.refused('bola', 'Proposals.ApproveProposal', { id: proposal, reason: 'called' });
    assert.equal(refused.code, status.UNAVAILABLE);
    assert.equal(await countSent(id), 0);
    await operators.approve(proposal);
    assert.equal(await countSent(id), 1);
  });

  it('one that waits is asked about by nobody, is unsettled to nobody, and cannot be settled by evidence', async () => {
    const id = await held();
    const { objects = [] } = await operators.as('ada', 'Diagnostics.ListUnsettled', { partner_id: partner.id });
    assert.deepEqual(objects, []);
    await operators.as('ada', 'Diagnostics.ReconcileNow', { object_id: id, reason: 'test' }).catch(() => undefined);
    assert.equal((await read(id)).state, 'sending');
    const refused = await operators.refusedProposal(id, { withdrawal: { state: 'WITHDRAWAL_STATE_COMPLETED' } });
    assert.notEqual(refused.code, status.OK);
    const second = await withdraw(above + 1);
    assert.equal(second.status, 201, 'one like it is not held back');
  });

  it('nothing waits any more once no amount is agreed, and those that wait go on waiting', async () => {
    const id = await held();
    await operators.as('ada', 'Releases.SetReleaseAmount', { partner_id: partner.id, reason: 'agreed again' });
    assert.equal((await withdraw(above + 1)).body.state, 'completed');
    assert.deepEqual(await listed(), [id]);
  });
});

describe('the time in which a withdrawal can be released', () => {
  it('a withdrawal that nobody releases is refused after seven days, and never sent', async () => {
    const gateway = await startGateway({ MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`) });
    const admin = adminClient(gateway.app.adminPort);
    const operators = await TwoOperators.connect(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner();
      const request = { partner_id: partner.id, above_kobo: '0', reason: 'each waits' };
      await operators.as('ada', 'Releases.SetReleaseAmount', request);
      const { id } = (await gateway.withdraw(partner, {})).body;
      await admin.clock.advanceClock({ by: { seconds: 7n * 86_400n, nanos: 0 } }, admin.options);
      await eventually(async () => {
        const { body } = await gateway.rest('GET', `/v1/withdrawals/${id}`, { key: partner.key });
        assert.deepEqual(
          [body.state, body.reason],
          ['refused', 'Nobody released it in time. It never left the gateway.'],
        );
      }, 100_000);
    } finally {
      operators.close();
      admin.close();
      await gateway.stop();
    }
  });
});
