import { leftOut } from '../personal-text.ts';

/** Keys and signing secrets, wherever somebody wrote one. */
const secrets = /(marina_(?:test|live)_|whsec_)[\w+/=-]+/g;
/** A character by its code, as in a URL (also encoded several times) or in JSON, or an escaped slash; or any character. */
const written = /%(?:25)*([0-9a-f]{2})|\\+u00([0-9a-f]{2})|\\+(\/)|[\s\S]/gi;
const anyEscape = /%[0-9a-f]{2}|\\u00|\\\//i;

/** A text with the secrets hidden that it has, also those that are written with escapes. */
export function withoutSecrets(text: string): string {
  if (!anyEscape.test(text)) return text.replace(secrets, `$1${leftOut}`);
  let plain = '';
  /** Where each character of `plain` begins in the text. */
  const starts: number[] = [];
  for (const { 0: whole, 1: inUrl, 2: inJson, 3: slash, index } of text.matchAll(written)) {
    const code = inUrl ?? inJson;
    plain += code === undefined ? (slash ?? whole) : String.fromCharCode(Number.parseInt(code, 16));
    starts.push(index);
  }
  let shown = '';
  let shownTo = 0;
  for (const { 0: secret, 1: prefix, index } of plain.matchAll(secrets)) {
    shown += `${text.slice(shownTo, starts[index])}${prefix}${leftOut}`;
    shownTo = starts[index + secret.length] ?? text.length;
  }
  return shown + text.slice(shownTo);
}
