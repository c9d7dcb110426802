import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { eventually } from '../../../support/eventually.ts';
import { operatorToken } from '../../../support/gateway.ts';
import { TestOperator } from '../../../support/operator.ts';
import { operatorTokens } from '../../../support/two-operators.ts';

const adas = ['ada-operator-token-0123456789ab', 'ada-second-token-0123456789abcd'] as const;
const bolas = 'bola-operator-token-0123456789ab';
const badTexts = {
  NUL: 'a\u0000b',
  C1: 'a\u0085b',
  bidi: 'a\u202eb',
  'zero-width': 'a\u200bb',
  'a line break': 'a\nb',
};

describe('what operators write', () => {
  let operator: TestOperator;
  before(async () => {
    operator = await TestOperator.start({ MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`) });
  });
  after(() => operator.stop());

  it('is refused in each text of each call if it cannot be seen, and the field is named', async () => {
    const { client } = operator;
    let texts = 0;
    for (const { name, isStream, fields } of client.calls('marina.admin.v1.')) {
      if (isStream) continue;
      for (const field of fields) {
        for (const value of ['a\u200bb', ['a\u200bb']] satisfies JsonValue[]) {
          const error = await operator.call(name, { [field]: value }).then(
            () => undefined,
            (thrown: unknown) => thrown as ServiceError,
          );
          // A field of another type has no such value, so the call is not made.
          if (error !== undefined && error.code === undefined) continue;
          texts += 1;
          assert.equal(error?.code, status.INVALID_ARGUMENT, `${name} ${field}`);
          const named = client.violations(error as ServiceError).map((violation) => violation.field);
          assert.deepEqual(named, [typeof value === 'string' ? field : `${field}[0]`], name);
        }
      }
    }
    assert.ok(texts > 60, `only ${texts} texts were tried`);
  });

  for (const [kind, text] of Object.entries(badTexts)) {
    it(`is refused with ${kind} in a name, a reason and a reference, and nothing is done`, async () => {
      const { partner } = await operator.call('Partners.CreatePartner', { name: 'Acme', reason: 'a contract' });
      const cases: [string, JsonObject, string][] = [
        ['Partners.CreatePartner', { name: text }, 'name'],
        ['Partners.CreatePartner', { name: 'a', reason: text }, 'reason'],
        ['Partners.SuspendPartner', { partner_id: partner.id, reason: text }, 'reason'],
        ['Wallets.CreditWallet', { partner_id: partner.id, amount_kobo: '1', bank_reference: text }, 'bank_reference'],
        ['Trading.PauseTrading', { reason: text }, 'reason'],
      ];
      for (const [name, request, field] of cases) {
        const error = await operator.refused(name, request);
        assert.equal(error.code, status.INVALID_ARGUMENT, name);
        const named = operator.client.violations(error).map((violation) => violation.field);
        assert.deepEqual(named, [field], name);
      }
      const { partner: same } = await operator.call('Partners.GetPartner', { partner_id: partner.id });
      assert.deepEqual([same.name, same.state], ['Acme', partner.state]);
    });
  }

  it('may be evidence of several lines', async () => {
    const outcome = { application: { state: 'SETTLED_APPLICATION_STATE_UNPLACED' } };
    const proposal = { object_id: `app_${'a'.repeat(20)}`, outcome, reference: 'desk 4711' };
    const lines = await operator.refused('Settlements.ProposeSettlement', {
      ...proposal,
      evidence: 'the desk wrote:\n\tthe application never came',
    });
    assert.equal(lines.code, status.NOT_FOUND, 'there is no such application, which comes after the fields');
    const hidden = await operator.refused('Settlements.ProposeSettlement', {
      ...proposal,
      evidence: 'the application \u202enever came',
    });
    assert.deepEqual(
      operator.client.violations(hidden).map((violation) => violation.field),
      ['evidence'],
    );
  });
});

describe('streams that operators open', () => {
  let operator: TestOperator;
  before(async () => {
    operator = await TestOperator.start({ MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`) });
  });
  after(() => operator.stop());

  /** Opens a stream; its `error` is set if it ends. */
  function watch(token: string, request = {}) {
    const leaving = new AbortController();
    const stream = { error: undefined as ServiceError | undefined, isOpen: false, leave: () => leaving.abort() };
    const read = async () => {
      const messages = operator.client.stream(
        'marina.admin.v1.Diagnostics.WatchEvents',
        request,
        token,
        leaving.signal,
      );
      for await (const _ of messages) stream.isOpen = true;
    };
    read().catch((error) => {
      stream.error = error;
    });
    return stream;
  }
  const isOpen = (stream: ReturnType<typeof watch>) => eventually(() => assert.ok(stream.isOpen, String(stream.error)));

  it('streams that operators open give their places back when their requests are refused, any number of times', async () => {
    for (let count = 0; count < 25; count += 1) {
      const refused = watch(adas[count % 2] ?? '', { partner_ids: ['none'] });
      await eventually(() => assert.equal(refused.error?.code, status.INVALID_ARGUMENT));
    }
    const open = [adas[0], adas[1], adas[0], adas[1], adas[0]].map((token) => watch(token));
    for (const each of open) await isOpen(each);
    for (const each of open) each.leave();
  });

  it('are bounded for each operator over all of its tokens, and leave room for the others', async () => {
    const open = [adas[0], adas[1], adas[0], adas[1], adas[0]].map((token) => watch(token));
    for (const each of open) await isOpen(each);
    for (const token of adas) {
      const refused = watch(token);
      await eventually(() => assert.ok(refused.error));
      assert.equal(refused.error?.code, status.RESOURCE_EXHAUSTED);
      assert.match(refused.error?.details ?? '', /^The limit of 5 open streams of an operator is used up/);
      assert.ok(refused.error?.metadata.get('grpc-status-details-bin').length, 'it says how long to wait');
    }
    const another = watch(bolas);
    await isOpen(another);
    open[0]?.leave();
    await eventually(async () => {
      const again = watch(adas[1]);
      await isOpen(again);
      open.push(again);
    });
    for (const each of [...open, another]) each.leave();
  });
});
