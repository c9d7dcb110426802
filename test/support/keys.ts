import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { IdMaker, randomBase32 } from '../../src/gateway/edge/ids.ts';
import type { Database, Environment } from '../../src/gateway/store/database.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import type { Scope } from '../../src/gen/marina/options/v1/options_pb.ts';
import { createKey as provisionKey } from '../../src/sandbox/provision.ts';

/** The `MARINA_SECRET_KEY` of the gateways of tests, in hex. */
export const secretKey = '42'.repeat(32);

const ids = new IdMaker(Date);

/** Creates a key for a gateway of a test. */
export function createKey(
  database: Database,
  key: { partnerId: string; scopes: readonly Scope[]; addresses?: readonly string[] | undefined },
): Promise<{ id: string; key: string }> {
  return provisionKey(database, { ...key, secretKey });
}

/** A key of the right form that no gateway made: its checksum is right, and anybody can compute that. */
export function forgedKey(environment: Environment = 'sandbox', id = madeUpId()): string {
  const prefix = environment === 'live' ? 'marina_live_' : 'marina_test_';
  const body = `${prefix}${id.slice('key_'.length)}${randomBase32(52)}`;
  return body + checksum(body);
}

/** Stores a key as versions before the MAC made them. */
export async function createOldKey(
  database: Database,
  { partnerId, scopes }: { partnerId: string; scopes: string },
): Promise<{ id: string; key: string }> {
  const id = madeUpId();
  const key = forgedKey(database.environment, id);
  const secretHash = createHash('sha256').update(key.slice(-58, -6)).digest();
  await database.write(
    statement(
      `INSERT INTO api_keys (partner_id, id, secret_hash, scopes, addresses, created_at) VALUES (?, ?, ?, ?, '[]', ?)`,
      partnerId,
      id,
      secretHash,
      scopes,
      new Date(),
    ),
  );
  return { id, key };
}

function madeUpId(): string {
  return `key_${ids.keyHead()}${randomBase32(6)}`;
}

function checksum(body: string): string {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
  let value = crc32(body);
  let text = '';
  for (let place = 0; place < 6; place += 1) {
    text += alphabet[value & 31];
    value >>>= 5;
  }
  return text;
}
