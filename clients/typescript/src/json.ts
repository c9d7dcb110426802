/** Stands before a whole number while JSON.parse or JSON.stringify takes it for a text. Private to Unicode. */
const mark = '\ue000';
/** Texts, with the colon that makes one a name, and numbers. */
const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const texts = /"(?:[^"\\]|\\.)*"(:)?/g;

/**
 * Reads JSON. Every whole number is a bigint, with all its digits: JavaScript's own numbers are not exact beyond 2^53.
 * Throws a SyntaxError if the text is not JSON.
 */
export function parseJson(text: string): unknown {
  const marked = text.replace(tokens, (token, colon?: string) => {
    if (colon !== undefined) return token;
    if (token.startsWith('"')) return /^"(?:\ue000|\\u[eE]000)/.test(token) ? `"${mark}${token.slice(1)}` : token;
    return /^-?\d+$/.test(token) ? `"${mark}${token}"` : token;
  });
  return JSON.parse(marked, (_name, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith(mark)) return value;
    const rest = value.slice(1);
    return rest.startsWith(mark) ? rest : BigInt(rest);
  });
}

/**
 * Writes JSON. A bigint is written with all its digits. Throws a RangeError for a number that is not exact, which was
 * rounded before it came here.
 */
export function writeJson(value: unknown): string {
  const written = JSON.stringify(value, (_name, each: unknown) => {
    if (typeof each === 'bigint') return `${mark}${each}`;
    if (typeof each === 'number' && !Number.isSafeInteger(each)) {
      throw new RangeError(`${each} is not an exact whole number. Pass a bigint.`);
    }
    return typeof each === 'string' && each.startsWith(mark) ? `${mark}${each}` : each;
  });
  return written.replace(texts, (text, colon?: string) => {
    if (colon !== undefined || !text.startsWith(`"${mark}`)) return text;
    const rest = text.slice(2);
    return rest.startsWith(mark) ? `"${rest}` : rest.slice(0, -1);
  });
}
