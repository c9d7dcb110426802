/** A text that a spreadsheet takes for the start of a formula, also behind spaces. */
const formula = /^\s*[=+\-@|%]|^[\t\r\n]/;
const quoted = /[",\r\n]|^\s|\s$/;

/**
 * A line of CSV (RFC 4180). A value that a spreadsheet could take for a formula begins with an apostrophe, unless it is a
 * number.
 */
export function csvLine(values: readonly string[]): string {
  return `${values.map(csvValue).join(',')}\r\n`;
}

function csvValue(value: string): string {
  const isNumber = /^-?\d+(\.\d+)?$/.test(value);
  const safe = formula.test(value) && !isNumber ? `'${value}` : value;
  return quoted.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
