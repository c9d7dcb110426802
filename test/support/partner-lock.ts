import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { eventually } from './eventually.ts';

/** A partner's row, locked by another transaction, as by a replica that is slow or frozen. */
export interface PartnerLock {
  /** Resolves when a transaction waits for the row. */
  waitedFor(): Promise<void>;
  /** Lets the row go. May be called twice. */
  release(): Promise<void>;
}

/** Locks a partner's row until it is released. */
export async function lockPartnerRow(databaseUrl: string, partnerId: string): Promise<PartnerLock> {
  const connection = await createConnection(databaseUrl);
  await connection.query('START TRANSACTION');
  await connection.query('SELECT id FROM partners WHERE id = ? FOR UPDATE', [partnerId]);
  let released: Promise<void> | undefined;
  return {
    waitedFor: () =>
      eventually(async () => {
        await delay(150); // Asked more often, the server answers the same again.
        const [rows] = await connection.query<RowDataPacket[]>(
          "SELECT trx_query FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
        );
        assert.ok(rows.some(({ trx_query: query }) => String(query).includes(partnerId)));
      }),
    release: () => {
      released ??= connection.query('ROLLBACK').then(() => connection.end());
      return released;
    },
  };
}
