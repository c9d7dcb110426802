import 'reflect-metadata';
import type { Pool, PoolConnection } from 'mysql2';
import { AbstractLogger, DataSource, EntitySchema, type EntitySchemaOptions, type MigrationInterface } from 'typeorm';
import type { RenewedPool } from './renewed-pool.ts';

/** TypeORM's own lines have statements with their values, which no log may have. Errors reach the caller. */
class Silent extends AbstractLogger {
  protected writeLog(): void {}
}

/** Connects TypeORM on a pool. */
export function openSource(options: {
  pool: RenewedPool;
  /** Takes a connection of it. */
  take(pool: RenewedPool, done: (error: unknown, connection?: PoolConnection) => void): void;
  database: string;
  tables: readonly EntitySchemaOptions<object>[];
  migrations: readonly (new () => MigrationInterface)[];
  /** How long a statement may take; undefined: without a limit. */
  timeoutMs: number | undefined;
}): Promise<DataSource> {
  const { pool, take, database, tables, migrations, timeoutMs } = options;
  // TypeORM asks its driver for a pool once, and is given ours. It ends it if the first connection fails.
  const shared: Pick<Pool, 'getConnection' | 'end'> = {
    getConnection: (done) =>
      take(pool, (error, connection) => done(error as NodeJS.ErrnoException | null, connection as PoolConnection)),
    end: (done) => done?.(null, undefined),
  };
  const source = new DataSource({
    type: 'mysql',
    driver: { createPool: () => shared },
    database,
    entities: tables.map((table) => new EntitySchema(table)),
    migrations: [...migrations],
    migrationsTableName: 'migrations',
    logger: new Silent(),
    ...(timeoutMs === undefined ? {} : { maxQueryExecutionTime: timeoutMs, enableQueryTimeout: true }),
  });
  return source.initialize();
}
