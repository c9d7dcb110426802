import { fromJsonString } from '@bufbuild/protobuf';
import { SettlementOutcomeSchema } from '../../../../gen/marina/admin/v1/settlements_pb.ts';
import { lagosDay } from '../../../../kit/clock.ts';
import { type Fact, noFact, queryFact } from '../../../store/facts.ts';
import { statement } from '../../../store/statement.ts';
import type { ShownBy } from '../../../store/table.ts';
import { accounts, type StoredAccount } from '../../../trading/accounts/store.ts';
import { allocations } from '../../../trading/allocations/table.ts';
import { orders } from '../../../trading/orders/table.ts';
import { withdrawals } from '../../../trading/withdrawals/table.ts';
import { proposals } from '../proposals/table.ts';

/** How many earlier settlements of an order are looked through, the newest first. Each needed two operators. */
const maxEarlier = 100;
/** How many objects with one id of the broker are looked at: an exchange may begin its ids anew each day. */
const maxNamesakes = 100;

/** A trade that a settlement entered, and the proposal that did. */
export interface EnteredTrade {
  readonly exchangeTradeId: string;
  readonly proposal: string;
}

const earlier = proposals.only('id', 'request');

/** The trades that earlier settlements of an order entered or counted, as far as the proposals name the exchange's ids. */
export function enteredTrades(partnerId: string, objectId: string): Fact<readonly EnteredTrade[]> {
  const newest = statement(`ORDER BY id DESC LIMIT ${maxEarlier}`);
  const applied = proposals.find({ partnerId, objectId, state: 'applied' }, earlier, newest, 'proposals_object');
  return queryFact(applied, (rows) => rows.map(earlier.read).flatMap(tradesIn));
}

function tradesIn({ id, request }: { readonly id: string; readonly request: string }): EnteredTrade[] {
  // A later version may have added fields.
  const { order } = fromJsonString(SettlementOutcomeSchema, request, { ignoreUnknownFields: true });
  return (order?.trades ?? []).flatMap(({ exchangeTradeId, quantity }) =>
    exchangeTradeId === '' || quantity === 0n ? [] : [{ exchangeTradeId, proposal: id }],
  );
}

/** Why a trade that the history is said to lack cannot be entered: an earlier settlement entered it. */
export function enteredBefore(
  trades: readonly { readonly step: number; readonly exchangeTradeId: string }[],
  before: readonly EnteredTrade[],
): string | undefined {
  for (const { step, exchangeTradeId } of trades) {
    const same = step === 0 ? before.find((one) => one.exchangeTradeId === exchangeTradeId) : undefined;
    if (same !== undefined) {
      return `${same.proposal} has settled the trade ${exchangeTradeId} of it: name the step of the history that has it`;
    }
  }
  return undefined;
}

const namesake = orders.only('id', 'account', 'symbol', 'side', 'createdAt');
/** An order that the exchange has under an id. */
export type Namesake = ShownBy<typeof namesake>;

/** The partner's newest orders with an exchange's id; empty: none is named. */
export function ordersWithId(partnerId: string, exchangeOrderId: string): Fact<readonly Namesake[]> {
  if (exchangeOrderId === '') return noneOf;
  const newest = statement(`ORDER BY id DESC LIMIT ${maxNamesakes}`);
  const like = orders.find({ partnerId, exchangeOrderId }, namesake, newest, 'orders_exchange_order_id');
  return queryFact(like, (rows) => rows.map(namesake.read));
}

/** Why an order cannot have the exchange's id: a like order of the day has it. An exchange may use its ids again on another day. */
export function isOfAnother(order: Namesake, namesakes: readonly Namesake[]): string | undefined {
  const other = namesakes.find((one) => {
    const isAlike = one.account === order.account && one.symbol === order.symbol && one.side === order.side;
    return one.id !== order.id && isAlike && lagosDay(one.createdAt) === lagosDay(order.createdAt);
  });
  return other && `the exchange has ${other.id} under this id`;
}

const booked = allocations.only('id', 'account');
/** An allocation that the broker has under a reference. */
type Booked = ShownBy<typeof booked>;

/** The partner's allocations with a broker's reference; undefined: none is named. */
export function allocationsWithReference(
  partnerId: string,
  brokerReference: string | undefined,
): Fact<readonly Booked[]> {
  if (brokerReference === undefined) return noneOf;
  const newest = statement(`ORDER BY id DESC LIMIT ${maxNamesakes}`);
  const like = allocations.find({ partnerId, brokerReference }, booked, newest, 'allocations_broker_reference');
  return queryFact(like, (rows) => rows.map(booked.read));
}

const paid = withdrawals.only('id', 'account');
/** A withdrawal that the broker has under a reference. */
type Paid = ShownBy<typeof paid>;

/** The partner's withdrawals with a broker's reference; undefined: with the one that the withdrawal itself has. */
export function withdrawalsWithReference(
  partnerId: string,
  withdrawalId: string,
  brokerReference: string | undefined,
): Fact<readonly Paid[]> {
  const newest = statement(`ORDER BY id DESC LIMIT ${maxNamesakes}`);
  const like =
    brokerReference === undefined
      ? statement(
          `SELECT ${paid.list} FROM withdrawals FORCE INDEX (withdrawals_broker_reference)
          WHERE partner_id = ? AND broker_reference = (SELECT broker_reference FROM withdrawals
            WHERE partner_id = ? AND id = ?) ORDER BY id DESC LIMIT ${maxNamesakes}`,
          ...[partnerId, partnerId, withdrawalId],
        )
      : withdrawals.find({ partnerId, brokerReference }, paid, newest, 'withdrawals_broker_reference');
  return queryFact(like, (rows) => rows.map(paid.read));
}

/** The owner of an account, and the application that opened it, unless operators linked it; undefined: nobody, or none is named. */
export function linkOf(account: string): Fact<StoredAccount | undefined> {
  return account === '' ? noFact : queryFact(accounts.find({ account }), ([row]) => row && accounts.all.read(row));
}

/** The fact of a list for which nothing is read. */
export const noneOf: Fact<readonly never[]> = { ...noFact, value: () => [], expected: { value: [], guards: [] } };
