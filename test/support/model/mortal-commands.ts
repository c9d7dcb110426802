import { fc } from '../properties.ts';
import { type Death, type Faults, linkNames, type MortalWhole } from './mortal.ts';
import type { Command, Whole } from './surroundings.ts';

/** A command that makes a fault. Partners see nothing of it, but that an answer may not come. */
function fault(name: string, make: (faults: Faults) => void | Promise<void>): Command {
  return { toString: () => name, check: () => true, run: async (_, whole) => make(faultsOf(whole)) };
}

function faultsOf(whole: Whole): Faults {
  return (whole as MortalWhole).faults;
}

function killDuringNext(death: Death): Command {
  const { replica, link, direction, count, isDelivered } = death;
  const bytes = `at bytes ${count} ${direction} of the ${link}, ${isDelivered ? 'delivered' : 'lost'}`;
  return fault(`kill replica ${replica} during the next command, ${bytes}`, (faults) => faults.killDuringNext(death));
}

const replica = fc.nat(1);
const death = fc.record({
  replica,
  link: fc.constantFrom(...linkNames),
  direction: fc.constantFrom('toServer' as const, 'toClient' as const),
  count: fc.integer({ min: 1, max: 6 }),
  isDelivered: fc.boolean(),
});
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
  .tuple(replica, fc.constantFrom(...linkNames), forMs)
  .map(([number, link, ms]) =>
    fault(`cut replica ${number} from the ${link} for ${ms} ms`, (faults) => faults.cut(number, link, ms)),
  );

/** Deaths, frozen processes and broken links: about a fifth of all commands. */
export const mortalCommands = [
  ...Array.from({ length: 8 }, () => death.map(killDuringNext)),
  ...killed,
  frozen,
  ...[cut, cut, cut],
];
