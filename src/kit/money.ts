import Big from 'big.js';

/** Its own constructor, so that no other user of the library changes its settings. */
const Decimal = Big();
Decimal.DP = 12;
Decimal.RM = 1; // Half up.

/** With 18 digits the whole kobo of every decimal, rounded either way, fit an int64. */
const exactDecimal = /^-?(0|[1-9]\d{0,17})\.\d{1,12}$/;

/** Whether a text is an exact decimal of kobo: 1 to 18 digits, a decimal point and 1 to 12 places. */
export function isKoboDecimal(text: string): boolean {
  return exactDecimal.test(text);
}

/** The quotient as a decimal of kobo, rounded half up to 12 places, with at least one place. */
export function divideToKoboDecimal(dividend: bigint, divisor: bigint): string {
  return toKoboDecimal(new Decimal(dividend.toString()).div(divisor.toString()));
}

/** A decimal as partners see it: no exponent, always a decimal point, no more zeros than needed. */
export function toKoboDecimal(value: Big): string {
  const text = value.round(12, 1).toFixed();
  return text.includes('.') ? text : `${text}.0`;
}

/** Whole kobo from a decimal: rounded up for a debt, down for a receipt. */
export function roundKoboDecimal(text: string, direction: 'up' | 'down'): bigint {
  const value = new Decimal(text);
  const floor = value.round(0, 0); // Towards zero.
  const exact = floor.eq(value);
  const whole = BigInt(floor.toFixed());
  if (exact) return whole;
  if (direction === 'up') return value.gt(0) ? whole + 1n : whole;
  return value.lt(0) ? whole - 1n : whole;
}
