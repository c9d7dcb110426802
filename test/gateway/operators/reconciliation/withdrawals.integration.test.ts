import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { WithdrawalReportKind } from '../../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import type { StatementLie } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import type { Found } from '../../../support/operator.ts';
import { Reconciling } from '../../../support/reconciliation.ts';

describe("withdrawals that are compared with the broker's statement", () => {
  let days: Reconciling;
  let partner: TestPartner;
  let day: string;
  const ids = new Map<string, string>();
  before(async () => {
    days = await Reconciling.start();
    day = await days.toNextDay(9 * 60);
    partner = await days.gateway.newPartner();
    await days.gateway.fund(partner, 100_000n);
    assert.equal((await days.gateway.allocate(partner, { amount_kobo: 50_000 })).status, 201);
    await withdraw('to the wallet', { amount_kobo: 1_500 }, 'completed');
    await withdraw('to the bank', { amount_kobo: 1_998_001, destination: 'bank_account' }, 'completed');
    await withdraw('held', { amount_kobo: 998_010, destination: 'bank_account' }, 'processing');
    await withdraw('returned', { amount_kobo: 998_011, destination: 'bank_account' }, 'completed');
    await withdraw('rejected', { amount_kobo: 998_008 }, 'rejected');
    await withdraw('rejected later', { amount_kobo: 998_009 }, 'rejected');
    await withdraw('lost', { amount_kobo: 998_013 }, 'completed');
    await days.toNextDay();
  });
  after(() => days.stop());

  async function withdraw(name: string, request: Record<string, unknown>, state: string): Promise<void> {
    const { headers } = await days.gateway.withdraw(partner, request);
    ids.set(name, headers.get('location')?.split('/').at(-1) ?? '');
    await until(name, state);
  }

  function until(name: string, state: string): Promise<void> {
    return eventually(async () => {
      const { body } = await days.gateway.rest('GET', `/v1/withdrawals/${id(name)}`, { key: partner.key });
      assert.equal(body.state, state, JSON.stringify(body));
    }, 20_000);
  }

  function id(name: string): string {
    return ids.get(name) || assert.fail(`no withdrawal is ${name}`);
  }

  it('agree on the day on which they were made', async () => {
    const run = await days.untilRun(day, 'COMPLETE');
    assert.deepEqual(await days.breaks({ day }), []);
    assert.deepEqual([run.breaks, run.problem], ['0', '']);
    assert.ok(Number(run.objects) >= 8, run.objects);
  });

  type Expected = readonly [kind: string, object: string | undefined, ours: RegExp, brokers: RegExp];
  const lies: readonly [lie: keyof typeof StatementLie, about: string | undefined, expected: () => Expected][] = [
    [
      'WITHDRAWAL_MISSING',
      'to the bank',
      () => [
        'WITHDRAWAL_MISSING',
        id('to the bank'),
        /^completed, 1998001 kobo from T\w+ to bank_account$/,
        /^nothing$/,
      ],
    ],
    [
      'WITHDRAWAL_EXTRA',
      undefined,
      () => ['WITHDRAWAL_EXTRA', undefined, /^nothing$/, /^paid, 100 kobo from T\w+ to wallet$/],
    ],
    [
      'WITHDRAWAL_AMOUNT',
      'to the wallet',
      () => ['WITHDRAWAL_TERMS', id('to the wallet'), /^1500 kobo from T\w+ to wallet, reference WDL/, /^1501 kobo/],
    ],
    ['WITHDRAWAL_STATE', 'held', () => ['WITHDRAWAL_STATE', id('held'), /^processing$/, /^rejected$/]],
    ['WITHDRAWAL_STATE', 'rejected', () => ['WITHDRAWAL_STATE', id('rejected'), /^rejected$/, /^paid$/]],
    ['WITHDRAWAL_STATE', 'lost', () => ['WITHDRAWAL_STATE', id('lost'), /^completed$/, /^rejected$/]],
  ];
  for (const [lie, about, expected] of lies) {
    it(`have exactly the break of ${lie} about one ${about ?? 'that nobody made'}, until the broker corrects it`, async () => {
      const clientId = about === undefined ? '' : id(about);
      await days.lie(lie, { day, clientId, account: partner.account });
      try {
        assert.equal((await days.complete(day)).breaks, '1');
        const found = await days.open(day);
        assert.equal(found.length, 1);
        const [one] = found as [Found];
        const [kind, object, ours, brokers] = expected();
        assert.deepEqual([one.kind, one.partner_id, one.is_unsettled], [`BREAK_KIND_${kind}`, partner.id, false]);
        assert.equal(one.account, partner.account);
        if (object !== undefined) assert.equal(one.object_id, object);
        assert.match(one.ours, ours);
        assert.match(one.brokers, brokers);
      } finally {
        await days.tellTheTruth();
      }
      assert.equal((await days.complete(day)).breaks, '0');
      assert.deepEqual(await days.open(day), []);
    });
  }

  it('keep their breaks open while the broker takes none, and the run says that it left them out', async () => {
    const { controls } = days.gateway;
    const setTaken = async (isTaken: boolean) => {
      await controls.setCapabilities(
        { honoursNotAfter: true, withdrawalsToWallet: isTaken, withdrawalsToBankAccount: isTaken },
        callTimeout,
      );
    };
    await days.lie('WITHDRAWAL_MISSING', { day, clientId: id('lost') });
    assert.equal((await days.complete(day)).breaks, '1');
    await days.tellTheTruth();
    await setTaken(false);
    const run = await days.complete(day);
    assert.deepEqual([run.problem, run.breaks], ['withdrawals were not compared: the broker takes none', '0']);
    assert.equal((await days.open(day)).length, 1, 'nobody knows whether it is gone');
    await setTaken(true);
    assert.equal((await days.complete(day)).problem, '');
    assert.deepEqual(await days.open(day), []);
  });

  it('agree on each day on which the broker reports something: paid the next day, returned two trading days later', async () => {
    const { gateway } = days;
    const paidOn = await days.today();
    await gateway.controls.decideWithdrawal(
      { clientWithdrawalId: id('held'), kind: WithdrawalReportKind.PAID },
      callTimeout,
    );
    await until('held', 'completed');
    const { withdrawals } = await gateway.controls.listWithdrawals({ clientWithdrawalId: id('returned') }, callTimeout);
    const returnedOn = lagosDay(timestampMs(withdrawals[0]?.returnAt ?? assert.fail('it is not returned')));
    const later = [paidOn];
    while (later.at(-1) !== returnedOn) later.push(await days.toNextDay());
    await until('returned', 'returned');
    await days.toNextDay();
    for (const each of [day, ...later]) {
      const run = await days.complete(each);
      assert.deepEqual([each, run.breaks, run.problem], [each, '0', '']);
    }
    await days.lie('WITHDRAWAL_STATE', { day: returnedOn, clientId: id('returned') });
    await days.complete(returnedOn);
    const [found] = await days.open(returnedOn);
    assert.deepEqual([found?.kind, found?.ours], ['BREAK_KIND_WITHDRAWAL_STATE', 'returned']);
    await days.tellTheTruth();
    await days.complete(returnedOn);
  });
});
