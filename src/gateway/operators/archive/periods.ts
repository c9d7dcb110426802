/** A calendar month or day in UTC: what one folder of the archive holds. */
export interface ArchivePeriod {
  /** `2025-10` or `2025-10-03`. */
  readonly name: string;
  readonly unit: 'month' | 'day';
  readonly from: Date;
  /** The first instant after it. */
  readonly to: Date;
  /** Whether the database will soon no longer hold it. */
  readonly isUrgent: boolean;
}

const dayMs = 86_400_000;
/** Nothing of a delivery changes any more: it is sent for 28 h 51 min at most. */
const daysUntilOver = 3;
/** Deliveries and attempts are in the database for 30 days; a day is left for the run. */
const daysHeld = 29;
/** A day is archived as it is when the database holds it for so many more days only. */
const daysToSpare = 3;

/**
 * The periods that may be archived at an instant of business time: the days whose webhooks are over and still in the database, which are
 * urgent, and then the months that ended so many months ago.
 */
export function duePeriods(first: Date, now: Date, months: number): ArchivePeriod[] {
  const monthOf = (at: Date) => at.getUTCFullYear() * 12 + at.getUTCMonth();
  const due: ArchivePeriod[] = [];
  const today = Math.floor(now.getTime() / dayMs);
  for (let day = today - daysHeld + 1; day <= today - daysUntilOver; day += 1) {
    const from = new Date(day * dayMs);
    if (from.getTime() + dayMs <= first.getTime()) continue;
    const isUrgent = day <= today - daysHeld + daysToSpare;
    const to = new Date(from.getTime() + dayMs);
    due.push({ name: from.toISOString().slice(0, 10), unit: 'day', from, to, isUrgent });
  }
  for (let month = monthOf(first); month < monthOf(now) - months; month += 1) {
    const [from, to] = [startOf(month), startOf(month + 1)];
    due.push({ name: from.toISOString().slice(0, 7), unit: 'month', from, to, isUrgent: false });
  }
  return due;
}

/** The months between the first and the last of some periods that are not among them. */
export function missingMonths(names: readonly string[]): string[] {
  const months = names.filter((name) => name.length === 7).sort();
  const [first, last] = [months[0], months.at(-1)];
  if (first === undefined || last === undefined) return [];
  const between = duePeriods(new Date(`${first}-01`), new Date(`${last}-01`), 0).map(({ name }) => name);
  return between.filter((name) => name.length === 7 && !months.includes(name));
}

function startOf(month: number): Date {
  return new Date(Date.UTC(Math.floor(month / 12), month % 12, 1));
}
