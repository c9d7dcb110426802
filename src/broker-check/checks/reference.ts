import { status } from '@grpc/grpc-js';
import { isAreaList } from '../../broker/records.ts';
import { answered, checks, expect, NotRun, needing } from '../check.ts';
import type { Exchange } from '../exchange.ts';
import type { Session } from '../session.ts';

const longestStateCode = 32;
const longestLgaCode = 64;
const noState = 'NO-SUCH-STATE';

interface Area {
  readonly code: string;
  readonly name: string;
}

/** The lists that applications use. */
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
});

function states(session: Session): Promise<{ areas: readonly Area[]; exchange: Exchange }> {
  return session.once('states', async () => {
    const { answer, exchange } = answered(await session.call('Reference', 'listStates', {}));
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
      const { answer, exchange } = answered(await session.call('Reference', 'listLgas', { state }));
      lists.push({ state, areas: answer.lgas, exchange });
    }
    return lists;
  });
}
