import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Feature, Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { Controls } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { verifyLedger } from '../../../support/ledger.ts';

describe('withdrawals', { concurrency: 4 }, () => {
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    gateway = await startGateway();
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });

  async function read(partner: TestPartner, path: string) {
    const answer = await gateway.rest('GET', path, { key: partner.key });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  /** Waits until a withdrawal is in a state, and returns it. */
  function until(partner: TestPartner, id: string, state: string) {
    return eventually(async () => {
      const body = await read(partner, `/v1/withdrawals/${id}`);
      assert.equal(body.state, state, JSON.stringify(body));
      return body;
    }, 20_000);
  }

  /** The wallet's sums and its entries, newest first, whose ledger is proven. */
  async function wallet(partner: TestPartner) {
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
    const { object, ...sums } = await read(partner, '/v1/wallet');
    assert.equal(object, 'wallet');
    const { data } = await read(partner, '/v1/wallet/transfers?limit=100');
    return { sums, entries: data };
  }

  /** The events about an object: types, each of which has the object as its GET returned it. */
  async function eventsOf(partner: TestPartner, id: string): Promise<string[]> {
    const { data } = await read(partner, `/v1/withdrawals/${id}/events`);
    return data.map(({ type }: { type: string }) => type);
  }

  it('one to the wallet is paid, and credited in the same commit with an entry that names it', async () => {
    const partner = await gateway.newPartner();
    const body = { amount_kobo: 5_000, client_reference: 'payout 1' };
    const answer = await gateway.withdraw(partner, body, 'mine');
    assert.equal(answer.status, 201, answer.text);
    const { id } = answer.body;
    assert.match(id, /^wdr_[a-z2-7]{20}$/);
    assert.equal(answer.headers.get('location'), `/v1/withdrawals/${id}`);
    const { created_at: _, updated_at: __, broker_reference: reference, ...shown } = answer.body;
    assert.deepEqual(shown, {
      ...{ object: 'withdrawal', id, state: 'completed', account: partner.account, amount_kobo: 5_000 },
      ...{ destination: 'wallet', client_reference: 'payout 1', reason: null, reject_reason: null },
    });
    assert.match(reference, /./);
    const { sums, entries } = await wallet(partner);
    assert.deepEqual(sums, { available_kobo: 5_000, reserved_kobo: 0, posted_kobo: 0, withdrawn_kobo: 5_000 });
    const [{ id: entry, created_at: at, ...rest }] = entries;
    assert.match(`${entry} ${at}`, /^wtr_/);
    assert.deepEqual(rest, {
      ...{ object: 'wallet_transfer', type: 'withdrawal', amount_kobo: 5_000, available_change_kobo: 5_000 },
      ...{ allocation: null, withdrawal: id, account: partner.account, bank_reference: null },
    });
    assert.deepEqual(await eventsOf(partner, id), ['withdrawal.completed']);
    const [event] = (await read(partner, '/v1/events')).data;
    assert.deepEqual(event.data, answer.body);
    const again = await gateway.withdraw(partner, body, 'mine');
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed'), again.body], [200, 'true', answer.body]);
    const other = await gateway.withdraw(partner, { amount_kobo: 5_001 }, 'mine');
    assert.deepEqual([other.status, other.body.error.code], [409, 'duplicate_withdrawal']);
    assert.equal((await wallet(partner)).entries.length, 1, 'it was credited twice');
    const history = await read(partner, `/v1/withdrawals/${id}/history`);
    assert.deepEqual(
      history.data.map(({ sequence }: Record<string, unknown>) => sequence),
      [1, 2, 3],
    );
    // The report may be faster than the answer.
    const kinds = history.data.map(({ kind }: Record<string, unknown>) => kind);
    assert.deepEqual([kinds[0], kinds.slice(1).sort()], ['stored', ['report', 'sent']]);
    assert.equal(history.data[2].state, 'completed');
    // The money can be allocated again, and the wallet stays exact.
    assert.equal((await gateway.allocate(partner, { amount_kobo: 5_000 })).status, 201);
    const then = (await wallet(partner)).sums;
    assert.deepEqual(then, { available_kobo: 0, reserved_kobo: 0, posted_kobo: 5_000, withdrawn_kobo: 5_000 });
  });

  it('one to a bank account is processing, then completed, and enters nothing into the wallet', async () => {
    const partner = await gateway.newPartner();
    const answer = await gateway.withdraw(partner, { destination: 'bank_account' });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.body.state, 'processing');
    await until(partner, answer.body.id, 'completed');
    assert.deepEqual(await eventsOf(partner, answer.body.id), ['withdrawal.processing', 'withdrawal.completed']);
    const { sums, entries } = await wallet(partner);
    assert.deepEqual(sums, { available_kobo: 0, reserved_kobo: 0, posted_kobo: 0, withdrawn_kobo: 0 });
    assert.deepEqual(entries, []);
  });

  it('one that the bank sends back is returned on the second trading day after it was paid', async () => {
    const own = await startGateway();
    const operator = adminClient(own.app.adminPort);
    try {
      const partner = await own.newPartner();
      const body = { destination: 'bank_account', amount_kobo: 998_011 };
      const { id } = (await own.withdraw(partner, body)).body;
      const stateOf = async () =>
        (await own.rest('GET', `/v1/withdrawals/${id}`, { key: partner.key })).body.state as string;
      await eventually(async () => assert.equal(await stateOf(), 'completed'), 20_000);
      await operator.clock.advanceClock({ by: { seconds: 6n * 86_400n } }, operator.options);
      await eventually(async () => assert.equal(await stateOf(), 'returned'), 20_000);
    } finally {
      operator.close();
      await own.stop();
    }
  });

  for (const [amount, reason] of [
    [998_003, 'insufficient_withdrawable_funds'],
    [998_004, 'account_restricted'],
    [998_005, 'no_bank_account'],
    [998_006, 'bank_account_mismatch'],
    [998_007, 'account_not_at_broker'],
    [998_008, 'rejected_by_broker'],
  ] as const) {
    it(`one that the broker rejects as ${reason} answers 422 with it, once and again, and moves nothing`, async () => {
      const partner = await gateway.newPartner();
      for (const status of [422, 422]) {
        const answer = await gateway.withdraw(partner, { amount_kobo: amount }, 'rejected');
        const { code, type, reject_reason: rejected } = answer.body.error;
        assert.deepEqual(
          [answer.status, code, type, rejected],
          [status, 'withdrawal_rejected', 'wallet_error', reason],
        );
        const body = await read(partner, String(answer.headers.get('location')));
        assert.deepEqual([body.state, body.reject_reason], ['rejected', reason]);
      }
      assert.deepEqual((await wallet(partner)).entries, []);
    });
  }

  it('one that the broker accepts and rejects later is rejected with an event', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.withdraw(partner, { amount_kobo: 998_009 });
    const rejected = await until(partner, body.id, 'rejected');
    assert.equal(rejected.reject_reason, 'rejected_by_broker');
    assert.deepEqual(await eventsOf(partner, body.id), ['withdrawal.processing', 'withdrawal.rejected']);
  });

  for (const [amount, state] of [
    [998_013, 'completed'],
    [998_014, 'rejected'],
    [998_016, 'completed'],
    [998_018, 'completed'],
    [998_020, 'processing'],
  ] as const) {
    it(`one of ${amount} kobo, whose answer is lost or senseless, becomes ${state}, and is paid at most once`, async () => {
      const partner = await gateway.newPartner();
      const key = randomUUID();
      const { body } = await gateway.withdraw(partner, { amount_kobo: amount }, key);
      const id = body.id ?? (await read(partner, '/v1/withdrawals')).data[0].id;
      await until(partner, id, state);
      await gateway.withdraw(partner, { amount_kobo: amount }, key);
      const { sums, entries } = await wallet(partner);
      const credited = state === 'completed' ? amount : 0;
      assert.deepEqual([sums.withdrawn_kobo, sums.available_kobo], [credited, credited]);
      assert.equal(entries.length, credited === 0 ? 0 : 1);
      const { withdrawals } = await gateway.controls.listWithdrawals({ clientWithdrawalId: id }, callTimeout);
      assert.equal(withdrawals[0]?.timesReceived, 1, 'it was sent more than once');
    });
  }

  it('one that never arrived is uncertain, holds back another like it, and is refused at the end', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.withdraw(partner, { amount_kobo: 998_015 });
    assert.equal(body.state, 'uncertain', JSON.stringify(body));
    const alike = await gateway.withdraw(partner, { amount_kobo: 998_015 });
    if (alike.status !== 201) {
      assert.deepEqual([alike.status, alike.body.error.code], [409, 'similar_withdrawal_unresolved']);
    }
    await until(partner, body.id, 'refused');
  });

  it('one that the broker proves not to have taken is not sent: 503, and a new key is needed', async () => {
    const partner = await gateway.newPartner();
    for (const _ of [1, 2]) {
      const answer = await gateway.withdraw(partner, { amount_kobo: 998_019 }, 'late');
      assert.deepEqual([answer.status, answer.body.error.code], [503, 'withdrawal_not_sent']);
    }
  });

  it('only partners with the feature and keys with the scope can make one, and nothing is stored for others', async () => {
    const without = await gateway.newPartner({ features: [Feature.ACCOUNT_OPENING] });
    const refused = await gateway.withdraw(without, {});
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'feature_not_enabled']);
    const reader = await gateway.newPartner({ scopes: [Scope.READ, Scope.FUND] });
    const scopeless = await gateway.withdraw(reader, {});
    assert.deepEqual([scopeless.status, scopeless.body.error.code], [403, 'insufficient_scope']);
    for (const { id } of [without, reader]) {
      const rows = await gateway.database.read(statement('SELECT id FROM withdrawals WHERE partner_id = ?', id));
      assert.deepEqual(rows, []);
    }
  });

  it('a body that makes no sense is refused by field, and an account of others is unknown', async () => {
    const partner = await gateway.newPartner();
    const other = await gateway.newPartner();
    for (const [body, status, code, param] of [
      [{ amount_kobo: 0 }, 400, 'invalid_request', 'amount_kobo'],
      [{ amount_kobo: 10_000_000_001 }, 400, 'invalid_request', 'amount_kobo'],
      [{ destination: 'cash' }, 400, 'invalid_request', 'destination'],
      [{ destination: undefined }, 400, 'missing_required_field', 'destination'],
      [{ client_reference: '' }, 400, 'invalid_request', 'client_reference'],
      [{ bank_account: '1' }, 400, 'invalid_request', 'bank_account'],
      [{ account: other.account }, 422, 'unknown_account', 'account'],
    ] as const) {
      const answer = await gateway.withdraw(partner, body);
      const { error } = answer.body;
      assert.deepEqual([answer.status, error.code, error.param], [status, code, param], JSON.stringify(body));
    }
    assert.deepEqual((await read(partner, '/v1/withdrawals')).data, []);
  });

  it('a list is filtered by state, account, reference and change, and pages to its end', async () => {
    const partner = await gateway.newPartner({ accounts: 2 });
    const [one = '', two = ''] = partner.accounts;
    const made: string[] = [];
    for (const [account, reference] of [
      [one, 'a'],
      [two, 'b'],
      [two, 'a'],
    ] as const) {
      const { body } = await gateway.withdraw(partner, { account, client_reference: reference });
      made.unshift(body.id);
    }
    const ids = async (query: string) =>
      (await read(partner, `/v1/withdrawals${query}`)).data.map(({ id }: { id: string }) => id);
    assert.deepEqual(await ids(''), made);
    assert.deepEqual(await ids(`?account=${two.toLowerCase()}`), made.slice(0, 2));
    assert.deepEqual(await ids('?client_reference=a'), [made[0], made[2]]);
    assert.deepEqual(await ids('?state=completed'), made);
    assert.deepEqual(await ids('?state=uncertain'), []);
    assert.deepEqual(await ids('?updated_since=2020-01-01T00:00:00Z'), made);
    const first = await read(partner, '/v1/withdrawals?limit=2');
    assert.deepEqual([first.has_more, first.data.length], [true, 2]);
    assert.deepEqual(await ids(`?limit=2&cursor=${encodeURIComponent(first.next_cursor)}`), [made[2]]);
    const another = await gateway.newPartner();
    for (const path of ['', '/history', '/events']) {
      const answer = await gateway.rest('GET', `/v1/withdrawals/${made[0]}${path}`, { key: another.key });
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'withdrawal_not_found']);
    }
  });

  it('operators are told of a sum of withdrawals, and of an entry, that somebody changed in the database', async () => {
    const partner = await gateway.newPartner();
    await gateway.withdraw(partner, { amount_kobo: 700 });
    const change = (kobo: number) =>
      gateway.database.write(
        statement('UPDATE wallets SET withdrawn_kobo = withdrawn_kobo + ? WHERE partner_id = ?', kobo, partner.id),
      );
    await change(1);
    const wrongSum = 'WRONG_SUM 0: the wallet has 701 kobo of withdrawals, and their entries come to 700';
    assert.deepEqual(await verifyLedger(admin, partner.id), [wrongSum]);
    await change(-1);
    const move = (destination: string) =>
      gateway.database.write(
        statement('UPDATE withdrawals SET destination = ? WHERE partner_id = ?', destination, partner.id),
      );
    await move('bank_account');
    assert.deepEqual(await verifyLedger(admin, partner.id), ['WITHDRAWAL 1: it is not that of a paid withdrawal']);
    await move('wallet');
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });

  it('operators find one with its ledger entry, and see its timeline', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.withdraw(partner, {});
    const { withdrawals } = await admin.diagnostics.findWithdrawals(
      { brokerReference: body.broker_reference },
      admin.options,
    );
    assert.deepEqual(
      withdrawals.map(({ withdrawal, partnerId, transfers }) => [withdrawal?.id, partnerId, transfers.length]),
      [[body.id, partner.id, 1]],
    );
    const timeline = await admin.diagnostics.getTimeline({ id: body.id }, admin.options);
    assert.equal(timeline.object.case, 'withdrawal');
    assert.ok(
      timeline.entries.some(({ kind }) => kind === 'withdrawal'),
      'its entry of the ledger is missing',
    );
  });
});

describe('a broker that takes no withdrawals', () => {
  it('has them refused before anything is stored, and its missing reports are no trouble', async () => {
    const gateway = await startGateway(
      {},
      {
        prepare: async (variables) => {
          const controls = createGrpcClient(Controls, variables.MARINA_SIMULATOR_ADDRESS ?? '', {});
          const none = { withdrawalsToWallet: false, withdrawalsToBankAccount: false };
          await controls.setCapabilities({ ...none, honoursNotAfter: true }, callTimeout);
          controls.close();
        },
      },
    );
    try {
      const partner = await gateway.newPartner();
      for (const destination of ['wallet', 'bank_account']) {
        const { status, body } = await gateway.withdraw(partner, { destination });
        assert.deepEqual([status, body.error.code], [403, 'feature_not_enabled']);
      }
      assert.deepEqual(await gateway.database.read(statement('SELECT id FROM withdrawals')), []);
      const { body: order } = await gateway.place(partner, { symbol: 'SIM-FILL' });
      await eventually(async () => {
        const { body } = await gateway.rest('GET', `/v1/orders/${order.id}`, { key: partner.key });
        assert.equal(body.state, 'filled');
      });
      const broken = gateway.logged.filter((line) => line.includes('the stream of reports broke'));
      assert.deepEqual(broken, []);
    } finally {
      await gateway.stop();
    }
  });
});
