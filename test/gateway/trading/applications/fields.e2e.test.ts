import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { CreateApplicationRequestSchema } from '../../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call as BrokerCall } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { goodApplication } from '../../../support/applications.ts';
import { type Call, type Members, raw } from '../../../support/e2e/calls.ts';
import type { FieldMistake } from '../../../support/e2e/field-mistakes.ts';
import { protocols, protocolsOf } from '../../../support/e2e/protocols.ts';
import type { Refusal } from '../../../support/e2e/refusals.ts';
import { useGateway } from '../../../support/e2e/suite.ts';
import { callTimeout, type TestPartner } from '../../../support/gateway.ts';
import { createKey } from '../../../support/keys.ts';

const names = CreateApplicationRequestSchema.fields.map(({ name }) => name);
const required = Object.keys(goodApplication);

/** Values that no field takes. */
const wrongValues: readonly (readonly [string, unknown])[] = [
  ['a number', 5],
  ['true', true],
  ['a list', ['Adaeze']],
  ['an object', {}],
  ['of 201 bytes', 'a'.repeat(201)],
  ['of 101 letters of two bytes', 'é'.repeat(101)],
  ['with NUL', 'A\u0000'],
  ['with an escaped lone surrogate', raw('"A\\ud800"')],
];

const mistakes: readonly FieldMistake[] = [
  ...names.flatMap((param) =>
    wrongValues.map(([name, value]) => ({ name: `${param} ${name}`, body: { [param]: value }, param })),
  ),
  ...required.flatMap((param) => [
    { name: `no ${param}`, body: { [param]: undefined }, code: 'missing_required_field' as const, param },
    { name: `${param} null`, body: { [param]: null }, code: 'missing_required_field' as const, param },
    { name: `${param} empty`, body: { [param]: '' }, param },
  ]),
  ...[
    ...['1990', '1990-13-01', '1990-00-10', '1990-04-31', '1990-02-30', '31-12-1990', '1990-1-1', ' 1990-12-31'],
    ...['1990-02-29', '1900-02-29', '1899-12-31', '0000-01-01', '0004-02-29', '1896-02-29', '2100-02-29'],
    ...[lagosDay(Date.now() + 48 * 3_600_000), '2999-12-31', '9999-12-31'],
  ].map((value) => ({ name: `date_of_birth ${value}`, body: { date_of_birth: value }, param: 'date_of_birth' })),
  {
    name: 'the first of two missing',
    body: { bvn: undefined, email: undefined },
    code: 'missing_required_field',
    param: 'email',
  },
  {
    name: 'one missing and an earlier one too long',
    body: { first_name: 'a'.repeat(201), bvn: undefined },
    code: 'missing_required_field',
    param: 'bvn',
  },
  { name: 'one of a wrong type and an earlier one missing', body: { first_name: undefined, nin: 1 }, param: 'nin' },
  { name: 'an unknown member', body: { id: 'app_x' }, param: 'id' },
  { name: 'a member in another case', body: { firstName: 'Adaeze' }, param: 'firstName' },
];

/** Values just inside the bounds. */
const good: readonly (readonly [string, Members])[] = [
  [
    'every field of 200 bytes that may be',
    Object.fromEntries(
      names
        .filter(
          (name) =>
            ![
              'date_of_birth',
              'state',
              'state_of_origin',
              'lga_of_origin',
              'bvn',
              'nin',
              'email',
              'phone',
              'next_of_kin_phone',
              'bank_account_number',
              'bank_code',
              'gender',
            ].includes(name),
        )
        .map((name) => [name, 'é'.repeat(100)]),
    ),
  ],
  ['optional fields that are null', { title: null, nin: null, bank_code: null }],
  ['a leap day', { date_of_birth: '2000-02-29' }],
  ['another leap day', { date_of_birth: '1996-02-29' }],
  ['the first day of birth', { date_of_birth: '1900-01-01' }],
  ['a customer born today in Lagos', { date_of_birth: lagosDay(Date.now()) }],
];

describe('the fields of createApplication', () => {
  const suite = useGateway();
  const key = 'the same key for all of them';
  const callWith = (members: Members, rest: Partial<Call> = {}): Call => ({
    operation: 'createApplication',
    idempotencyKey: [key],
    body: { ...goodApplication, ...members },
    ...rest,
  });

  for (const { name, body, code = 'invalid_request', param } of mistakes) {
    for (const protocol of protocolsOf(callWith(body))) {
      it(`${protocol}: ${name} is answered ${code} of ${param}`, () =>
        suite.protocols.refuses(protocol, { ...callWith(body), key: suite.partner.key }, { code, param }));
    }
  }

  it('nothing was stored or sent, and a good application takes the key they all had', async () => {
    const { database, controls } = suite.gateway;
    const rows = await database.read(statement('SELECT id FROM applications WHERE partner_id = ?', suite.partner.id));
    assert.deepEqual(rows, []);
    const { messages } = await controls.listMessages({}, callTimeout);
    assert.ok(messages.every(({ call }) => call !== BrokerCall.SUBMIT_APPLICATION));
    const { status, body } = await suite.protocols.answers('REST', callWith({}, { key: suite.partner.key }));
    assert.deepEqual([status, body.state], [201, 'documents_required']);
  });

  for (const [name, body] of good) {
    for (const protocol of protocols) {
      it(`${protocol}: ${name} is taken`, async () => {
        const call = callWith(body, { key: suite.partner.key, idempotencyKey: [`${protocol} ${name}`] });
        const answer = await suite.protocols.answers(protocol, call);
        assert.match(answer.body.id, /^app_[a-z2-7]{20}$/);
        assert.equal(answer.header('idempotent-replayed'), undefined);
        const again = await suite.protocols.answers(protocol, call);
        assert.equal(again.body.id, answer.body.id);
        assert.equal(again.header('idempotent-replayed'), 'true');
      });
    }
  }

  for (const protocol of protocols) {
    it(`${protocol}: a key used before is refused for another customer, whichever protocol it came through`, async () => {
      const call = callWith({}, { key: suite.partner.key, idempotencyKey: [`${protocol} shared`] });
      const first = await suite.protocols.answers(protocol, call);
      for (const other of protocols) {
        assert.equal((await suite.protocols.answers(other, call)).body.id, first.body.id);
        const changed = { ...call, body: { ...goodApplication, first_name: 'Another' } };
        await suite.protocols.refuses(other, changed, { code: 'duplicate_application', param: 'Idempotency-Key' });
      }
    });

    it(`${protocol}: an application is read and listed, and another partner's, or a malformed id, is not found`, async () => {
      const created = await suite.protocols.answers(
        protocol,
        callWith({}, { key: suite.partner.key, idempotencyKey: [`${protocol} read`] }),
      );
      const { id } = created.body;
      const read = await suite.protocols.answers(protocol, { operation: 'getApplication', id, key: suite.partner.key });
      assert.deepEqual(read.body, created.body);
      const list = await suite.protocols.answers(protocol, {
        operation: 'listApplications',
        key: suite.partner.key,
        query: { limit: '1' },
      });
      assert.deepEqual(list.body.data, [created.body]);
      const stranger = await suite.gateway.newPartner();
      const notFound: Refusal = { code: 'application_not_found' };
      await suite.protocols.refuses(protocol, { operation: 'getApplication', id, key: stranger.key }, notFound);
      for (const malformed of ['app_x', 'ord_abcdefghijklmnopqrst', 'app_ABCDEFGHIJKLMNOPQRST']) {
        await suite.protocols.refuses(
          protocol,
          { operation: 'getApplication', id: malformed, key: stranger.key },
          notFound,
        );
      }
    });
  }
});

/** Each reason to refuse together with all that come after it, in the decided order. */
describe('the order of checks of createApplication', () => {
  const suite = useGateway();
  const steps = ['credential', 'scope', 'feature', 'place', 'idempotency key', 'missing', 'range', 'same key'] as const;
  const refusals: Record<(typeof steps)[number], Refusal> = {
    credential: { code: 'unauthorized' },
    scope: { code: 'insufficient_scope' },
    feature: { code: 'feature_not_enabled' },
    place: { code: 'rate_limited' },
    'idempotency key': { code: 'invalid_request', param: 'Idempotency-Key' },
    missing: { code: 'missing_required_field', param: 'bvn' },
    range: { code: 'invalid_request', param: 'first_name' },
    'same key': { code: 'duplicate_application', param: 'Idempotency-Key' },
  };

  async function keyOf(partner: TestPartner, scopes: readonly Scope[]): Promise<string> {
    return (await createKey(suite.gateway.database, { partnerId: partner.id, scopes })).key;
  }

  for (const [at, step] of steps.entries()) {
    for (const protocol of protocols) {
      it(`${protocol}: ${step} comes before all that follows`, async () => {
        const faulty = new Set<string>(steps.slice(at));
        const partner = await suite.gateway.newPartner();
        const used = 'a key that was used for another';
        const call: Call = {
          operation: 'createApplication',
          key: partner.key,
          idempotencyKey: [used],
          body: goodApplication,
        };
        if (faulty.has('same key')) await suite.protocols.answers('REST', call);
        const { database } = suite.gateway;
        const changes = [
          ...(faulty.has('feature') ? [`features = ''`] : []),
          ...(faulty.has('place') ? ['requests_under_way = 0'] : []),
        ];
        for (const change of changes) {
          await database.write(statement(`UPDATE partners SET ${change} WHERE id = ?`, partner.id));
        }
        const key = faulty.has('credential')
          ? 'marina_test_nonsense'
          : await keyOf(partner, faulty.has('scope') ? [Scope.READ, Scope.TRADE] : [Scope.APPLY]);
        const body: Record<string, unknown> = { ...goodApplication, last_name: 'Another' };
        if (faulty.has('missing')) body.bvn = undefined;
        if (faulty.has('range')) body.first_name = '';
        const idempotencyKey = faulty.has('idempotency key') ? ['k'.repeat(256)] : [used];
        await suite.protocols.refuses(protocol, { ...call, key, body, idempotencyKey }, refusals[step]);
      });
    }
  }
});
