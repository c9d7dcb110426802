/** How prices are written in a session. */
export type PriceUnit = 'naira' | 'kobo';

/** The highest price that the broker's protocol knows. */
const highestKobo = 10_000_000_000n;

/** Reads a price exactly. Undefined if it is none, or no whole number of kobo. */
export function toKobo(text: string, unit: PriceUnit): bigint | undefined {
  const [, whole, fraction = ''] = /^0*(\d{1,12})(?:\.(\d{0,20}))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  const places = unit === 'naira' ? 2 : 0;
  if (/[1-9]/.test(fraction.slice(places))) return undefined;
  const kobo = BigInt(`${whole}${fraction.slice(0, places).padEnd(places, '0')}`);
  return kobo >= 1n && kobo <= highestKobo ? kobo : undefined;
}

/** Writes a price exactly. */
export function toPrice(kobo: bigint, unit: PriceUnit): string {
  if (unit === 'kobo') return kobo.toString();
  const digits = kobo.toString().padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** Whether a text is the average price of so many shares that cost so many kobo: to a kobo, or to its own last digit if that is coarser. */
export function isAverage(text: string, unit: PriceUnit, valueKobo: bigint, quantity: bigint): boolean {
  const [, whole, fraction = ''] = /^0*(\d{1,12})(?:\.(\d{0,20}))?$/.exec(text) ?? [];
  if (whole === undefined) return false;
  // In units of the last digit, of which a kobo has so many.
  const places = unit === 'naira' ? 2 : 0;
  const digits = BigInt(`${whole}${fraction}`);
  const perKobo = 10n ** BigInt(Math.max(0, fraction.length - places));
  const stated = digits * 10n ** BigInt(Math.max(0, places - fraction.length));
  const coarsest = 10n ** BigInt(Math.max(0, places - fraction.length));
  const difference = stated * quantity - valueKobo * perKobo;
  const allowed = (coarsest > perKobo ? coarsest : perKobo) * quantity;
  return (difference < 0n ? -difference : difference) <= allowed;
}
