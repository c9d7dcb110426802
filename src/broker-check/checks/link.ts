import { timestampMs } from '@bufbuild/protobuf/wkt';
import { AccountStatus, InstrumentKind, OrderType, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { isKoboDecimal } from '../../kit/money.ts';
import { answered, checks, expect, must, NotOffered, NotRun, needing, optional, should } from '../check.ts';
import type { CheckSession } from '../session.ts';
import { decimalSum, isSum } from './decimals.ts';

const highestPriceKobo = 10_000_000_000n;
/** Upper-case, as all symbols and accounts of calls, and of nobody. */
export const nobody = { account: 'NOSUCHACCOUNT', symbol: 'NO-SUCH-SYMBOL' };

/** Checks of the adapter's link, before anything is traded. */
export const linkChecks = checks({
  'capabilities-answered': must('GetCapabilities answers', async (session) => {
    answered(await session.call('Orders', 'getCapabilities', {}));
  }),
  'honours-not-after': optional('The adapter declares that it refuses what comes after not_after', async (session) => {
    const { answer } = await session.call('Orders', 'getCapabilities', {});
    if (answer === undefined) throw new NotRun('GetCapabilities did not answer');
    if (!answer.honoursNotAfter) throw new NotOffered('honours_not_after is false');
  }),
  'broker-time-true': should(
    'A stated broker_time was read between the call and its answer, by a clock that agrees with ours',
    async (session) => {
      for (let count = 0; count < 5; count += 1) {
        const { answer, exchange, sentAt, endedAt } = await session.call('Orders', 'getCapabilities', {});
        if (answer === undefined) throw new NotRun('GetCapabilities did not answer');
        if (answer.brokerTime === undefined) throw new NotOffered('no broker_time is stated');
        const stated = timestampMs(answer.brokerTime);
        const { skewMs } = session.settings.waits;
        const isWithin = stated >= sentAt - skewMs && stated <= endedAt + skewMs;
        expect(isWithin, `it is ${stated - endedAt} ms ahead of our clock at the answer`, exchange);
      }
    },
  ),
  'context-unknown-symbol': must('An unknown symbol has a trading context without an instrument', async (session) => {
    const { answer, exchange } = answered(
      await session.call('Orders', 'getTradingContext', {
        account: session.account || nobody.account,
        symbol: nobody.symbol,
      }),
    );
    expect(answer.instrument === undefined, 'there is an instrument', exchange);
  }),
  'context-unknown-account': must('An account that the broker does not have is NOT_AT_BROKER', async (session) => {
    const symbol = session.settings.rest ?? session.settings.fill ?? nobody.symbol;
    const request = { account: nobody.account, symbol };
    const { answer, exchange } = answered(await session.call('Orders', 'getTradingContext', request));
    const isRight = answer.accountStatus === AccountStatus.NOT_AT_BROKER;
    expect(isRight, `account_status is ${AccountStatus[answer.accountStatus]}`, exchange);
  }),
  'context-fields': needing('account').must(
    "The trading context has the account's status, and the symbol's kind and band of prices",
    async (session) => {
      const symbols = [session.settings.rest, session.settings.fill].filter((symbol) => symbol !== undefined);
      if (symbols.length === 0) throw new NotRun('neither --rest nor --fill is given');
      for (const symbol of symbols) {
        const request = { account: session.account, symbol };
        const { answer, exchange } = answered(await session.call('Orders', 'getTradingContext', request));
        const { accountStatus, instrument } = answer;
        expect(accountStatus !== AccountStatus.UNSPECIFIED, 'account_status is missing', exchange);
        expect(instrument !== undefined, 'the instrument is missing', exchange);
        expect(instrument.symbol === symbol, `the instrument is ${instrument.symbol}`, exchange);
        expect(instrument.kind !== InstrumentKind.UNSPECIFIED, 'its kind is missing', exchange);
        const { lowerPriceKobo: lower, upperPriceKobo: upper } = instrument;
        expect(upper > 0n && upper <= highestPriceKobo, `upper_price_kobo is ${upper}`, exchange);
        expect(lower > 0n && lower <= upper, `lower_price_kobo is ${lower}`, exchange);
      }
    },
  ),
  'estimate-exact': needing('account').must(
    'An estimate has exact numbers: the amount is quantity times price, and charges are decimals without rounding',
    async (session) => {
      const { quantity, estimate, exchange, priceKobo } = await estimated(session);
      expect(estimate.priceKobo === priceKobo, `the price is ${estimate.priceKobo}, not the limit`, exchange);
      expect(estimate.amountKobo === quantity * priceKobo, `the amount is ${estimate.amountKobo}`, exchange);
      const decimals = [
        ...[estimate.commissionKoboDecimal, estimate.statutoryFeesKoboDecimal, estimate.otherFeesKoboDecimal],
        ...[estimate.totalKoboDecimal, ...estimate.fees.map((fee) => fee.amountKoboDecimal)],
      ];
      const wrong = decimals.find((decimal) => !isKoboDecimal(decimal));
      expect(
        wrong === undefined,
        `"${wrong}" is no decimal with at most 18 digits, a point and 1 to 12 places`,
        exchange,
      );
    },
  ),
  'estimate-adds-up': needing('account').should(
    "An estimate's fees add up to its charges, and these with the amount to its total",
    async (session) => {
      const { estimate, exchange } = await estimated(session);
      const charges = [
        estimate.commissionKoboDecimal,
        estimate.statutoryFeesKoboDecimal,
        estimate.otherFeesKoboDecimal,
      ];
      const fees = estimate.fees.map((fee) => fee.amountKoboDecimal);
      if (![...charges, ...fees, estimate.totalKoboDecimal].every(isKoboDecimal)) throw new NotRun('no exact decimals');
      expect(fees.length === 0 || isSum(fees, decimalSum(charges)), 'the fees are not the charges', exchange);
      const cost = [...charges, `${estimate.amountKobo}.0`];
      expect(isSum(cost, estimate.totalKoboDecimal), 'amount and charges are not the total', exchange);
    },
  ),
  'estimate-unknown-symbol': should('An estimate for an unknown symbol ends with NOT_FOUND', async (session) => {
    const { exchange } = await session.call('Orders', 'estimateOrder', {
      ...{ account: session.account || nobody.account, symbol: nobody.symbol },
      ...{ side: Side.BUY, quantity: 1n, type: OrderType.LIMIT, priceKobo: 100n },
    });
    expect(exchange.status === 'NOT_FOUND', `it ended with ${exchange.status}`, exchange);
  }),
});

/** The estimate of a buy whose charges are no whole kobo. */
async function estimated(session: CheckSession) {
  const symbol = session.settings.rest ?? session.settings.fill;
  if (symbol === undefined) throw new NotRun('neither --rest nor --fill is given');
  const { upperPriceKobo: priceKobo } = await session.instrument(symbol);
  const quantity = session.settings.quantity + 7n;
  const order = { account: session.account, symbol, side: Side.BUY, quantity, type: OrderType.LIMIT, priceKobo };
  const { answer, exchange } = answered(await session.call('Orders', 'estimateOrder', order), 'the estimate');
  return { estimate: answer, exchange, quantity, priceKobo };
}
