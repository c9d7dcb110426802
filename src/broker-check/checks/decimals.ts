const places = 12;

/** Decimals of at most 12 places, as whole numbers of their last place. */
function scaled(decimal: string): bigint {
  const [whole = '0', part = ''] = decimal.replace('-', '').split('.');
  const value = BigInt(whole + part.padEnd(places, '0'));
  return decimal.startsWith('-') ? -value : value;
}

/** The exact sum of decimals. */
export function decimalSum(decimals: readonly string[]): string {
  const sum = decimals.reduce((total, decimal) => total + scaled(decimal), 0n);
  const digits = (sum < 0n ? -sum : sum).toString().padStart(places + 1, '0');
  return `${sum < 0n ? '-' : ''}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** Whether decimals add up to another one. */
export function isSum(decimals: readonly string[], total: string): boolean {
  return scaled(decimalSum(decimals)) === scaled(total);
}
