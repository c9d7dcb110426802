import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { type BrokerId, nameAt } from '../broker/broker.ts';
import { saveFirst, savePosition } from './positions.ts';

const dayMs = 86_400_000;
/** The position at the beginning of a day is kept for so many days with reports. */
const keptDays = 8;

/** The name of the stored position of a broker's reports about a kind, and of the lease on their stream. */
export function reportsPosition(broker: BrokerId, kind: string): string {
  return nameAt(broker, `${kind}-reports`);
}

const slotName = (name: string, slot: number) => `${name} day ${slot}`;

/** Keeps the position with which a day began, in place of an earlier day's. It ends with the day: `5142162 @20783`. */
export function keepDay(name: string, number: bigint, realNow: number): Statement {
  const day = Math.floor(realNow / dayMs);
  return saveFirst(slotName(name, day % keptDays), number.toString(), `@${day}`);
}

/** A position that was set back, for the one who did it. */
export interface Rewound {
  readonly name: string;
  readonly from: bigint;
  readonly to: bigint;
}

/** What the operator who declares a database restored reads about it. */
export function tellRewound({ name, from, to }: Rewound): string {
  const again =
    to === 0n ? 'all are read again, from 0, see "All reports again" in backup.md' : `read again from ${to}`;
  return `${name}: ${again}; the position was ${from}`;
}

/**
 * Sets the positions of reports back to where the oldest of the last days began, or to the beginning if fewer days are known.
 * So all reports since are read again. An object ignores those that it has, and gets those that a database lost which was
 * restored, or whose failover lost commits. Only while no gateway runs.
 */
export async function rewindReports(
  database: Database,
  broker: BrokerId,
  kinds: readonly string[],
): Promise<Rewound[]> {
  const names = kinds.map((kind) => reportsPosition(broker, kind));
  const slots = Array.from({ length: keptDays }, (_, slot) => slot);
  const all = names.flatMap((name) => [name, ...slots.map((slot) => slotName(name, slot))]);
  const read = statement('SELECT name, position FROM positions WHERE name IN (?) FOR UPDATE', all);
  return database.transaction([read], ([rows = []]) => {
    const byName = new Map(rows.map((row) => [String(row.name), String(row.position)]));
    const rewound = names.flatMap((name): Rewound[] => {
      const from = BigInt(byName.get(name) ?? 0);
      const days = slots.map((slot) => BigInt(byName.get(slotName(name, slot))?.split(' ')[0] ?? 0));
      const to = days.reduce((least, day) => (day < least ? day : least), from);
      return to < from ? [{ name, from, to }] : [];
    });
    return { writes: rewound.map(({ name, to }) => savePosition(name, to.toString())), result: rewound };
  });
}
