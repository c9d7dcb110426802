import { create } from '@bufbuild/protobuf';
import { placeOfTrade, tradeDate } from '../broker/records.ts';
import type {
  ContractNote as BrokerContractNote,
  Position as BrokerPosition,
  Trade as BrokerTrade,
} from '../gen/marina/broker/v1/accounts_pb.ts';
import { Side, SideSchema } from '../gen/marina/broker/v1/orders_pb.ts';
import {
  type Account,
  AccountSchema,
  type ContractNote,
  ContractNoteSchema,
  type Position,
  PositionSchema,
  type Trade,
  TradeSchema,
  TradeSide,
} from '../gen/marina/gateway/v1/accounts_pb.ts';
import { translateEnum, unnamed, withStoredNames } from '../lib/enums.ts';
import { toSecond } from '../lib/timestamps.ts';
import type { ShownAccount } from './store.ts';

const orderId = /^ord_[a-z2-7]{20}$/;

export function toAccountMessage({ account, applicationId, createdAt }: ShownAccount): Account {
  return create(AccountSchema, {
    account,
    application: applicationId ?? undefined,
    createdAt: toSecond(createdAt),
  });
}

export function toPositionMessage(account: string, position: BrokerPosition): Position {
  const { symbol, name, quantity, averageCostKoboDecimal, priceKobo, marketValueKobo } = position;
  return create(PositionSchema, {
    account,
    symbol,
    name,
    quantity,
    averageCostKoboDecimal,
    priceKobo,
    marketValueKobo,
  });
}

export function toTradeMessage(account: string, trade: BrokerTrade): Trade {
  const { id, symbol, quantity, priceKobo, amountKobo, clientOrderId } = trade;
  const message = create(TradeSchema, {
    id,
    // Whatever else the broker has there is no order of ours.
    order: orderId.test(clientOrderId) ? clientOrderId : undefined,
    account,
    symbol,
    side: sideOf(trade.side),
    quantity,
    priceKobo,
    amountKobo,
    tradeDate: tradeDate(trade),
    executedAt: toSecond(placeOfTrade(trade).executedAtMs),
  });
  return withStoredNames(message, { side: unnamed });
}

export function toContractNoteMessage(note: BrokerContractNote): ContractNote {
  const message = create(ContractNoteSchema, {
    ticket: note.ticket,
    symbol: note.symbol,
    name: note.name,
    side: sideOf(note.side),
    quantity: note.quantity,
    priceKobo: note.priceKobo,
    amountKobo: note.amountKobo,
    commissionKobo: note.commissionKobo,
    statutoryFeesKobo: note.statutoryFeesKobo,
    otherFeesKobo: note.otherFeesKobo,
    considerationKobo: note.considerationKobo,
    tradeDate: note.tradeDate,
    transactionDate: note.transactionDate,
  });
  return withStoredNames(message, { side: unnamed });
}

const sideOf = translateEnum(Side, TradeSide, SideSchema);
