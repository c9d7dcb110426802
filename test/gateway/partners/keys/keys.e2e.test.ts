import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { type Call, type Members, nobodysOrder, operations } from '../../../support/e2e/calls.ts';
import { protocols, protocolsOf } from '../../../support/e2e/protocols.ts';
import type { Refusal } from '../../../support/e2e/refusals.ts';
import { useGateway } from '../../../support/e2e/suite.ts';
import type { TestPartner } from '../../../support/gateway.ts';
import { createKey } from '../../../support/keys.ts';

const nobodysKey = 'key_abcdefghijklmnopqrst';

describe('keys, over every protocol', () => {
  const suite = useGateway();

  const countKeys = async ({ id }: TestPartner) => {
    const [row] = await suite.gateway.database.read(
      statement('SELECT COUNT(*) AS made FROM api_keys WHERE partner_id = ?', id),
    );
    return Number(row?.made);
  };

  /** Bodies of which something is wrong, for a key that works from 192.0.2.0/24, 127.0.0.0/8 and 2001:db8::/32. */
  const narrow = ['127.0.0.0/8', '192.0.2.0/24', '2001:db8::/32'];
  const addresses = (...list: unknown[]) => ({ scopes: ['read'], addresses: list });
  const badAddress = { code: 'invalid_request', param: 'addresses[0]' } as const;
  const cases: readonly (readonly [string, Members, Refusal])[] = [
    ['no scopes', {}, { code: 'missing_required_field', param: 'scopes' }],
    ['null scopes', { scopes: null }, { code: 'missing_required_field', param: 'scopes' }],
    ['an empty list of scopes', { scopes: [] }, { code: 'missing_required_field', param: 'scopes' }],
    ['scopes that are no list', { scopes: 'read' }, { code: 'invalid_request', param: 'scopes' }],
    ['a scope nobody knows', { scopes: ['read', 'admin'] }, { code: 'invalid_request', param: 'scopes[1]' }],
    ['a scope in upper case', { scopes: ['READ'] }, { code: 'invalid_request', param: 'scopes[0]' }],
    ['a scope that is null', { scopes: [null] }, { code: 'invalid_request', param: 'scopes[0]' }],
    ['too many scopes', { scopes: Array(11).fill('read') }, { code: 'invalid_request', param: 'scopes' }],
    ['an unknown field', { scopes: ['read'], name: 'x' }, { code: 'invalid_request', param: 'name' }],
    [
      'addresses that are no list',
      { scopes: ['read'], addresses: '::1' },
      { code: 'invalid_request', param: 'addresses' },
    ],
    ['an empty address', addresses(''), badAddress],
    ['a name for an address', addresses('localhost'), badAddress],
    ['a shorthand', addresses('127.1'), badAddress],
    ['an octal address', addresses('0177.0.0.1'), badAddress],
    ['an address with a port', addresses('127.0.0.1:80'), badAddress],
    ['an address with a zone', addresses('2001:db8::1%eth0'), badAddress],
    ['an IPv4 address as IPv6', addresses('::ffff:127.0.0.1'), badAddress],
    ['a range that is too long', addresses('127.0.0.1/33'), badAddress],
    ['a range with a mask', addresses('127.0.0.0/255.0.0.0'), badAddress],
    ['a range of no length', addresses('127.0.0.1/'), badAddress],
    ['an address of 65 bytes', addresses('1'.repeat(65)), badAddress],
    ['21 addresses', addresses(...Array(21).fill('127.0.0.1')), { code: 'invalid_request', param: 'addresses' }],
    ['a second address that is none', addresses('127.0.0.1', 'x'), { code: 'invalid_request', param: 'addresses[1]' }],
    ['no addresses', { scopes: ['read'] }, { code: 'missing_required_field', param: 'addresses' }],
    ['an address outside', addresses('192.0.3.1'), badAddress],
    ['a range that is wider', addresses('192.0.0.0/16'), badAddress],
    ['everywhere', addresses('0.0.0.0/0'), badAddress],
    [
      'an IPv6 range that is wider',
      addresses('127.0.0.1', '2001::/16'),
      { code: 'invalid_request', param: 'addresses[1]' },
    ],
    [
      'a scope the key does not have',
      { scopes: ['read', 'fund'], addresses: ['127.0.0.1'] },
      { code: 'insufficient_scope', param: 'scopes[1]' },
    ],
  ];
  for (const [name, body, refusal] of cases) {
    it(`a new key with ${name} is refused, and no key is made`, async () => {
      const partner = await suite.gateway.newPartner({ scopes: [Scope.READ, Scope.KEYS], addresses: narrow });
      const call: Call = { operation: 'createKey', key: partner.key, body };
      for (const protocol of protocolsOf(call)) await suite.protocols.refuses(protocol, call, refusal);
      assert.equal(await countKeys(partner), 1);
    });
  }

  for (const protocol of protocols) {
    it(`${protocol}: a key is made, shown without its secret, used, and revoked`, async () => {
      const partner = await suite.gateway.newPartner();
      const body = { scopes: ['trade', 'read', 'read'], addresses: ['127.0.0.9/8', '2001:DB8:0::1', '127.0.0.0/8'] };
      const made = await suite.protocols.answers(protocol, { operation: 'createKey', key: partner.key, body });
      const { secret, id, ...rest } = made.body as Record<string, unknown>;
      assert.match(String(id), /^key_[a-z2-7]{20}$/);
      assert.match(String(secret), /^marina_test_[a-z2-7]{78}$/);
      assert.ok(String(secret).includes(String(id).slice(4)));
      if (protocol === 'REST') {
        assert.equal(made.status, 201);
        assert.deepEqual(Object.keys(made.body as object), [
          'object',
          'id',
          'scopes',
          'addresses',
          'created_at',
          'last_used_at',
          'revoked_at',
          'created_by',
          'secret',
        ]);
        assert.deepEqual(rest.scopes, ['read', 'trade']);
        assert.deepEqual(rest.addresses, ['127.0.0.0/8', '2001:db8::1']);
        assert.deepEqual([rest.object, rest.last_used_at, rest.revoked_at], ['key', null, null]);
        assert.equal(rest.created_by, partner.keyId);
      }
      const key = String(secret);
      await suite.protocols.answers(protocol, { operation: 'listOrders', key });
      await suite.protocols.refuses(protocol, { operation: 'listKeys', key }, { code: 'insufficient_scope' });

      const { body: list } = await suite.protocols.rest({ operation: 'listKeys', key: partner.key }).then((answer) => ({
        body: JSON.parse(answer.text),
      }));
      assert.deepEqual(Object.keys(list), ['object', 'has_more', 'next_cursor', 'data']);
      assert.deepEqual(
        list.data.map((each: { id: string }) => each.id),
        [id, partner.keyId],
      );
      assert.ok(!JSON.stringify(list).includes(key.slice(-40)), 'no secret is shown');
      assert.match(list.data[0].last_used_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

      const revoke: Call = { operation: 'revokeKey', key: partner.key, id: String(id) };
      const revoked = await suite.protocols.answers(protocol, revoke);
      assert.ok((revoked.body as Record<string, unknown>).revoked_at);
      for (const other of protocols) {
        await suite.protocols.refuses(other, { operation: 'listOrders', key }, { code: 'unauthorized' });
      }
      const again = await suite.protocols.answers(protocol, revoke);
      assert.deepEqual(
        (again.body as Record<string, unknown>).revoked_at,
        (revoked.body as Record<string, unknown>).revoked_at,
      );
    });

    it(`${protocol}: a key may revoke itself`, async () => {
      const partner = await suite.gateway.newPartner();
      const call: Call = { operation: 'revokeKey', key: partner.key, id: partner.keyId };
      await suite.protocols.answers(protocol, call);
      await suite.protocols.refuses(protocol, call, { code: 'unauthorized' });
    });

    it(`${protocol}: the eleventh active key is refused, and revoking one makes room`, async () => {
      const partner = await suite.gateway.newPartner();
      for (let count = 1; count < 10; count += 1) {
        await createKey(suite.gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
      }
      const call: Call = { operation: 'createKey', key: partner.key, body: { scopes: ['read'] } };
      await suite.protocols.refuses(protocol, call, { code: 'too_many_keys' });
      const { text } = await suite.protocols.rest(call);
      assert.match(text, /The limit of 10 active keys is used up: there are 10, and 0 more can be made/);
      const rows = await suite.gateway.database.read(
        statement('SELECT id FROM api_keys WHERE partner_id = ? AND id <> ?', partner.id, partner.keyId),
      );
      await suite.protocols.answers(protocol, { operation: 'revokeKey', key: partner.key, id: String(rows[0]?.id) });
      await suite.protocols.answers(protocol, call);
      assert.equal(await countKeys(partner), 11);
    });

    it(`${protocol}: another partner's key, one nobody has and what is no key's id are not found`, async () => {
      const other = await suite.gateway.newPartner();
      for (const id of [other.keyId, nobodysKey, 'key_x', nobodysOrder, 'KEY_abcdefghijklmnopqrst', '%']) {
        const call: Call = { operation: 'revokeKey', key: suite.partner.key, id };
        await suite.protocols.refuses(protocol, call, { code: 'not_found' });
      }
      await suite.protocols.answers(protocol, { operation: 'listOrders', key: other.key });
    });

    it(`${protocol}: every operation on keys needs the scope for keys, and limits the one for reads`, async () => {
      const reader = await suite.gateway.newPartner({ scopes: [Scope.READ] });
      for (const operation of ['listKeys', 'createKey', 'revokeKey'] as const) {
        const body = operations[operation].takesBody ? { scopes: ['read'] } : undefined;
        await suite.protocols.refuses(protocol, { operation, key: reader.key, body }, { code: 'insufficient_scope' });
        await suite.protocols.refuses(protocol, { operation, body }, { code: 'unauthorized' });
      }
      await suite.protocols.answers(protocol, { operation: 'getLimits', key: reader.key });
      const keeper = await suite.gateway.newPartner({ scopes: [Scope.KEYS] });
      await suite.protocols.refuses(
        protocol,
        { operation: 'getLimits', key: keeper.key },
        { code: 'insufficient_scope' },
      );
    });
  }

  it('the list is walked to its end by its cursors, which serve no other partner', async () => {
    const partner = await suite.gateway.newPartner();
    const made: string[] = [partner.keyId];
    for (let count = 0; count < 4; count += 1) {
      const { id } = await createKey(suite.gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
      made.unshift(id);
    }
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: Record<string, string> = cursor === '' ? { limit: '2' } : { limit: '2', cursor };
      const { text } = await suite.protocols.rest({ operation: 'listKeys', key: partner.key, query });
      const page = JSON.parse(text);
      seen.push(...page.data.map(({ id }: { id: string }) => id));
      assert.equal(page.has_more, page.next_cursor !== null);
      if (cursor === '') {
        // One made meanwhile is newer than those to come.
        await createKey(suite.gateway.database, { partnerId: partner.id, scopes: [Scope.READ] });
        const elsewhere: Call = { operation: 'listKeys', key: suite.partner.key, query: { cursor: page.next_cursor } };
        for (const protocol of protocols) {
          await suite.protocols.refuses(protocol, elsewhere, { code: 'invalid_request', param: 'cursor' });
        }
      }
      cursor = page.next_cursor;
    }
    assert.deepEqual(seen, made);
  });

  const paths: readonly (readonly [string, string, Refusal])[] = [
    ['PUT', '/v1/keys', { code: 'method_not_allowed', allow: ['GET', 'POST'] }],
    ['GET', `/v1/keys/${nobodysKey}`, { code: 'method_not_allowed', allow: ['DELETE'] }],
    ['POST', '/v1/limits', { code: 'method_not_allowed', allow: ['GET'] }],
    ['GET', '/v1/keys/', { code: 'not_found' }],
    ['GET', '/v1/limits?x=1', { code: 'invalid_request', param: 'x' }],
    ['GET', '/v1/keys?limit=0', { code: 'invalid_request', param: 'limit' }],
    ['GET', '/v1/keys?limit=101', { code: 'invalid_request', param: 'limit' }],
    ['DELETE', `/v1/keys/${nobodysKey}?x=1`, { code: 'invalid_request', param: 'x' }],
  ];
  for (const [method, path, refusal] of paths) {
    it(`${method} ${path} is refused with ${refusal.code}`, async () => {
      const headers = [['Authorization', `Bearer ${suite.partner.key}`]] as const;
      await suite.protocols.refusesRaw({ method, path, headers }, refusal);
    });
  }
});
