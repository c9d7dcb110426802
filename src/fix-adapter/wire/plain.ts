/**
 * A value of the other side may be any bytes, of which each is a character here. An id that is not printable ASCII is
 * none: it is not stored, shown or sent as it came.
 */
const unprintable = /[^ -~]/g;

/** A value in printable ASCII: any other character is shown by its number, as in `\x1b`. */
export function plain(value: string): string {
  return value.replace(unprintable, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
