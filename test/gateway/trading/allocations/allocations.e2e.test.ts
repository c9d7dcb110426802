import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call as Received } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { type Call, type Members, raw } from '../../../support/e2e/calls.ts';
import type { FieldMistake } from '../../../support/e2e/field-mistakes.ts';
import { type Outcome, outcomeOf } from '../../../support/e2e/outcome.ts';
import { type Protocol, protocols, protocolsOf } from '../../../support/e2e/protocols.ts';
import type { Refusal } from '../../../support/e2e/refusals.ts';
import { type Suite, useGateway } from '../../../support/e2e/suite.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import { createKey } from '../../../support/keys.ts';

/** An allocation of this much hangs at the simulated broker, and one of that much is rejected. */
const hangs = 999_005;
const rejected = 999_002;

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
  ...each('client_reference', [
    ['a number', 5],
    ['empty', ''],
    ['of 65 characters', 'r'.repeat(65)],
    ['with a tab', 'a\tb'],
    ['with a letter beyond ASCII', 'référence'],
  ]),
  ...['id', 'amountKobo', 'amount', 'symbol', '__proto__'].map((param) => ({
    name: `the unknown member ${param}`,
    body: Object.fromEntries([[param, 1]]),
    param,
  })),
  {
    name: 'two missing',
    body: { account: undefined, amount_kobo: undefined },
    code: 'missing_required_field',
    param: 'account',
  },
  {
    name: 'one missing and an earlier one out of range',
    body: { account: '', amount_kobo: undefined },
    code: 'missing_required_field',
    param: 'amount_kobo',
  },
  { name: 'two out of range', body: { amount_kobo: 0, client_reference: '' }, param: 'amount_kobo' },
];

function goodBody({ account }: TestPartner): Members {
  return { account, amount_kobo: 1_000 };
}

function create(partner: TestPartner, members: Members = {}, key = 'k'): Call {
  const body = { ...goodBody(partner), ...members };
  return { operation: 'createAllocation', key: partner.key, idempotencyKey: [key], body };
}

async function fundedPartner(suite: Suite, kobo = 10_000_000n): Promise<TestPartner> {
  const partner = await suite.gateway.newPartner();
  await suite.gateway.fund(partner, kobo);
  return partner;
}

/** Nothing was stored or sent, and the wallet is what it was. */
async function assertUntouched({ gateway }: Suite, partner: TestPartner, kobo = 10_000_000): Promise<void> {
  const { messages } = await gateway.controls.listMessages({}, callTimeout);
  const sent = messages.filter(
    ({ call, account }) => call === Received.SUBMIT_ALLOCATION && account === partner.account,
  );
  assert.equal(sent.length, 0);
  const { body } = await gateway.rest('GET', '/v1/wallet', { key: partner.key });
  assert.deepEqual([body.available_kobo, body.reserved_kobo], [kobo, 0]);
  const list = await gateway.rest('GET', '/v1/allocations', { key: partner.key });
  assert.deepEqual(list.body.data, []);
}

describe('the fields of createAllocation', () => {
  const suite = useGateway();
  before(() => suite.gateway.fund(suite.partner, 10_000_000n));

  for (const { name, body, code = 'invalid_request', param } of mistakes) {
    const shape: Call = { operation: 'createAllocation', body: { account: 'A', amount_kobo: 1, ...body } };
    for (const protocol of protocolsOf(shape)) {
      it(`${protocol}: ${name} is answered ${code} of ${param}`, () =>
        suite.protocols.refuses(protocol, create(suite.partner, body), { code, param }));
    }
  }

  it('nothing was stored or sent, and a good allocation takes the key they all had', async () => {
    await assertUntouched(suite, suite.partner);
    const { status, body } = await suite.protocols.answers('REST', create(suite.partner));
    assert.deepEqual([status, body.state], [201, 'booked']);
  });
});

describe('what an allocation is refused with', { concurrency: 4 }, () => {
  const suite = useGateway();

  for (const protocol of protocols) {
    it(`${protocol}: too little in the wallet, and its last kobo`, async () => {
      const partner = await fundedPartner(suite, 5_000n);
      await suite.protocols.refuses(protocol, create(partner, { amount_kobo: 5_001 }), { code: 'wallet_too_low' });
      await assertUntouched(suite, partner, 5_000);
      await suite.protocols.answers(protocol, create(partner, { amount_kobo: 5_000 }));
    });

    it(`${protocol}: an account that is nobody's, or another partner's`, async () => {
      const [partner, other] = [await fundedPartner(suite), await suite.gateway.newPartner()];
      for (const account of ['NOBODYS', other.account]) {
        await suite.protocols.refuses(protocol, create(partner, { account }), {
          code: 'unknown_account',
          param: 'account',
        });
      }
      await assertUntouched(suite, partner);
    });

    it(`${protocol}: the broker's rejection, again and again with its key`, async () => {
      const partner = await fundedPartner(suite);
      const refusal: Refusal = { code: 'allocation_rejected', rejectReason: 'account_restricted', location: true };
      await suite.protocols.refuses(protocol, create(partner, { amount_kobo: rejected }), refusal);
      for (const again of protocols) {
        await suite.protocols.refuses(again, create(partner, { amount_kobo: rejected }), refusal);
      }
      const { body } = await suite.gateway.rest('GET', '/v1/wallet', { key: partner.key });
      assert.deepEqual([body.available_kobo, body.reserved_kobo], [10_000_000, 0]);
    });

    it(`${protocol}: one like an unclear one`, async () => {
      const partner = await fundedPartner(suite);
      const unclear = await suite.protocols.answers(protocol, create(partner, { amount_kobo: hangs }));
      assert.ok(unclear.body.id);
      const refusal: Refusal = { code: 'similar_allocation_unresolved' };
      await suite.protocols.refuses(protocol, create(partner, { amount_kobo: hangs }, 'another'), refusal);
      await suite.protocols.answers(protocol, create(partner, { amount_kobo: 7 }, 'another'));
    });

    it(`${protocol}: a key of another allocation; the same one again is the first, whichever protocol it came through`, async () => {
      const partner = await fundedPartner(suite);
      const first = await suite.protocols.answers(protocol, create(partner));
      for (const again of protocols) {
        const replay = await suite.protocols.answers(again, create(partner));
        assert.equal(replay.body.id, first.body.id);
        assert.equal(replay.header('idempotent-replayed'), 'true');
        const refusal: Refusal = { code: 'duplicate_allocation', param: 'Idempotency-Key' };
        await suite.protocols.refuses(again, create(partner, { amount_kobo: 1_001 }), refusal);
        await suite.protocols.refuses(again, create(partner, { client_reference: 'x' }), refusal);
      }
    });

    it(`${protocol}: ids that are another's, nobody's, or no ids`, async () => {
      const [partner, stranger] = [await fundedPartner(suite), await suite.gateway.newPartner()];
      const { body } = await suite.protocols.answers(protocol, create(partner));
      const refusal: Refusal = { code: 'allocation_not_found' };
      for (const id of [body.id, 'alc_abcdefghijklmnopqrst', 'alc_x', 'ord_abcdefghijklmnopqrst']) {
        await suite.protocols.refuses(protocol, { operation: 'getAllocation', id, key: stranger.key }, refusal);
      }
    });
  }
});

/** Each reason to refuse together with all that come after it, in the decided order. */
describe('the order of checks of createAllocation', () => {
  const suite = useGateway();
  const steps = [
    'credential',
    'scope',
    'place',
    'idempotency key',
    'missing',
    'range',
    'same key',
    'pause',
    'account',
    'similar',
    'limit',
    'wallet',
  ] as const;
  const refusals: Record<(typeof steps)[number], Refusal> = {
    credential: { code: 'unauthorized' },
    scope: { code: 'insufficient_scope' },
    place: { code: 'rate_limited' },
    'idempotency key': { code: 'invalid_request', param: 'Idempotency-Key' },
    missing: { code: 'missing_required_field', param: 'account' },
    range: { code: 'invalid_request', param: 'client_reference' },
    'same key': { code: 'duplicate_allocation', param: 'Idempotency-Key' },
    pause: { code: 'trading_paused' },
    account: { code: 'unknown_account', param: 'account' },
    similar: { code: 'similar_allocation_unresolved' },
    limit: { code: 'limit_exceeded' },
    wallet: { code: 'wallet_too_low' },
  };

  for (const [at, step] of steps.entries()) {
    it(`${step} comes before all that follows, over every protocol`, async () => {
      const faulty = new Set<string>(steps.slice(at));
      const { gateway } = suite;
      const partner = await fundedPartner(suite);
      const change = (sql: string) =>
        gateway.database.write(
          statement(`UPDATE ${sql} WHERE ${sql.startsWith('partners') ? 'id' : 'partner_id'} = ?`, partner.id),
        );
      const used = 'a key that was used for another';
      if (faulty.has('same key')) await suite.protocols.answers('REST', create(partner, { amount_kobo: 3 }, used));
      if (faulty.has('similar'))
        await suite.protocols.answers('REST', create(partner, { amount_kobo: hangs }, 'unclear'));
      // The reconciler leaves it alone for as long as this test runs.
      if (faulty.has('similar'))
        await change(`allocations SET check_at = IF(state = 'uncertain', NOW() + INTERVAL 1 DAY, check_at)`);
      if (faulty.has('limit')) await change('partners SET allocations_kobo_per_day = 1');
      if (faulty.has('place')) await change('partners SET requests_under_way = 0');
      const body: Record<string, unknown> = { ...goodBody(partner), amount_kobo: hangs };
      if (step === 'wallet') body.amount_kobo = 10_000_001;
      if (faulty.has('account')) body.account = 'NOBODYS';
      if (faulty.has('missing')) body.account = undefined;
      if (faulty.has('range')) body.client_reference = '';
      const scopes = faulty.has('scope') ? [Scope.READ, Scope.TRADE] : [Scope.FUND];
      const { key } = await createKey(gateway.database, { partnerId: partner.id, scopes });
      const idempotencyKey = faulty.has('idempotency key') ? ['k'.repeat(256)] : [used];
      const call: Call = {
        operation: 'createAllocation',
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
});

describe('every protocol answers alike about money', () => {
  const suite = useGateway({}, { limits: { allocationsKoboPerDay: 5_000_000n } });
  let booked: string;
  let tradeKey: string;

  before(async () => {
    const { gateway, partner } = suite;
    await gateway.fund(partner, 100_000_000n);
    const made = await gateway.allocate(partner, { amount_kobo: 4_321, client_reference: 'a ref' }, 'booked');
    booked = made.body.id;
    tradeKey = (await createKey(gateway.database, { partnerId: partner.id, scopes: [Scope.TRADE] })).key;
    await eventually(async () => {
      const { body } = await gateway.rest('GET', '/v1/events', { key: partner.key });
      assert.equal(body.data.length, 1);
    });
  });

  /** One call, the same through every protocol. */
  interface Case {
    readonly name: string;
    readonly call: (protocol: Protocol) => Omit<Call, 'key'> & { readonly key?: string };
    /** The error code of the answer; absent: the call is answered. */
    readonly code?: string;
    /** It makes an allocation of its own through each protocol, so that what is made there differs. */
    readonly isNew?: true;
  }
  const allocate = (members: Members, key?: string): Case['call'] => {
    return (protocol) => create(suite.partner, members, key ?? `${protocol} ${JSON.stringify(members)}`);
  };
  const cases: readonly Case[] = [
    { name: 'an allocation, read', call: () => ({ operation: 'getAllocation', id: booked }) },
    { name: 'a page of allocations', call: () => ({ operation: 'listAllocations', query: { state: 'booked' } }) },
    { name: 'by its reference', call: () => ({ operation: 'listAllocations', query: { client_reference: 'a ref' } }) },
    { name: 'an empty page', call: () => ({ operation: 'listAllocations', query: { account: 'NONE' } }) },
    { name: 'the wallet', call: () => ({ operation: 'getWallet' }) },
    { name: 'the ledger', call: () => ({ operation: 'listTransfers' }) },
    { name: 'a page of the ledger', call: () => ({ operation: 'listTransfers', query: { limit: '1' } }) },
    { name: 'the feed', call: () => ({ operation: 'listEvents' }) },
    { name: 'an allocation seen before', call: allocate({ amount_kobo: 4_321, client_reference: 'a ref' }, 'booked') },
    {
      name: 'an allocation of another key',
      call: allocate({ amount_kobo: 1 }, 'booked'),
      code: 'duplicate_allocation',
    },
    { name: 'past the day', call: allocate({ amount_kobo: 5_000_000 }), code: 'limit_exceeded' },
    {
      name: 'an unknown state',
      call: () => ({ operation: 'listAllocations', query: { state: 'x' } }),
      code: 'invalid_request',
    },
    {
      name: 'a cursor of none',
      call: () => ({ operation: 'listTransfers', query: { cursor: 'x' } }),
      code: 'invalid_request',
    },
    {
      name: 'a limit of 101',
      call: () => ({ operation: 'listTransfers', query: { limit: '101' } }),
      code: 'invalid_request',
    },
    { name: 'the wrong scope', call: () => ({ operation: 'getWallet', key: tradeKey }), code: 'insufficient_scope' },
    {
      name: 'the wrong scope for an allocation',
      call: (protocol) => ({ ...allocate({})(protocol), key: tradeKey }),
      code: 'insufficient_scope',
    },
    { name: 'a new allocation', call: allocate({}), isNew: true },
    {
      name: 'one that is rejected',
      call: allocate({ amount_kobo: rejected }),
      code: 'allocation_rejected',
      isNew: true,
    },
  ];

  /** Masks the members that differ between two allocations that are otherwise the same. */
  function masked({ answer, location, ...rest }: Outcome): Outcome {
    const mask = (text: string | undefined) =>
      text
        ?.replaceAll(/alc_[a-z2-7]{20}/g, 'alc_*')
        .replaceAll(/"broker_reference":"[^"]+"/g, '"broker_reference":"*"')
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '*');
    return { ...rest, ...(answer === undefined ? {} : { answer: mask(answer) ?? '' }), location: mask(location) };
  }

  for (const { name, call, code, isNew } of cases) {
    it(`${name}: ${code ?? 'answered'}`, async () => {
      const outcomes: Outcome[] = [];
      for (const protocol of protocols) {
        const outcome = await outcomeOf(suite.protocols, protocol, { key: suite.partner.key, ...call(protocol) });
        outcomes.push(isNew ? masked(outcome) : outcome);
      }
      const [first, ...others] = outcomes;
      assert.equal(first?.error?.code, code, JSON.stringify(first));
      for (const [at, other] of others.entries()) assert.deepEqual(other, first, protocols[at + 1]);
    });
  }
});
