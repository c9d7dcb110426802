/**
 * The lines of Go code that are not indented as gofmt does it. It can read code without `case` and without lines that
 * go on after an operator. It does not check how gofmt aligns text within a line.
 */
export function badlyIndented(code: string): string[] {
  // Brackets of texts and comments are not the code's, and raw texts have lines of their own.
  const withoutTexts = code
    .replaceAll(/`[^`]*`/g, '``')
    .replaceAll(/"(?:[^"\\\n]|\\.)*"/g, '""')
    .replaceAll(/\/\/.*/g, '//');
  /** The indentation of the line that opened each bracket that is still open. */
  const open: number[] = [];
  return withoutTexts.split('\n').filter((line) => {
    const inner = open.at(-1);
    const closes = /^\s*[)\]}]/.test(line);
    const tabs = inner === undefined ? 0 : closes ? inner : inner + 1;
    for (const sign of line.match(/[([{}\])]/g) ?? []) {
      if ('([{'.includes(sign)) open.push(tabs);
      else open.pop();
    }
    return line !== '' && !new RegExp(`^\\t{${tabs}}\\S(.*\\S)?$`).test(line);
  });
}
