/** The checks of the lists of states, areas, instruments and days, with an adapter that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { referenceChecks } from '../../../src/broker-check/checks/reference.ts';
import { InstrumentKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Board, MarketDayKind, TradingStatus } from '../../../src/gen/marina/broker/v1/reference_pb.ts';
import { daysAfter } from '../../../src/kit/clock.ts';
import {
  type Asked,
  type CheckCase,
  ended,
  holdCases,
  type Script,
  scriptedSession,
  verdictOf,
} from '../../support/scripted-adapter.ts';

const [lost, missing] = [ended(status.UNAVAILABLE), ended(status.UNIMPLEMENTED)];

const area = (name: string) => ({ code: name.toUpperCase(), name });
const lgasOf: Readonly<Record<string, readonly string[]>> = {
  ABIA: ['Aba', 'Umuahia'],
  LAGOS: ['Epe', 'Ikeja'],
  OYO: ['Ibadan', 'Ogbomosho'],
};

const listed = (symbol: string) => ({
  ...{ symbol, name: `${symbol} Plc`, kind: InstrumentKind.EQUITY, board: Board.MAIN, lotSize: 1n },
  ...{ tickSizes: [{ fromPriceKobo: 0n, tickSizeKobo: 1n }], tradingStatus: TradingStatus.TRADING },
  ...{ lowerPriceKobo: 900n, upperPriceKobo: 1_100n, lastPriceKobo: 1_000n },
});

const day = (date: string) => ({
  ...{ date, kind: MarketDayKind.TRADING_DAY, settlementDate: daysAfter(date, 2) },
  opensAt: timestampFromMs(Date.parse(`${date}T09:00:00Z`)),
  closesAt: timestampFromMs(Date.parse(`${date}T13:30:00Z`)),
});
const daysOf = ({ fromDate, toDate }: Asked) => {
  const days: ReturnType<typeof day>[] = [];
  for (let date = fromDate; date <= toDate; date = daysAfter(date, 1)) days.push(day(date));
  return days;
};

const right = {
  answers: {
    listStates: { states: ['Abia', 'Lagos', 'Oyo'].map(area) },
    listLgas: ({ state }: Asked) => {
      const lgas = lgasOf[state];
      return lgas === undefined ? ended(status.NOT_FOUND) : { lgas: lgas.map(area) };
    },
    listInstruments: { instruments: ['AAA', 'RESTS', 'ZZZ'].map(listed) },
    listMarketDays: (request: Asked) => ({ days: daysOf(request) }),
    getTradingContext: ({ symbol }: Asked) => ({ instrument: instrument(symbol) }),
  } satisfies Script,
};

function instrument(symbol: string) {
  return { symbol, kind: InstrumentKind.EQUITY, lowerPriceKobo: 900n, upperPriceKobo: 1_100n };
}

/** An adapter with other areas of a state. */
const lgas = (state: string, areas: readonly object[] | object): Script => ({
  listLgas: (request: Asked) =>
    request.state === state ? (Array.isArray(areas) ? { lgas: areas } : areas) : right.answers.listLgas(request),
});
const instruments = (change: object, symbol = 'RESTS'): Script => ({
  listInstruments: {
    instruments: ['AAA', 'RESTS', 'ZZZ'].map((each) => ({ ...listed(each), ...(each === symbol && change) })),
  },
});
const days = (change: (all: ReturnType<typeof day>[]) => object[]): Script => ({
  listMarketDays: (request: Asked) => ({ days: change(daysOf(request)) }),
});

describe('the lists of an adapter, as broker-check sees them', () => {
  it('the lists of an adapter are whole, in their order, and agree with each other', async () => {
    const cases: CheckCase<object>[] = [
      ['reference-offered', 'kept'],
      ['states-listed', 'kept'],
      ['states-listed', 'breach', { listStates: lost }],
      ['states-listed', 'breach', { listStates: {} }],
      ['states-listed', 'breach', { listStates: { states: [area('Abia'), area('Abia')] } }],
      ['states-listed', 'kept', { listStates: { states: [{ code: 'A'.repeat(32), name: 'Abia' }] } }],
      ['states-listed', 'breach', { listStates: { states: [{ code: 'A'.repeat(33), name: 'Abia' }] } }],
      ['states-listed', 'breach', { listStates: { states: [area('Abia'), { code: 'OYO', name: '' }] } }],
      ['lgas-listed', 'kept'],
      ['lgas-listed', 'not run', { listStates: lost }],
      ...['ABIA', 'OYO'].flatMap((state): CheckCase<object>[] => [
        ['lgas-listed', 'breach', lgas(state, lost)],
        ['lgas-listed', 'breach', lgas(state, [])],
        ['lgas-listed', 'breach', lgas(state, [{ code: 'L'.repeat(65), name: 'Long' }])],
        ['lgas-listed', 'kept', lgas(state, [{ code: 'L'.repeat(64), name: 'Long' }])],
        ['lgas-listed', 'breach', lgas(state, [area('Ikeja')])],
      ]),
      // The same code in the first state and in the last.
      ['lgas-listed', 'breach', lgas('OYO', [area('Aba'), area('Ibadan')])],
      ['areas-by-name', 'kept'],
      ['areas-by-name', 'breach', { listStates: { states: ['Lagos', 'Abia', 'Oyo'].map(area) } }],
      ['areas-by-name', 'breach', { listStates: { states: ['Abia', 'Oyo', 'Lagos'].map(area) } }],
      ['areas-by-name', 'breach', lgas('ABIA', ['Umuahia', 'Aba'].map(area))],
      ['areas-by-name', 'breach', lgas('OYO', ['Ogbomosho', 'Ibadan'].map(area))],
      [
        'areas-by-name',
        'kept',
        lgas('OYO', [
          { code: 'B', name: 'Same' },
          { code: 'A', name: 'Same' },
        ]),
      ],
      [
        'areas-by-name',
        'kept',
        lgas(
          'OYO',
          ['Égba', 'Ibadan'].map((name, at) => ({ code: `C${at}`, name })),
        ),
      ],
      ['unknown-state-not-found', 'kept'],
      ['unknown-state-not-found', 'breach', { listLgas: {} }],
      ['unknown-state-not-found', 'breach', { listLgas: lost }],

      ['instruments-offered', 'kept'],
      ...['instruments-offered', 'instruments-listed', 'instruments-agree'].flatMap((id): CheckCase<object>[] => [
        [id, 'not offered', { listInstruments: missing }],
        [id, 'breach', { listInstruments: lost }],
      ]),
      ['instruments-listed', 'kept'],
      ['instruments-listed', 'breach', { listInstruments: {} }],
      ['instruments-listed', 'breach', { listInstruments: { instruments: ['ZZZ', 'AAA'].map(listed) } }],
      ['instruments-listed', 'breach', { listInstruments: { instruments: ['AAA', 'AAA'].map(listed) } }],
      ['instruments-listed', 'breach', instruments({ lotSize: 0n }, 'ZZZ')],
      ['instruments-agree', 'kept'],
      ['instruments-agree', 'not run', { getTradingContext: lost }],
      ['instruments-agree', 'breach', { listInstruments: { instruments: ['AAA', 'ZZZ'].map(listed) } }],
      ['instruments-agree', 'breach', instruments({ kind: InstrumentKind.ETF })],
      ['instruments-agree', 'breach', instruments({ lowerPriceKobo: 901n })],
      ['instruments-agree', 'breach', instruments({ upperPriceKobo: 1_101n })],
      ['instruments-agree', 'kept', instruments({ lowerPriceKobo: 1n, kind: InstrumentKind.ETF }, 'AAA')],

      ['market-days-offered', 'kept'],
      ...['market-days-offered', 'market-days-listed'].flatMap((id): CheckCase<object>[] => [
        [id, 'not offered', { listMarketDays: missing }],
        [id, 'breach', { listMarketDays: lost }],
      ]),
      ['market-days-listed', 'kept'],
      ['market-days-listed', 'kept', days((all) => all.slice(0, 1))],
      ['market-days-listed', 'breach', days(() => [])],
      ['market-days-listed', 'breach', days((all) => all.slice(1))],
      ['market-days-listed', 'breach', days((all) => all.filter((_, at) => at !== 50))],
      ['market-days-listed', 'breach', days((all) => [...all, day(daysAfter(all.at(-1)?.date ?? '', 1))])],
      ['market-days-listed', 'breach', days((all) => all.map((each, at) => (at === 99 ? { date: each.date } : each)))],
    ];
    await holdCases(referenceChecks, () => right, cases);
  });

  it('the days are asked for from the day in Lagos on, as many as one call may name', async (context) => {
    // It is 1 July in Lagos an hour before it is in Greenwich.
    context.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-06-30T23:00:00Z') });
    const asked: Asked[] = [];
    const listMarketDays = (request: Asked) => {
      asked.push(request);
      return { days: daysOf(request) };
    };
    const session = scriptedSession({ answers: { ...right.answers, listMarketDays } });
    for (const id of ['market-days-offered', 'market-days-listed']) {
      assert.equal((await verdictOf(referenceChecks, id, session)).is, 'kept');
    }
    assert.deepEqual(
      asked.map(({ fromDate, toDate }) => [fromDate, toDate]),
      [['2026-07-01', '2026-10-08']],
      'it is asked for once',
    );
  });
});
