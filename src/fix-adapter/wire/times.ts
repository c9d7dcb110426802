/** An instant as FIX writes it: `20261123-09:30:00.123`, in UTC. */
export function utcTimestamp(ms: number): string {
  const [day = '', time = ''] = new Date(ms).toISOString().split('T');
  return `${day.replaceAll('-', '')}-${time.replace('Z', '')}`;
}

/** Reads an instant with any number of decimals, to the millisecond. Undefined if it is none. */
export function readUtcTimestamp(text: string | undefined): number | undefined {
  const [, year, month, day, time, second, fraction = ''] =
    /^(\d{4})(\d\d)(\d\d)-(\d\d:\d\d):(\d\d)(?:\.(\d{1,12}))?$/.exec(text ?? '') ?? [];
  if (year === undefined) return undefined;
  // A leap second is the last one of its minute here.
  const ms = Date.parse(
    `${year}-${month}-${day}T${time}:${second === '60' ? '59' : second}.${fraction.padEnd(3, '0').slice(0, 3)}Z`,
  );
  return Number.isNaN(ms) ? undefined : ms;
}
