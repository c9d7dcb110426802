import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Keys } from '../../../../src/gen/marina/admin/v1/keys_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import {
  type Call,
  goodBody,
  type OperationName,
  operationNames,
  operations,
  sampleBody,
} from '../../../support/e2e/calls.ts';
import { operatorMetadata } from '../../../support/e2e/operator.ts';
import { protocols } from '../../../support/e2e/protocols.ts';
import type { Refusal } from '../../../support/e2e/refusals.ts';
import { useGateway } from '../../../support/e2e/suite.ts';
import { assertUntouched } from '../../../support/e2e/traces.ts';
import { callTimeout } from '../../../support/gateway.ts';
import { createKey, forgedKey } from '../../../support/keys.ts';

/** Keys of one partner, each of which must not work, and how they are used. */
interface Keyring {
  readonly good: string;
  readonly goodId: string;
  readonly revoked: string;
  readonly suspended: string;
  readonly elsewhere: string;
  readonly elsewhereV6: string;
}

interface BadCredential {
  readonly name: string;
  /** The values of Authorization. */
  readonly values: (keys: Keyring) => readonly string[];
  readonly headers?: readonly (readonly [string, string])[];
  /** HTTP can write it, a gRPC client refuses to send it. */
  readonly restOnly?: true;
}

const anotherLetter = (letter: string | undefined) => (letter === 'a' ? 'b' : 'a');

const badCredentials: readonly BadCredential[] = [
  { name: 'no Authorization', values: () => [] },
  { name: 'an empty Authorization', values: () => [''] },
  { name: 'a scheme without a key', values: () => ['Bearer'] },
  { name: 'a scheme and a space', values: () => ['Bearer '] },
  { name: 'a key without a scheme', values: ({ good }) => [good] },
  { name: 'the scheme Basic', values: ({ good }) => [`Basic ${Buffer.from(`${good}:`).toString('base64')}`] },
  { name: 'the scheme Basic with the key as it is', values: ({ good }) => [`Basic ${good}`] },
  { name: 'the scheme Token', values: ({ good }) => [`Token ${good}`] },
  { name: 'a colon after the scheme', values: ({ good }) => [`Bearer: ${good}`] },
  { name: 'an equals sign after the scheme', values: ({ good }) => [`Bearer=${good}`] },
  { name: 'no space after the scheme', values: ({ good }) => [`Bearer${good}`] },
  { name: 'something after the key', values: ({ good }) => [`Bearer ${good} x`] },
  { name: 'two keys in a list', values: ({ good }) => [`Bearer ${good}, Bearer ${good}`] },
  { name: 'a key in quotes', values: ({ good }) => [`Bearer "${good}"`] },
  { name: 'a key in upper case', values: ({ good }) => [`Bearer ${good.toUpperCase()}`] },
  { name: 'a key that lacks its last letter', values: ({ good }) => [`Bearer ${good.slice(0, -1)}`] },
  { name: 'a key with a letter too many', values: ({ good }) => [`Bearer ${good}a`] },
  {
    name: 'a key with another letter in its secret, so that its checksum is wrong',
    values: ({ good }) => [`Bearer ${good.slice(0, 50)}${anotherLetter(good[50])}${good.slice(51)}`],
  },
  {
    name: 'a key with another last letter, so that its checksum is wrong',
    values: ({ good }) => [`Bearer ${good.slice(0, -1)}${anotherLetter(good.at(-1))}`],
  },
  {
    name: 'a key with the prefix of the other environment',
    values: ({ good }) => [`Bearer ${good.replace('_test_', '_live_')}`],
  },
  { name: 'a whole key of the other environment', values: ({ goodId }) => [`Bearer ${forgedKey('live', goodId)}`] },
  { name: 'a prefix and nothing more', values: () => ['Bearer marina_test_'] },
  { name: "a key's id", values: ({ goodId }) => [`Bearer ${goodId}`] },
  {
    name: 'a key with a right checksum that nobody has',
    values: () => [`Bearer ${forgedKey('sandbox', 'key_abcdefghijklmnopqrst')}`],
  },
  {
    name: 'another secret for a key that exists',
    values: ({ goodId }) => [`Bearer ${forgedKey('sandbox', goodId)}`],
  },
  { name: 'a key of 8,000 letters', values: () => [`Bearer marina_test_${'a'.repeat(8000)}`] },
  { name: 'SQL in place of a key', values: () => ["Bearer marina_test_' OR '1'='1"] },
  { name: 'a revoked key', values: ({ revoked }) => [`Bearer ${revoked}`] },
  { name: 'a key of a suspended partner', values: ({ suspended }) => [`Bearer ${suspended}`] },
  { name: 'a key registered for another address', values: ({ elsewhere }) => [`Bearer ${elsewhere}`] },
  { name: 'a key registered for an IPv6 range', values: ({ elsewhereV6 }) => [`Bearer ${elsewhereV6}`] },
  {
    name: 'a key registered for another address, which X-Forwarded-For claims',
    values: ({ elsewhere }) => [`Bearer ${elsewhere}`],
    headers: [
      ['X-Forwarded-For', '192.0.2.1'],
      ['Forwarded', 'for=192.0.2.1'],
      ['X-Real-IP', '192.0.2.1'],
    ],
  },
  { name: 'the same good key twice', values: ({ good }) => [`Bearer ${good}`, `Bearer ${good}`], restOnly: true },
  { name: 'a good key and then nonsense', values: ({ good }) => [`Bearer ${good}`, 'x'], restOnly: true },
  { name: 'nonsense and then a good key', values: ({ good }) => ['Basic x', `Bearer ${good}`], restOnly: true },
  { name: 'an empty Authorization and then a good key', values: ({ good }) => ['', `Bearer ${good}`], restOnly: true },
  { name: 'bytes beyond ASCII', values: () => ['Bearer marina_test_\u00c3\u00a9'], restOnly: true },
  { name: 'a tab after the scheme', values: ({ good }) => [`Bearer\t${good}`], restOnly: true },
  { name: 'the good key in another header', values: () => [], headers: [['X-Api-Key', 'marina_test_x']] },
];

describe('credentials', () => {
  const suite = useGateway();
  let keys: Keyring;
  let here: string;

  before(async () => {
    const { gateway, partner } = suite;
    const [revoked, suspended, elsewhere, elsewhereV6, local] = await Promise.all([
      gateway.newPartner(),
      gateway.newPartner(),
      gateway.newPartner({ addresses: ['192.0.2.1', '198.51.100.0/24'] }),
      gateway.newPartner({ addresses: ['2001:db8::/32'] }),
      gateway.newPartner({ addresses: ['192.0.2.1', '127.0.0.0/8'] }),
    ]);
    await gateway.database.write(statement("UPDATE partners SET state = 'suspended' WHERE id = ?", suspended.id));
    keys = {
      good: partner.key,
      goodId: partner.keyId,
      revoked: revoked.key,
      suspended: suspended.key,
      elsewhere: elsewhere.key,
      elsewhereV6: elsewhereV6.key,
    };
    here = local.key;
    // It works until it is revoked, so that what is remembered of it is tested too.
    for (const protocol of protocols)
      await suite.protocols.answers(protocol, { operation: 'listOrders', key: revoked.key });
    const operators = createGrpcClient(Keys, `127.0.0.1:${gateway.app.adminPort}`);
    await operators.revokeKey({ keyId: revoked.keyId }, { ...callTimeout, metadata: operatorMetadata() });
    operators.close();
  });

  for (const { name, values, headers, restOnly } of badCredentials) {
    for (const protocol of restOnly ? (['REST'] as const) : protocols) {
      it(`${protocol}: ${name} is answered unauthorized`, () => {
        const body = goodBody(suite.partner.account);
        const authorization = values(keys);
        const call: Call = { operation: 'createOrder', authorization, headers, idempotencyKey: ['k'], body };
        return suite.protocols.refuses(protocol, call, { code: 'unauthorized' });
      });
    }
  }

  for (const operation of operationNames) {
    for (const protocol of protocols) {
      it(`${protocol}: ${operation} without a credential is answered unauthorized`, () =>
        suite.protocols.refuses(protocol, { operation }, { code: 'unauthorized' }));
    }
  }

  it('a key in the query is no credential', () =>
    suite.protocols.refusesRaw(
      { method: 'GET', path: `/v1/orders?access_token=${keys.good}` },
      { code: 'unauthorized' },
    ));

  for (const protocol of protocols) {
    it(`${protocol}: the scheme may be written in lower case`, async () => {
      await suite.protocols.answers(protocol, { operation: 'listOrders', authorization: [`bearer ${keys.good}`] });
    });

    it(`${protocol}: a sandbox key works from an address it is registered for`, async () => {
      await suite.protocols.answers(protocol, { operation: 'listOrders', key: here });
    });
  }

  it('nothing was stored or sent, and a good order is taken', () => assertUntouched(suite.gateway, suite.partner, 'k'));

  it('nothing of any key was logged', () => {
    const logged = suite.gateway.logged.join('');
    for (const key of [...Object.values(keys), here]) {
      if (key !== keys.goodId) assert.ok(!logged.includes(key.slice(32, -6)), 'no secret is in the log');
    }
  });
});

/** Why an operation is refused whose caller may use it, when it is about what nobody has; undefined: it is not. */
function refusalOf(operation: OperationName): Refusal | undefined {
  const { names, takesBody } = operations[operation];
  // No key may be made that may do what its maker may not.
  if (operation === 'createKey') return { code: 'insufficient_scope', param: 'scopes[0]' };
  if (operation === 'createApplication') return { code: 'missing_required_field', param: 'last_name' };
  // The partner has no webhook endpoint.
  if (operation === 'sendWebhookTest' || operation === 'listWebhookDeliveries') return { code: 'not_found' };
  if (takesBody && names === undefined) return { code: 'unknown_account', param: 'account' };
  if (names === undefined) return undefined;
  const [prefix = ''] = names[1].split('_');
  const codes: Record<string, Refusal['code']> = {
    ord: 'order_not_found',
    app: 'application_not_found',
    alc: 'allocation_not_found',
    wdr: 'withdrawal_not_found',
    NOBODYS: 'account_not_found',
  };
  return { code: codes[prefix] ?? 'not_found' };
}

describe('scopes', () => {
  const suite = useGateway();
  const every = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.KEYS];

  for (const operation of operationNames) {
    const { scope } = operations[operation];
    const word = Scope[scope].toLowerCase();
    const keyWith = async (scopes: readonly Scope[]) =>
      (await createKey(suite.gateway.database, { partnerId: suite.partner.id, scopes })).key;
    const callWith = (key: string): Call => ({
      operation,
      key,
      idempotencyKey: ['k'],
      body: sampleBody(operation),
    });

    for (const protocol of protocols) {
      it(`${protocol}: ${operation} with every scope but ${word} is answered insufficient_scope`, async () => {
        const key = await keyWith(every.filter((other) => other !== scope));
        await suite.protocols.refuses(protocol, callWith(key), { code: 'insufficient_scope' });
      });

      it(`${protocol}: ${operation} needs no scope but ${word}`, async () => {
        const call = callWith(await keyWith([scope]));
        const refusal = refusalOf(operation);
        if (refusal === undefined) await suite.protocols.answers(protocol, call);
        else await suite.protocols.refuses(protocol, call, refusal);
      });
    }
  }

  it('nothing was stored or sent, and a good order is taken', () => assertUntouched(suite.gateway, suite.partner, 'k'));
});
