import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { type Call, goodBody, type Members, raw } from '../../support/e2e/calls.ts';
import { type Protocol, protocols } from '../../support/e2e/protocols.ts';
import type { Refusal } from '../../support/e2e/refusals.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { assertUntouched, tracesOf } from '../../support/e2e/traces.ts';
import { createKey } from '../../support/keys.ts';

const missing: Refusal = { code: 'missing_required_field', param: 'Idempotency-Key' };
const invalid: Refusal = { code: 'invalid_request', param: 'Idempotency-Key' };

/** The values of the header; what only HTTP can write is marked. */
const badKeys: readonly { name: string; values: readonly string[]; refusal: Refusal; restOnly?: true }[] = [
  { name: 'no key', values: [], refusal: missing },
  { name: 'an empty key', values: [''], refusal: missing },
  { name: 'a key of spaces', values: ['   '], refusal: missing },
  { name: 'a key of a space and a tab', values: [' \t'], refusal: missing, restOnly: true },
  { name: 'a key of 256 bytes', values: ['k'.repeat(256)], refusal: invalid },
  { name: 'a key of 5,000 bytes', values: ['k'.repeat(5000)], refusal: invalid },
  { name: 'the same key twice', values: ['k', 'k'], refusal: invalid },
  { name: 'two keys', values: ['k', 'l'], refusal: invalid },
  { name: 'a key of 255 letters of two bytes', values: ['\u00c3\u00a9'.repeat(255)], refusal: invalid, restOnly: true },
  { name: 'a letter beyond ASCII', values: ['k\u00c3\u00a9'], refusal: invalid, restOnly: true },
  { name: 'a byte beyond ASCII', values: ['k\u00ff'], refusal: invalid, restOnly: true },
  { name: 'a tab inside', values: ['a\tb'], refusal: invalid, restOnly: true },
  { name: 'an empty key and a good one', values: ['', 'k'], refusal: invalid, restOnly: true },
  // Bytes no header may have: what carries them is no HTTP request, and no header of it is known.
  { name: 'a control character', values: ['k\u0001'], refusal: { code: 'invalid_request' }, restOnly: true },
  { name: 'NUL', values: ['k\u0000'], refusal: { code: 'invalid_request' }, restOnly: true },
];

const goodKeys: readonly (readonly [string, string])[] = [
  ['1 byte', '0'],
  ['255 bytes', 'k'.repeat(255)],
  ['spaces inside', 'a b  c'],
  ['all printable ASCII', Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at)).join('')],
  ['what looks like a list', 'a, b'],
  ['what looks like SQL', "k' OR '1'='1"],
];

/** Bodies that say another thing than the good one, and bodies that say the same in another way. */
const others: readonly (readonly [string, Members])[] = [
  ['symbol', { symbol: 'SIM-FILL' }],
  ['side', { side: 'sell' }],
  ['quantity', { quantity: 101 }],
  ['type', { type: 'market', price_kobo: undefined }],
  ['time_in_force', { time_in_force: 'gtc' }],
  ['price_kobo', { price_kobo: 1001 }],
  ['client_reference', { client_reference: 'x' }],
  ['unknown account', { account: 'NOBODYS' }],
  ['unknown symbol', { symbol: 'NOTHING' }],
];
const same: readonly (readonly [string, Members])[] = [
  ['nothing changed', {}],
  ['the default of time_in_force written out', { time_in_force: 'day' }],
  ['an optional field that is null', { client_reference: null, time_in_force: null }],
  ['the symbol in lower case', { symbol: 'sim-rest' }],
  ['space around a number', { quantity: raw(' 100 ') }],
];

describe('Idempotency-Key', () => {
  const suite = useGateway();
  const call = (values: readonly string[], rest: Partial<Call> = {}): Call => ({
    operation: 'createOrder',
    key: suite.partner.key,
    idempotencyKey: values,
    body: goodBody(suite.partner.account),
    ...rest,
  });

  for (const { name, values, refusal, restOnly } of badKeys) {
    for (const protocol of restOnly ? (['REST'] as const) : protocols) {
      it(`${protocol}: ${name} is answered ${refusal.code}`, () =>
        suite.protocols.refuses(protocol, call(values), refusal));
    }
  }

  it('nothing was stored or sent, and a good order is taken', () => assertUntouched(suite.gateway, suite.partner, 'k'));

  for (const operation of ['estimateOrder', 'listOrders', 'listEvents'] as const) {
    for (const protocol of protocols) {
      it(`${protocol}: ${operation} takes none, and looks at none`, async () => {
        const body = operation === 'estimateOrder' ? goodBody(suite.partner.account) : undefined;
        await suite.protocols.answers(protocol, call(['k'.repeat(300), 'l'], { operation, body }));
      });
    }
  }

  for (const [name, value] of goodKeys) {
    for (const protocol of protocols) {
      it(`${protocol}: a key with ${name} is taken`, async () => {
        const partner = await suite.gateway.newPartner();
        const { status, body } = await suite.protocols.answers(
          protocol,
          call([value], { key: partner.key, body: goodBody(partner.account) }),
        );
        if (protocol === 'REST') assert.equal(status, 201);
        assert.match(body.id, /^ord_[a-z2-7]{20}$/);
      });
    }
  }
});

describe('an Idempotency-Key seen before', () => {
  const suite = useGateway();
  const used = 'A key that was used';
  let firstId: string;
  const call = (body: Members, rest: Partial<Call> = {}): Call => ({
    operation: 'createOrder',
    key: suite.partner.key,
    idempotencyKey: [used],
    body: { ...goodBody(suite.partner.account), ...body },
    ...rest,
  });

  async function assertReplayed(protocol: Protocol, again: Call): Promise<void> {
    const { status, body, header } = await suite.protocols.answers(protocol, again);
    if (protocol === 'REST') assert.equal(status, 200);
    assert.equal(header('idempotent-replayed'), 'true');
    assert.equal(body.id, firstId);
  }

  before(async () => {
    const first = await suite.protocols.answers('REST', call({}));
    assert.equal(first.status, 201);
    assert.equal(first.header('location'), `/v1/orders/${first.body.id}`);
    firstId = first.body.id;
  });

  it('nothing but the first order is stored or sent, whatever comes with its key', async () => {
    const before = await tracesOf(suite.gateway, suite.partner);
    for (const protocol of protocols) {
      for (const [, body] of others) {
        await suite.protocols.refuses(protocol, call(body), { code: 'duplicate_order', param: 'Idempotency-Key' });
      }
      await assertReplayed(protocol, call({}));
    }
    assert.deepEqual(await tracesOf(suite.gateway, suite.partner), before);
  });

  for (const protocol of protocols) {
    for (const [name, body] of others) {
      it(`${protocol}: another ${name} is answered duplicate_order`, () =>
        suite.protocols.refuses(protocol, call(body), { code: 'duplicate_order', param: 'Idempotency-Key' }));
    }

    for (const [name, body] of same) {
      it(`${protocol}: the same order with ${name} is answered with the first`, () =>
        assertReplayed(protocol, call(body)));
    }

    it(`${protocol}: another key of the partner is answered with the first order`, async () => {
      const { key } = await createKey(suite.gateway.database, { partnerId: suite.partner.id, scopes: [Scope.TRADE] });
      await assertReplayed(protocol, call({}, { key }));
    });

    it(`${protocol}: the account in lower case is answered with the first order`, () =>
      assertReplayed(protocol, call({ account: suite.partner.account.toLowerCase() })));

    it(`${protocol}: a request with a mistake is answered with the mistake`, () =>
      suite.protocols.refuses(protocol, call({ quantity: 0 }), { code: 'invalid_request', param: 'quantity' }));

    it(`${protocol}: another partner's request with the same key is an order of its own`, async () => {
      const other = await suite.gateway.newPartner();
      const { header, body } = await suite.protocols.answers(
        protocol,
        call({}, { key: other.key, body: goodBody(other.account) }),
      );
      assert.equal(header('idempotent-replayed'), undefined);
      assert.notEqual(body.id, firstId);
    });

    it(`${protocol}: the key in another case is another key`, async () => {
      const at = protocols.indexOf(protocol);
      const other = `${used.slice(0, at + 2)}${used.slice(at + 2).toUpperCase()}`;
      const { header } = await suite.protocols.answers(protocol, call({}, { idempotencyKey: [other] }));
      assert.equal(header('idempotent-replayed'), undefined);
    });
  }

  for (const protocol of protocols.filter((each) => each !== 'gRPC')) {
    for (const blanks of [' ', '\t', '  \t ']) {
      it(`${protocol}: ${JSON.stringify(blanks)} around the key is not part of it`, () =>
        assertReplayed(protocol, call({}, { idempotencyKey: [`${blanks}${used}${blanks}`] })));
    }
    it(`${protocol}: a key of 255 bytes has blanks around it`, async () => {
      const long = `${protocol} `.padEnd(255, 'k');
      const first = await suite.protocols.answers(protocol, call({}, { idempotencyKey: [` ${long}\t`] }));
      const again = await suite.protocols.answers(protocol, call({}, { idempotencyKey: [long] }));
      assert.equal(again.header('idempotent-replayed'), 'true');
      assert.equal(again.body.id, first.body.id);
    });
  }

  it('gRPC: a key with blanks around it stores nothing, because HTTP/2 has no such value', async () => {
    const before = await tracesOf(suite.gateway, suite.partner);
    for (const key of [` ${used}`, `${used} `, ` ${used} `, ' another ']) {
      await suite.protocols.refuses('gRPC', call({}, { idempotencyKey: [key] }), missing);
    }
    assert.deepEqual(await tracesOf(suite.gateway, suite.partner), before);
  });

  it('the same order with its members turned around is answered with the first', () => {
    const body = Object.fromEntries(Object.entries(goodBody(suite.partner.account)).reverse());
    return assertReplayed('REST', { ...call({}), body });
  });
});
