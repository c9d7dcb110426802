/** More digits than a padded number of any engine has. */
const longestText = 64;

/** Reads a whole number, with any zeros before it. Undefined if the text is none, or the number has over 15 digits. */
export function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined || text.length > longestText) return undefined;
  const [, digits] = /^0*(\d{1,15})$/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * Reads a whole quantity exactly, with any zeros before it and only zeros behind its point: `100`, `0000000000000100`,
 * `100.00`. Undefined if the text is none, or the quantity has over 18 digits.
 */
export function wholeQuantity(text: string | undefined): bigint | undefined {
  if (text === undefined || text.length > longestText) return undefined;
  const [, digits] = /^0*(\d{1,18})(?:\.0*)?$/.exec(text) ?? [];
  return digits === undefined ? undefined : BigInt(digits);
}
