import type { Clock, RemovalTime } from '../../../kit/clock.ts';
import type { Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { type RemovedRows, removalWorker } from '../../store/removal.ts';
import { type Statement, sql, statement } from '../../store/statement.ts';
import type { AnyKind } from './kind.ts';
import { readPosition, savePosition } from './positions.ts';
import { byId } from './table.ts';

/** How long an Idempotency-Key is kept at least, in milliseconds. It is kept longer while its object is not final. */
export const keyKeptMs = 30 * 86_400_000;

/** Whether a key is old enough to be freed: strictly longer than the time for which it is kept. */
export function isKeyOld(createdAt: number, now: number): boolean {
  return createdAt < now - keyKeptMs;
}

/** The parts of a kind that the retention of its keys uses. */
type KeptKeys = Pick<AnyKind, 'name' | 'table' | 'states'>;

const restMs = 5_000;

/**
 * Frees Idempotency-Keys after 30 days. It visits each object once, in the order of the ids, which begin with the
 * time. An object that is not final by then keeps its key until the change that makes it final.
 */
export function keyRetention(database: Database, timeOf: RemovalTime, holder: string, keys: KeptKeys): Worker {
  return removalWorker({ database, holder, timeOf, name: keyRetentionName(keys.name), restMs }, (now, most) =>
    passOld(database, keys, now, most),
  );
}

/** The keys of a kind that were not visited yet. `kind` and `table` are names. */
export function keptKeys(kind: string, table: string): RemovedRows {
  const position = sql`SELECT position FROM positions WHERE name = ${keyRetentionName(kind)}`;
  return {
    name: keyRetentionName(kind),
    keptMs: keyKeptMs,
    oldest: sql`SELECT created_at AS oldest FROM ${statement(byId({ table: { name: table } }))}
      WHERE id > COALESCE((${position}), '') ORDER BY id LIMIT 1`,
  };
}

/** The fields of an object that decide about its key. */
interface KeyHolder {
  readonly partnerId: string;
  readonly id: string;
  readonly createdAt: number;
  readonly idempotencyKey: string | null;
}

/**
 * Frees the key of an old object that becomes final now. It must be old by our clock and by the database's, because a
 * repeated request with a freed key counts as a new one. The statement always finds its row.
 */
export function freeOldKey(table: string, object: KeyHolder, clock: Clock): Statement[] {
  const { partnerId, id, createdAt, idempotencyKey } = object;
  if (idempotencyKey === null || !isKeyOld(createdAt, clock.now())) return [];
  const aheadMs = clock.now() - clock.realNow();
  return [
    statement(
      `UPDATE ${table}
        SET idempotency_key = IF(created_at < TIMESTAMPADD(MICROSECOND, ?, NOW(3)), NULL, idempotency_key)
        WHERE partner_id = ? AND id = ?`,
      (aheadMs - keyKeptMs) * 1_000,
      partnerId,
      id,
    ),
  ];
}

/** The name of a kind's worker, its lease and its position. */
function keyRetentionName(kind: string): string {
  return `${kind}-key-retention`;
}

async function passOld(database: Database, keys: KeptKeys, now: number, most: number): Promise<number> {
  const name = keyRetentionName(keys.name);
  const position = (await readPosition(database, name)) ?? '';
  const rows = await database.read(
    statement(`SELECT id, created_at FROM ${byId(keys)} WHERE id > ? ORDER BY id LIMIT ${most}`, position),
  );
  const ids: string[] = [];
  for (const { id, created_at: createdAt } of rows) {
    if (!isKeyOld((createdAt as Date).getTime(), now)) break;
    ids.push(String(id));
  }
  const last = ids.at(-1);
  if (last === undefined) return 0;
  await database.transaction([], () => ({
    writes: [freeKeys(keys, ids), savePosition(name, last)],
    result: undefined,
  }));
  return ids.length;
}

function freeKeys({ table, states }: KeptKeys, ids: readonly string[]): Statement {
  const change = `UPDATE ${byId({ table })} SET idempotency_key = NULL WHERE id IN (?) AND state IN (?)`;
  return statement(change, ids, states.final);
}
