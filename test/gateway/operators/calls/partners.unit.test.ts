/** The operators' calls on partners, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { apiKeys, defaultLimits, partners, type StoredPartner } from '../../../../src/gateway/edge/auth/store.ts';
import { partnerService } from '../../../../src/gateway/operators/calls/partners.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { accounts } from '../../../../src/gateway/trading/accounts/store.ts';
import { PartnerState } from '../../../../src/gen/marina/admin/v1/partners_pb.ts';
import { Feature } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { anyRow } from '../../../support/stored-row.ts';
import { WrittenDatabase } from '../../../support/written-database.ts';

const now = 1_000_000_000_000;
const call = { operator: 'ada', action: 'Partners.SuspendPartner', requestId: 'r', roles: ['admin'] };
const partner = (id: string, more: Partial<StoredPartner> = {}) =>
  anyRow(partners, { id, name: `Partner ${id}`, state: 'active', version: 7n, ...more });

function open(stored: readonly SqlRow[], tables: Readonly<Record<string, readonly SqlRow[]>> = {}) {
  const database = new WrittenDatabase({ partners: stored, api_keys: [], accounts: [], proposals: [], ...tables });
  const manage = database.manage.bind(database);
  let asked = 0;
  Object.assign(database, {
    manage: (work: never) => {
      asked += 1;
      return manage(work, partners as never, apiKeys as never, accounts as never);
    },
  });
  const changed: string[] = [];
  const parts = {
    ...{ database, clock: { now: () => now, realNow: () => now }, ids: { object: () => 'par_new' } },
    fourEyesAboveKobo: undefined,
  };
  const { service, actions } = partnerService(parts as never, (id) => void changed.push(id));
  const calls = service.calls as Record<string, (request: object, by: object) => Promise<Record<string, unknown>>>;
  const make = (name: string, request: object = {}) => {
    const method = service.service.methods.find(({ localName }) => localName === name);
    assert.ok(method !== undefined);
    const asked = create(method.input, { partnerId: 'par_a', reason: 'why', ...request } as never);
    return calls[name]?.(asked, call) as Promise<Record<string, unknown>>;
  };
  return { make, database, changed, actions, asked: () => asked };
}

describe('the state of a partner', () => {
  it('a partner is suspended and resumed once, with an entry of the audit, and all replicas are told', async () => {
    for (const [name, before, after, isChanged] of [
      ['suspendPartner', 'active', 'suspended', true],
      ['suspendPartner', 'suspended', 'suspended', false],
      ['suspendPartner', 'later', 'suspended', true],
      ['resumePartner', 'suspended', 'active', true],
      ['resumePartner', 'active', 'active', false],
    ] as const) {
      const { make, database, changed } = open([partner('par_a', { state: before }), partner('par_b')]);
      assert.deepEqual(await make(name), { changed: isChanged });
      assert.deepEqual(database.tablesWritten, isChanged ? ['partners', 'audit_entries'] : [], `${name} ${before}`);
      assert.deepEqual(changed, ['par_a']);
      if (!isChanged) continue;
      assert.deepEqual(database.written[0]?.values, [after, 'par_a']);
      assert.match(JSON.stringify(database.written[1]?.values), new RegExp(`why.*${before}.*${after}`));
    }
  });

  it('a partner in a state of another version is not resumed', async () => {
    const { make, database } = open([partner('par_a', { state: 'later' })]);
    await assert.rejects(make('resumePartner'), { status: status.FAILED_PRECONDITION });
    assert.deepEqual(database.written, []);
  });

  it('all replicas are told of a partner although the COMMIT has no answer', async () => {
    const { make, database, changed } = open([partner('par_a')]);
    database.failure = new Error('no answer');
    await assert.rejects(make('suspendPartner'), /no answer/);
    assert.deepEqual(changed, ['par_a']);
  });
});

describe('a partner', () => {
  it('a partner is told with the limits in force, those that are agreed, and its keys and accounts', async () => {
    const key = (id: string, partnerId: string, revokedAt: number | null) =>
      anyRow(apiKeys, { id, partnerId, revokedAt });
    const owned = (partnerId: string, account: string) => anyRow(accounts, { partnerId, account });
    const { make } = open([partner('par_a', { requestsPerSecond: 3, features: 'account_opening' })], {
      api_keys: [key('1', 'par_a', null), key('2', 'par_a', 5), key('3', 'par_b', null), key('4', 'par_a', null)],
      accounts: [owned('par_a', 'A1'), owned('par_b', 'A2')],
    });
    const { partner: shown, activeKeys, accounts: count } = await make('getPartner');
    const { limits, agreedLimits, lastVersion, features, state } = shown as Record<string, unknown>;
    assert.deepEqual([activeKeys, count, lastVersion, state], [2, 1, 7n, PartnerState.ACTIVE]);
    assert.deepEqual([limits, agreedLimits], [{ ...defaultLimits, requestsPerSecond: 3 }, { requestsPerSecond: 3 }]);
    assert.deepEqual(features, [Feature.ACCOUNT_OPENING]);
    const later = open([partner('par_a', { state: 'later' })]);
    assert.equal(((await later.make('getPartner')).partner as { state: number }).state, PartnerState.UNSPECIFIED);
    await assert.rejects(make('getPartner', { partnerId: 'par_x' }), { status: status.NOT_FOUND });
  });

  it('a partner is created with its rights and an entry of the audit, in one transaction', async () => {
    const { make, database } = open([partner('par_new')]);
    const request = {
      name: 'New',
      limits: { requestsPerSecond: 9 },
      features: [Feature.WITHDRAWALS, Feature.WITHDRAWALS],
    };
    const { partner: made, proposals } = await make('createPartner', request);
    assert.deepEqual([(made as { id: string }).id, proposals], ['par_new', []]);
    assert.deepEqual(database.tablesWritten, ['partners', 'audit_entries']);
    const [row = []] = (database.written[0]?.values[0] ?? []) as unknown[][];
    const written = Object.fromEntries(partners.fields.map((field, at) => [field, row[at]]));
    assert.deepEqual(
      [written.id, written.name, written.state, written.requestsPerSecond, written.features],
      ['par_new', 'New', 'active', 9, 'withdrawals'],
    );
    assert.match(JSON.stringify(database.written[1]?.values), /par_new.*why.*New/);
  });

  it('a change of limits or features tells the partner after it, and is one that can be approved', async () => {
    const { make, database, changed, actions } = open([partner('par_a')]);
    const limits = await make('setLimits', { limits: { requestsBurst: 5 }, setBack: [] });
    const features = await make('setFeatures', { features: [Feature.ACCOUNT_OPENING] });
    assert.deepEqual([limits.changed, features.changed], [true, true]);
    assert.deepEqual(database.tablesWritten, ['partners', 'audit_entries', 'partners', 'audit_entries']);
    assert.deepEqual(changed, ['par_a', 'par_a']);
    for (const { partner: shown } of [limits, features])
      assert.equal((shown as { id: string } | undefined)?.id, 'par_a');
    assert.deepEqual(
      actions.map(({ name }) => name),
      ['Partners.SetLimits', 'Partners.SetFeatures'],
    );
    const same = await make('setFeatures', { features: [] });
    assert.deepEqual([same.changed, database.written.length], [false, 4]);
  });
});

describe('the list of partners', () => {
  const ids = Array.from({ length: 1_203 }, (_, at) => `par_${String(at).padStart(4, '0')}`);
  const stored = ids.map((id, at) => partner(id, { name: at % 400 === 2 ? `Lagos ${at}` : 'Other' }));
  const list = async (request: object) => {
    const { make, asked } = open(stored);
    const { partners: found, hasMore } = await make('listPartners', {
      limit: 0,
      afterPartnerId: '',
      nameContains: '',
      ...request,
    });
    return { ids: (found as { id: string }[]).map(({ id }) => id), hasMore, asked: asked() };
  };

  it('partners are listed in the order of their ids, after one of them', async () => {
    assert.deepEqual(await list({}), { ids: ids.slice(0, 25), hasMore: true, asked: 1 });
    assert.deepEqual(await list({ limit: 3, afterPartnerId: ids[9] }), {
      ids: ids.slice(10, 13),
      hasMore: true,
      asked: 1,
    });
    assert.deepEqual(await list({ limit: 3, afterPartnerId: ids[1_199] }), {
      ids: ids.slice(1_200),
      hasMore: false,
      asked: 1,
    });
    assert.deepEqual(await list({ limit: 2, afterPartnerId: ids[1_199] }), {
      ids: ids.slice(1_200, 1_202),
      hasMore: true,
      asked: 1,
    });
  });

  it('partners are found by a part of their name in any case, among all of them', async () => {
    const found = [2, 402, 802, 1_202].map((at) => ids[at]);
    assert.deepEqual(await list({ nameContains: 'LAGOS' }), { ids: found, hasMore: false, asked: 3 });
    assert.deepEqual(await list({ nameContains: 'lagos', limit: 3 }), {
      ids: found.slice(0, 3),
      hasMore: true,
      asked: 3,
    });
    assert.deepEqual(await list({ nameContains: 'gos 8', afterPartnerId: ids[801] }), {
      ids: [ids[802]],
      hasMore: false,
      asked: 1,
    });
    assert.deepEqual((await list({ nameContains: 'Lagos', limit: 1 })).asked, 1, 'it stops when it has enough');
    assert.deepEqual((await list({ nameContains: 'nobody' })).ids, []);
  });
});
