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
} from '../../gen/marina/broker/v1/orders_pb.ts';

/** Well-formed answers that make no sense, which a caller must not believe. */
export type Nonsense = ReturnType<typeof createNonsense>;

export function createNonsense() {
  return {
    /** In turn: a report about an unknown order, and no report. */
    submit: byTurns<MessageInitShape<typeof SubmitOrderResponseSchema>>({ report: foreignReport }, {}),
    /** An unknown outcome, and a report about another order. */
    cancel: (): MessageInitShape<typeof CancelOrderResponseSchema> => ({
      outcome: CancelOutcome.UNSPECIFIED,
      report: foreignReport,
    }),
    lookUp: (): MessageInitShape<typeof LookUpOrderResponseSchema> => ({ found: true, reports: [foreignReport] }),
    /** No status, and an instrument nobody asked for, with its lowest price above its highest. */
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
    /** Sums that are no decimals and contradict each other. */
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

/** Returns the two answers in turn. */
export function byTurns<Answer>(one: Answer, other: Answer): () => Answer {
  let given = 0;
  return () => {
    given += 1;
    return given % 2 === 1 ? one : other;
  };
}
