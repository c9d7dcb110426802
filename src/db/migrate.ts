import { connect, createDataSource } from './data-source.ts';

/** Brings a database's tables up to date. Safe to call again, and while an older version runs. */
export async function migrate(url: string): Promise<void> {
  const source = await connect(createDataSource(url, 1));
  try {
    await source.runMigrations({ transaction: 'none' });
  } finally {
    await source.destroy();
  }
}
