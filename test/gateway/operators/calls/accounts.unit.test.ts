/** How operators link accounts to partners, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { partners } from '../../../../src/gateway/edge/auth/store.ts';
import { accountService } from '../../../../src/gateway/operators/calls/accounts.ts';
import { accounts } from '../../../../src/gateway/trading/accounts/store.ts';
import { anyRow } from '../../../support/stored-row.ts';
import { WrittenDatabase } from '../../../support/written-database.ts';

const now = 1_000_000_000_000;
const call = { operator: 'ada', action: 'Accounts.LinkAccount', requestId: 'r', roles: ['admin'] };
const owned = (partnerId: string, account: string, more: object = {}) =>
  anyRow(accounts, { partnerId, account, applicationId: null, createdAt: 5, ...more });

interface Setting {
  readonly atBroker?: string;
  readonly isFourEyes?: boolean;
  readonly environment?: 'sandbox' | 'live';
  readonly stored?: readonly ReturnType<typeof owned>[];
  /** The partner that gets the account while the broker is asked. */
  readonly meanwhile?: string;
}

function open({
  atBroker = 'found',
  isFourEyes = false,
  environment = 'live',
  stored: first = [],
  meanwhile,
}: Setting = {}) {
  const stored = [...first];
  const rows = ['par_a', 'par_b'].map((id) => anyRow(partners, { id, name: `name of ${id}`, state: 'active' }));
  const database = new WrittenDatabase({ partners: rows, accounts: stored, proposals: [] }, ({ sql }) =>
    sql.includes('COUNT(*)') ? [{ count: 0 }] : undefined,
  );
  database.environment = environment;
  const manage = database.manage.bind(database);
  Object.assign(database, { manage: (work: never) => manage(work, accounts as never) });
  const asked: string[] = [];
  const unlinked: string[] = [];
  const parts = {
    ...{ database, clock: { now: () => now, realNow: () => now }, ids: { object: () => 'prp_new' } },
    fourEyesAboveKobo: isFourEyes ? 1n : undefined,
  };
  const broker = {
    ask: async (account: string) => {
      asked.push(account);
      if (meanwhile !== undefined) stored.push(owned(meanwhile, account));
      return { answer: atBroker, holderInitials: 'canary' };
    },
  };
  const note = (partnerId: string, account: string) => void unlinked.push(`${partnerId} ${account}`);
  const { service } = accountService(parts as never, broker as never, note);
  const calls = service.calls as Record<string, (request: object, by: object) => Promise<Record<string, unknown>>>;
  const make = (name: string, request: object = {}) => {
    const method = service.service.methods.find(({ localName }) => localName === name);
    assert.ok(method !== undefined);
    const usual = { partnerId: 'par_a', account: 'A1', reason: 'why', unchecked: false, afterAccount: '', limit: 0 };
    return calls[name]?.(create(method.input, { ...usual, ...request } as never), call) as Promise<
      Record<string, unknown>
    >;
  };
  return { make, database, asked, unlinked };
}

describe('an account that an operator links', () => {
  it('a link is stored with an entry of the audit, which has no data of the customer', async () => {
    const { make, database } = open();
    const { changed, atBroker } = await make('linkAccount');
    assert.deepEqual([changed, (atBroker as { answer: string }).answer], [true, 'found']);
    assert.deepEqual(database.tablesWritten, ['accounts', 'audit_entries']);
    const [insert, entry] = database.written.map(({ values }) => (values[0] as unknown[][])[0] ?? []);
    assert.deepEqual(insert, ['par_a', 'A1', null, new Date(now)]);
    assert.match(JSON.stringify(entry), /A1.*atBroker.*found.*why/);
    assert.ok(
      !JSON.stringify(database.written, (_, value) => (typeof value === 'bigint' ? String(value) : value)).includes(
        'canary',
      ),
    );
  });

  it('a link waits for a second operator where four eyes are on', async () => {
    const { make, database } = open({ isFourEyes: true });
    const { changed, proposal } = await make('linkAccount');
    assert.deepEqual([changed, (proposal as { id: string }).id], [false, 'prp_new']);
    assert.deepEqual(database.tablesWritten, ['proposals', 'audit_entries']);
  });

  it('a link that is there already changes nothing and asks nobody, and one to another partner is refused', async () => {
    const again = open({ stored: [owned('par_a', 'A1')] });
    assert.deepEqual(await again.make('linkAccount'), { changed: false });
    const others = open({ stored: [owned('par_b', 'A1')] });
    await assert.rejects(others.make('linkAccount'), { status: status.ALREADY_EXISTS });
    for (const { asked, database } of [again, others]) assert.deepEqual([asked, database.written], [[], []]);
    await assert.rejects(open().make('linkAccount', { partnerId: 'par_x' }), { status: status.NOT_FOUND });
  });

  it('a link of which the broker knows nothing is refused in a live gateway alone', async () => {
    for (const [atBroker, environment, unchecked, code] of [
      ['not_found', 'live', true, status.FAILED_PRECONDITION],
      ['none', 'live', false, status.UNAVAILABLE],
      ['none', 'live', true, undefined],
      ['not_found', 'sandbox', false, undefined],
    ] as const) {
      const { make, database } = open({ atBroker, environment });
      const linking = make('linkAccount', { unchecked });
      if (code === undefined) assert.equal((await linking).changed, true);
      else await assert.rejects(linking, { status: code });
      assert.equal(database.written.length, code === undefined ? 2 : 0, `${atBroker} ${environment} ${unchecked}`);
      if (unchecked && code === undefined) assert.match(JSON.stringify(database.written[1]?.values), /unchecked/);
    }
  });

  it("a link that another partner's call overtook is refused as another partner's, and any other failure is told", async () => {
    const { make, database } = open();
    database.failure = Object.assign(new Error('duplicate'), { errno: 1062 });
    await assert.rejects(make('linkAccount'), { status: status.ALREADY_EXISTS });
    database.failure = Object.assign(new Error('gone'), { errno: 2006 });
    await assert.rejects(make('linkAccount'), /gone/);
  });

  it('a link that was made while the broker was asked is found in the transaction', async () => {
    const own = open({ meanwhile: 'par_a' });
    assert.equal((await own.make('linkAccount')).changed, false);
    const others = open({ meanwhile: 'par_b' });
    await assert.rejects(others.make('linkAccount'), { status: status.ALREADY_EXISTS });
    assert.deepEqual([own.database.written, others.database.written], [[], []]);
  });

  it('a link is made by approving its proposal too', async () => {
    const { action } = accountService({ database: {}, clock: {} } as never, {} as never, () => {});
    assert.equal(action.name, 'Accounts.LinkAccount');
  });
});

describe('an account that an operator unlinks', () => {
  it("a partner's own account is unlinked with an entry of what it was, and all replicas are told", async () => {
    const { make, database, unlinked } = open({
      stored: [owned('par_a', 'A1', { applicationId: 'app_a' }), owned('par_a', 'A2')],
    });
    assert.deepEqual(await make('unlinkAccount'), { changed: true });
    assert.deepEqual(database.tablesWritten, ['accounts', 'audit_entries']);
    assert.deepEqual(database.written[0]?.values, ['par_a', 'A1']);
    const entry = JSON.stringify(database.written[1]?.values);
    for (const part of ['app_a', 'why', '1970-01-01T00:00:00.005Z']) assert.ok(entry.includes(part), part);
    assert.deepEqual(unlinked, ['par_a A1']);
  });

  it("another partner's account, and one of nobody, stay as they are", async () => {
    for (const stored of [[owned('par_b', 'A1')], []]) {
      const { make, database } = open({ stored });
      assert.deepEqual([await make('unlinkAccount'), database.written], [{ changed: false }, []]);
    }
  });

  it('all replicas are told of an account although the COMMIT has no answer', async () => {
    const { make, database, unlinked } = open({ stored: [owned('par_a', 'A1')] });
    database.failure = new Error('no answer');
    await assert.rejects(make('unlinkAccount'), /no answer/);
    assert.deepEqual(unlinked, ['par_a A1']);
  });
});

describe('accounts that operators look up', () => {
  it('an account is told with the answer of the broker, its partner and the name of it', async () => {
    const { make, asked } = open({ stored: [owned('par_b', 'A1', { applicationId: 'app_a' })] });
    const { account, linked, partnerName, atBroker } = await make('lookUpAccount');
    const { partnerId, application } = linked as Record<string, unknown>;
    assert.deepEqual([account, partnerId, application, partnerName], ['A1', 'par_b', 'app_a', 'name of par_b']);
    assert.deepEqual([(atBroker as { answer: string }).answer, asked], ['found', ['A1']]);
    const none = await open().make('lookUpAccount');
    assert.deepEqual([none.linked, none.partnerName], [undefined, undefined]);
  });

  it('accounts are listed of a partner, by their code, or after one', async () => {
    const stored = ['A3', 'A1', 'A2'].map((account) => owned('par_a', account));
    const { make } = open({ stored: [...stored, owned('par_b', 'A9')] });
    const list = async (request: object) => {
      const { accounts: found, hasMore } = await make('listAccounts', { account: '', ...request });
      return [(found as { account: string }[]).map(({ account }) => account), hasMore];
    };
    assert.deepEqual(await list({}), [['A1', 'A2', 'A3'], false]);
    assert.deepEqual(await list({ limit: 2 }), [['A1', 'A2'], true]);
    assert.deepEqual(await list({ limit: 2, afterAccount: 'A2' }), [['A3'], false]);
    assert.deepEqual(await list({ partnerId: '', account: 'A9' }), [['A9'], false]);
    assert.deepEqual(await list({ account: 'A9' }), [[], false]);
    await assert.rejects(make('listAccounts', { partnerId: '', account: '' }), { param: 'partner_id' });
    await assert.rejects(make('listAccounts', { partnerId: 'par_x', account: '' }), { status: status.NOT_FOUND });
  });
});
