import { fromJsonString, toJsonString } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type AllocationOutcome,
  type ApplicationOutcome,
  type OrderOutcome,
  type SettledAllocationState,
  SettledAllocationStateSchema,
  type SettledApplicationState,
  SettledApplicationStateSchema,
  type SettledOrderState,
  SettledOrderStateSchema,
  type SettledTrade as SettledTradeMessage,
  type SettledWithdrawalState,
  SettledWithdrawalStateSchema,
  type SettlementOutcome,
  SettlementOutcomeSchema,
  type WithdrawalOutcome,
} from '../../../../gen/marina/admin/v1/settlements_pb.ts';
import {
  type AllocationRejectReason,
  AllocationRejectReasonSchema,
} from '../../../../gen/marina/gateway/v1/allocations_pb.ts';
import {
  type ApplicationRejectReason,
  ApplicationRejectReasonSchema,
} from '../../../../gen/marina/gateway/v1/applications_pb.ts';
import { type OrderRejectReason, OrderRejectReasonSchema } from '../../../../gen/marina/gateway/v1/orders_pb.ts';
import {
  type WithdrawalRejectReason,
  WithdrawalRejectReasonSchema,
} from '../../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import { instantRange, toMilliseconds } from '../../../../kit/clock.ts';
import { enumWords } from '../../../../kit/enums.ts';
import { allFacts, type Fact, queryFact } from '../../../store/facts.ts';
import { settleAllocation } from '../../../trading/allocations/settlement/rules.ts';
import type { StoredAllocation } from '../../../trading/allocations/table.ts';
import { settleApplication } from '../../../trading/applications/settlement/rules.ts';
import type { StoredApplication } from '../../../trading/applications/table.ts';
import { type SettledTrade, settleOrder } from '../../../trading/orders/settlement/rules.ts';
import { findTradeSteps, maxTradeSteps, type StoredOrder, toTradeStep } from '../../../trading/orders/table.ts';
import { type TradeStep, tradesOf } from '../../../trading/orders/trades/rules.ts';
import type { Settling } from '../../../trading/submission/rules.ts';
import type { Submission } from '../../../trading/submission/table.ts';
import { settleWithdrawal } from '../../../trading/withdrawals/settlement/rules.ts';
import type { StoredWithdrawal } from '../../../trading/withdrawals/table.ts';
import { invalidField } from '../errors.ts';
import {
  allocationsWithReference,
  enteredBefore,
  enteredTrades,
  isOfAnother,
  linkOf,
  noneOf,
  ordersWithId,
  withdrawalsWithReference,
} from './claims.ts';

/** A proposed outcome, ready to be decided on an object's row. */
export interface SettlementRules<Row extends Submission = Submission, Facts = unknown> {
  /** The kind of its object, by the prefix of its id. */
  readonly prefix: string;
  /** What else the decision depends on: the order's steps with trades, and what belongs to other objects already. */
  fact(partnerId: string, objectId: string): Fact<Facts>;
  /** The keys of what else it touches. */
  readonly touches: readonly string[];
  /** The steps of an order's history whose trades it counts. */
  readonly countedSteps: readonly number[];
  /** `facts` is the value of `fact`. `now` and `proposedAt`, when it was proposed, are business time. */
  settle(row: Row, facts: Facts, now: number, proposedAt: number): Settling<Row>;
}

const orderStates = enumWords<typeof SettledOrderState>(SettledOrderStateSchema);
const applicationStates = enumWords<typeof SettledApplicationState>(SettledApplicationStateSchema);
const allocationStates = enumWords<typeof SettledAllocationState>(SettledAllocationStateSchema);
const withdrawalStates = enumWords<typeof SettledWithdrawalState>(SettledWithdrawalStateSchema);
const orderReasons = enumWords<typeof OrderRejectReason>(OrderRejectReasonSchema);
const applicationReasons = enumWords<typeof ApplicationRejectReason>(ApplicationRejectReasonSchema);
const allocationReasons = enumWords<typeof AllocationRejectReason>(AllocationRejectReasonSchema);
const withdrawalReasons = enumWords<typeof WithdrawalRejectReason>(WithdrawalRejectReasonSchema);

/** An outcome as a proposal keeps it. */
export function writeOutcome(outcome: SettlementOutcome): string {
  return toJsonString(SettlementOutcomeSchema, outcome);
}

/** Reads a proposal's outcome. Throws if a later version proposed something that this one does not know. */
export function readOutcome(text: string): SettlementRules {
  return toOutcome(fromJsonString(SettlementOutcomeSchema, text));
}

/** Checks an outcome as far as that is possible without the object. Throws INVALID_ARGUMENT. */
export function toOutcome({ order, application, allocation, withdrawal }: SettlementOutcome): SettlementRules {
  const outcomes = [
    ...(order === undefined ? [] : [ofOrder(order)]),
    ...(application === undefined ? [] : [ofApplication(application)]),
    ...(allocation === undefined ? [] : [ofAllocation(allocation)]),
    ...(withdrawal === undefined ? [] : [ofWithdrawal(withdrawal)]),
  ];
  const [outcome] = outcomes;
  if (outcome !== undefined && outcomes.length === 1) return outcome;
  throw invalidField('outcome', 'must have exactly one of `order`, `application`, `allocation` and `withdrawal`.');
}

/** Rules for code that treats all kinds alike: rows and facts of one kind are only given to that kind. */
function ofKind<Row extends Submission, Facts>(rules: SettlementRules<Row, Facts>): SettlementRules {
  return rules as unknown as SettlementRules;
}

function ofOrder({ state, rejectReason, endedAt, exchangeOrderId, trades }: OrderOutcome): SettlementRules {
  const settlement = {
    state: orderStates.find(state),
    rejectReason: orderReasons.find(rejectReason),
    endedAt: instantOf(endedAt, 'outcome.order.ended_at'),
    exchangeOrderId,
    trades: trades.map(toTrade),
  };
  checkTradeIds(trades);
  return ofKind({
    prefix: 'ord',
    touches: [],
    countedSteps: trades.map(({ step }) => step).filter((step) => step !== 0),
    fact: (partnerId, orderId) =>
      allFacts({
        steps: trades.length === 0 ? noneOf : stepsWithTrades(partnerId, orderId),
        entered: trades.length === 0 ? noneOf : enteredTrades(partnerId, orderId),
        namesakes: ordersWithId(partnerId, exchangeOrderId),
      }),
    settle(order: StoredOrder, { steps, entered, namesakes }, now, proposedAt) {
      if (steps.length > maxTradeSteps) return { problem: `its history has more than ${maxTradeSteps} trades` };
      const problem = enteredBefore(trades, entered) ?? isOfAnother(order, namesakes);
      return problem === undefined ? settleOrder(order, settlement, tradesOf(steps), now, proposedAt) : { problem };
    },
  });
}

function ofApplication({ state, reference, account, rejectReason }: ApplicationOutcome): SettlementRules {
  const word = applicationStates.find(state);
  if (word === undefined) throw invalidField('outcome.application.state', 'is required.');
  const settlement = {
    state: word,
    reference: given(reference),
    account: given(account),
    rejectReason: applicationReasons.find(rejectReason),
  };
  return ofKind({
    prefix: 'app',
    touches: account === '' ? [] : [`account ${account}`],
    countedSteps: [],
    fact: () => linkOf(account),
    settle(row: StoredApplication, link, now) {
      if (link !== undefined && link.partnerId !== row.partnerId)
        return { problem: "the account is another partner's" };
      const opener = link?.applicationId ?? row.id;
      if (opener !== row.id) return { problem: `the account was opened for ${opener}` };
      return settleApplication(row, settlement, now);
    },
  });
}

function ofAllocation({ state, brokerReference, rejectReason, decidedAt }: AllocationOutcome): SettlementRules {
  const word = allocationStates.find(state);
  if (word === undefined) throw invalidField('outcome.allocation.state', 'is required.');
  const settlement = {
    state: word,
    brokerReference: given(brokerReference),
    rejectReason: allocationReasons.find(rejectReason),
    decidedAt: instantOf(decidedAt, 'outcome.allocation.decided_at'),
  };
  return ofKind({
    prefix: 'alc',
    touches: [],
    countedSteps: [],
    fact: (partnerId) => allocationsWithReference(partnerId, settlement.brokerReference),
    settle(allocation: StoredAllocation, namesakes, now) {
      const other = namesakes.find(({ id, account }) => id !== allocation.id && account === allocation.account);
      if (other !== undefined) return { problem: `the broker has booked ${other.id} under this reference` };
      return settleAllocation(allocation, settlement, now);
    },
  });
}

function ofWithdrawal({ state, brokerReference, rejectReason, decidedAt }: WithdrawalOutcome): SettlementRules {
  const word = withdrawalStates.find(state);
  if (word === undefined) throw invalidField('outcome.withdrawal.state', 'is required.');
  const settlement = {
    state: word,
    brokerReference: given(brokerReference),
    rejectReason: withdrawalReasons.find(rejectReason),
    decidedAt: instantOf(decidedAt, 'outcome.withdrawal.decided_at'),
  };
  return ofKind({
    prefix: 'wdr',
    touches: [],
    countedSteps: [],
    fact: (partnerId, id) => withdrawalsWithReference(partnerId, id, settlement.brokerReference),
    settle(withdrawal: StoredWithdrawal, namesakes, now) {
      const other = namesakes.find(({ id, account }) => id !== withdrawal.id && account === withdrawal.account);
      if (other !== undefined && word === 'completed') {
        return { problem: `the broker has ${other.id} under this reference` };
      }
      return settleWithdrawal(withdrawal, settlement, now);
    },
  });
}

function stepsWithTrades(partnerId: string, orderId: string): Fact<readonly TradeStep[]> {
  return queryFact(findTradeSteps(partnerId, orderId), (rows) => rows.map(toTradeStep));
}

function toTrade({ step, quantity, priceKobo, at }: SettledTradeMessage, index: number): SettledTrade {
  const traded = instantOf(at, `outcome.order.trades[${index}].at`);
  if (traded === undefined) throw invalidField(`outcome.order.trades[${index}].at`, 'is required.');
  return { step: step === 0 ? undefined : step, quantity, priceKobo, at: traded };
}

/** A trade that is entered twice would count twice. */
function checkTradeIds(trades: readonly SettledTradeMessage[]): void {
  const ids = new Set<string>();
  for (const [index, { step, exchangeTradeId }] of trades.entries()) {
    const field = `outcome.order.trades[${index}].exchange_trade_id`;
    if (step === 0 && exchangeTradeId === '') throw invalidField(field, 'is required for a trade that has no step.');
    if (ids.has(exchangeTradeId)) throw invalidField(field, 'is that of another trade of the outcome.');
    if (exchangeTradeId !== '') ids.add(exchangeTradeId);
  }
}

function instantOf(at: Timestamp | undefined, field: string): number | undefined {
  if (at === undefined) return undefined;
  const ms = toMilliseconds(at);
  if (ms < instantRange.least || ms > instantRange.most) throw invalidField(field, 'must be from 2000 to 2199.');
  return ms;
}

function given(text: string): string | undefined {
  return text === '' ? undefined : text;
}
