import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Call, Outcome, type StatementLie, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import { Reconciling } from '../../../support/reconciliation.ts';

/** More trades than there are on a page of transactions, each with its charges. */
const trades = 60;
/** More days than until the settlement of a sale, and until its bank returns a withdrawal. */
const daysUntilSettled = 9;

describe('the transactions of accounts that moved', () => {
  let days: Reconciling;
  let partner: TestPartner;
  let day: string;
  const ids = new Map<string, string>();
  before(async () => {
    days = await Reconciling.start();
    const { gateway } = days;
    day = await days.toNextDay(9 * 60);
    partner = await gateway.newPartner({ accounts: 2 });
    await gateway.fund(partner, 1_000_000n);
    ids.set('allocated', (await gateway.allocate(partner, { amount_kobo: 50_000 })).body.id);
    await withdraw('to the wallet', { amount_kobo: 1_500 }, 'completed');
    await withdraw('with duty', { amount_kobo: 1_998_001, destination: 'bank_account' }, 'completed');
    await withdraw('rejected', { amount_kobo: 998_008 }, 'rejected');
    await withdraw('rejected later', { amount_kobo: 998_009 }, 'rejected');
    await withdraw('returned', { amount_kobo: 998_011, destination: 'bank_account' }, 'completed');
    await gateway.controls.forceOutcome({ symbol: 'SIM-REST', outcome: Outcome.FILL, parts: trades }, callTimeout);
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: trades * 10 });
    await eventually(async () => {
      const answer = await gateway.rest('GET', `/v1/orders/${body.id}`, { key: partner.key });
      assert.equal(answer.body.state, 'filled');
    }, 20_000);
    await days.toNextDay();
  });
  after(() => days.stop());

  async function withdraw(name: string, request: Record<string, unknown>, state: string): Promise<void> {
    const { headers } = await days.gateway.withdraw(partner, request);
    ids.set(name, headers.get('location')?.split('/').at(-1) ?? '');
    await eventually(async () => {
      const { body } = await days.gateway.rest('GET', `/v1/withdrawals/${id(name)}`, { key: partner.key });
      assert.equal(body.state, state, JSON.stringify(body));
    }, 20_000);
  }

  function id(name: string): string {
    return ids.get(name) || assert.fail(`nothing is ${name}`);
  }

  const sumOf = ({ ours, brokers }: { ours: string; brokers: string }) => `${ours} | ${brokers}`;

  it('add up, and agree with allocations and withdrawals, over more than one page', async () => {
    const run = await days.untilRun(day, 'COMPLETE');
    assert.deepEqual([run.breaks, run.problem], ['0', ''], JSON.stringify(await days.breaks({ day })));
    const { data } = (
      await days.gateway.rest('GET', `/v1/accounts/${partner.account}/transactions?limit=100`, { key: partner.key })
    ).body;
    assert.equal(data.length, 100, 'there is more than a page of them');
  });

  type Expected = readonly [kind: string, object: string, sides: RegExp];
  const lies: readonly [lie: keyof typeof StatementLie, about: string, expected: () => readonly Expected[]][] = [
    [
      'TRANSACTION_NAME',
      'allocated',
      () => [
        ['TRANSACTION_EXTRA', 'alc_nobodysent2222222222', /^nothing \| 50000 kobo by TXN\d+$/],
        ['TRANSACTION_MISSING', id('allocated'), /^booked: 50000 kobo on T\w+ \| nothing$/],
      ],
    ],
    [
      'TRANSACTION_NAME',
      'with duty',
      () => [
        ['TRANSACTION_EXTRA', 'wdr_nobodysent2222222222', /^nothing \| -5000 kobo by TXN\d+, -1998001 kobo by TXN\d+$/],
        ['TRANSACTION_MISSING', id('with duty'), /^completed: -1998001 kobo on T\w+ \| nothing$/],
      ],
    ],
    [
      'TRANSACTION_AMOUNT',
      'to the wallet',
      () => [
        [
          'TRANSACTION_SUM',
          '',
          /^(-?\d+) kobo before (TXN\d+): .* \| -?\d+ kobo after TXN\d+: a difference of 1 kobo$/,
        ],
        ['TRANSACTION_TERMS', id('to the wallet'), /^completed: -1500 kobo on T\w+ \| -1499 kobo by TXN\d+$/],
      ],
    ],
    [
      'TRANSACTION_AMOUNT',
      'rejected later',
      () => [
        ['TRANSACTION_SUM', '', /a difference of 1 kobo$/],
        ['TRANSACTION_SUM', '', /a difference of 1 kobo$/],
        [
          'TRANSACTION_TERMS',
          id('rejected later'),
          /^rejected: 0 kobo on T\w+ \| 998010 kobo by TXN\d+, -998008 kobo by/,
        ],
      ],
    ],
    [
      'TRANSACTION_BALANCE',
      'to the wallet',
      () => [
        ['TRANSACTION_SUM', '', /TXN\d+: a difference of -1 kobo$/],
        ['TRANSACTION_SUM', '', /TXN\d+: a difference of 1 kobo$/],
      ],
    ],
  ];
  for (const [lie, about, expected] of lies) {
    it(`have exactly the breaks of ${lie} about the one ${about}, until the broker corrects it`, async () => {
      await days.lie(lie, { clientId: id(about) });
      try {
        await days.complete(day);
        const found = await days.open(day);
        const sorted = found.toSorted((one, other) => (one.kind + sumOf(one) < other.kind + sumOf(other) ? -1 : 1));
        const wanted = expected();
        assert.deepEqual(
          sorted.map(({ kind, object_id: object }) => [kind, object]).sort(),
          wanted.map(([kind, object]) => [`BREAK_KIND_${kind}`, object]).sort(),
          JSON.stringify(found),
        );
        for (const [kind, object, sides] of wanted) {
          const isIt = found.some(
            (one) => one.kind === `BREAK_KIND_${kind}` && one.object_id === object && sides.test(sumOf(one)),
          );
          assert.ok(isIt, `${sides} in ${JSON.stringify(found)}`);
        }
        for (const one of found) {
          assert.deepEqual([one.account, one.partner_id], [partner.account, partner.id]);
        }
      } finally {
        await days.tellTheTruth();
      }
      assert.equal((await days.complete(day)).breaks, '0');
      assert.deepEqual(await days.open(day), []);
    });
  }

  it('the day’s transactions must lead from the opening balance to the newest', async () => {
    await days.lie('OPENING_BALANCE', { account: partner.account });
    await days.complete(day);
    const [found, ...more] = await days.open(day);
    assert.deepEqual([found?.kind, more], ['BREAK_KIND_TRANSACTION_SUM', []]);
    assert.match(sumOf(found), /^-?\d+ kobo: opening_kobo .* \| -?\d+ kobo after TXN\d+: a difference of -1 kobo$/);
    await days.tellTheTruth();
    assert.equal((await days.complete(day)).breaks, '0');
  });

  it('transactions are left out if the broker does not offer them, and the run says so and keeps their breaks', async () => {
    const { controls } = days.gateway;
    await days.lie('TRANSACTION_NAME', { clientId: id('allocated') });
    await days.complete(day);
    await days.tellTheTruth();
    await controls.setCapabilities({ honoursNotAfter: true, accountTransactions: false }, callTimeout);
    const run = await days.complete(day);
    assert.equal(run.problem, 'transactions were not compared: the broker does not offer them');
    assert.equal((await days.open(day)).length, 2, 'nobody knows whether they are gone');
    await controls.setCapabilities({ honoursNotAfter: true, accountTransactions: true }, callTimeout);
    assert.equal((await days.complete(day)).problem, '');
    assert.deepEqual(await days.open(day), []);
  });

  it('transactions are a break if the broker answers nonsense, and only then', async () => {
    const { controls } = days.gateway;
    await controls.injectFault({ call: Call.LIST_TRANSACTIONS, fault: WireFault.NONSENSE, times: 1 }, callTimeout);
    assert.equal((await days.complete(day)).breaks, '1');
    const [found] = await days.open(day);
    assert.deepEqual([found?.kind, found?.account], ['BREAK_KIND_TRANSACTIONS_UNREADABLE', partner.account]);
    assert.equal(found?.brokers, 'an answer that makes no sense');
    assert.equal((await days.complete(day)).breaks, '0');
    assert.deepEqual(await days.open(day), []);
  });

  it('transactions are read a minute later if the broker does not answer, and nothing is read again but them', async () => {
    const { controls } = days.gateway;
    const fault = { call: Call.LIST_TRANSACTIONS, fault: WireFault.UNAVAILABLE_BEFORE, times: 1 };
    await controls.injectFault(fault, callTimeout);
    const run = await days.reconcile(day);
    assert.deepEqual(
      [run.state, run.problem],
      ['RECONCILIATION_STATE_RUNNING', 'the broker did not answer with the transactions of an account'],
    );
    await days.advance(61_000);
    const ended = await days.untilRun(day, 'COMPLETE');
    assert.deepEqual([ended.id, ended.tries, ended.breaks, ended.problem], [run.id, 1, '0', '']);
  });

  it('agree on the day on which a bank returns a withdrawal, and on which sales are paid out directly', async () => {
    const { gateway } = days;
    const { withdrawals } = await gateway.controls.listWithdrawals({ clientWithdrawalId: id('returned') }, callTimeout);
    const returnedOn = lagosDay(timestampMs(withdrawals[0]?.returnAt ?? assert.fail('it is not returned')));
    await gateway.controls.setDirectSettlement({ isDirect: true }, callTimeout);
    await gateway.controls.forceOutcome({ symbol: 'SIM-REST', outcome: Outcome.FILL, parts: 1 }, callTimeout);
    await gateway.place(partner, { symbol: 'SIM-REST', side: 'sell', quantity: 50 });
    const all = [await days.today()];
    // Until the sale has settled, too.
    while (all.length < daysUntilSettled || !all.includes(returnedOn)) all.push(await days.toNextDay());
    const { data } = (
      await gateway.rest('GET', `/v1/accounts/${partner.account}/transactions?type=withdrawal`, { key: partner.key })
    ).body;
    assert.ok(
      data.some(({ withdrawal }: { withdrawal: string | null }) => withdrawal === null),
      'the proceeds went to the bank',
    );
    for (const each of [day, ...all.slice(0, -1)]) {
      const run = await days.complete(each);
      assert.deepEqual(
        [each, run.breaks, run.problem],
        [each, '0', ''],
        JSON.stringify(await days.breaks({ day: each })),
      );
    }
  });
});
