import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  AccountStatus,
  type CancelOrderResponseSchema,
  CancelOutcome,
  type EstimateOrderResponseSchema,
  type GetTradingContextResponseSchema,
  InstrumentKind,
  type LookUpOrderResponseSchema,
  ReportKind,
  type SubmitOrderResponseSchema,
} from '../gen/marina/broker/v1/orders_pb.ts';

/** Answers that are well formed and make no sense: what a caller must not believe. */
export type Nonsense = ReturnType<typeof createNonsense>;

/** One simulator's nonsense. */
export function createNonsense() {
  return {
    /** By turns a report about an order nobody sent, and no report at all. */
    submit: byTurns<MessageInitShape<typeof SubmitOrderResponseSchema>>({ report: foreignReport }, {}),
    /** An outcome this version does not have, and a report about another order. */
    cancel: (): MessageInitShape<typeof CancelOrderResponseSchema> => ({
      outcome: CancelOutcome.UNSPECIFIED,
      report: foreignReport,
    }),
    /** A report about another order. */
    lookUp: (): MessageInitShape<typeof LookUpOrderResponseSchema> => ({ found: true, reports: [foreignReport] }),
    /** No status, and an instrument nobody asked for whose lowest price is above its highest. */
    tradingContext: (): MessageInitShape<typeof GetTradingContextResponseSchema> => ({
      accountStatus: AccountStatus.UNSPECIFIED,
      instrument: {
        symbol: 'NONSENSE',
        name: 'Nonsense',
        kind: InstrumentKind.UNSPECIFIED,
        lowerPriceKobo: 2n,
        upperPriceKobo: -1n,
      },
    }),
    /** Sums that are no decimals and do not fit each other. */
    estimate: (): MessageInitShape<typeof EstimateOrderResponseSchema> => ({
      priceKobo: -1n,
      amountKobo: -1n,
      commissionKoboDecimal: 'NaN',
      statutoryFeesKoboDecimal: '',
      otherFeesKoboDecimal: '1e400',
      totalKoboDecimal: 'many',
    }),
  };
}

const foreignReport = {
  number: 9_007_199_254_740_991n,
  clientOrderId: 'nobody-sent-this',
  exchangeOrderId: 'NGX-NONSENSE',
  kind: ReportKind.ACCEPTED,
};

/** Gives the one and the other in turn. */
export function byTurns<Answer>(one: Answer, other: Answer): () => Answer {
  let given = 0;
  return () => {
    given += 1;
    return given % 2 === 1 ? one : other;
  };
}
