import { groups } from './tags.ts';

/** A field of a template as far as its place matters. `count` is its value if it is a whole number without a placeholder. */
export interface PlacedField {
  readonly tag: number;
  readonly count: number | undefined;
}

const members: ReadonlySet<number> = new Set([...groups.values()].flatMap((group) => group.members));

/**
 * Checks the repeating groups of a message, and that no other field is there twice. Throws what is wrong. Each group must have as
 * many entries as its count says; each entry begins with its first field, and its others follow in the order of FIX.
 */
export function checkGroups(fields: readonly PlacedField[]): void {
  const seen = new Set<number>();
  let at = 0;
  while (at < fields.length) {
    const field = fields[at] as PlacedField;
    const { tag } = field;
    if (seen.has(tag)) throw new Error(`must not have tag ${tag} twice outside a repeating group`);
    seen.add(tag);
    if (members.has(tag) && !groups.has(tag)) {
      throw new Error(
        `must have tag ${tag} in its repeating group, ${groupOf(tag)}, as many entries as its count says`,
      );
    }
    at = groups.has(tag) ? readGroup(fields, at) : at + 1;
  }
}

/** Returns where the group ends that begins at this place. */
function readGroup(fields: readonly PlacedField[], from: number): number {
  const { tag, count } = fields[from] as PlacedField;
  const group = groups.get(tag);
  if (group === undefined) throw new Error(`must not have tag ${tag} as a count`);
  const [first = 0, ...others] = group.members;
  const name = `${group.name} (${tag})`;
  if (count === undefined || count < 1 || count > 99) {
    throw new Error(`must have a count of 1 to 99 in ${name}, without a placeholder`);
  }
  let at = from + 1;
  for (let entry = 1; entry <= count; entry += 1) {
    if (fields[at]?.tag !== first) {
      throw new Error(`must have ${count} entries in ${name}; entry ${entry} does not begin with tag ${first}`);
    }
    at += 1;
    for (const other of others) {
      if (fields[at]?.tag === other) at = groups.has(other) ? readGroup(fields, at) : at + 1;
    }
    const next = fields[at]?.tag;
    if (next !== undefined && others.includes(next)) {
      throw new Error(`must have the fields of ${name} in the order ${[first, ...others].join(', ')}, each once`);
    }
  }
  if (fields[at]?.tag === first) throw new Error(`must have as many entries in ${name} as its count says, ${count}`);
  return at;
}

function groupOf(tag: number): string {
  const [count, group] = [...groups].find(([, { members: all }]) => all.includes(tag)) ?? [];
  return `${group?.name} (${count})`;
}
