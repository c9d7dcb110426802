import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { orders } from '../../../../../src/gateway/trading/orders/table.ts';
import { AccountStatus } from '../../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { daysAfter, daysBefore, lagosDay } from '../../../../../src/kit/clock.ts';
import { newOperatorToken } from '../../../../../src/kit/operator-tokens.ts';
import { apply } from '../../../../support/applications.ts';
import { overRest } from '../../../../support/documents.ts';
import { eventually } from '../../../../support/eventually.ts';
import { callTimeout, operatorToken, type TestPartner } from '../../../../support/gateway.ts';
import { noisePng } from '../../../../support/images.ts';
import { assertNothingInUse } from '../../../../support/metrics.ts';
import { type Found, TestOperator } from '../../../../support/operator.ts';
import { filledOrder } from '../../../../support/reports.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

const path = 'marina.admin.v1.Audit.ExportAccount';
const tokens = Object.fromEntries(
  (['read', 'trading', 'support', 'treasury'] as const).map((role) => [
    role,
    newOperatorToken(`the-${role}`, Date.now() + 3_600_000, [role]),
  ]),
) as Record<'read' | 'trading' | 'support' | 'treasury', ReturnType<typeof newOperatorToken>>;

/** A whole export: its lines, and the last message. */
interface Exported {
  readonly lines: Found[];
  readonly last: Found;
}

describe('an export of everything about one account', () => {
  let operator: TestOperator;
  let two: TwoOperators;
  const today = lagosDay(Date.now());
  before(async () => {
    const lines = Object.values(tokens).map(({ line }) => line);
    operator = await TestOperator.start({
      // Shorter than what an order waits that comes late.
      MARINA_SUBMIT_TIMEOUT_MS: '1000',
      MARINA_BULK_CANCELS_PER_SECOND: '500',
      MARINA_OPERATOR_TOKENS: [operatorTokens(`tester:${operatorToken}`), ...lines].join(','),
    });
    two = await TwoOperators.connect(operator.gateway.app.adminPort);
  });
  after(async () => {
    two.close();
    // The test stores orders itself, which nobody placed and of which no event tells, and settles another.
    await operator.stop(['feed', 'objects', 'usage', 'exchange']);
  });

  const stream = (request: JsonObject, token = operatorToken, signal?: AbortSignal) =>
    operator.client.stream(path, request, token, signal);

  async function exported(request: JsonObject, token = operatorToken): Promise<Exported> {
    const parts: Found[] = [];
    for await (const part of stream(request, token)) parts.push(part);
    const last = parts.at(-1);
    assert.equal(last?.complete, true, 'the export says that it is complete');
    const text = parts.map(({ text: some = '' }) => some).join('');
    const lines = text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    const counted = last.counts.reduce((sum: number, { count }: Found) => sum + Number(count), 0);
    assert.equal(counted, lines.length, 'the last message counts all lines');
    return { lines, last };
  }

  /** The days of the export: a test can go on over midnight. */
  const days = () => ({ from_day: daysBefore(today, 1), to_day: lagosDay(Date.now()) });
  const of = (lines: readonly Found[], kind: string) => lines.filter(({ line }) => line === kind);
  const actions = (lines: readonly Found[]) => of(lines, 'entry').map(({ action }) => action);

  /** Opens an account through an application with its four documents. */
  async function openAccount(partner: TestPartner): Promise<{ application: string; account: string }> {
    const { gateway } = operator;
    const { body } = await apply(gateway, partner);
    const send = overRest(gateway.app.restPort);
    for (const type of ['photo', 'government_id', 'utility_bill', 'signature']) {
      const sent = await send({ key: partner.key, id: body.id, type, file: await noisePng() });
      assert.equal(sent.outcome, 'delivered');
    }
    const opened = await inState(partner, `/v1/applications/${body.id}`, 'opened');
    return { application: body.id, account: opened.account };
  }

  async function inState(partner: TestPartner, url: string, state: string): Promise<Found> {
    let shown: Found;
    await eventually(async () => {
      ({ body: shown } = await operator.gateway.rest('GET', url, { key: partner.key }));
      assert.equal(shown.state, state);
    });
    return shown;
  }

  it('has all that two partners and the operators did to it in turn, and nothing of an account with a similar code', async () => {
    const { gateway } = operator;
    const [one, other] = [await gateway.newPartner(), await gateway.newPartner()];
    const { application, account } = await openAccount(one);
    const similar = `${account}1`;
    await gateway.controls.setAccount({ account: similar, status: AccountStatus.ACTIVE }, callTimeout);
    await operator.call('Accounts.LinkAccount', { partner_id: one.id, account: similar, reason: 'similar' });

    const place = async (partner: TestPartner, more: JsonObject) => {
      const { body } = await gateway.place(partner, { symbol: 'SIM-REST', account, ...more });
      return body.id as string;
    };
    const cancelledByPartner = await place(one, {});
    await gateway.rest('DELETE', `/v1/orders/${cancelledByPartner}`, { key: one.key });
    const cancelledByJob = await place(one, { symbol: 'SIM-REST', quantity: 200 });
    const ofSimilar = await place(one, { account: similar, symbol: 'SIM-FILL' });
    const job = await operator.call('Trading.CancelOpenOrders', { symbol: 'SIM-REST', at_most: 10, reason: 'a halt' });
    await inState(one, `/v1/orders/${cancelledByJob}`, 'cancelled');
    await gateway.fund(one, 10_000n);
    const { body: allocation } = await gateway.allocate(one, { account, amount_kobo: 700 });
    await inState(one, `/v1/allocations/${allocation.id}`, 'booked');
    await gateway.withdraw(one, { account, amount_kobo: 300 });
    const { body: taken } = await gateway.rest('GET', `/v1/withdrawals?account=${account}`, { key: one.key });
    const [withdrawal] = taken.data;
    for (const id of [application, allocation.id, withdrawal.id]) {
      await operator.call('Diagnostics.ReconcileNow', { object_id: id, reason: 'asked' });
    }

    const buy = ['STOP_ACTION_BUY'];
    const stop = await operator.call('Trading.AddStop', { account, actions: buy, reason: 'asked by the regulator' });
    await operator.call('Trading.EndStop', { id: stop.stop.id, reason: 'answered' });
    const ofOthers = await operator.call('Trading.AddStop', { account: similar, actions: buy, reason: 'another' });
    await operator.call('Trading.EndStop', { id: ofOthers.stop.id, reason: 'another' });
    await operator.call('Trading.PauseTrading', { reason: 'a drill' });
    await operator.call('Trading.ResumeTrading', { reason: 'the drill is over' });

    await operator.call('Accounts.UnlinkAccount', { partner_id: one.id, account, reason: 'moved' });
    await operator.call('Accounts.LinkAccount', { partner_id: other.id, account, reason: 'moved here' });
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
    const settled = await place(other, { symbol: 'SIM-RESET' });
    await two.settle(settled, { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } });
    const foreign = await place(one, { account: one.account, symbol: 'SIM-FILL', client_reference: account });
    await operator.call('CustomerAccounts.GetBalance', { partner_id: other.id, account });

    const { lines, last } = await exported({ account: account.toLowerCase(), ...days() });
    assert.deepEqual(
      of(lines, 'partner').map(({ partner_id: id, application: by, linked_by: linked, unlinked_by: ended }) => [
        id,
        by,
        linked,
        ended,
      ]),
      [
        [one.id, application, null, 'tester'],
        [other.id, null, 'tester', null],
      ],
    );
    const [first, second] = of(lines, 'partner');
    assert.ok(first.until <= second.from && first.from < first.until);
    assert.deepEqual(
      of(lines, 'object').map(({ object, id, state, key_id: key }) => [object, id, state, key]),
      [
        ['order', cancelledByPartner, 'cancelled', one.keyId],
        ['order', cancelledByJob, 'cancelled', one.keyId],
        ['application', application, 'opened', one.keyId],
        ['allocation', allocation.id, 'booked', one.keyId],
        ['withdrawal', withdrawal.id, withdrawal.state, one.keyId],
        ['order', settled, 'refused', other.keyId],
      ],
    );
    assert.equal(of(lines, 'document').length, 4);
    assert.deepEqual(
      of(lines, 'ledger')
        .filter(({ object_id: id }) => id === allocation.id)
        .map(({ object_id: id, type, amount_kobo: kobo }) => [id, type, kobo]),
      [
        [allocation.id, 'reserve', '700'],
        [allocation.id, 'post', '700'],
      ],
    );
    const steps = (id: string) => of(lines, 'step').filter((step) => step.object_id === id);
    assert.ok(steps(cancelledByPartner).some(({ detail }) => detail.endsWith(`with the key ${one.keyId}`)));
    assert.ok(steps(cancelledByJob).some(({ detail }) => detail.includes(job.bulk_cancel.id)));
    assert.ok(steps(settled).some(({ kind }) => kind === 'settled_by_operator'));
    assert.ok(steps(application).filter(({ kind }) => kind === 'document').length >= 4);
    assert.deepEqual(
      of(lines, 'stop').map(({ id, target, value, started_by: by, end_reason: end }) => [id, target, value, by, end]),
      [[stop.stop.id, 'account', account, 'tester', 'answered']],
    );
    assert.deepEqual(actions(lines), [
      ...['Trading.CancelOpenOrders', ...Array.from({ length: 3 }, () => 'Diagnostics.ReconcileNow')],
      ...['Trading.AddStop', 'Trading.EndStop', 'Trading.PauseTrading', 'Trading.ResumeTrading'],
      ...['Accounts.UnlinkAccount', 'Accounts.LinkAccount'],
      ...['Settlements.ProposeSettlement', 'Proposals.ApproveProposal'],
      ...['CustomerAccounts.GetBalance', 'Audit.ExportAccount'],
    ]);
    const afterwards = await exported({ account, from_day: daysAfter(today, 2) });
    assert.deepEqual([of(afterwards.lines, 'partner').length, of(afterwards.lines, 'object')], [2, []]);
    const text = JSON.stringify(lines);
    for (const none of [similar, ofSimilar, foreign, ofOthers.stop.id]) assert.ok(!text.includes(none), none);
    assert.deepEqual(
      [last.faults, last.archived_steps],
      [undefined, undefined],
      'nothing is at fault or in the archive',
    );
    assert.ok(Number(last.unsealed) > 0, 'new entries wait for their seal');

    const ofSimilarOne = await exported({ account: similar, ...days() });
    assert.deepEqual(
      of(ofSimilarOne.lines, 'object').map(({ id }) => id),
      [ofSimilar],
    );
    assert.ok(!actions(ofSimilarOne.lines).includes('Trading.CancelOpenOrders'), 'the job took no order of it');
    for (const table of ['bulk_cancel_orders', 'bulk_cancels']) {
      await gateway.database.write(statement(`DELETE FROM ${table}`));
    }
    const later = await exported({ account: similar, ...days() });
    assert.ok(actions(later.lines).includes('Trading.CancelOpenOrders'), 'it may have taken one');
  });

  it('refuses an account that no partner has or had, and days that are none or too many', async () => {
    const partner = await operator.gateway.newPartner();
    await assert.rejects(exported({ account: 'NOBODYS', from_day: today }), { code: status.NOT_FOUND });
    const { account } = partner;
    const refused: JsonObject[] = [
      { account: 'A-1', from_day: today },
      { account, from_day: '2026-02-30' },
      { account, from_day: '2026-03-02', to_day: '2026-03-01' },
      { account, from_day: '2026-01-01', to_day: '2027-01-02' },
    ];
    for (const request of refused) {
      await assert.rejects(exported(request), { code: status.INVALID_ARGUMENT });
    }
    const { lines } = await exported({ account, from_day: '2026-01-01', to_day: '2027-01-01' });
    assert.deepEqual(of(lines, 'partner').length, 1);
  });

  it('needs a role that may see money, and is itself in the audit', async () => {
    const { account } = await operator.gateway.newPartner();
    for (const role of ['read', 'trading'] as const) {
      await assert.rejects(exported({ account, from_day: today }, tokens[role].token), {
        code: status.PERMISSION_DENIED,
      });
    }
    for (const role of ['support', 'treasury'] as const) {
      const { lines } = await exported({ account, ...days() }, tokens[role].token);
      const [entry] = of(lines, 'entry').slice(-1);
      assert.deepEqual([entry.operator, entry.action, entry.subject], [`the-${role}`, 'Audit.ExportAccount', account]);
    }
  });

  it('ends when its caller cancels, lets no other export begin before that, and does not say that it is complete', async () => {
    const partner = await operator.gateway.newPartner();
    const at = Date.parse('2026-06-01T12:00:00+01:00');
    const some = Array.from({ length: 6_000 }, (_, number) =>
      filledOrder(partner.id, at, number, { account: partner.account }),
    );
    await operator.gateway.database.writeAll([orders.insert(...some)]);
    const request = { account: partner.account, from_day: '2026-06-01' };
    const ending = new AbortController();
    const reading = stream(request, operatorToken, ending.signal);
    const seen: Found[] = [(await reading.next()).value];
    await assert.rejects(exported(request), { code: status.RESOURCE_EXHAUSTED });
    const entries = operator.client.stream('marina.admin.v1.Audit.ExportEntries', {}, operatorToken);
    await assert.rejects(entries.next(), { code: status.RESOURCE_EXHAUSTED });
    ending.abort();
    await assert.rejects(async () => {
      for await (const part of reading) seen.push(part);
    });
    assert.ok(seen.every(({ complete }) => complete !== true));
    await eventually(() => assertNothingInUse(operator.gateway.app.opsPort));
    await eventually(async () => assert.equal(of((await exported(request)).lines, 'object').length, 6_000));
  });
});
