/**
 * Control characters, line and paragraph separators, characters that have no width or turn the direction of a text, and the blank
 * Braille pattern, which is no space and looks like one.
 */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const lineBreaks = /[\t\n\r]/g;

/** Whether each character of a text can be seen, so that no other text looks the same and it stays in its line of a log or a list. */
export function isVisibleLine(text: string): boolean {
  return !invisible.test(text);
}

/** The same for a text of several lines, which may have tabs too. */
export function isVisibleText(text: string): boolean {
  return isVisibleLine(text.replace(lineBreaks, ' '));
}
