import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { newOperatorToken } from '../../../../src/kit/operator-tokens.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, operatorToken, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { type Found, TestOperator } from '../../../support/operator.ts';

const support = newOperatorToken('bola', Date.now() + 3_600_000, ['support']);
const trading = newOperatorToken('chidi', Date.now() + 3_600_000, ['trading', 'treasury']);

/** Each call with the partner's own read of the same. */
const reads = [
  ['GetAccountStatus', 'status', 'status', Call.GET_ACCOUNT_STATUS],
  ['GetBalance', 'balance', 'balance', Call.GET_BALANCE],
  ['ListPositions', 'positions', 'positions', Call.LIST_POSITIONS],
  ['ListTrades', 'trades', 'trades', Call.LIST_TRADES],
  ['ListContractNotes', 'contract_notes', 'contract-notes', Call.LIST_CONTRACT_NOTES],
  ['ListAccountTransactions', 'transactions', 'transactions', Call.LIST_TRANSACTIONS],
] as const;

describe("the support desk's reads of an account", () => {
  let operator: TestOperator;
  let gateway: TestGateway;
  let partner: TestPartner;
  let other: TestPartner;
  before(async () => {
    operator = await TestOperator.start({
      MARINA_OPERATOR_TOKENS: `tester:${operatorToken},${support.line},${trading.line}`,
      MARINA_RECORDS_TIMEOUT_MS: '1500',
    });
    gateway = operator.gateway;
    [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
    await gateway.fund(partner, 10_000_000n);
    await gateway.allocate(partner, { amount_kobo: 5_000_000 });
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-FILL', quantity: 5 });
    await eventually(async () => {
      const { body } = await gateway.rest('GET', `/v1/orders/${order.id}`, { key: partner.key });
      assert.equal(body.state, 'filled');
    });
  });
  after(() => operator.stop());

  const asked = () => ({ partner_id: partner.id, account: partner.account });
  const call = (name: string, request: JsonObject, token: string = support.token): Promise<Found> =>
    operator.client.call(`marina.admin.v1.CustomerAccounts.${name}`, request, token);

  for (const [name, field, path] of reads) {
    it(`${name} shows what the partner reads itself, and is in the audit with whose account and why`, async () => {
      const own = await gateway.rest('GET', `/v1/accounts/${partner.account}/${path}`, { key: partner.key });
      assert.equal(own.status, 200, own.text);
      const reason = `ticket 12, ${name}`;
      const answer = await call(name, { ...asked(), account: partner.account.toLowerCase(), reason });
      const shown = [answer[field]].flat();
      const theirs = own.body.data ?? [own.body];
      assert.equal(shown.length, theirs.length);
      if (path !== 'contract-notes') assert.ok(theirs.length > 0, 'there is something to see');
      for (const [at, one] of shown.entries()) {
        assert.equal(one.account, theirs[at].account);
        for (const known of ['available_kobo', 'quantity', 'id', 'ticket', 'amount_kobo', 'balance_kobo']) {
          if ((theirs[at][known] ?? null) !== null) assert.equal(String(one[known]), String(theirs[at][known]), known);
        }
      }
      const action = `CustomerAccounts.${name}`;
      const { entries } = await operator.call('Audit.ListEntries', { subject: partner.account, limit: 1 });
      const [{ operator: by, partner_id, action: done, detail }] = entries;
      assert.deepEqual([by, partner_id, done], ['bola', partner.id, action]);
      assert.equal(JSON.parse(detail).asked.reason, reason);
    });

    it(`${name} needs the role support, and an account of the partner`, async () => {
      await assert.rejects(call(name, asked(), trading.token), { code: status.PERMISSION_DENIED });
      for (const request of [
        { ...asked(), partner_id: other.id },
        { ...asked(), account: other.account },
        { ...asked(), partner_id: `par_${'a'.repeat(20)}` },
      ]) {
        await assert.rejects(call(name, request), { code: status.NOT_FOUND }, JSON.stringify(request));
      }
      await assert.rejects(call(name, { partner_id: partner.id }), { code: status.INVALID_ARGUMENT });
    });

    it(`${name} says that the broker is away, and works when the broker is back`, async () => {
      const fault = { call: reads.find(([each]) => each === name)?.[3] ?? Call.GET_BALANCE, times: 1, delayMs: 0 };
      for (const kind of [WireFault.HANG, WireFault.UNAVAILABLE_BEFORE]) {
        await gateway.controls.injectFault({ ...fault, fault: kind }, callTimeout);
        const error = await call(name, asked()).catch((thrown) => thrown);
        assert.equal(error.code, status.UNAVAILABLE, error.details);
        assert.match(error.details, /^the broker gave no answer in time/);
      }
      await call(name, asked());
    });
  }

  it('lists go on page by page, in the range of days that was asked for', async () => {
    const day = lagosDay(Date.now());
    const range = { ...asked(), from: day, to: day, limit: 1 };
    const first = await call('ListAccountTransactions', range);
    const second = await call('ListAccountTransactions', { ...range, cursor: first.next_cursor });
    assert.deepEqual([first.has_more, first.transactions.length, second.transactions.length], [true, 1, 1]);
    assert.notEqual(first.transactions[0].id, second.transactions[0].id);
    const only = await call('ListAccountTransactions', { ...asked(), type: 'ACCOUNT_TRANSACTION_TYPE_ALLOCATION' });
    assert.deepEqual(
      only.transactions.map(({ type }: Found) => type),
      ['ACCOUNT_TRANSACTION_TYPE_ALLOCATION'],
    );
    for (const [request, field] of [
      [{ from: '2026-02-30' }, 'from'],
      [{ to: '2099-01-01' }, 'to'],
      [{ cursor: 'none' }, 'cursor'],
      [{ limit: 101 }, 'limit'],
    ] as [JsonObject, string][]) {
      const error = await call('ListTrades', { ...asked(), ...request }).catch((thrown) => thrown);
      assert.equal(error.code, status.INVALID_ARGUMENT, error.details);
      assert.deepEqual(
        operator.client.violations(error).map((one) => one.field),
        [field],
      );
    }
  });

  it('no more than two reads of all operators are at the broker at once, so partners have their turn', async () => {
    await gateway.controls.injectFault(
      { call: Call.GET_BALANCE, fault: WireFault.HANG, times: 2, delayMs: 0 },
      callTimeout,
    );
    const hanging = [call('GetBalance', asked()), call('GetBalance', asked())].map((each) =>
      each.catch((error) => error),
    );
    const answers = await Promise.all([...hanging, call('GetBalance', asked()).catch((error) => error)]);
    assert.equal(answers[0].code, status.UNAVAILABLE);
    const own = await gateway.rest('GET', `/v1/accounts/${partner.account}/balance`, { key: partner.key });
    assert.equal(own.status, 200, own.text);
  });
});
