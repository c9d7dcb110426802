/**
 * The addresses from which a key may be used, as stored. An entry in another version's form stays in the list as a text
 * that matches no address, because a key without addresses may be used from everywhere.
 */
export function addressesFrom(stored: unknown): string[] {
  const text = String(stored);
  const entries = listFrom(text) ?? [`unknown form: ${text}`];
  return entries.map((entry) => (typeof entry === 'string' ? entry : JSON.stringify(entry)));
}

function listFrom(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
