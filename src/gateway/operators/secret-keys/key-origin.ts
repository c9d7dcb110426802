import type { SealedKey } from '../../edge/auth/key-seals.ts';
import type { Database } from '../../store/database.ts';
import { type SqlRow, statement } from '../../store/statement.ts';

/** What the entries of a key's creation say. */
export interface KeyOrigin {
  /** An operator's name or a key's id; undefined: no entry names who made it, or several entries of the audit do. */
  readonly madeBy: string | undefined;
  /** Whether an entry of the audit has other scopes or addresses than the row. */
  readonly differs: boolean;
}

/** A key has one entry of its creation. Somebody who has the database can add more, so a second one is noticed. */
const maxEntries = 2;

/** Reads who made a key: an operator by the audit, or another key by the partner's changes. */
export async function readKeyOrigin(database: Database, key: SealedKey): Promise<KeyOrigin> {
  const { id, partnerId } = key;
  const [entries = [], changes = []] = await database.readAll([
    statement(
      `SELECT operator, became FROM audit_entries FORCE INDEX (audit_entries_subject)
        WHERE subject = ? AND action = 'Keys.CreateKey' AND partner_id = ? ORDER BY id LIMIT ${maxEntries}`,
      id,
      partnerId,
    ),
    statement(
      "SELECT by_key_id FROM key_changes WHERE partner_id = ? AND key_id = ? AND action = 'created'",
      partnerId,
      id,
    ),
  ]);
  const [entry] = entries;
  const maker = entry === undefined ? changes[0]?.by_key_id : entry.operator;
  return {
    madeBy: maker === undefined || entries.length > 1 ? undefined : String(maker),
    differs: entries.some((each) => isOther(key, each)),
  };
}

/** Whether an entry of the audit has scopes or addresses, and other ones than the key's row. */
function isOther({ scopes, addresses }: SealedKey, { became }: SqlRow): boolean {
  if (became === null) return false;
  const made = parsed(String(became));
  if (typeof made !== 'object' || made === null) return true;
  const facts: Record<string, unknown> = {
    scopes: scopes === '' ? [] : scopes.split(','),
    addresses: parsed(addresses),
  };
  return Object.entries(made).some(([name, value]) => name in facts && !isSame(value, facts[name]));
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** A JSON text's value; undefined if it is no JSON, which no gateway writes. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
