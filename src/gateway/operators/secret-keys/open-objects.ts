import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { applicationStates } from '../../trading/applications/rules.ts';
import { type StoredKind, storedKinds } from '../../trading/kinds.ts';

/** What is compared with digests for longer than 30 days. */
interface OpenObjects {
  /** Objects that are not final and have an Idempotency-Key. */
  readonly objects: number;
  /** Applications that are not decided and have documents. */
  readonly applications: number;
}

const partnersTogether = 200;

/**
 * Counts what is open and was stored until then, in business time. Which secret made a digest is not stored. So this is the
 * most that a secret which was current until then can be needed for.
 */
export async function countOpenObjects(database: Database, until: number): Promise<OpenObjects> {
  let objects = 0;
  let applications = 0;
  for await (const partnerId of allPartners(database)) {
    const answers = await database.readAll(openOf(partnerId, new Date(until)));
    const [withDocuments = 0, ...ofKinds] = answers.map(([row]) => Number(row?.found));
    objects += ofKinds.reduce((sum, found) => sum + found, 0);
    applications += withDocuments;
  }
  return { objects, applications };
}

function openOf(partnerId: string, until: Date): Statement[] {
  const open = ({ table: { name }, states }: StoredKind) =>
    statement(
      `SELECT COUNT(*) AS found FROM ${name} FORCE INDEX (${name}_state)
        WHERE partner_id = ? AND ${isOpen('state', states)} AND created_at <= ? AND idempotency_key IS NOT NULL`,
      partnerId,
      until,
    );
  return [
    statement(
      `SELECT COUNT(DISTINCT a.id) AS found FROM applications a FORCE INDEX (PRIMARY)
        STRAIGHT_JOIN documents d FORCE INDEX (PRIMARY) ON d.partner_id = a.partner_id AND d.application_id = a.id
        WHERE a.partner_id = ? AND ${isOpen('a.state', applicationStates)} AND d.created_at <= ?`,
      partnerId,
      until,
    ),
    ...storedKinds.map(open),
  ];
}

/** A state of another version counts as open. */
function isOpen(column: string, { final }: { readonly final: readonly string[] }): string {
  return `${column} NOT IN (${final.map((state) => `'${state}'`).join(', ')})`;
}

async function* allPartners(database: Database): AsyncGenerator<string> {
  for (let after = ''; ; ) {
    const rows = await database.read(
      statement(
        `SELECT id FROM partners FORCE INDEX (PRIMARY) WHERE id > ? ORDER BY id LIMIT ${partnersTogether}`,
        after,
      ),
    );
    for (const { id } of rows) yield String(id);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = String(last.id);
  }
}
