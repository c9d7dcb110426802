import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { apply } from '../../../../support/applications.ts';
import {
  callTimeout,
  operatorToken,
  startGateway,
  type TestGateway,
  type TestPartner,
} from '../../../../support/gateway.ts';
import type { Found } from '../../../../support/operator.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

describe('what a settlement names of the broker is settled for one object only', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  before(async () => {
    gateway = await startGateway({
      MARINA_SUBMIT_TIMEOUT_MS: '1000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
    // Not found proves nothing then: an object that was never taken stays uncertain.
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
  });
  after(async () => {
    operators.close();
    // Operators settle here what the exchange knows nothing of.
    await gateway.stop(['exchange']);
  });

  const now = () => new Date().toISOString();

  async function get(partner: TestPartner, path: string): Promise<Found> {
    return (await gateway.rest('GET', path, { key: partner.key })).body;
  }

  async function uncertainOrder(partner: TestPartner, more: object = {}): Promise<string> {
    const { body } = await gateway.place(partner, { symbol: 'SIM-RESET', ...more });
    assert.equal(body.state, 'uncertain');
    return body.id;
  }

  it('a trade that was entered is not entered again under its id, and counts again by its step', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST' });
    const trade = { quantity: '40', price_kobo: '1000', at: now(), exchange_trade_id: 'T-1' };
    const first = await operators.propose(body.id, { order: { trades: [trade] } });
    await operators.approve(first);
    const { code, details } = await operators.refusedProposal(body.id, { order: { trades: [trade] } });
    assert.equal(code, status.FAILED_PRECONDITION);
    assert.match(details, new RegExp(`${first} has settled the trade T-1 of it: name the step`));
    assert.equal((await get(partner, `/v1/orders/${body.id}`)).filled_quantity, 40);
    await operators.settle(body.id, { order: { trades: [{ ...trade, exchange_trade_id: 'T-2' }] } });
    assert.equal((await get(partner, `/v1/orders/${body.id}`)).filled_quantity, 80);

    const { data } = await get(partner, `/v1/orders/${body.id}/history?limit=100`);
    const { sequence: step } = data.find(({ kind }: Found) => kind === 'settled_by_operator');
    await operators.settle(body.id, { order: { trades: [{ step, quantity: '0', at: now() }] } });
    await operators.refusedProposal(body.id, { order: { trades: [trade] } });
    await operators.settle(body.id, { order: { trades: [{ ...trade, step }] } });
    assert.equal((await get(partner, `/v1/orders/${body.id}`)).filled_quantity, 80);
  });

  it("the exchange's id of an order is not that of another like order of the day", async () => {
    const partner = await gateway.newPartner();
    const [one, twin, sale] = [
      await uncertainOrder(partner),
      // The gateway takes no second order that is the same while the first one is uncertain.
      await uncertainOrder(partner, { quantity: 90 }),
      await uncertainOrder(partner, { side: 'sell' }),
    ];
    const outcome = { order: { state: 'SETTLED_ORDER_STATE_OPEN', exchange_order_id: 'NGX-7' } };
    const [first, second] = [await operators.propose(one, outcome), await operators.propose(twin, outcome)];
    await operators.approve(first);
    const late = await operators.refused('bola', 'Proposals.ApproveProposal', { id: second });
    assert.match(late.details, new RegExp(`the exchange has ${one} under this id`));
    assert.equal((await get(partner, `/v1/orders/${twin}`)).state, 'uncertain');
    // An exchange may have ids for each side of its book.
    await operators.settle(sale, outcome);
    const blank = { order: { ...outcome.order, exchange_order_id: ' ' } };
    assert.match((await operators.refusedProposal(twin, blank)).details, /exchange_order_id` must be/);
  });

  it("a booking of the broker settles one allocation, and the wallet's reserve of another one stays", async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000_000n);
    const uncertain = async (amount: number) => {
      const { body } = await gateway.allocate(partner, { amount_kobo: amount });
      assert.equal(body.state, 'uncertain');
      return body.id as string;
    };
    const [one, like] = [await uncertain(1_999_008), await uncertain(2_999_008)];
    const booked = { state: 'SETTLED_ALLOCATION_STATE_BOOKED', broker_reference: 'BK-5512', decided_at: now() };
    const [first, second] = [
      await operators.propose(one, { allocation: booked }),
      await operators.propose(like, { allocation: booked }),
    ];
    await operators.approve(first);
    const late = await operators.refused('bola', 'Proposals.ApproveProposal', { id: second });
    assert.equal(late.code, status.FAILED_PRECONDITION);
    assert.match(late.details, new RegExp(`the broker has booked ${one} under this reference`));
    const wallet = await get(partner, '/v1/wallet');
    assert.deepEqual([wallet.posted_kobo, wallet.reserved_kobo], [1_999_008, 2_999_008]);
    await operators.as('ada', 'Proposals.DeclineProposal', {
      id: second,
      reason: 'it was the booking of the other one',
    });
    await operators.settle(like, { allocation: { ...booked, broker_reference: 'BK-5513' } });
    assert.equal((await get(partner, '/v1/wallet')).posted_kobo, 1_999_008 + 2_999_008);
  });

  it('a payment of the broker settles one withdrawal, whether or not the settlement names its reference', async () => {
    const partner = await gateway.newPartner();
    const processing = async (amount: number) => {
      const { body } = await gateway.withdraw(partner, { amount_kobo: amount });
      assert.equal(body.state, 'processing');
      return body as Found;
    };
    const [one, like] = [await processing(1_998_010), await processing(2_998_010)];
    const paid = { state: 'SETTLED_WITHDRAWAL_STATE_COMPLETED', decided_at: now() };
    await operators.settle(one.id, { withdrawal: paid });
    const named = await operators.refusedProposal(like.id, {
      withdrawal: { ...paid, broker_reference: one.broker_reference },
    });
    assert.match(named.details, new RegExp(`the broker has ${one.id} under this reference`));
    // A broker that took both under one reference.
    await gateway.database.write(
      statement('UPDATE withdrawals SET broker_reference = ? WHERE id = ?', one.broker_reference, like.id),
    );
    const unnamed = await operators.refusedProposal(like.id, { withdrawal: paid });
    assert.match(unnamed.details, new RegExp(`the broker has ${one.id} under this reference`));
    assert.equal((await get(partner, '/v1/wallet')).withdrawn_kobo, 1_998_010);
  });

  it('an object is not settled as never taken while the broker may still take it', async () => {
    const partner = await gateway.newPartner();
    const id = await uncertainOrder(partner);
    const outcome = { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } };
    const early = await operators.refusedProposal(id, outcome);
    assert.equal(early.code, status.FAILED_PRECONDITION);
    assert.match(early.details, /^it may still be taken until \d{4}-/);
    await operators.settle(id, outcome);
    assert.equal((await get(partner, `/v1/orders/${id}`)).state, 'refused');
  });

  it('an account that one application opened is not opened for another customer', async () => {
    const partner = await gateway.newPartner();
    const uncertain = async () => {
      const { body } = await apply(gateway, partner, { last_name: 'SIM-RESET' });
      assert.equal(body.state, 'uncertain');
      return body.id as string;
    };
    const [one, other] = [await uncertain(), await uncertain()];
    const opened = {
      state: 'SETTLED_APPLICATION_STATE_OPENED',
      account: `T${partner.account.slice(1)}`,
      reference: 'B7',
    };
    const [first, second] = [
      await operators.propose(one, { application: opened }),
      await operators.propose(other, { application: opened }),
    ];
    await operators.approve(first);
    const late = await operators.refused('bola', 'Proposals.ApproveProposal', { id: second });
    assert.match(late.details, new RegExp(`the account was opened for ${one}`));
    const { data } = await get(partner, '/v1/accounts');
    assert.equal(data.find((each: Found) => each.account === opened.account).application, one);
    assert.equal((await get(partner, `/v1/applications/${other}`)).state, 'uncertain');
  });
});
