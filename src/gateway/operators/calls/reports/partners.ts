import type { Database } from '../../../store/database.ts';
import { sql, statement } from '../../../store/statement.ts';
import { requirePartner } from '../call.ts';

const together = 500;

/** The partner of a report, or all partners in the order of their ids. Throws NOT_FOUND if there is no such partner. */
export async function* partnersOf(
  database: Database,
  partnerId: string,
  signal: AbortSignal,
): AsyncGenerator<string, undefined> {
  if (partnerId !== '') {
    await requirePartner(database, partnerId);
    yield partnerId;
    return undefined;
  }
  for (let after = ''; !signal.aborted; ) {
    const rows = await database.read(
      sql`SELECT id FROM partners FORCE INDEX (PRIMARY) WHERE id > ${after} ORDER BY id LIMIT ${statement(`${together}`)}`,
    );
    for (const { id } of rows) {
      if (signal.aborted) return undefined;
      yield String(id);
    }
    if (rows.length < together) return undefined;
    after = String(rows.at(-1)?.id);
  }
  return undefined;
}
