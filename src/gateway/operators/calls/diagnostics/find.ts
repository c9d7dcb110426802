import type { Diagnostics } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { type AllocationState, AllocationStateSchema } from '../../../../gen/marina/gateway/v1/allocations_pb.ts';
import { type ApplicationState, ApplicationStateSchema } from '../../../../gen/marina/gateway/v1/applications_pb.ts';
import { type OrderState, OrderStateSchema } from '../../../../gen/marina/gateway/v1/orders_pb.ts';
import { type WithdrawalState, WithdrawalStateSchema } from '../../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import { type Clock, daysBefore, isDate, nextLagosMidnight } from '../../../../kit/clock.ts';
import { enumWords } from '../../../../kit/enums.ts';
import { firstIdAt, type IdPrefix } from '../../../edge/ids.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { milliseconds, type SqlRow, type Statement, sql, toBigInt } from '../../../store/statement.ts';
import type { Selection, ShownBy, Table } from '../../../store/table.ts';
import { allocations, shownAllocation, toAllocationMessage } from '../../../trading/allocations/table.ts';
import { applications, shownApplication, toApplicationMessage } from '../../../trading/applications/table.ts';
import { orders, shownOrder, toOrderMessage } from '../../../trading/orders/table.ts';
import { readPage } from '../../../trading/submission/list.ts';
import { toEntry } from '../../../trading/wallet/store.ts';
import { shownWithdrawal, toWithdrawalMessage, withdrawals } from '../../../trading/withdrawals/table.ts';
import { type AdminCalls, requirePartner, usuallyListed } from '../call.ts';
import { invalidField } from '../errors.ts';
import { readOpenProposals } from '../proposals/service.ts';
import { findTransfers } from './objects.ts';

type FindCalls = Pick<
  AdminCalls<typeof Diagnostics>,
  'findOrders' | 'findApplications' | 'findAllocations' | 'findWithdrawals'
>;

/** The fields of the requests; each request has some of them. */
interface FindRequest extends Readonly<Record<'partnerId' | 'idempotencyKey' | 'keyId' | 'account' | 'day', string>> {
  readonly state: number;
  readonly clientReference?: string;
  readonly symbol?: string;
  readonly limit: number;
  readonly cursor: string;
}

/** How the objects of a kind are found, and the names of their states. */
export interface FoundKind<Shown> {
  readonly table: Pick<Table<never>, 'name' | 'indexes' | 'find' | 'toJson'>;
  readonly prefix: IdPrefix;
  readonly selection: Selection<Shown>;
  readonly states: { find(value: number): string | undefined };
}

interface Found<Shown> {
  readonly partnerId: string;
  readonly keyId: string | null;
  readonly shown: Shown;
}

const maxEvents = 10;
export const orderKind: FoundKind<ShownBy<typeof shownOrder>> = {
  ...{ table: orders, prefix: 'ord', selection: shownOrder },
  states: enumWords<typeof OrderState>(OrderStateSchema),
};
const applicationKind: FoundKind<ShownBy<typeof shownApplication>> = {
  ...{ table: applications, prefix: 'app', selection: shownApplication },
  states: enumWords<typeof ApplicationState>(ApplicationStateSchema),
};
export const allocationKind: FoundKind<ShownBy<typeof shownAllocation>> = {
  ...{ table: allocations, prefix: 'alc', selection: shownAllocation },
  states: enumWords<typeof AllocationState>(AllocationStateSchema),
};
export const withdrawalKind: FoundKind<ShownBy<typeof shownWithdrawal>> = {
  ...{ table: withdrawals, prefix: 'wdr', selection: shownWithdrawal },
  states: enumWords<typeof WithdrawalState>(WithdrawalStateSchema),
};

/** The operators' calls that find objects by what partners, the exchange or the broker know of them. */
export function findCalls(database: Database, cursors: Cursors, clock: Clock): FindCalls {
  /** A page of objects. `foreign` is the upstream's id, by which objects are found without a partner; `param` its field. */
  async function find<Shown extends { readonly id: string }>(
    { table, prefix, selection, states }: FoundKind<Shown>,
    request: FindRequest,
    foreign: Readonly<Record<string, string>>,
    param: string,
  ) {
    const { partnerId, idempotencyKey, keyId, day, limit, cursor } = request;
    const state = request.state === 0 ? '' : states.find(request.state);
    if (state === undefined) throw invalidField('state', 'must be a state.');
    if (partnerId !== '') await requirePartner(database, partnerId);
    else if (Object.values(foreign).includes('')) throw invalidField('partner_id', `or \`${param}\` is required.`);
    if (partnerId === '' && idempotencyKey !== '') throw invalidField('partner_id', 'is required with a key.');
    if (keyId !== '' && (partnerId === '' || day === '')) {
      throw invalidField('key_id', 'needs `partner_id` and `day`, because all of the day is read.');
    }
    if (day !== '' && !isDate(day)) throw invalidField('day', 'must be a day, as in 2026-03-02.');
    const index = idempotencyKey === '' ? undefined : `${table.name}_idempotency_key`;
    const { account, clientReference = '', symbol = '' } = request;
    const given = filled({
      ...{ partnerId, idempotencyKey, keyId, account: account.toUpperCase() },
      ...{ ...foreign, clientReference, symbol: symbol.toUpperCase(), state },
    });
    const issuedFor = ['found', table.name, day, JSON.stringify(given)];
    const before = cursor === '' ? undefined : cursors.read(issuedFor, cursor);
    // Midnight in Lagos, before and after the day.
    const midnightAfter = (date: string) => firstIdAt(prefix, nextLagosMidnight(Date.parse(date)));
    const [from, until] = day === '' ? [] : [midnightAfter(daysBefore(day, 1)), midnightAfter(day)];
    const most = limit || usuallyListed;
    const withOwner: Selection<Found<Shown>> = {
      list: `partner_id, key_id, ${selection.list}`,
      read: (row) => ({
        partnerId: String(row.partner_id),
        keyId: row.key_id as string | null,
        shown: selection.read(row),
      }),
    };
    const rows = await readPage(
      database,
      { table, prefix },
      withOwner,
      { equal: given as { partnerId: string }, updatedSince: undefined, before: before ?? until, from, index },
      most + 1,
    );
    const page = cursors.page(issuedFor, rows.map(withOwner.read), most, ({ shown }) => shown.id);
    const found = page.data.map(({ shown, ...owner }) => ({ ...owner, id: shown.id, shown }));
    const events = await database.readAll(found.map(({ partnerId, id }) => findEvents(partnerId, id)));
    const proposals = await readOpenProposals(database, found, clock.now());
    const objects = found.map((one, at) => ({
      ...{ ...one, events: (events[at] ?? []).map(toEvent), openProposal: proposals.get(one.id) },
    }));
    return { objects, nextCursor: page.nextCursor };
  }

  return {
    async findOrders(request) {
      const { exchangeOrderId } = request;
      const { objects, nextCursor } = await find(orderKind, request, { exchangeOrderId }, 'exchange_order_id');
      return { orders: objects.map((one) => ({ ...one, order: toOrderMessage(one.shown) })), nextCursor };
    },

    async findApplications(request) {
      const { reference } = request;
      const { objects, nextCursor } = await find(applicationKind, request, { reference }, 'reference');
      const found = objects.map((one) => ({ ...one, application: toApplicationMessage(one.shown) }));
      return { applications: found, nextCursor };
    },

    async findAllocations(request) {
      const { brokerReference } = request;
      const { objects, nextCursor } = await find(allocationKind, request, { brokerReference }, 'broker_reference');
      const entries = await database.readAll(objects.map(({ partnerId, id }) => findTransfers(partnerId, id)));
      const found = objects.map((one, at) => ({
        ...{ ...one, allocation: toAllocationMessage(one.shown), transfers: (entries[at] ?? []).map(toTransfer) },
      }));
      return { allocations: found, nextCursor };
    },

    async findWithdrawals(request) {
      const { brokerReference } = request;
      const { objects, nextCursor } = await find(withdrawalKind, request, { brokerReference }, 'broker_reference');
      const entries = await database.readAll(objects.map(({ partnerId, id }) => findTransfers(partnerId, id)));
      const found = objects.map((one, at) => ({
        ...{ ...one, withdrawal: toWithdrawalMessage(one.shown), transfers: (entries[at] ?? []).map(toTransfer) },
      }));
      return { withdrawals: found, nextCursor };
    },
  };
}

/** What of these was given: an empty text is none. */
function filled(fields: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

/** An object's last events. */
function findEvents(partnerId: string, objectId: string): Statement {
  return sql`SELECT e.version, e.id, e.type, e.occurred_at, d.state AS delivery, d.due_at
    FROM feed_events e FORCE INDEX (feed_events_object)
    LEFT JOIN webhook_deliveries d ON d.partner_id = e.partner_id AND d.version = e.version
    WHERE e.partner_id = ${partnerId} AND e.object_id = ${objectId} ORDER BY e.version DESC LIMIT ${maxEvents}`;
}

function toEvent(row: SqlRow) {
  return {
    id: String(row.id),
    type: String(row.type ?? ''),
    version: toBigInt(row.version),
    at: milliseconds(row.occurred_at),
    inFeed: true,
    webhook: String(row.delivery ?? ''),
    webhookDueAt: milliseconds(row.due_at),
  };
}

function toTransfer(row: SqlRow) {
  const { id, type, amountKobo, createdAt } = toEntry(row);
  return { id, type, amountKobo, at: createdAt };
}
