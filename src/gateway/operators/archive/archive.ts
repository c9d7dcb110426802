import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { Refusal } from '../../../kit/refusal.ts';
import { version } from '../../../kit/version.ts';
import { pause } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { underServerLock } from '../../store/server-lock.ts';
import { sql } from '../../store/statement.ts';
import { type ArchivedFile, ArchiveError, readRows, sync, writeRows, writeText } from './files.ts';
import {
  archivedPeriods,
  format,
  lacks,
  type Manifest,
  manifestFile,
  ownFolder,
  readManifest,
  removedFile,
  syncPeriod,
  unfinished,
  verifyPeriod,
} from './folder.ts';
import { type ArchivePeriod, duePeriods } from './periods.ts';
import { type ArchivedRow, findWaiting, type Read, removals, rowsOf, sets } from './sets.ts';
import { ArchiveState } from './state.ts';

interface ArchiveOptions {
  readonly database: Database;
  readonly folder: string;
  /** Objects are archived so many months after the month of their last change. */
  readonly months: number;
  /** Whether months whose files are lost are written again with what the database still has of them. */
  readonly acceptLost?: boolean | undefined;
  readonly print: (line: string) => void;
}

/** How long a run waits for another one, which may just have been killed. */
const lockWaitSeconds = 3;

/**
 * Archives every period that is due and not archived yet, and then removes from the database what partners
 * cannot read and a verified file has. A crash at any moment leaves each row in the database or in a verified file; the next
 * run goes on. Only one run at a time works on a database.
 */
export async function archive(options: ArchiveOptions): Promise<void> {
  const { database, print } = options;
  const done = await underServerLock(database, 'archive', lockWaitSeconds, async (isHeld) => {
    await archiveAlone(options, async () => {
      if (!(await isHeld()))
        throw new ArchiveError('the connection that keeps other runs out was lost: start it again');
    });
    return true;
  });
  if (done === undefined) throw new ArchiveError('another run archives this database: nothing was done');
  print('done');
}

/** What a run works with. */
interface Run {
  readonly database: Database;
  readonly read: Read;
  readonly folder: string;
  readonly state: ArchiveState;
  /** Throws if another run may have begun. */
  readonly checkAlone: () => Promise<void>;
  readonly print: (line: string) => void;
}

/** Archives each period that it can: one that fails does not stop the others. Throws at the end what failed. */
async function archiveAlone(
  { database, folder, months, acceptLost, print }: ArchiveOptions,
  checkAlone: () => Promise<void>,
): Promise<void> {
  const state = await ArchiveState.read(database);
  await ownFolder(folder, { environment: database.environment, database: state.databaseName });
  const archived = await archivedPeriods(folder);
  const lost = [...state.months].filter((month) => !archived.includes(month)).sort();
  if (lost.length > 0 && acceptLost) {
    await state.forget(lost);
    print(`${lost.join(', ')}: lost, and written again without the steps that are no longer in the database`);
  }
  const isWhole = lost.length === 0 || acceptLost;
  const failures = isWhole ? [] : [lacks(folder, lost).message];
  const run: Run = { database, read: resting(database), folder, state, checkAlone, print };
  // All instants in the archived rows are business time, which a sandbox moves forward.
  const [row] = await run.read(sql`SELECT NOW(3) + INTERVAL clock_offset_ms * 1000 MICROSECOND AS now,
    (SELECT MIN(created_at) FROM partners) AS first FROM environment WHERE id = 1`);
  const [now, first] = [row?.now as Date, row?.first as Date | null];
  if (first === null) return print('there are no partners: nothing to archive');
  for (const period of duePeriods(first, now, months)) {
    // Days leave the database, months do not.
    if (period.unit === 'month' && !isWhole) continue;
    try {
      await archivePeriod(run, period);
    } catch (error) {
      failures.push(`${period.name}: ${messageOf(error)}`);
      // Without its lock or its database it can do nothing for the others.
      if (
        await checkAlone().then(
          () => false,
          () => true,
        )
      )
        break;
    }
  }
  if (failures.length > 0) throw new ArchiveError(failures.join('\n'));
}

/** An error of the database says why only in its cause. */
function messageOf(error: unknown): string {
  const { message, cause } = error as Error;
  return error instanceof Refusal && cause instanceof Error ? cause.message : message;
}

async function archivePeriod(run: Run, period: ArchivePeriod): Promise<void> {
  const { folder, state, print } = run;
  const path = join(folder, period.name);
  const manifest = (await readManifest(path)) ?? (await writePeriod(run, period));
  if ((await readdir(path)).includes(removedFile)) return;
  await syncPeriod(folder, path, manifest);
  await run.checkAlone();
  if (period.unit === 'month') await state.add(period.name);
  const removed = await removeArchived(run, path, period, manifest);
  await writeText(join(path, removedFile), '');
  const counts = manifest.files.map(({ name, rows }) => `${rows} ${name}`).join(', ');
  print(`${period.name}: ${counts}; removed ${removed} steps and look-ups from the database`);
}

/** Writes a period's files in a folder of their own, reads them back, and only then gives their folder its name. */
async function writePeriod({ database, read, folder, checkAlone }: Run, period: ArchivePeriod): Promise<Manifest> {
  const { environment } = database;
  if (period.unit === 'day' && !period.isUrgent && (await read(findWaiting(period.from, period.to))).length > 0) {
    throw new ArchiveError('deliveries of it still wait: a gateway must send them or let them expire first');
  }
  const path = join(folder, `${unfinished}${period.name}-${randomUUID().slice(0, 8)}`);
  await mkdir(path, { mode: 0o700 });
  const files: ArchivedFile[] = [];
  for (const set of sets[period.unit]) {
    const name = `${set.name}.ndjson.gz`;
    files.push(await writeRows(join(path, name), name, rowsOf(read, set, period.from, period.to)));
  }
  const [from, to] = [period.from.toISOString(), period.to.toISOString()];
  const written = { writtenAt: new Date().toISOString(), writtenBy: version };
  const manifest: Manifest = { format, environment, period: period.name, from, to, ...written, files };
  await writeText(join(path, manifestFile), `${JSON.stringify(manifest, null, 2)}\n`);
  await sync(path);
  const verified = await verifyPeriod(path);
  await checkAlone();
  await rename(path, join(folder, period.name));
  await sync(folder);
  return verified;
}

const maxRemoved = 200;

/** Removes what may leave the database, by the archived rows themselves. Answers how many rows it removed. */
async function removeArchived(
  { database }: Run,
  path: string,
  { unit }: ArchivePeriod,
  manifest: Manifest,
): Promise<number> {
  // All of it is read before the first row goes.
  await verifyPeriod(path);
  let removed = 0;
  for (const set of sets[unit].filter(({ attached }) => attached.some(({ remove }) => remove !== undefined))) {
    const file = manifest.files.find(({ name }) => name === `${set.name}.ndjson.gz`);
    if (file === undefined) continue; // A version that did not know the set wrote it.
    await readRows(join(path, file.name), file, async (page) => {
      for (let at = 0; at < page.length; at += maxRemoved) {
        for (const change of removals(set, page.slice(at, at + maxRemoved) as ArchivedRow[])) {
          removed += await rested(() => database.write(change));
        }
      }
    });
  }
  return removed;
}

function resting(database: Database): Read {
  return (query) => rested(async () => (await database.readAll([query]))[0] ?? []);
}

/** Rests as long as the work took: the archive never takes more than half of one connection's time. */
async function rested<T>(work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  await pause(performance.now() - startedAt, neverAborted);
  return result;
}

const neverAborted = new AbortController().signal;
