/** How many active keys a partner may have. */
export const maxActiveKeys = 10;

/** How many generations of keys are followed: each key is made with one of the generation before. */
export const maxGenerations = 10_000;

/** A key and the key it was made with, or undefined if an operator made it. */
export interface KeyLine {
  readonly id: string;
  readonly createdBy: string | undefined;
  readonly isActive: boolean;
}

/**
 * The active keys that descend from a key, oldest first. `lines` has the active keys and their ancestors, up to
 * `generations`. An active key with more ancestors counts as a descendant: revoking one key too many is better than
 * leaving a leaked one.
 */
export function activeChildren(keyId: string, lines: readonly KeyLine[], generations = maxGenerations): string[] {
  const makers = new Map(lines.map(({ id, createdBy }) => [id, createdBy]));
  const descends = (id: string) => {
    let at: string | undefined = id;
    for (let generation = 0; generation < generations; generation += 1) {
      at = makers.get(at);
      if (at === undefined) return false;
      if (at === keyId) return true;
    }
    return true;
  };
  return lines
    .filter(({ id, isActive }) => isActive && id !== keyId && descends(id))
    .map(({ id }) => id)
    .sort();
}
