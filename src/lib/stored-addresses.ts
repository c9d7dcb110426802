/**
 * The addresses a key works from, as they are stored. What another version stored in a form this one does not know stays in
 * the list as a text that is no address, because a key without addresses would work from everywhere.
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
