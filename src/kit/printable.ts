/**
 * Texts of other systems may hold characters that a terminal obeys or that hide what stands there: control characters, marks
 * that turn the direction of writing, separators of lines. None of them is printable.
 */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Whether a text has printable ASCII characters only, and at most so many of them. */
export function isPrintableAscii(text: string, maxLength: number): boolean {
  return text.length <= maxLength && /^[ -~]*$/.test(text);
}

/** Whether a text has printable characters only, of any script, and at most so many of them. */
export function isPrintable(text: string, maxLength: number): boolean {
  // A character beyond the first 65,536 has two code units.
  const isShort = text.length <= maxLength || (text.length <= 2 * maxLength && [...text].length <= maxLength);
  return isShort && text.search(unprintable) === -1;
}

/** A text that is printable whatever it was: each other character is shown by its number, as in `\u{1b}`. */
export function writtenOut(text: string): string {
  return text.replace(unprintable, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);
}

/** A line of JSON in which every character is printable. Unlike `writtenOut`, it stays the same JSON. */
export function escapedInJson(line: string): string {
  const codes = (one: string) => one.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'));
  return line.replace(unprintable, (one) =>
    codes(one)
      .map((code) => `\\u${code}`)
      .join(''),
  );
}
