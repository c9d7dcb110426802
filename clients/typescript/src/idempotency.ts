/** A random UUID: an Idempotency-Key that nobody else has. */
export function newKey(): string {
  return crypto.randomUUID();
}

/** The key as it is sent. Blanks around it do not count, as over every protocol. Throws a TypeError for one that is none. */
export function checkedKey(key: string): string {
  const trimmed = typeof key === 'string' ? withoutBlanks(key) : '';
  if (/^[ -~]{1,255}$/.test(trimmed)) return trimmed;
  throw new TypeError('An Idempotency-Key has 1 to 255 printable ASCII characters, without the blanks around it.');
}

/** Without spaces and tabs at both ends: what HTTP leaves out around a header's value. */
function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && ' \t'.includes(text.charAt(start))) start += 1;
  while (end > start && ' \t'.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
