import { plain } from '../wire/plain.ts';

/** How many characters are remembered of what was found about an order, so that it is not found again, and of one finding. */
const maxNotedLength = 400;
const maxKeyLength = 80;

/** The notes of an order without those of some kinds: what is like them is found again. */
export function withoutNotes(noted: string, kinds: readonly string[]): string {
  const isOther = (note: string) => !kinds.some((kind) => note.startsWith(`${kind}:`));
  return noted.split(' ').filter(isOther).join(' ');
}

/** The notes of an order with one more key. Undefined: it has that already. The oldest are forgotten when there are too many. */
export function withNote(noted: string, key: string): string | undefined {
  const added = plain(key).replaceAll(' ', '_').slice(0, maxKeyLength);
  const all = noted === '' ? [] : noted.split(' ');
  if (all.includes(added)) return undefined;
  const after = [...all, added];
  while (after.join(' ').length > maxNotedLength) after.shift();
  return after.join(' ');
}
