import { AccountStatus, InstrumentKind, OrderType, RejectReason } from '../../gen/marina/broker/v1/orders_pb.ts';
import { isOnTick } from '../market/prices.ts';
import type { Phase } from '../market/venue.ts';
import type { InstrumentState, OrderRequest } from '../model.ts';

interface Checked {
  readonly submission: OrderRequest;
  readonly account: AccountStatus;
  /** The reason why a restriction of the account forbids the order; undefined: none does. */
  readonly forbidden: RejectReason | undefined;
  readonly instrument: InstrumentState | undefined;
  /** The exchange's phase. Magic symbols trade in any phase. */
  readonly phase: Phase;
  /** Whether the engine has room for one more order. */
  readonly hasRoom: boolean;
}

/** The reasons to reject an order, in the order of the checks. */
const checks: readonly (readonly [RejectReason, (checked: Checked) => boolean])[] = [
  [RejectReason.ACCOUNT_NOT_AT_BROKER, ({ account }) => account === AccountStatus.NOT_AT_BROKER],
  [
    RejectReason.SETTLEMENT_LOCKOUT,
    ({ account, forbidden }) =>
      account === AccountStatus.SETTLEMENT_LOCKOUT || forbidden === RejectReason.SETTLEMENT_LOCKOUT,
  ],
  [RejectReason.REJECTED_BY_EXCHANGE, ({ forbidden }) => forbidden === RejectReason.REJECTED_BY_EXCHANGE],
  [RejectReason.UNKNOWN_SYMBOL, ({ instrument }) => instrument === undefined],
  [RejectReason.MARKET_CLOSED, ({ phase }) => phase === 'closed' || phase === 'halted'],
  [RejectReason.SYMBOL_NOT_TRADABLE, ({ instrument }) => instrument?.halted === true],
  [
    RejectReason.LIMIT_ORDERS_ETF_ONLY,
    ({ instrument, submission }) => instrument?.kind === InstrumentKind.ETF && submission.type === OrderType.MARKET,
  ],
  [RejectReason.PRICE_OUTSIDE_BAND, ({ instrument, submission }) => isOutsideBand(submission, instrument)],
  [RejectReason.PRICE_OFF_TICK, ({ submission: { priceKobo } }) => priceKobo !== null && !isOnTick(priceKobo)],
  [RejectReason.REJECTED_BY_EXCHANGE, ({ hasRoom }) => !hasRoom],
];

/** The first check that an order fails, if any. */
export function reasonToReject(checked: Checked): RejectReason | undefined {
  return checks.find(([, fails]) => fails(checked))?.[0];
}

function isOutsideBand({ priceKobo }: OrderRequest, instrument: InstrumentState | undefined): boolean {
  if (priceKobo === null || instrument === undefined) return false;
  return priceKobo < instrument.lowerKobo || priceKobo > instrument.upperKobo;
}
