/** Stands before a whole number while JSON.parse or JSON.stringify takes it for a text. Private to Unicode. */
export const mark = '\ue000';

const quote = '"'.charCodeAt(0);
const backslash = '\\'.charCodeAt(0);

/** Where the text that begins at a quote ends, behind its closing quote, or the end of all if it has none. */
export function endOfText(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const each = text.charCodeAt(at);
    if (each === quote) return at + 1;
    if (each === backslash) at += 1;
  }
  return text.length;
}

/** Whether a colon follows, which makes a text the name of a member. */
export function isName(text: string, end: number): boolean {
  let at = end;
  while (' \t\n\r'.includes(text.charAt(at)) && at < text.length) at += 1;
  return text.charAt(at) === ':';
}
