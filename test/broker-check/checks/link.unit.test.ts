/** The checks before anything is traded, with an adapter that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { linkChecks } from '../../../src/broker-check/checks/link.ts';
import { AccountStatus, InstrumentKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  type Asked,
  type CheckCase,
  ended,
  holdCases,
  type Script,
  scriptedSession,
  verdictOf,
} from '../../support/scripted-adapter.ts';

const { ACTIVE, NOT_AT_BROKER } = AccountStatus;
const [lower, upper] = [900n, 1_100n];

function instrument(symbol: string) {
  return { symbol, kind: InstrumentKind.EQUITY, lowerPriceKobo: lower, upperPriceKobo: upper };
}

function context({ account, symbol }: Asked) {
  const isKnown = ['RESTS', 'FILLS'].includes(symbol);
  return {
    accountStatus: account === 'ACC1' ? ACTIVE : NOT_AT_BROKER,
    instrument: isKnown ? instrument(symbol) : undefined,
  };
}

function estimate({ quantity, priceKobo = 0n }: Asked) {
  const amountKobo = BigInt(quantity) * BigInt(priceKobo);
  return {
    ...{ priceKobo, amountKobo, totalKoboDecimal: `${amountKobo + 6n}.75` },
    ...{ commissionKoboDecimal: '3.5', statutoryFeesKoboDecimal: '2.25', otherFeesKoboDecimal: '1.0' },
    fees: ['3.5', '2.0', '0.25', '1.0'].map((amountKoboDecimal) => ({ amountKoboDecimal })),
  };
}

const right: Script = {
  getCapabilities: { honoursNotAfter: true },
  getTradingContext: context,
  estimateOrder: (request: Asked) => (request.symbol === 'RESTS' ? estimate(request) : ended(status.NOT_FOUND)),
};

/** A context that is changed for one symbol. */
const contextOf = (symbol: string, change: object): Script => ({
  getTradingContext: (request: Asked) => ({ ...context(request), ...(request.symbol === symbol && change) }),
});
const instrumentOf = (symbol: string, change: object) =>
  contextOf(symbol, { instrument: { ...instrument(symbol), ...change } });
const estimateWith = (change: object): Script => ({
  estimateOrder: (request: Asked) => ({ ...estimate(request), ...change }),
});
const lost = ended(status.UNAVAILABLE);

describe('an adapter before anything is traded, as broker-check sees it', () => {
  it('an adapter before anything is traded says what it can, and knows accounts, symbols and prices', async () => {
    const cases: CheckCase<object>[] = [
      ['capabilities-answered', 'kept'],
      ['capabilities-answered', 'breach', { getCapabilities: lost }],
      ['honours-not-after', 'kept'],
      ['honours-not-after', 'not offered', { getCapabilities: {} }],
      ['honours-not-after', 'not run', { getCapabilities: lost }],
      ['broker-time-true', 'not offered'],
      ['broker-time-true', 'not run', { getCapabilities: lost }],
      ['context-unknown-symbol', 'kept'],
      ['context-unknown-symbol', 'kept', {}, { settings: { account: undefined } }],
      ['context-unknown-symbol', 'breach', { getTradingContext: lost }],
      ['context-unknown-symbol', 'breach', instrumentOf('NO-SUCH-SYMBOL', {})],
      ['context-unknown-account', 'kept'],
      ['context-unknown-account', 'breach', contextOf('RESTS', { accountStatus: ACTIVE })],
      ['context-unknown-account', 'breach', contextOf('RESTS', { accountStatus: AccountStatus.UNSPECIFIED })],
      ['context-unknown-account', 'breach', { getTradingContext: ended(status.NOT_FOUND) }],
      [
        'context-unknown-account',
        'breach',
        contextOf('FILLS', { accountStatus: ACTIVE }),
        { settings: { rest: undefined } },
      ],
      ['context-fields', 'kept'],
      ['context-fields', 'kept', {}, { settings: { rest: undefined } }],
      ['context-fields', 'not run', {}, { settings: { rest: undefined, fill: undefined } }],
      ['context-fields', 'breach', { getTradingContext: lost }],
      // Each field, of the first symbol and of the second.
      ...['RESTS', 'FILLS'].flatMap((symbol) => [
        ['context-fields', 'breach', contextOf(symbol, { accountStatus: AccountStatus.UNSPECIFIED })] as const,
        ['context-fields', 'breach', contextOf(symbol, { instrument: undefined })] as const,
        ...[
          ...[{ symbol: 'OTHER' }, { kind: InstrumentKind.UNSPECIFIED }, { lowerPriceKobo: 0n }],
          ...[{ upperPriceKobo: 0n }, { upperPriceKobo: 10_000_000_001n }, { lowerPriceKobo: upper + 1n }],
        ].map((change) => ['context-fields', 'breach', instrumentOf(symbol, change)] as const),
        ['context-fields', 'kept', instrumentOf(symbol, { lowerPriceKobo: upper })] as const,
        ['context-fields', 'kept', instrumentOf(symbol, { lowerPriceKobo: 1n, upperPriceKobo: 1n })] as const,
        ['context-fields', 'kept', instrumentOf(symbol, { upperPriceKobo: 10_000_000_000n })] as const,
      ]),
      ['estimate-unknown-symbol', 'kept'],
      ['estimate-unknown-symbol', 'kept', {}, { settings: { account: undefined } }],
      ['estimate-unknown-symbol', 'breach', { estimateOrder: estimate }],
      ['estimate-unknown-symbol', 'breach', { estimateOrder: ended(status.INVALID_ARGUMENT) }],
    ];
    const ofEstimates = linkChecks.filter(({ id }) => !['estimate-exact', 'estimate-adds-up'].includes(id));
    await holdCases(ofEstimates, () => ({ answers: right }), cases);
  });

  it('an estimate is exact to the last place, and each part of it is counted once', async () => {
    const amount = 17n * upper;
    const cases: CheckCase<object>[] = [];
    for (const id of ['estimate-exact', 'estimate-adds-up']) {
      cases.push(
        [id, 'kept'],
        [id, 'not run', {}, { settings: { rest: undefined, fill: undefined } }],
        [id, 'not run', { getTradingContext: { accountStatus: ACTIVE } }],
        [id, 'breach', { estimateOrder: lost }],
        [id, 'kept', { estimateOrder: estimate }, { settings: { rest: undefined } }],
      );
    }
    cases.push(
      ['estimate-exact', 'breach', estimateWith({ priceKobo: upper - 1n })],
      ['estimate-exact', 'breach', estimateWith({ amountKobo: amount - 1n })],
      ['estimate-exact', 'breach', estimateWith({ amountKobo: 10n * upper })],
      ...['commissionKoboDecimal', 'statutoryFeesKoboDecimal', 'otherFeesKoboDecimal', 'totalKoboDecimal'].flatMap(
        (name) => [
          ['estimate-exact', 'breach', estimateWith({ [name]: '3.5000000000001' })] as const,
          ['estimate-exact', 'breach', estimateWith({ [name]: '3' })] as const,
          ['estimate-exact', 'breach', estimateWith({ [name]: '' })] as const,
          ['estimate-adds-up', 'not run', estimateWith({ [name]: '3' })] as const,
          ['estimate-adds-up', 'breach', estimateWith({ [name]: '3.500000000001' })] as const,
        ],
      ),
      ['estimate-exact', 'breach', estimateWith({ fees: ['3.5', '3'].map((each) => ({ amountKoboDecimal: each })) })],
      ['estimate-exact', 'breach', estimateWith({ fees: ['3', '3.5'].map((each) => ({ amountKoboDecimal: each })) })],
      [
        'estimate-adds-up',
        'not run',
        estimateWith({ fees: ['3', '3.75'].map((each) => ({ amountKoboDecimal: each })) }),
      ],
      ['estimate-adds-up', 'kept', estimateWith({ fees: [] })],
      ['estimate-adds-up', 'kept', estimateWith({ fees: [{ amountKoboDecimal: '6.75' }] })],
      ['estimate-adds-up', 'breach', estimateWith({ fees: [{ amountKoboDecimal: '3.5' }] })],
      ['estimate-adds-up', 'breach', estimateWith({ amountKobo: amount - 1n })],
      ['estimate-adds-up', 'breach', estimateWith({ totalKoboDecimal: '6.75' })],
    );
    const ofEstimates = linkChecks.filter(({ id }) => ['estimate-exact', 'estimate-adds-up'].includes(id));
    await holdCases(ofEstimates, () => ({ answers: right }), cases);
  });

  it('a broker time is true up to the skew of the clocks, in each of five answers', async (context) => {
    const now = 1_800_000_000_000;
    context.mock.timers.enable({ apis: ['Date'], now });
    for (const [aheadMs, expected] of [
      [-201, 'breach'],
      [-200, 'kept'],
      [0, 'kept'],
      [200, 'kept'],
      [201, 'breach'],
    ] as const) {
      for (const wrong of [0, 1, 4, 5]) {
        const getCapabilities = (_: Asked, nth: number) => ({
          brokerTime: timestampFromMs(nth === wrong ? now + aheadMs : now),
        });
        const session = scriptedSession({ answers: { getCapabilities } });
        const { is } = await verdictOf(linkChecks, 'broker-time-true', session);
        assert.equal(is, wrong === 5 ? 'kept' : expected, `${aheadMs} ms ahead in answer ${wrong}`);
      }
    }
  });

  it('a broker time may be read at any moment between the call and its answer, and not earlier or later', async (context) => {
    const now = 1_800_000_000_000;
    for (const [statedMs, expected] of [
      [-201, 'breach'],
      [-200, 'kept'],
      [3_200, 'kept'],
      [3_201, 'breach'],
    ] as const) {
      context.mock.timers.enable({ apis: ['Date'], now });
      const getCapabilities = () => {
        const brokerTime = timestampFromMs(Date.now() + statedMs);
        context.mock.timers.tick(3_000);
        return { brokerTime };
      };
      const { is } = await verdictOf(linkChecks, 'broker-time-true', scriptedSession({ answers: { getCapabilities } }));
      context.mock.timers.reset();
      assert.equal(is, expected, `${statedMs} ms after the call`);
    }
  });
});
