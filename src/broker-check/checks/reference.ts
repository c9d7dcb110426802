import { status } from '@grpc/grpc-js';
import { isDaysOf, isInstrumentList, mostMarketDays } from '../../broker/market.ts';
import { isAreaList } from '../../broker/records.ts';
import type { ListedInstrument, MarketDay } from '../../gen/marina/broker/v1/reference_pb.ts';
import { daysAfter, lagosDay } from '../../lib/clock.ts';
import { type Check, expect, NotOffered, NotRun } from '../check.ts';
import type { Exchange } from '../exchange.ts';
import { isMissing, type Session } from '../session.ts';

const longestStateCode = 32;
const longestLgaCode = 64;
const noState = 'NO-SUCH-STATE';

interface Area {
  readonly code: string;
  readonly name: string;
}

/** The lists that applications use, and the market's instruments and days. */
export const referenceChecks: readonly Check[] = [
  {
    id: 'reference-offered',
    class: 'optional',
    promise: 'The adapter has the lists that applications use',
    needs: ['Reference'],
    run: async () => {},
  },
  {
    id: 'states-listed',
    class: 'must',
    promise: 'The states come whole, each with a code of its own and a name',
    needs: ['Reference'],
    run: async (session) => {
      const { areas, exchange } = await states(session);
      expect(isAreaList(areas, longestStateCode), 'the list makes no sense', exchange);
    },
  },
  {
    id: 'lgas-listed',
    class: 'must',
    promise: 'Each state has local government areas, whose codes are unique over all states',
    needs: ['Reference'],
    run: async (session) => {
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
  },
  {
    id: 'areas-by-name',
    class: 'should',
    promise: 'States and local government areas come by name',
    needs: ['Reference'],
    run: async (session) => {
      for (const { areas, exchange } of [await states(session), ...(await allLgas(session))]) {
        const wrong = areas.find(({ name }, at) => name.localeCompare(areas[at - 1]?.name ?? name, 'en') < 0);
        expect(wrong === undefined, `${wrong?.name} is not in its place`, exchange);
      }
    },
  },
  {
    id: 'unknown-state-not-found',
    class: 'must',
    promise: 'The areas of a state that the broker does not know end with NOT_FOUND',
    needs: ['Reference'],
    run: async (session) => {
      const { code, exchange } = await session.call('Reference', 'listLgas', { state: noState });
      expect(code === status.NOT_FOUND, `it ended with ${exchange.status}`, exchange);
    },
  },
  {
    id: 'instruments-offered',
    class: 'optional',
    promise: 'The adapter lists what the exchange lists',
    run: async (session) => void (await instruments(session)),
  },
  {
    id: 'instruments-listed',
    class: 'must',
    promise: 'The instruments come whole, by symbol, each once, with its band, its ticks and its lot',
    run: async (session) => {
      const { found, exchange } = await instruments(session);
      expect(isInstrumentList(found), 'the list makes no sense', exchange);
    },
  },
  {
    id: 'instruments-agree',
    class: 'must',
    promise: 'A listed instrument has the kind and the band that GetTradingContext states for it',
    needs: ['account', 'rest'],
    run: async (session) => {
      const { found, exchange } = await instruments(session);
      const { symbol, kind, lowerPriceKobo, upperPriceKobo } = await session.instrument(session.settings.rest ?? '');
      const listed = found.find((each) => each.symbol === symbol);
      expect(listed !== undefined, `${symbol} can be traded and is not listed`, exchange);
      const agrees =
        listed.kind === kind && listed.lowerPriceKobo === lowerPriceKobo && listed.upperPriceKobo === upperPriceKobo;
      expect(agrees, `${symbol} is ${lowerPriceKobo} to ${upperPriceKobo} kobo elsewhere`, exchange);
    },
  },
  {
    id: 'market-days-offered',
    class: 'optional',
    promise: "The adapter lists the days of the exchange's calendar",
    run: async (session) => void (await marketDays(session)),
  },
  {
    id: 'market-days-listed',
    class: 'must',
    promise: "The exchange's days come from the first asked for on, without a gap, with hours where it trades",
    run: async (session) => {
      const { days, from, to, exchange } = await marketDays(session);
      expect(days.length > 0, 'today is not in the calendar', exchange);
      expect(isDaysOf(days, from, to), 'the days make no sense', exchange);
    },
  },
];

function instruments(session: Session): Promise<{ found: readonly ListedInstrument[]; exchange: Exchange }> {
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
  session: Session,
): Promise<{ days: readonly MarketDay[]; from: string; to: string; exchange: Exchange }> {
  return session.once('market days', async () => {
    const from = lagosDay(Date.now());
    const to = daysAfter(from, mostMarketDays - 1);
    const outcome = await session.call('Reference', 'listMarketDays', { fromDate: from, toDate: to });
    if (isMissing(outcome)) throw new NotOffered('ListMarketDays is UNIMPLEMENTED');
    const { answer, exchange } = outcome;
    expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
    return { days: answer.days, from, to, exchange };
  });
}

function states(session: Session): Promise<{ areas: readonly Area[]; exchange: Exchange }> {
  return session.once('states', async () => {
    const { answer, exchange } = await session.call('Reference', 'listStates', {});
    expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
    return { areas: answer.states, exchange };
  });
}

function allLgas(session: Session) {
  return session.once('areas of all states', async () => {
    const { areas } = await states(session).catch(() => {
      throw new NotRun('the states could not be listed');
    });
    const lists: { state: string; areas: readonly Area[]; exchange: Exchange }[] = [];
    for (const { code: state } of areas) {
      const { answer, exchange } = await session.call('Reference', 'listLgas', { state });
      expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
      lists.push({ state, areas: answer.lgas, exchange });
    }
    return lists;
  });
}
