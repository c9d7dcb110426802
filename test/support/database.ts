import { after, before } from 'node:test';
import { type Database, openDatabase } from '../../src/gateway/store/database.ts';
import type { Worker } from '../../src/kit/worker.ts';
import { keptDatabase } from './kept-databases.ts';

interface Options {
  readonly environment?: 'sandbox' | 'live';
  readonly poolSize?: number;
}

/** Opens a migrated database of a test's own. `openAsGateway` opens it with the rights that a gateway has. */
export async function openTestDatabase({ environment = 'sandbox', poolSize = 4 }: Options = {}) {
  const { url, drop, grantGateway } = await keptDatabase('gateway');
  const opened: Database[] = [];
  const open = async (from: string) => {
    const database = await openDatabase({ url: from, environment, poolSize });
    opened.push(database);
    return database;
  };
  const database = await open(url);
  const close = async () => {
    for (const one of opened) await one.close();
    await drop();
  };
  return { database, url, close, openAsGateway: async () => open(await grantGateway()) };
}

/** Opens such a database before the tests of a suite, which `use` makes ready, and closes it after them. */
export function withDatabase(use: (database: Database, url: string) => unknown, options?: Options): void {
  let opened: Awaited<ReturnType<typeof openTestDatabase>> | undefined;
  before(async () => {
    opened = await openTestDatabase(options);
    await use(opened.database, opened.url);
  });
  after(() => opened?.close());
}

/** Starts a worker as a gateway does. The function that it returns stops the worker and waits for its end. */
export function startWorker(worker: Pick<Worker, 'run'>): () => Promise<void> {
  const stopping = new AbortController();
  const running = worker.run(stopping.signal);
  return async () => {
    stopping.abort();
    await running;
  };
}

/** Does something while a worker runs. */
export async function whileRunning<T>(worker: Pick<Worker, 'run'>, work: () => Promise<T>): Promise<T> {
  const stop = startWorker(worker);
  try {
    return await work();
  } finally {
    await stop();
  }
}
