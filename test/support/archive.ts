import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { attempts, deliveries } from '../../src/gateway/delivery/webhooks/table.ts';
import { type Database, openDatabase, openForReading } from '../../src/gateway/store/database.ts';
import { migrate } from '../../src/gateway/store/migrate.ts';
import type { Table } from '../../src/gateway/store/table.ts';
import { allocations } from '../../src/gateway/trading/allocations/table.ts';
import { applications } from '../../src/gateway/trading/applications/table.ts';
import { orderSteps, orders } from '../../src/gateway/trading/orders/table.ts';
import { lookUps, objectSteps } from '../../src/gateway/trading/submission/table.ts';
import { transfers } from '../../src/gateway/trading/wallet/store.ts';
import { withdrawals } from '../../src/gateway/trading/withdrawals/table.ts';
import { chunksOf } from '../../src/kit/group.ts';
import { createPartner } from '../../src/sandbox/provision.ts';
import { createTestDatabase } from './servers.ts';

export const dayMs = 86_400_000;

// biome-ignore lint/suspicious/noExplicitAny: tables of all rows stand in one list.
type AnyTable = Table<any>;

/** A row with some fields, and in the others null or something plain. */
function row(table: AnyTable, fields: Record<string, unknown>): Record<string, unknown> {
  const plain = {
    text: 'x',
    bytes: Buffer.alloc(32, 1),
    whole: 1n,
    count: 1,
    instant: 0,
    day: '2026-01-02',
    flag: false,
  };
  const others = table.fields.map((field) => {
    const { isNullable, kind } = table.column(field);
    return [field, isNullable ? null : plain[kind]];
  });
  return { ...Object.fromEntries(others), ...fields };
}

export interface Stored {
  readonly partnerId: string;
  readonly id: string;
}

/** A migrated database with the archive's own rights to it, and rows to put into it. */
export async function openArchiveDatabase() {
  const made = await createTestDatabase();
  await migrate(made.url);
  const database = await openDatabase({ url: made.url, environment: 'sandbox', poolSize: 2 });
  const archiveUrl = await made.grantArchive();
  const own = await openForReading({ url: archiveUrl });
  const close = async () => {
    await own.close();
    await database.close();
    await made.drop();
  };
  return { database, own, archiveUrl, rows: new ArchiveRows(database), close };
}

/** Puts objects with their histories, entries and deliveries into the tables. */
export class ArchiveRows {
  #made = 0;

  constructor(private readonly database: Database) {}

  newPartner(): Promise<string> {
    return createPartner(this.database, { name: 'Archived' });
  }

  async order(partnerId: string, state: string, updatedAt: number): Promise<Stored> {
    const id = this.#id('ord');
    await this.#insert(orders, { partnerId, id, state, updatedAt, createdAt: updatedAt, checkAt: null });
    await this.#insert(orderSteps, { partnerId, orderId: id, sequence: 1 }, { partnerId, orderId: id, sequence: 2 });
    return { partnerId, id };
  }

  async application(partnerId: string, state: string, updatedAt: number, steps = 3): Promise<Stored> {
    return this.#object(applications, this.#id('app'), partnerId, state, updatedAt, steps);
  }

  async allocation(partnerId: string, state: string, updatedAt: number, steps = 2): Promise<Stored> {
    return this.#object(allocations, this.#id('alc'), partnerId, state, updatedAt, steps);
  }

  async withdrawal(partnerId: string, state: string, updatedAt: number, steps = 2): Promise<Stored> {
    return this.#object(withdrawals, this.#id('wdr'), partnerId, state, updatedAt, steps);
  }

  async #object(table: AnyTable, id: string, partnerId: string, state: string, updatedAt: number, steps: number) {
    await this.#insert(table, { partnerId, id, state, updatedAt, createdAt: updatedAt, steps });
    await this.steps({ partnerId, id }, steps, updatedAt);
    return { partnerId, id };
  }

  /** The steps of an object, and what was heard of it. */
  async steps({ partnerId, id }: Stored, count: number, at: number): Promise<void> {
    await this.#insert(
      objectSteps,
      ...Array.from({ length: count }, (_, index) => this.step({ partnerId, id }, index + 1)),
    );
    await this.#insert(lookUps, { partnerId, objectId: id, lastAt: at });
  }

  step({ partnerId, id }: Stored, sequence: number): Record<string, unknown> {
    return { partnerId, objectId: id, sequence, detail: `step ${sequence}` };
  }

  async lateStep(object: Stored, sequence: number, at = 0): Promise<void> {
    await this.#insert(objectSteps, { ...this.step(object, sequence), at });
  }

  async lateOrderStep({ partnerId, id }: Stored, sequence: number, at: number): Promise<void> {
    await this.#insert(orderSteps, { partnerId, orderId: id, sequence, at });
  }

  async transfer(partnerId: string, sequence: bigint, createdAt: number): Promise<void> {
    await this.#insert(transfers, { partnerId, sequence, id: this.#id('wtr'), createdAt, amountKobo: 10n ** 17n + 1n });
  }

  async delivery(partnerId: string, version: bigint, at: number): Promise<void> {
    await this.#insert(deliveries, { partnerId, version, occurredAt: at, state: 'delivered', queue: null });
    await this.#insert(attempts, { partnerId, version, number: 1, at }, { partnerId, version, number: 2, at: at + 1 });
  }

  /** Attempts of an instant: so many of each delivery, whose versions begin at 1. */
  async attempts(partnerId: string, at: number, counts: readonly number[]): Promise<void> {
    const made = counts.flatMap((count, index) =>
      Array.from({ length: count }, (_, each) => ({ partnerId, version: BigInt(index + 1), number: each + 1, at })),
    );
    for (const some of chunksOf(made, 500)) await this.#insert(attempts, ...some);
  }

  async #insert(table: AnyTable, ...rows: Record<string, unknown>[]): Promise<void> {
    if (rows.length > 0) await this.database.write(table.insert(...rows.map((fields) => row(table, fields))));
  }

  #id(prefix: string): string {
    this.#made += 1;
    return `${prefix}_${String(this.#made).padStart(6, '0')}${randomUUID().replaceAll('-', '').slice(0, 14)}`;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into rows freely, and fails on what is not there.
type FileRow = any;

/** All rows of a file's name in an archive, over all finished periods, each checked against its manifest. */
export function archivedRows(folder: string, name: string): FileRow[] {
  return readdirSync(folder)
    .filter((period) => /^\d{4}-\d{2}/.test(period))
    .sort()
    .flatMap((period) => {
      const manifest = JSON.parse(readFileSync(join(folder, period, 'manifest.json'), 'utf8'));
      return manifest.files
        .filter((file: { name: string }) => file.name === `${name}.ndjson.gz`)
        .flatMap((file: { name: string; sha256: string; rows: number }) => {
          const bytes = readFileSync(join(folder, period, file.name));
          const rows = gunzipSync(bytes).toString().split('\n').slice(0, -1);
          const sha256 = createHash('sha256').update(bytes).digest('hex');
          if (sha256 !== file.sha256 || rows.length !== file.rows) throw new Error(`${period}/${file.name} is damaged`);
          return rows.map((line) => JSON.parse(line));
        });
    });
}
