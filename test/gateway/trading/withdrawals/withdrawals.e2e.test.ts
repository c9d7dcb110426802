import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Feature, Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call as Received } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { type Call, type Members, type OperationName, raw } from '../../../support/e2e/calls.ts';
import type { FieldMistake } from '../../../support/e2e/field-mistakes.ts';
import { type Outcome, outcomeOf } from '../../../support/e2e/outcome.ts';
import { type Protocol, protocols, protocolsOf } from '../../../support/e2e/protocols.ts';
import type { Refusal } from '../../../support/e2e/refusals.ts';
import { type Suite, useGateway } from '../../../support/e2e/suite.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import { createKey } from '../../../support/keys.ts';

/** Amounts that decide what the simulated broker does with a withdrawal. */
const amounts = {
  atOnce: 998_001,
  later: 998_002,
  rejectedLater: 998_009,
  held: 998_010,
  lost: 998_015,
  late: 998_019,
};

const rejections = [
  [998_003, 'insufficient_withdrawable_funds'],
  [998_004, 'account_restricted'],
  [998_005, 'no_bank_account'],
  [998_006, 'bank_account_mismatch'],
  [998_007, 'account_not_at_broker'],
  [998_008, 'rejected_by_broker'],
] as const;

const each = (param: string, values: readonly (readonly [string, unknown])[]): FieldMistake[] =>
  values.map(([name, value]) => ({ name: `${param} ${name}`, body: { [param]: value }, param }));
const missing = (param: string): FieldMistake[] =>
  [undefined, null].map((value) => ({
    name: `${param} ${value}`,
    body: { [param]: value },
    code: 'missing_required_field',
    param,
  }));

const mistakes: readonly FieldMistake[] = [
  ...missing('account'),
  ...each('account', [
    ['a number', 5],
    ['a list', []],
    ['empty', ''],
    ['of 65 letters', 'A'.repeat(65)],
    ['with a hyphen', 'A-B'],
    ['with a space after it', 'ABC '],
    ['with NUL', 'A\u0000'],
    ['with a letter beyond ASCII', 'ABÇ'],
  ]),
  ...missing('amount_kobo'),
  ...each('amount_kobo', [
    ['0', 0],
    ['-1', -1],
    ['10,000,000,001', raw('10000000001')],
    ['2^53', raw('9007199254740992')],
    ['2^63', raw('9223372036854775808')],
    ['1.5', raw('1.5')],
    ['1e3', raw('1e3')],
    ['-0', raw('-0')],
    ['a text', '5'],
    ['true', true],
    ['a list', [5]],
  ]),
  ...missing('destination'),
  ...each('destination', [
    ['empty', ''],
    ['of no such name', 'cash'],
    ['in capitals', 'WALLET'],
    ['by the name in the proto', 'WITHDRAWAL_DESTINATION_WALLET'],
    ['unspecified', 'unspecified'],
    ['a number', 1],
    ['a list', ['wallet']],
  ]),
  ...each('client_reference', [
    ['a number', 5],
    ['empty', ''],
    ['of 65 characters', 'r'.repeat(65)],
    ['with a tab', 'a\tb'],
    ['with a letter beyond ASCII', 'référence'],
  ]),
  ...['id', 'amountKobo', 'amount', 'bank_code', 'bank_account_number', 'bank_account', '__proto__'].map((param) => ({
    name: `the unknown member ${param}`,
    body: Object.fromEntries([[param, 1]]),
    param,
  })),
  {
    name: 'three missing',
    body: { account: undefined, amount_kobo: undefined, destination: undefined },
    code: 'missing_required_field',
    param: 'account',
  },
  {
    name: 'one missing and an earlier one out of range',
    body: { amount_kobo: 0, destination: undefined },
    code: 'missing_required_field',
    param: 'destination',
  },
  { name: 'two out of range', body: { amount_kobo: 0, client_reference: '' }, param: 'amount_kobo' },
];

const idempotencyKeys: readonly (readonly [name: string, keys: readonly string[], code: Refusal['code']])[] = [
  ['none', [], 'missing_required_field'],
  ['an empty one', [''], 'missing_required_field'],
  ['one of 256 bytes', ['k'.repeat(256)], 'invalid_request'],
  ['two', ['one', 'two'], 'invalid_request'],
];

function goodBody({ account }: TestPartner): Members {
  return { account, amount_kobo: 1_000, destination: 'wallet' };
}

function create(partner: TestPartner, members: Members = {}, key = 'k'): Call {
  const body = { ...goodBody(partner), ...members };
  return { operation: 'createWithdrawal', key: partner.key, idempotencyKey: [key], body };
}

const bank = { destination: 'bank_account' };

/** Nothing was stored or sent, and the wallet is empty. */
async function assertUntouched({ gateway }: Suite, partner: TestPartner): Promise<void> {
  const { messages } = await gateway.controls.listMessages({}, callTimeout);
  const sent = messages.filter(
    ({ call, account }) => call === Received.SUBMIT_WITHDRAWAL && account === partner.account,
  );
  assert.equal(sent.length, 0);
  const { body } = await gateway.rest('GET', '/v1/wallet', { key: partner.key });
  assert.deepEqual([body.available_kobo, body.withdrawn_kobo], [0, 0]);
  const list = await gateway.rest('GET', '/v1/withdrawals', { key: partner.key });
  assert.deepEqual(list.body.data, []);
  const feed = await gateway.rest('GET', '/v1/events', { key: partner.key });
  assert.deepEqual(feed.body.data, []);
}

/** Keeps the reconciler from settling a partner's uncertain withdrawals for as long as a test runs. */
async function leaveUncertain({ gateway }: Suite, { id }: TestPartner): Promise<void> {
  const later = `UPDATE withdrawals SET check_at = NOW() + INTERVAL 1 DAY WHERE state = 'uncertain' AND partner_id = ?`;
  await gateway.database.write(statement(later, id));
}

describe('the fields of createWithdrawal', () => {
  const suite = useGateway();

  for (const { name, body, code = 'invalid_request', param } of mistakes) {
    const shape: Call = {
      operation: 'createWithdrawal',
      body: { ...goodBody({ account: 'A' } as TestPartner), ...body },
    };
    for (const protocol of protocolsOf(shape)) {
      it(`${protocol}: ${name} is answered ${code} of ${param}`, () =>
        suite.protocols.refuses(protocol, create(suite.partner, body), { code, param }));
    }
  }

  for (const [name, keys, code] of idempotencyKeys) {
    for (const protocol of protocols) {
      it(`${protocol}: with ${name} as Idempotency-Key it is answered ${code}`, () => {
        const call = { ...create(suite.partner), idempotencyKey: keys };
        return suite.protocols.refuses(protocol, call, { code, param: 'Idempotency-Key' });
      });
    }
  }

  it('nothing was stored or sent, and a good withdrawal takes the key they all had', async () => {
    await assertUntouched(suite, suite.partner);
    const { status, body } = await suite.protocols.answers('REST', create(suite.partner));
    assert.deepEqual([status, body.state], [201, 'completed']);
  });

  for (const protocol of protocols) {
    it(`${protocol}: the bounds of each field are taken, and an account in small letters`, async () => {
      const partner = await suite.gateway.newPartner();
      const least = await suite.protocols.answers(
        protocol,
        create(
          partner,
          { account: partner.account.toLowerCase(), amount_kobo: 1, client_reference: ' ' },
          'k'.repeat(255),
        ),
      );
      assert.deepEqual([least.body.account, Number(least.body.amount_kobo)], [partner.account, 1]);
      const reference = '~'.repeat(64);
      const most = { amount_kobo: raw('10000000000'), client_reference: reference };
      const { body } = await suite.protocols.answers(protocol, create(partner, most));
      assert.deepEqual([Number(body.amount_kobo), body.client_reference], [10_000_000_000, reference]);
    });
  }
});

describe('what a withdrawal is refused with', { concurrency: 4 }, () => {
  const suite = useGateway();

  for (const protocol of protocols) {
    it(`${protocol}: an account that is nobody's, or another partner's`, async () => {
      const [partner, other] = [await suite.gateway.newPartner(), await suite.gateway.newPartner()];
      for (const account of ['NOBODYS', other.account]) {
        await suite.protocols.refuses(protocol, create(partner, { account }), {
          code: 'unknown_account',
          param: 'account',
        });
      }
      await assertUntouched(suite, partner);
    });

    it(`${protocol}: a partner without the feature, and a key without the scope`, async () => {
      const without = await suite.gateway.newPartner({ features: [Feature.ACCOUNT_OPENING] });
      await suite.protocols.refuses(protocol, create(without), { code: 'feature_not_enabled' });
      await assertUntouched(suite, without);
      const others = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.KEYS];
      const scopeless = await suite.gateway.newPartner({ scopes: others });
      await suite.protocols.refuses(protocol, create(scopeless), { code: 'insufficient_scope' });
      await assertUntouched(suite, scopeless);
    });

    for (const [amount, reason] of rejections) {
      it(`${protocol}: the broker's rejection as ${reason}, again and again with its key`, async () => {
        const partner = await suite.gateway.newPartner();
        const refusal: Refusal = { code: 'withdrawal_rejected', rejectReason: reason, location: true };
        const call = create(partner, { amount_kobo: amount });
        for (const again of [protocol, ...protocols]) await suite.protocols.refuses(again, call, refusal);
        const { data } = (await suite.gateway.rest('GET', '/v1/withdrawals', { key: partner.key })).body;
        assert.deepEqual(
          data.map((one: Members) => [one.state, one.reject_reason, typeof one.reason]),
          [['rejected', reason, 'string']],
        );
        const { body } = await suite.gateway.rest('GET', '/v1/wallet', { key: partner.key });
        assert.deepEqual([body.available_kobo, body.withdrawn_kobo], [0, 0]);
      });
    }

    it(`${protocol}: one that the broker proves not to have, again and again with its key`, async () => {
      const partner = await suite.gateway.newPartner();
      const refusal: Refusal = { code: 'withdrawal_not_sent', location: true };
      const call = create(partner, { amount_kobo: amounts.late });
      for (const again of [protocol, ...protocols]) await suite.protocols.refuses(again, call, refusal);
      const { data } = (await suite.gateway.rest('GET', '/v1/withdrawals', { key: partner.key })).body;
      assert.deepEqual(
        data.map((one: Members) => [one.state, one.reject_reason]),
        [['refused', null]],
      );
      await suite.protocols.answers(protocol, create(partner, { amount_kobo: amounts.atOnce }, 'a new key'));
    });

    it(`${protocol}: one like an unclear one, of the same account, amount and destination`, async () => {
      const partner = await suite.gateway.newPartner({ accounts: 2 });
      const unclear = await suite.protocols.answers(protocol, create(partner, { amount_kobo: amounts.lost }));
      assert.ok(unclear.body.id);
      await leaveUncertain(suite, partner);
      const refusal: Refusal = { code: 'similar_withdrawal_unresolved' };
      const alike = { amount_kobo: amounts.lost, client_reference: 'another' };
      await suite.protocols.refuses(protocol, create(partner, alike, 'another'), refusal);
      const replay = await suite.protocols.answers(protocol, create(partner, { amount_kobo: amounts.lost }));
      assert.equal(replay.header('idempotent-replayed'), 'true');
      await suite.protocols.answers(protocol, create(partner, { amount_kobo: 7 }, 'another'));
      await suite.protocols.answers(protocol, create(partner, { amount_kobo: amounts.lost, ...bank }, 'to the bank'));
      const account = partner.accounts[1];
      await suite.protocols.answers(protocol, create(partner, { amount_kobo: amounts.lost, account }, 'other account'));
    });

    it(`${protocol}: a key of another withdrawal; the same one again is the first, whichever protocol it came through`, async () => {
      const partner = await suite.gateway.newPartner();
      const first = await suite.protocols.answers(protocol, create(partner));
      for (const again of protocols) {
        const replay = await suite.protocols.answers(
          again,
          create(partner, { account: partner.account.toLowerCase() }),
        );
        assert.equal(replay.body.id, first.body.id);
        assert.equal(replay.header('idempotent-replayed'), 'true');
        const refusal: Refusal = { code: 'duplicate_withdrawal', param: 'Idempotency-Key' };
        for (const other of [{ amount_kobo: 1_001 }, { client_reference: 'x' }, bank]) {
          await suite.protocols.refuses(again, create(partner, other), refusal);
        }
      }
      // A key belongs to the operation: an allocation may have it too.
      const key = 'k';
      const allocation: Call = { operation: 'createAllocation', key: partner.key, idempotencyKey: [key] };
      const made = { ...allocation, body: { account: partner.account, amount_kobo: 1_000 } };
      assert.equal((await suite.protocols.answers(protocol, made)).header('idempotent-replayed'), undefined);
    });

    it(`${protocol}: ids that are another's, nobody's, or no ids`, async () => {
      const [partner, other] = [await suite.gateway.newPartner(), await suite.gateway.newPartner()];
      const { body } = await suite.protocols.answers(protocol, create(partner));
      const refusal: Refusal = { code: 'withdrawal_not_found' };
      const reads: OperationName[] = ['getWithdrawal', 'getWithdrawalHistory', 'listWithdrawalEvents'];
      for (const operation of reads) {
        for (const id of [body.id, 'wdr_abcdefghijklmnopqrst', 'wdr_x', 'alc_abcdefghijklmnopqrst']) {
          await suite.protocols.refuses(protocol, { operation, id, key: other.key }, refusal);
        }
      }
    });
  }
});

/** Each reason to refuse together with all that come after it, in the decided order. */
describe('the order of checks of createWithdrawal', () => {
  const suite = useGateway();
  const steps = [
    'credential',
    'scope',
    'feature',
    'place',
    'idempotency key',
    'missing',
    'range',
    'same key',
    'pause',
    'account',
    'similar',
  ] as const;
  const refusals: Record<(typeof steps)[number], Refusal> = {
    credential: { code: 'unauthorized' },
    scope: { code: 'insufficient_scope' },
    feature: { code: 'feature_not_enabled' },
    place: { code: 'rate_limited' },
    'idempotency key': { code: 'invalid_request', param: 'Idempotency-Key' },
    missing: { code: 'missing_required_field', param: 'account' },
    range: { code: 'invalid_request', param: 'client_reference' },
    'same key': { code: 'duplicate_withdrawal', param: 'Idempotency-Key' },
    pause: { code: 'trading_paused' },
    account: { code: 'unknown_account', param: 'account' },
    similar: { code: 'similar_withdrawal_unresolved' },
  };

  for (const [at, step] of steps.entries()) {
    it(`${step} comes before all that follows, over every protocol`, async () => {
      const faulty = new Set<string>(steps.slice(at));
      const { gateway } = suite;
      const partner = await gateway.newPartner();
      const change = (sql: string) =>
        gateway.database.write(statement(`UPDATE partners SET ${sql} WHERE id = ?`, partner.id));
      const used = 'a key that was used for another';
      if (faulty.has('same key')) await suite.protocols.answers('REST', create(partner, { amount_kobo: 3 }, used));
      if (faulty.has('similar')) {
        await suite.protocols.answers('REST', create(partner, { amount_kobo: amounts.lost }, 'unclear'));
        await leaveUncertain(suite, partner);
      }
      if (faulty.has('feature')) await change(`features = 'account_opening'`);
      if (faulty.has('place')) await change('requests_under_way = 0');
      const body: Record<string, unknown> = { ...goodBody(partner), amount_kobo: amounts.lost };
      if (faulty.has('account')) body.account = 'NOBODYS';
      if (faulty.has('missing')) body.account = undefined;
      if (faulty.has('range')) body.client_reference = '';
      const scopes = faulty.has('scope') ? [Scope.READ, Scope.FUND] : [Scope.WITHDRAW];
      const { key } = await createKey(gateway.database, { partnerId: partner.id, scopes });
      const idempotencyKey = faulty.has('idempotency key') ? ['k'.repeat(256)] : [used];
      const call: Call = {
        operation: 'createWithdrawal',
        key: faulty.has('credential') ? 'marina_test_nonsense' : key,
        idempotencyKey,
        body,
      };
      const admin = adminClient(gateway.app.adminPort);
      try {
        if (faulty.has('pause')) await admin.trading.pauseTrading({}, admin.options);
        for (const protocol of protocols) await suite.protocols.refuses(protocol, call, refusals[step]);
      } finally {
        await admin.trading.resumeTrading({}, admin.options);
        admin.close();
      }
    });
  }

  it('while trading is paused nothing is stored, and a key that was used is answered with its withdrawal', async () => {
    const partner = await suite.gateway.newPartner();
    const paid = await suite.protocols.answers('REST', create(partner, {}, 'paid'));
    const rejected = create(partner, { amount_kobo: 998_004 }, 'rejected');
    const refusal: Refusal = { code: 'withdrawal_rejected', rejectReason: 'account_restricted', location: true };
    await suite.protocols.refuses('REST', rejected, refusal);
    const admin = adminClient(suite.gateway.app.adminPort);
    try {
      await admin.trading.pauseTrading({}, admin.options);
      for (const protocol of protocols) {
        await suite.protocols.refuses(protocol, create(partner, {}, 'new'), { code: 'trading_paused' });
        const replay = await suite.protocols.answers(protocol, create(partner, {}, 'paid'));
        assert.deepEqual([replay.body.id, replay.header('idempotent-replayed')], [paid.body.id, 'true']);
        await suite.protocols.refuses(protocol, rejected, refusal);
        await suite.protocols.answers(protocol, { operation: 'listWithdrawals', key: partner.key });
      }
    } finally {
      await admin.trading.resumeTrading({}, admin.options);
      admin.close();
    }
    const { data } = (await suite.gateway.rest('GET', '/v1/withdrawals', { key: partner.key })).body;
    assert.equal(data.length, 2);
  });
});

/** A withdrawal and everything that partners see of it. */
interface Course {
  readonly name: string;
  readonly members: Members;
  /** The decisions of the broker and the bank, each after the state of the same place. */
  readonly decisions?: readonly ('paid' | 'rejected' | 'returned')[];
  readonly states: readonly string[];
  readonly rejectReason?: string;
  /** The amount that the wallet gains. */
  readonly credited?: number;
}

const courses: readonly Course[] = [
  { name: 'to the wallet', members: {}, states: ['completed'], credited: 1_000 },
  {
    name: 'to the wallet, a moment later',
    members: { amount_kobo: amounts.later },
    states: ['processing', 'completed'],
    credited: amounts.later,
  },
  { name: 'to the bank', members: bank, states: ['processing', 'completed'] },
  { name: 'to the bank at once', members: { ...bank, amount_kobo: amounts.atOnce }, states: ['completed'] },
  {
    name: 'rejected a moment later',
    members: { amount_kobo: amounts.rejectedLater },
    states: ['processing', 'rejected'],
    rejectReason: 'rejected_by_broker',
  },
  {
    name: 'held, and then paid to the wallet',
    members: { amount_kobo: amounts.held },
    decisions: ['paid'],
    states: ['processing', 'completed'],
    credited: amounts.held,
  },
  {
    name: 'held, and then rejected',
    members: { ...bank, amount_kobo: amounts.held },
    decisions: ['rejected'],
    states: ['processing', 'rejected'],
    rejectReason: 'bank_account_mismatch',
  },
  {
    name: 'paid to the bank, which sends it back',
    members: { ...bank, amount_kobo: amounts.held },
    decisions: ['paid', 'returned'],
    states: ['processing', 'completed', 'returned'],
  },
];

describe('the course of a withdrawal', { concurrency: 4 }, () => {
  const suite = useGateway();

  for (const { name, members, decisions = [], states, rejectReason = null, credited = 0 } of courses) {
    for (const protocol of protocols) {
      it(`${protocol}: ${name} it is ${states.join(', then ')}`, async () => {
        const { gateway, protocols: over } = suite;
        const partner = await gateway.newPartner();
        const { key } = partner;
        const get = async (path: string) => (await gateway.rest('GET', path, { key })).body;
        const { id } = (await over.answers(protocol, create(partner, members))).body;
        const path = `/v1/withdrawals/${id}`;
        const until = (state: string) => eventually(async () => assert.equal((await get(path)).state, state));
        for (const [at, decision] of decisions.entries()) {
          await until(states[at] ?? '');
          const reason = decision === 'rejected' ? { reject_reason: rejectReason } : {};
          await over.answers(protocol, { operation: 'decideWithdrawal', key, id, body: { decision, ...reason } });
        }
        await until(states.at(-1) ?? '');
        const object = await get(path);
        assert.deepEqual([object.reject_reason, typeof object.broker_reference], [rejectReason, 'string']);

        const types = states.map((state) => `withdrawal.${state}`);
        for (const feed of [`${path}/events`, '/v1/events']) {
          const { data: events } = await eventually(async () => {
            const found = await get(feed);
            assert.deepEqual(
              found.data.map(({ type }: Members) => type),
              types,
            );
            return found;
          });
          assert.deepEqual(events.at(-1).data, object, 'the last event shows the withdrawal as GET does');
        }

        const { data: steps } = await get(`${path}/history`);
        assert.deepEqual(
          steps.map(({ sequence }: Members) => sequence),
          steps.map((_: unknown, at: number) => at + 1),
        );
        assert.deepEqual([steps[0].kind, steps[0].state, steps.at(-1).state], ['stored', 'sending', states.at(-1)]);
        for (const kind of ['sent', 'report'])
          assert.ok(
            steps.some((step: Members) => step.kind === kind),
            kind,
          );

        const { data: entries } = await get('/v1/wallet/transfers');
        const expected = credited === 0 ? [] : [['withdrawal', credited, credited, id, partner.account, null, null]];
        assert.deepEqual(
          entries.map((entry: Members) => [
            ...[entry.type, entry.amount_kobo, entry.available_change_kobo, entry.withdrawal, entry.account],
            ...[entry.allocation, entry.bank_reference],
          ]),
          expected,
        );
        const wallet = await get('/v1/wallet');
        assert.deepEqual(
          [wallet.available_kobo, wallet.reserved_kobo, wallet.posted_kobo, wallet.withdrawn_kobo],
          [credited, 0, 0, credited],
        );
      });
    }
  }
});

describe('every protocol answers alike about withdrawals', () => {
  const suite = useGateway({}, { accounts: 2 });
  let paid: string;
  let fundKey: string;

  before(async () => {
    const { gateway, partner } = suite;
    const made = await gateway.withdraw(partner, { amount_kobo: 4_321, client_reference: 'a ref' }, 'paid');
    paid = made.body.id;
    await gateway.withdraw(partner, { amount_kobo: amounts.held, account: partner.accounts[1], ...bank });
    fundKey = (await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.FUND] })).key;
    await eventually(async () => {
      const { body } = await gateway.rest('GET', '/v1/events', { key: partner.key });
      assert.equal(body.data.length, 2);
    });
  });

  /** One call, the same through every protocol. */
  interface Case {
    readonly name: string;
    readonly call: (protocol: Protocol) => Omit<Call, 'key'> & { readonly key?: string };
    /** The error code of the answer; absent: the call is answered. */
    readonly code?: string;
    /** How many objects the answer lists. */
    readonly count?: number;
    /** It makes a withdrawal of its own through each protocol, so that what is made there differs. */
    readonly isNew?: true;
  }
  const withdraw = (members: Members, key?: string): Case['call'] => {
    return (protocol) => create(suite.partner, members, key ?? `${protocol} ${JSON.stringify(members)}`);
  };
  const list =
    (query: Record<string, string> | (() => Record<string, string>)): Case['call'] =>
    () => ({ operation: 'listWithdrawals', query: typeof query === 'function' ? query() : query });
  const cases: readonly Case[] = [
    { name: 'a withdrawal, read', call: () => ({ operation: 'getWithdrawal', id: paid }) },
    { name: 'its history', call: () => ({ operation: 'getWithdrawalHistory', id: paid }), count: 3 },
    { name: 'its events', call: () => ({ operation: 'listWithdrawalEvents', id: paid }), count: 1 },
    { name: 'a page of withdrawals', call: list({}), count: 2 },
    { name: 'those of a state', call: list({ state: 'processing' }), count: 1 },
    ...['sending', 'uncertain', 'rejected', 'refused', 'returned'].map((state): Case => {
      return { name: `those that are ${state}`, call: list({ state }), count: 0 };
    }),
    { name: 'by its reference', call: list({ client_reference: 'a ref' }), count: 1 },
    { name: 'by a part of its reference', call: list({ client_reference: 'a re' }), count: 0 },
    { name: 'by its account', call: list(() => ({ account: suite.partner.account.toLowerCase() })), count: 1 },
    { name: 'by an account of nobody', call: list({ account: 'NONE' }), count: 0 },
    { name: 'by its change', call: list({ updated_since: '2020-01-01T00:00:00Z' }), count: 2 },
    { name: 'by a later change', call: list({ updated_since: '2190-01-01T00:00:00Z' }), count: 0 },
    {
      name: 'by all filters at once',
      call: list(() => ({
        ...{ state: 'completed', account: suite.partner.account, client_reference: 'a ref' },
        updated_since: '2020-01-01T00:00:00Z',
      })),
      count: 1,
    },
    { name: 'a page of one', call: list({ limit: '1' }), count: 1 },
    { name: 'the wallet', call: () => ({ operation: 'getWallet' }) },
    { name: 'the ledger', call: () => ({ operation: 'listTransfers' }), count: 1 },
    { name: 'the feed', call: () => ({ operation: 'listEvents' }), count: 2 },
    { name: 'the limits', call: () => ({ operation: 'getLimits' }) },
    { name: 'a withdrawal seen before', call: withdraw({ amount_kobo: 4_321, client_reference: 'a ref' }, 'paid') },
    { name: 'a withdrawal of another key', call: withdraw({ amount_kobo: 1 }, 'paid'), code: 'duplicate_withdrawal' },
    { name: 'an unknown state', call: list({ state: 'x' }), code: 'invalid_request' },
    { name: 'a state of allocations', call: list({ state: 'booked' }), code: 'invalid_request' },
    { name: 'an empty reference', call: list({ client_reference: '' }), code: 'invalid_request' },
    { name: 'a cursor of none', call: list({ cursor: 'x' }), code: 'invalid_request' },
    { name: 'a limit of 101', call: list({ limit: '101' }), code: 'invalid_request' },
    {
      name: 'the wrong scope to read',
      call: () => ({ operation: 'listWithdrawals', key: fundKey }),
      code: 'insufficient_scope',
    },
    {
      name: 'the wrong scope to withdraw',
      call: (protocol) => ({ ...withdraw({})(protocol), key: fundKey }),
      code: 'insufficient_scope',
    },
    { name: 'a new withdrawal', call: withdraw({}), isNew: true },
    { name: 'a new withdrawal that is held', call: withdraw({ amount_kobo: amounts.held }), isNew: true },
    {
      name: 'one that is rejected',
      call: withdraw({ amount_kobo: 998_005, ...bank }),
      code: 'withdrawal_rejected',
      isNew: true,
    },
    {
      name: 'one that is not sent',
      call: withdraw({ amount_kobo: amounts.late }),
      code: 'withdrawal_not_sent',
      isNew: true,
    },
  ];

  /** Masks the members that differ between two withdrawals that are otherwise the same. */
  function masked({ answer, location, ...rest }: Outcome): Outcome {
    const mask = (text: string | undefined) =>
      text
        ?.replaceAll(/wdr_[a-z2-7]{20}/g, 'wdr_*')
        .replaceAll(/"broker_reference":"[^"]+"/g, '"broker_reference":"*"')
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '*');
    return { ...rest, ...(answer === undefined ? {} : { answer: mask(answer) ?? '' }), location: mask(location) };
  }

  for (const { name, call, code, count, isNew } of cases) {
    it(`${name}: ${code ?? 'answered'}`, async () => {
      const outcomes: Outcome[] = [];
      for (const protocol of protocols) {
        const outcome = await outcomeOf(suite.protocols, protocol, { key: suite.partner.key, ...call(protocol) });
        outcomes.push(isNew ? masked(outcome) : outcome);
      }
      const [first, ...others] = outcomes;
      assert.equal(first?.error?.code, code, JSON.stringify(first));
      if (count !== undefined) assert.equal(JSON.parse(first?.answer ?? '').data.length, count);
      for (const [at, other] of others.entries()) assert.deepEqual(other, first, protocols[at + 1]);
    });
  }

  it('the limits name the largest withdrawal', async () => {
    const { body } = await suite.gateway.rest('GET', '/v1/limits', { key: suite.partner.key });
    assert.equal(body.per_request.withdrawal_kobo, 10_000_000_000);
  });
});
