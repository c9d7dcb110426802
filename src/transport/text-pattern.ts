/** Compiles a pattern that the whole of a text has to match. */
export function compilePattern(pattern: string): (text: string) => boolean {
  assertBounded(pattern);
  const expression = new RegExp(`^(?:${pattern})$`, 'u');
  return (text) => expression.test(text);
}

/**
 * Fails on a pattern that could take long over a crafted text. Where nothing repeats without a bound and no group
 * repeats at all, the work is bounded by the pattern itself.
 */
function assertBounded(pattern: string): void {
  const skeleton = pattern.replace(/\\./g, 'x').replace(/\[[^\]]*\]/g, 'x');
  if (/[*+]|\{\d+,\}|\)[?{]/.test(skeleton)) throw new Error(`the pattern ${pattern} repeats without a bound`);
}
