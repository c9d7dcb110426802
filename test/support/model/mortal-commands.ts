import { fc } from '../properties.ts';
import type { Death, Faults, MortalWhole } from './mortal.ts';
import { type ServerDeath, serverNames } from './mortal-servers.ts';
import type { PartnerModel } from './partner-model.ts';
import type { Command, Whole } from './surroundings.ts';

/** A command that makes a fault. Partners see nothing of it, but that an answer may not come. */
function fault(name: string, make: (faults: Faults) => void | Promise<void>): Command {
  return { toString: () => name, check: () => true, run: async (_, whole) => make(faultsOf(whole)) };
}

function faultsOf(whole: Whole): Faults {
  return (whole as MortalWhole).faults;
}

function killDuringNext(death: Death): Command {
  const { replica, server, link, direction, count, isDelivered } = death;
  const bytes = `at bytes ${count} ${direction} of the ${link}, ${isDelivered ? 'delivered' : 'lost'}`;
  const name =
    server === undefined ? `replica ${replica}` : `the ${textOf({ ...server, server: link })} of replica ${replica}`;
  return {
    ...fault(`kill ${name} during the next command, ${bytes}`, (faults) => faults.killDuringNext(death)),
    check: (model) => server === undefined || mayDie(link, model),
  };
}

const textOf = ({ server, forMs, isEmpty }: ServerDeath) =>
  `${server} for ${forMs} ms${isEmpty && server === 'nats' ? ' with all that it has' : ''}`;

/** A broker that dies can tell again what became of allocations. */
function mayDie(server: ServerDeath['server'], model: Pick<PartnerModel, 'uncertainAllocations'>): boolean {
  return server !== 'broker' || model.uncertainAllocations.length === 0;
}

function killServer(death: ServerDeath): Command {
  return {
    ...fault(`kill the ${textOf(death)}`, (faults) => faults.killServer(death)),
    check: (model) => mayDie(death.server, model as PartnerModel),
  };
}

const replica = fc.nat(1);
const awayMs = fc.constantFrom(0, 500, 2_000);
const bytes = {
  replica,
  link: fc.constantFrom(...serverNames),
  direction: fc.constantFrom('toServer' as const, 'toClient' as const),
  count: fc.integer({ min: 1, max: 6 }),
  isDelivered: fc.boolean(),
};
const death = fc.record(bytes);
const serverDeath = { forMs: awayMs, isEmpty: fc.boolean() };
const deathOfServer = fc.record({ ...bytes, server: fc.record(serverDeath) });
const forMs = fc.constantFrom(0, 100, 400, 1_500);

const killed = [
  replica.map((number) => fault(`kill replica ${number}`, (faults) => faults.kill(number))),
  fc.constant(
    fault('kill both replicas', (faults) => {
      faults.kill(0);
      faults.kill(1);
    }),
  ),
];
const frozen = fc
  .tuple(replica, fc.constantFrom(100, 600, 6_000))
  .map(([number, ms]) => fault(`freeze replica ${number} for ${ms} ms`, (faults) => faults.freeze(number, ms)));
const cut = fc
  .tuple(replica, fc.constantFrom(...serverNames), forMs)
  .map(([number, link, ms]) =>
    fault(`cut replica ${number} from the ${link} for ${ms} ms`, (faults) => faults.cut(number, link, ms)),
  );

/** Deaths of replicas and servers, frozen processes and broken links: about a quarter of all commands. */
export const mortalCommands = [
  ...Array.from({ length: 8 }, () => death.map(killDuringNext)),
  ...Array.from({ length: 4 }, () => deathOfServer.map(killDuringNext)),
  ...[0, 1].map(() => fc.record({ ...serverDeath, server: fc.constantFrom(...serverNames) }).map(killServer)),
  ...killed,
  frozen,
  ...[cut, cut, cut],
];
