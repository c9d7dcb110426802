import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, beforeEach } from 'node:test';
import { type Connection, createConnection } from 'mysql2/promise';
import type { EventKey } from '../../src/gateway/delivery/events/outbox.ts';
import type { MadeAttempt } from '../../src/gateway/delivery/webhooks/attempt/attempts.ts';
import {
  claimEndpoints,
  findWork,
  type HolderLease,
  newEndpoint,
  saveEndpoint,
} from '../../src/gateway/delivery/webhooks/plan/endpoint-store.ts';
import {
  type LoadedDelivery,
  type QueueRead,
  readQueues,
} from '../../src/gateway/delivery/webhooks/plan/queue-store.ts';
import { findProgress } from '../../src/gateway/delivery/webhooks/record/delivery-store.ts';
import { type Endpoint, endpoints, progress } from '../../src/gateway/delivery/webhooks/table.ts';
import type { Database } from '../../src/gateway/store/database.ts';
import { type Statement, statement, toBigInt } from '../../src/gateway/store/statement.ts';
import { withDatabase } from './database.ts';
import { insertRows } from './insert-rows.ts';

export const minute = 60_000;
export const now = Math.floor(Date.now() / 1_000) * 1_000;

/** A webhooks' store with an endpoint of a new partner for each test, and what tests do to it. */
export function useWebhookStore() {
  let database: Database;
  /** A connection of its own, to hold locks and to count what is read. */
  let other: Connection;
  let partnerId: string;
  withDatabase(async (opened, url) => {
    database = opened;
    other = await createConnection({ uri: url, timezone: 'Z' });
    await other.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  });
  after(() => other.end());
  beforeEach(async () => {
    partnerId = await addEndpoint();
  });

  async function addEndpoint(): Promise<string> {
    const id = `par_${randomBytes(10).toString('hex')}`;
    const url = 'https://example.com/';
    const made = { partnerId: id, url, secret: Buffer.alloc(8), afterVersion: 0n, registeredAt: now - minute };
    await database.write(endpoints.insert(newEndpoint(made)));
    return id;
  }

  /** Puts events into the queue, as the consumer does. */
  async function queue(versions: readonly bigint[], dueAt: number | null = null): Promise<void> {
    await database.write(insertQueued(versions, dueAt));
  }

  function insertQueued(versions: readonly bigint[], dueAt: number | null): Statement {
    const at = new Date(now);
    const columns = 'partner_id version event_id type occurred_at committed_at taken_at state queue due_at'.split(' ');
    const rows = versions.map((version) => {
      const due = dueAt === null ? null : new Date(dueAt);
      return [partnerId, version, `msg_${version}`, 'order.pending', at, at, at, 'waiting', due === null ? 1 : 2, due];
    });
    return insertRows('webhook_deliveries', columns, rows);
  }

  /** A process that lives, for a while. A lease that is said to last longer is none. */
  async function newLease(livesMs = 14_000): Promise<HolderLease> {
    const name = `webhooks-${randomBytes(8).toString('hex')}`;
    await database.write(
      statement('INSERT INTO leases VALUES (?, ?, 1, NOW(3) + INTERVAL ? SECOND)', name, 'test', livesMs / 1_000),
    );
    return { name, fence: 1n };
  }

  async function claim(lease: HolderLease): Promise<boolean> {
    return (await claimEndpoints(database, [partnerId], lease, now)).length > 0;
  }

  async function endpoint(): Promise<Endpoint> {
    const [row] = await database.read(endpoints.find({ partnerId }));
    assert.ok(row !== undefined, 'the endpoint is there');
    return endpoints.all.read(row);
  }

  /** Changes the endpoint's row. */
  async function change(changed: Partial<Endpoint>): Promise<void> {
    const before = await endpoint();
    for (const write of saveEndpoint(before, { ...before, ...changed }).writes) await database.write(write);
  }

  /** Reads a part of the queue as it is at an instant. */
  async function queued(part: QueueRead['part'], at = now): Promise<LoadedDelivery[]> {
    const [found = []] = await readQueues(database, [{ part, after: 0n, most: 10, partnerId, without: new Set() }], at);
    return found;
  }

  const versionsOf = (deliveries: readonly { version: bigint }[]) => deliveries.map(({ version }) => version);

  async function dueAt(): Promise<number | null> {
    return (await endpoint()).dueAt;
  }

  async function work(lease: HolderLease, at: number, isFullScan = false): Promise<string[]> {
    const [rows = []] = await database.readAll([findWork(lease, at, 5_000, isFullScan)]);
    return rows.map((row) => String(row.partner_id)).filter((id) => id === partnerId);
  }

  async function attempt(version: bigint, more: Partial<MadeAttempt> = {}): Promise<MadeAttempt> {
    const { fence, generation } = await endpoint();
    const common = { partnerId, version, number: 1, round: 0, isProbe: false, at: now - 3, durationMs: 3 };
    return { ...common, fence, generation, outcome: 'delivered', status: 200, errorClass: null, ...more };
  }

  async function stored(version: bigint) {
    const [[row] = []] = await database.readAll([findProgress(new Map([[partnerId, [version]]]))]);
    assert.ok(row !== undefined, 'the delivery is there');
    return progress.read(row);
  }

  async function attempts(): Promise<bigint[]> {
    const rows = await database.read(
      statement('SELECT version FROM webhook_attempts WHERE partner_id = ? ORDER BY version, number', partnerId),
    );
    return rows.map((row) => toBigInt(row.version));
  }

  /** Puts events into the outbox. */
  async function append(versions: readonly bigint[]): Promise<EventKey[]> {
    const at = new Date(now);
    const columns = 'partner_id version id type body occurred_at publish_at signed'.split(' ');
    const rows = versions.map((version) => [partnerId, version, `msg_${version}`, 'order.pending', '{}', at, at, 1]);
    await database.write(insertRows('outbox', columns, rows));
    return versions.map((version) => ({ partnerId, version }));
  }

  async function inOutbox(): Promise<bigint[]> {
    const rows = await database.read(
      statement('SELECT version FROM outbox WHERE partner_id = ? ORDER BY version', partnerId),
    );
    return rows.map((row) => toBigInt(row.version));
  }

  return {
    get database() {
      return database;
    },
    get other() {
      return other;
    },
    /** The partner whose endpoint all of these are about. */
    get partnerId() {
      return partnerId;
    },
    set partnerId(id: string) {
      partnerId = id;
    },
    ...{
      addEndpoint,
      queue,
      insertQueued,
      newLease,
      claim,
      endpoint,
      change,
      queued,
      dueAt,
      work,
      attempt,
      stored,
      attempts,
      append,
      inOutbox,
      versionsOf,
    },
  };
}
