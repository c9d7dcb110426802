import type { Diagnostics } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { type AllocationState, AllocationStateSchema } from '../../../../gen/marina/gateway/v1/allocations_pb.ts';
import { type ApplicationState, ApplicationStateSchema } from '../../../../gen/marina/gateway/v1/applications_pb.ts';
import { type OrderState, OrderStateSchema } from '../../../../gen/marina/gateway/v1/orders_pb.ts';
import { type Clock, daysBefore, isDate, nextLagosMidnight } from '../../../../kit/clock.ts';
import { enumWords } from '../../../../kit/enums.ts';
import { firstIdAt } from '../../../edge/ids.ts';
import type { Cursors } from '../../../edge/paging.ts';
import type { Database } from '../../../store/database.ts';
import { milliseconds, type SqlRow, type Statement, sql, statement, toBigInt } from '../../../store/statement.ts';
import type { Selection } from '../../../store/table.ts';
import { shownAllocation, toAllocationMessage } from '../../../trading/allocations/table.ts';
import { shownApplication, toApplicationMessage } from '../../../trading/applications/table.ts';
import { shownOrder, toOrderMessage } from '../../../trading/orders/table.ts';
import type { AnyKind, Kinds } from '../../../trading/submission/kind.ts';
import { readPage } from '../../../trading/submission/list.ts';
import { transfers } from '../../../trading/wallet/store.ts';
import { type AdminCalls, requirePartner, usuallyListed } from '../call.ts';
import { invalidField } from '../errors.ts';
import { readOpenProposals } from '../proposals/service.ts';

type FindCalls = Pick<AdminCalls<typeof Diagnostics>, 'findOrders' | 'findApplications' | 'findAllocations'>;

/** What all three requests have. */
interface Wanted {
  readonly partnerId: string;
  readonly idempotencyKey: string;
  readonly keyId: string;
  readonly account: string;
  readonly day: string;
  readonly limit: number;
  readonly cursor: string;
}

interface Found<Shown> {
  readonly partnerId: string;
  readonly keyId: string | null;
  readonly shown: Shown;
}

const maxEvents = 10;
const orderStates = enumWords<typeof OrderState>(OrderStateSchema);
const applicationStates = enumWords<typeof ApplicationState>(ApplicationStateSchema);
const allocationStates = enumWords<typeof AllocationState>(AllocationStateSchema);

/** The operators' calls that find objects by what partners, the exchange or the broker know of them. */
export function findCalls(database: Database, cursors: Cursors, kinds: Kinds, clock: Clock): FindCalls {
  const kindOf = (prefix: string): AnyKind => {
    const kind = kinds.all.find((one) => one.prefix === prefix);
    if (kind === undefined) throw new Error(`there is no kind of ${prefix}`);
    return kind;
  };
  const [orders, applications, allocations] = [kindOf('ord'), kindOf('app'), kindOf('alc')];

  /** A page of objects. `foreign` names the field with the upstream's id, by which objects are found without a partner. */
  async function find<Shown extends { readonly id: string }>(
    { table, prefix }: AnyKind,
    selection: Selection<Shown>,
    foreign: { readonly param: string; readonly isGiven: boolean },
    wanted: Wanted,
    more: object,
  ) {
    const { partnerId, idempotencyKey, keyId, account, day, limit, cursor } = wanted;
    if (partnerId !== '') await requirePartner(database, partnerId);
    else if (!foreign.isGiven) throw invalidField('partner_id', `or \`${foreign.param}\` is required.`);
    if (partnerId === '' && idempotencyKey !== '') throw invalidField('partner_id', 'is required with a key.');
    if (keyId !== '' && (partnerId === '' || day === '')) {
      throw invalidField('key_id', 'needs `partner_id` and `day`, because all of the day is read.');
    }
    if (day !== '' && !isDate(day)) throw invalidField('day', 'must be a day, as in 2026-03-02.');
    const index = idempotencyKey === '' ? undefined : `${table.name}_idempotency_key`;
    const given = {
      ...filled({ partnerId, idempotencyKey, keyId }),
      ...(account === '' ? {} : { account: account.toUpperCase() }),
      ...more,
    };
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
    const eventsOf = await readEvents(page.data);
    const owned = page.data.map(({ partnerId, shown }) => ({ partnerId, id: shown.id }));
    const proposals = await readOpenProposals(database, owned, clock.now());
    return {
      found: page.data,
      nextCursor: page.nextCursor,
      /** The objects with what all kinds have, and with what `more` adds. */
      answer: <More>(more: (shown: Shown, at: number) => More) =>
        page.data.map((each, at) => ({
          ...{ partnerId: each.partnerId, keyId: each.keyId, events: eventsOf(at) },
          openProposal: proposals.get(each.shown.id),
          ...more(each.shown, at),
        })),
    };
  }

  /** The last events of each object, newest first, by its place in the page. */
  async function readEvents(found: readonly Found<{ readonly id: string }>[]) {
    const answers = await database.readAll(found.map(({ partnerId, shown }) => findEvents(partnerId, shown.id)));
    return (at: number) => (answers[at] ?? []).map(toEvent);
  }

  return {
    async findOrders(request) {
      const { exchangeOrderId, clientReference, symbol, state } = request;
      const foreign = { param: 'exchange_order_id', isGiven: exchangeOrderId !== '' };
      const { nextCursor, answer } = await find(orders, shownOrder, foreign, request, {
        ...filled({ exchangeOrderId, clientReference }),
        ...(symbol === '' ? {} : { symbol: symbol.toUpperCase() }),
        ...(state === 0 ? {} : { state: knownState(orderStates.find(state)) }),
      });
      return {
        orders: answer((shown) => ({ order: toOrderMessage(shown) })),
        nextCursor,
      };
    },

    async findApplications(request) {
      const { reference, state } = request;
      const foreign = { param: 'reference', isGiven: reference !== '' };
      const { nextCursor, answer } = await find(applications, shownApplication, foreign, request, {
        ...filled({ reference }),
        ...(state === 0 ? {} : { state: knownState(applicationStates.find(state)) }),
      });
      return {
        applications: answer((shown) => ({ application: toApplicationMessage(shown) })),
        nextCursor,
      };
    },

    async findAllocations(request) {
      const { brokerReference, clientReference, state } = request;
      const foreign = { param: 'broker_reference', isGiven: brokerReference !== '' };
      const { found, nextCursor, answer } = await find(allocations, shownAllocation, foreign, request, {
        ...filled({ brokerReference, clientReference }),
        ...(state === 0 ? {} : { state: knownState(allocationStates.find(state)) }),
      });
      const entries = await database.readAll(found.map(({ partnerId, shown }) => findTransfers(partnerId, shown.id)));
      return {
        allocations: answer((shown, at) => ({
          allocation: toAllocationMessage(shown),
          transfers: (entries[at] ?? []).map(toTransfer),
        })),
        nextCursor,
      };
    },
  };
}

/** What of these was given: an empty text is none. */
function filled(fields: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

function knownState<Word extends string>(word: Word | undefined): Word {
  if (word === undefined) throw invalidField('state', 'must be a state.');
  return word;
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

function findTransfers(partnerId: string, allocationId: string): Statement {
  const inOrder = statement('ORDER BY sequence');
  return transfers.find({ partnerId, allocationId }, transfers.all, inOrder, 'wallet_transfers_allocation');
}

function toTransfer(row: SqlRow) {
  const { id, type, amountKobo, createdAt } = transfers.all.read(row);
  return { id, type, amountKobo, at: createdAt };
}
