import { createRequire } from 'node:module';

export interface Area {
  /** Upper-case letters, digits and hyphens. */
  readonly code: string;
  readonly name: string;
}

/** A state as in the data package. */
interface PackagedState {
  readonly state: string;
  readonly state_alias: string;
  readonly lgas: readonly string[];
}

// The package's code is not needed, only its data.
const packaged = createRequire(import.meta.url)('locations-ng/data/lgas.json') as readonly PackagedState[];

/** The 36 states and the Federal Capital Territory, by name. */
export const states: readonly Area[] = packaged
  .map(({ state, state_alias: alias }) => ({ code: codeOf(alias), name: state }))
  .sort(byName);

const lgasByState = new Map(
  packaged.map(({ state_alias: alias, lgas }): [string, readonly Area[]] => {
    const state = codeOf(alias);
    return [state, lgas.map((name) => ({ code: `${state}-${codeOf(name)}`, name })).sort(byName)];
  }),
);

/** A state's local government areas, by name; undefined for an unknown state. */
export function lgasOf(stateCode: string): readonly Area[] | undefined {
  return lgasByState.get(stateCode);
}

function codeOf(name: string): string {
  return name
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');
}

function byName(one: Area, other: Area): number {
  return one.name < other.name ? -1 : 1;
}
