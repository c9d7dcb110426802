/**
 * A bare script that allocates: the same two durable commits, statement by statement, with the ledger's entries and their
 * hashes, and one upstream call, with no server, no checks and no events carried anywhere. It says how many it made per
 * second.
 */
import { createHash, randomBytes } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { createPool, type PoolConnection, type RowDataPacket } from 'mysql2/promise';
import { IdMaker } from '../../../src/gateway/edge/ids.ts';
import { Allocations } from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { load } from '../support/load.ts';

const partners = (process.env.BASELINE_PARTNERS ?? '').split(',').map((entry) => entry.split(':') as [string, string]);
const pool = createPool({
  uri: process.env.BASELINE_DATABASE_URL ?? '',
  connectionLimit: 32,
  timezone: 'Z',
  supportBigNumbers: true,
});
const broker = createGrpcClient(Allocations, process.env.BASELINE_BROKER ?? '');
const ids = new IdMaker(Date);
const amount = 1_000;
let turn = 0;

process.on('message', async ({ atOnce, durationMs }: { atOnce: number; durationMs: number }) => {
  process.send?.({ result: await load(allocateOne, atOnce, durationMs) });
});
process.send?.({ port: 0 });

async function allocateOne(): Promise<void> {
  const [partnerId = '', account = ''] = partners[turn++ % partners.length] ?? [];
  const id = ids.object('alc');
  const now = new Date();
  const notAfter = new Date(now.getTime() + 10_000);
  const day = now.toISOString().slice(0, 10);
  const key = randomBytes(18);
  await transaction(partnerId, async (connection) => {
    await connection.execute('SELECT * FROM allocations WHERE partner_id = ? AND idempotency_key = ?', [
      partnerId,
      key,
    ]);
    await connection.execute('SELECT account FROM accounts WHERE partner_id = ? AND account = ?', [partnerId, account]);
    await connection.execute(
      `SELECT id FROM allocations WHERE partner_id = ? AND state IN ('uncertain', 'sending') AND account = ?
        AND amount_kobo = ? AND (state = 'uncertain' OR check_at <= ?) LIMIT 1`,
      [partnerId, account, amount, now],
    );
    await connection.execute(
      `SELECT used_kobo FROM usage_days WHERE partner_id = ? AND day = ? AND kind = 'allocations'`,
      [partnerId, day],
    );
    await connection.execute(
      `INSERT INTO allocations (partner_id, id, state, account, amount_kobo, created_at, updated_at, counted_day,
        idempotency_key, request_digest, evidence, not_after, check_at)
        VALUES (?, ?, 'sending', ?, ?, ?, ?, ?, ?, ?, 'stored', ?, ?)`,
      [partnerId, id, account, amount, now, now, day, key, randomBytes(32), notAfter, notAfter],
    );
    await transfer(connection, partnerId, id, 'reserve', null);
    await connection.execute(
      `INSERT INTO usage_days (partner_id, day, kind, used_kobo) VALUES (?, ?, 'allocations', ?)
        ON DUPLICATE KEY UPDATE used_kobo = used_kobo + VALUES(used_kobo)`,
      [partnerId, day, amount],
    );
  });
  const { record } = await broker.submitAllocation(
    { clientAllocationId: id, account, amountKobo: BigInt(amount), notAfter: timestampFromMs(notAfter.getTime()) },
    { timeoutMs: 10_000 },
  );
  await transaction(partnerId, async (connection, version) => {
    await connection.execute('SELECT * FROM allocations WHERE partner_id = ? AND id = ?', [partnerId, id]);
    const at = new Date();
    await connection.execute(
      `UPDATE allocations SET state = 'booked', broker_reference = ?, updated_at = ?, first_answer = 'object',
        evidence = 'sent', check_at = NULL WHERE partner_id = ? AND id = ?`,
      [record?.brokerReference ?? '', at, partnerId, id],
    );
    await transfer(connection, partnerId, id, 'post', account);
    await connection.execute('UPDATE partners SET version = version + 1 WHERE id = ?', [partnerId]);
    const body = JSON.stringify({ object: 'event', type: 'allocation.booked', data: { id, pad: 'x'.repeat(300) } });
    await connection.execute(
      `INSERT INTO outbox (partner_id, version, id, type, body, occurred_at, publish_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [partnerId, version + 1, ids.event(), 'allocation.booked', body, at, new Date('2100-01-01')],
    );
  });
}

/** One entry of the ledger, from the wallet as it is to the wallet as it is after it. */
async function transfer(
  connection: PoolConnection,
  partnerId: string,
  allocation: string,
  type: 'reserve' | 'post',
  account: string | null,
): Promise<void> {
  const [rows] = await connection.execute<RowDataPacket[]>('SELECT * FROM wallets WHERE partner_id = ?', [partnerId]);
  const [wallet] = rows;
  if (wallet === undefined) throw new Error('the wallet is empty');
  const available = Number(wallet.available_kobo) - (type === 'reserve' ? amount : 0);
  const reserved = Number(wallet.reserved_kobo) + (type === 'reserve' ? amount : -amount);
  const posted = Number(wallet.posted_kobo) + (type === 'reserve' ? 0 : amount);
  const sequence = Number(wallet.last_sequence) + 1;
  const id = ids.object('wtr');
  const at = new Date();
  const facts = [
    partnerId,
    String(wallet.last_hash),
    id,
    type,
    amount,
    available,
    reserved,
    posted,
    allocation,
    account,
  ];
  const hash = createHash('sha256').update(JSON.stringify(facts)).digest();
  await connection.execute(
    `INSERT INTO wallet_transfers (partner_id, sequence, id, type, amount_kobo, available_after_kobo,
      reserved_after_kobo, posted_after_kobo, allocation_id, account, created_at, previous_hash, hash)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[partnerId, sequence, id, type, amount, available, reserved, posted],
      ...[allocation, account, at, wallet.last_hash, hash],
    ],
  );
  await connection.execute(
    `UPDATE wallets SET last_sequence = ?, last_hash = ?, available_kobo = ?, reserved_kobo = ?, posted_kobo = ?
      WHERE partner_id = ?`,
    [sequence, hash, available, reserved, posted, partnerId],
  );
}

async function transaction(
  partnerId: string,
  work: (connection: PoolConnection, version: number) => Promise<void>,
): Promise<void> {
  const connection = await pool.getConnection();
  try {
    await connection.query('START TRANSACTION');
    const [rows] = await connection.execute<RowDataPacket[]>('SELECT * FROM partners WHERE id = ? FOR UPDATE', [
      partnerId,
    ]);
    await work(connection, Number(rows[0]?.version));
    await connection.query('COMMIT');
  } finally {
    connection.release();
  }
}
