/** How many keys that are not revoked a partner may have. */
export const mostActiveKeys = 10;

/** How many generations of keys are followed, each made with the one before. */
export const mostGenerations = 10_000;

/** A key and the key it was made with; undefined: an operator made it. */
export interface KeyLine {
  readonly id: string;
  readonly createdBy: string | undefined;
  readonly isActive: boolean;
}

/**
 * The active keys that were made with the given one, or with one of those, at any depth; oldest first. `lines` has the
 * active keys and all they descend from, up to `generations`. An active key whose line is longer counts as a child: it is
 * better to revoke one key too many than to leave one that leaked.
 */
export function activeChildren(keyId: string, lines: readonly KeyLine[], generations = mostGenerations): string[] {
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
