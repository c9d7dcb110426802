import { status } from '@grpc/grpc-js';
import { isDaysOf, isInstrumentList, maxMarketDays } from '../../gateway/trading/broker/market.ts';
import { isAreaList } from '../../gateway/trading/broker/records.ts';
import type { ListedInstrument, MarketDay } from '../../gen/marina/broker/v1/reference_pb.ts';
import { daysAfter, lagosDay } from '../../kit/clock.ts';
import { answered, checks, expect, must, NotOffered, NotRun, needing, optional, resting } from '../check.ts';
import type { RecordedCall } from '../exchange.ts';
import { type CheckSession, isMissing } from '../session.ts';

const longestStateCode = 32;
const longestLgaCode = 64;
const noState = 'NO-SUCH-STATE';

interface Area {
  readonly code: string;
  readonly name: string;
}

/** The lists that applications use, and the market's instruments and days. */
export const referenceChecks = checks({
  'reference-offered': needing('Reference').optional('The adapter has the lists that applications use', async () => {}),
  'states-listed': needing('Reference').must(
    'The states come whole, each with a code of its own and a name',
    async (session) => {
      const { areas, exchange } = await states(session);
      expect(isAreaList(areas, longestStateCode), 'the list makes no sense', exchange);
    },
  ),
  'lgas-listed': needing('Reference').must(
    'Each state has local government areas, whose codes are unique over all states',
    async (session) => {
      const owners = new Map<string, string>();
      for (const { state, areas, exchange } of await allLgas(session)) {
        expect(isAreaList(areas, longestLgaCode), 'the list makes no sense', exchange);
        for (const { code } of areas) {
          const other = owners.get(code);
          expect(other === undefined, `${code} is in ${other} too`, exchange);
          owners.set(code, state);
        }
      }
    },
  ),
  'areas-by-name': needing('Reference').should('States and local government areas come by name', async (session) => {
    for (const { areas, exchange } of [await states(session), ...(await allLgas(session))]) {
      const wrong = areas.find(({ name }, at) => name.localeCompare(areas[at - 1]?.name ?? name, 'en') < 0);
      expect(wrong === undefined, `${wrong?.name} is not in its place`, exchange);
    }
  }),
  'unknown-state-not-found': needing('Reference').must(
    'The areas of a state that the broker does not know end with NOT_FOUND',
    async (session) => {
      const { code, exchange } = await session.call('Reference', 'listLgas', { state: noState });
      expect(code === status.NOT_FOUND, `it ended with ${exchange.status}`, exchange);
    },
  ),
  'instruments-offered': optional(
    'The adapter lists what the exchange lists',
    async (session) => void (await instruments(session)),
  ),
  'instruments-listed': must(
    'The instruments come whole, by symbol, each once, with its band, its ticks and its lot',
    async (session) => {
      const { found, exchange } = await instruments(session);
      expect(isInstrumentList(found), 'the list makes no sense', exchange);
    },
  ),
  'instruments-agree': resting.must(
    'A listed instrument has the kind and the band that GetTradingContext states for it',
    async (session) => {
      const { found, exchange } = await instruments(session);
      const { symbol, kind, lowerPriceKobo, upperPriceKobo } = await session.instrument(session.settings.rest ?? '');
      const listed = found.find((each) => each.symbol === symbol);
      expect(listed !== undefined, `${symbol} can be traded and is not listed`, exchange);
      const agrees =
        listed.kind === kind && listed.lowerPriceKobo === lowerPriceKobo && listed.upperPriceKobo === upperPriceKobo;
      expect(agrees, `${symbol} is ${lowerPriceKobo} to ${upperPriceKobo} kobo elsewhere`, exchange);
    },
  ),
  'market-days-offered': optional(
    "The adapter lists the days of the exchange's calendar",
    async (session) => void (await marketDays(session)),
  ),
  'market-days-listed': must(
    "The exchange's days come from the first asked for on, without a gap, with hours where it trades",
    async (session) => {
      const { days, from, to, exchange } = await marketDays(session);
      expect(days.length > 0, 'today is not in the calendar', exchange);
      expect(isDaysOf(days, from, to), 'the days make no sense', exchange);
    },
  ),
});

function instruments(session: CheckSession): Promise<{ found: readonly ListedInstrument[]; exchange: RecordedCall }> {
  return session.once('instruments', async () => {
    const outcome = await session.call('Reference', 'listInstruments', {});
    if (isMissing(outcome)) throw new NotOffered('ListInstruments is UNIMPLEMENTED');
    const { answer, exchange } = outcome;
    expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
    return { found: answer.instruments, exchange };
  });
}

/** As many days as one call asks for, from today. */
function marketDays(
  session: CheckSession,
): Promise<{ days: readonly MarketDay[]; from: string; to: string; exchange: RecordedCall }> {
  return session.once('market days', async () => {
    const from = lagosDay(Date.now());
    const to = daysAfter(from, maxMarketDays - 1);
    const outcome = await session.call('Reference', 'listMarketDays', { fromDate: from, toDate: to });
    if (isMissing(outcome)) throw new NotOffered('ListMarketDays is UNIMPLEMENTED');
    const { answer, exchange } = outcome;
    expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
    return { days: answer.days, from, to, exchange };
  });
}

function states(session: CheckSession): Promise<{ areas: readonly Area[]; exchange: RecordedCall }> {
  return session.once('states', async () => {
    const { answer, exchange } = answered(await session.call('Reference', 'listStates', {}));
    return { areas: answer.states, exchange };
  });
}

function allLgas(session: CheckSession) {
  return session.once('areas of all states', async () => {
    const { areas } = await states(session).catch(() => {
      throw new NotRun('the states could not be listed');
    });
    const lists: { state: string; areas: readonly Area[]; exchange: RecordedCall }[] = [];
    for (const { code: state } of areas) {
      const { answer, exchange } = answered(await session.call('Reference', 'listLgas', { state }));
      lists.push({ state, areas: answer.lgas, exchange });
    }
    return lists;
  });
}
