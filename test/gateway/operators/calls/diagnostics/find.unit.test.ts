/** How operators find objects, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { firstIdAt } from '../../../../../src/gateway/edge/ids.ts';
import { Cursors } from '../../../../../src/gateway/edge/paging.ts';
import { findCalls } from '../../../../../src/gateway/operators/calls/diagnostics/find.ts';
import { proposals } from '../../../../../src/gateway/operators/calls/proposals/table.ts';
import type { SqlRow } from '../../../../../src/gateway/store/statement.ts';
import { allocations } from '../../../../../src/gateway/trading/allocations/table.ts';
import { applications } from '../../../../../src/gateway/trading/applications/table.ts';
import { orders } from '../../../../../src/gateway/trading/orders/table.ts';
import { transfers } from '../../../../../src/gateway/trading/wallet/store.ts';
import { withdrawals } from '../../../../../src/gateway/trading/withdrawals/table.ts';
import { AllocationState } from '../../../../../src/gen/marina/gateway/v1/allocations_pb.ts';
import { OrderState } from '../../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { RowsDatabase } from '../../../../support/rows-database.ts';
import { anyRow } from '../../../../support/stored-row.ts';

const now = Date.UTC(2026, 2, 5);
const cursors = new Cursors({ all: [{ id: 'k', key: Buffer.alloc(32, 1) }] } as never);
/** Midnight in Lagos at the begin of 3 March. */
const midnight = Date.UTC(2026, 2, 2, 23);

type Row = Parameters<typeof anyRow<never>>[1];
const rowOf = (table: unknown, values: object): SqlRow => anyRow(table as never, values as Row);
const order = (id: string, more: object = {}) =>
  rowOf(orders, { partnerId: 'par_a', id, keyId: 'key_a', account: 'A1', symbol: 'SIM', state: 'pending', ...more });

interface FoundObject {
  readonly partnerId: string;
  readonly keyId: string | null;
  readonly id: string;
  readonly events: readonly Readonly<Record<string, unknown>>[];
  readonly openProposal: { readonly id: string } | undefined;
  readonly transfers: readonly Readonly<Record<string, unknown>>[];
}

function open(tables: Readonly<Record<string, readonly SqlRow[]>>) {
  const partners = ['par_a', 'par_b'].map((id) => ({ id }));
  const nothing = { orders: [], applications: [], allocations: [], withdrawals: [], feed_events: [], proposals: [] };
  const database = new RowsDatabase({ ...nothing, wallet_transfers: [], partners, ...tables });
  const calls = findCalls(database as never, cursors, { now: () => now, realNow: () => 0 });
  const make = async (name: keyof typeof calls, request: object) => {
    const nothingAsked = {
      partnerId: '',
      idempotencyKey: '',
      keyId: '',
      account: '',
      day: '',
      state: 0,
      limit: 0,
      cursor: '',
    };
    const foreign = { exchangeOrderId: '', reference: '', brokerReference: '', clientReference: '', symbol: '' };
    const answer = await calls[name]({ ...nothingAsked, ...foreign, ...request } as never, {} as never);
    const { nextCursor, ...lists } = answer as { nextCursor: string | undefined };
    const [found = []] = Object.values(lists) as FoundObject[][];
    return { found, ids: found.map(({ id }) => id), nextCursor };
  };
  return { database, make };
}

describe('objects that operators look for', () => {
  it("a partner's objects are found by each filter and by several, the newest first", async () => {
    const { make } = open({
      orders: [
        order('ord_1'),
        order('ord_2', { state: 'filled', account: 'A2' }),
        order('ord_3', { symbol: 'TIM', clientReference: 'mine' }),
        order('ord_4', { partnerId: 'par_b', idempotencyKey: 'one' }),
        order('ord_5', { idempotencyKey: 'one', state: 'filled' }),
      ],
    });
    for (const [request, ids] of [
      [{}, ['ord_5', 'ord_3', 'ord_2', 'ord_1']],
      [{ state: OrderState.FILLED }, ['ord_5', 'ord_2']],
      [{ account: 'a2' }, ['ord_2']],
      [{ symbol: 'tim' }, ['ord_3']],
      [{ clientReference: 'mine' }, ['ord_3']],
      [{ idempotencyKey: 'one' }, ['ord_5']],
      [{ state: OrderState.FILLED, account: 'A1' }, ['ord_5']],
      [{ state: OrderState.FILLED, symbol: 'TIM' }, []],
    ] as const) {
      assert.deepEqual(
        (await make('findOrders', { partnerId: 'par_a', ...request })).ids,
        ids,
        JSON.stringify(request),
      );
    }
  });

  it('an object of any partner is found by the id that the exchange or the broker gave it', async () => {
    const row = (table: object, id: string, more: object) => rowOf(table, { partnerId: 'par_b', id, ...more });
    const { make } = open({
      orders: [
        order('ord_1', { exchangeOrderId: 'X1' }),
        order('ord_2', { partnerId: 'par_b', exchangeOrderId: 'X2' }),
      ],
      applications: [row(applications, 'app_1', { reference: 'R1' }), row(applications, 'app_2', {})],
      allocations: [row(allocations, 'alc_1', { brokerReference: 'B1' }), row(allocations, 'alc_2', {})],
      withdrawals: [row(withdrawals, 'wdr_1', { brokerReference: 'B1' }), row(withdrawals, 'wdr_2', {})],
    });
    for (const [name, request, ids] of [
      ['findOrders', { exchangeOrderId: 'X2' }, ['ord_2']],
      ['findOrders', { exchangeOrderId: 'X2', partnerId: 'par_a' }, []],
      ['findApplications', { reference: 'R1' }, ['app_1']],
      ['findAllocations', { brokerReference: 'B1' }, ['alc_1']],
      ['findWithdrawals', { brokerReference: 'B1' }, ['wdr_1']],
    ] as const) {
      const { found, ids: seen } = await make(name, request);
      assert.deepEqual(seen, ids, name);
      if (ids.length > 0) assert.equal(found[0]?.partnerId, 'par_b');
    }
  });

  it('a request that would read too much, or names what does not exist, is refused', async () => {
    const { make, database } = open({});
    for (const [name, request, code, param] of [
      ['findOrders', {}, status.INVALID_ARGUMENT, 'partner_id'],
      ['findApplications', {}, status.INVALID_ARGUMENT, 'partner_id'],
      ['findOrders', { partnerId: 'par_x' }, status.NOT_FOUND, undefined],
      ['findOrders', { partnerId: 'par_a', state: 999 }, status.INVALID_ARGUMENT, 'state'],
      ['findOrders', { exchangeOrderId: 'X', idempotencyKey: 'one' }, status.INVALID_ARGUMENT, 'partner_id'],
      ['findOrders', { partnerId: 'par_a', keyId: 'key_a' }, status.INVALID_ARGUMENT, 'key_id'],
      ['findOrders', { exchangeOrderId: 'X', keyId: 'key_a', day: '2026-03-03' }, status.INVALID_ARGUMENT, 'key_id'],
      ['findOrders', { partnerId: 'par_a', day: '2026-02-30' }, status.INVALID_ARGUMENT, 'day'],
    ] as const) {
      await assert.rejects(make(name, request), { status: code, param }, JSON.stringify(request));
    }
    assert.ok(
      database.asked.every(({ sql }) => sql.includes('FROM partners')),
      'no object was read',
    );
  });

  it('the objects of a day are those from its midnight in Lagos to the next one', async () => {
    const at = (ms: number) => firstIdAt('ord', ms);
    const dayMs = 86_400_000;
    const ids = [midnight - 1, midnight, midnight + dayMs - 1, midnight + dayMs].map(at);
    const { make } = open({ orders: ids.map((id, index) => order(id, { keyId: index === 1 ? 'key_b' : 'key_a' })) });
    const ofDay = { partnerId: 'par_a', day: '2026-03-03' };
    assert.deepEqual((await make('findOrders', ofDay)).ids, [ids[2], ids[1]]);
    assert.deepEqual((await make('findOrders', { ...ofDay, keyId: 'key_b' })).ids, [ids[1]]);
    const { nextCursor: cursor = '' } = await make('findOrders', { ...ofDay, limit: 1 });
    assert.deepEqual((await make('findOrders', { ...ofDay, limit: 1, cursor })).ids, [ids[1]]);
  });

  it('pages of objects show each once, twenty-five at a time unless a request says otherwise', async () => {
    const all = Array.from({ length: 27 }, (_, at) => `ord_${String(at).padStart(2, '0')}`);
    const { make } = open({ orders: all.map((id) => order(id)) });
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const { ids, nextCursor } = await make('findOrders', { partnerId: 'par_a', limit: 13, cursor });
      seen.push(...ids);
      if (nextCursor === undefined) break;
      cursor = nextCursor;
    }
    assert.deepEqual(seen, all.toReversed());
    const { ids, nextCursor = '' } = await make('findOrders', { partnerId: 'par_a' });
    assert.equal(ids.length, 25);
    for (const other of [
      { partnerId: 'par_b' },
      { partnerId: 'par_a', symbol: 'SIM' },
      { partnerId: 'par_a', day: '2026-03-03' },
    ]) {
      await assert.rejects(make('findOrders', { ...other, cursor: nextCursor }), /was not issued for this list/);
    }
  });

  it('an object comes with its key, its last ten events and its open proposal', async () => {
    const event = (partnerId: string, objectId: string, version: number) => ({
      ...{
        partner_id: partnerId,
        object_id: objectId,
        version: String(version),
        id: `evt_${version}`,
        type: 'order.filled',
      },
      ...{
        occurred_at: new Date(version),
        delivery: version === 12 ? null : 'waiting',
        due_at: version === 11 ? new Date(99) : null,
      },
    });
    const events = Array.from({ length: 12 }, (_, at) => event('par_a', 'ord_1', at + 1));
    const proposal = (id: string, more: object) =>
      rowOf(proposals, { id, partnerId: 'par_a', objectId: 'ord_1', state: 'open', expiresAt: now + 1, ...more });
    const { make } = open({
      orders: [order('ord_1'), order('ord_2', { keyId: null })],
      feed_events: [
        ...events.map((row) => ({ ...row, version: Number(row.version) })),
        event('par_b', 'ord_1', 50),
        event('par_a', 'ord_3', 51),
      ],
      proposals: [proposal('prp_a', {}), proposal('prp_b', { objectId: 'ord_2', partnerId: 'par_b' })],
    });
    const { found } = await make('findOrders', { partnerId: 'par_a' });
    const [second, first] = found;
    assert.deepEqual([first?.keyId, second?.keyId], ['key_a', null]);
    assert.deepEqual(
      first?.events.map(({ version }) => Number(version)),
      [12, 11, 10, 9, 8, 7, 6, 5, 4, 3],
    );
    assert.deepEqual(first?.events.slice(0, 2), [
      { id: 'evt_12', type: 'order.filled', version: 12n, at: 12, inFeed: true, webhook: '', webhookDueAt: null },
      { id: 'evt_11', type: 'order.filled', version: 11n, at: 11, inFeed: true, webhook: 'waiting', webhookDueAt: 99 },
    ]);
    assert.deepEqual([first?.openProposal?.id, second?.openProposal, second?.events], ['prp_a', undefined, []]);
  });

  it('an allocation or a withdrawal comes with its own entries of the ledger', async () => {
    const entry = (sequence: number, objectId: string, type: string, partnerId = 'par_a') =>
      rowOf(transfers, {
        ...{ partnerId, sequence: BigInt(sequence), id: `wtr_${sequence}`, type, amountKobo: BigInt(sequence) },
        ...{ allocationId: objectId, createdAt: sequence },
      });
    const row = (table: object, id: string) => rowOf(table, { partnerId: 'par_a', id, state: 'settled' });
    const { make } = open({
      allocations: [row(allocations, 'alc_1'), row(allocations, 'alc_2')],
      withdrawals: [row(withdrawals, 'wdr_1'), row(withdrawals, 'wdr_2')],
      wallet_transfers: [
        entry(2, 'alc_1', 'release'),
        entry(1, 'alc_1', 'reserve'),
        entry(3, 'wdr_1', 'withdrawal'),
        entry(4, 'alc_1', 'reserve', 'par_b'),
      ],
    });
    const transfersOf = ({ found }: Awaited<ReturnType<typeof make>>) =>
      found.map((one) => one.transfers.map(({ id, at, amountKobo }) => `${id} ${at} ${amountKobo}`));
    assert.deepEqual(transfersOf(await make('findAllocations', { partnerId: 'par_a' })), [
      [],
      ['wtr_1 1 1', 'wtr_2 2 2'],
    ]);
    assert.deepEqual(transfersOf(await make('findWithdrawals', { partnerId: 'par_a' })), [[], ['wtr_3 3 3']]);
    assert.deepEqual((await make('findAllocations', { partnerId: 'par_a', state: AllocationState.SENDING })).ids, []);
  });
});
