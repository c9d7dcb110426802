import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database } from '../db/database.ts';
import { sql } from '../db/statement.ts';
import { version } from '../lib/version.ts';
import { pause } from '../lib/worker.ts';
import { type ArchivedFile, ArchiveError, readRows, syncFolder, writeRows, writeText } from './files.ts';
import { duePeriods, missingMonths, type Period } from './periods.ts';
import { type ArchivedRow, type Read, removals, rowsOf, sets } from './sets.ts';

const format = 'marina-archive-1';
const folderFile = 'archive.json';
const manifestFile = 'manifest.json';
const removedFile = 'removed';
/** The beginning of the name of a folder that is not complete. */
const unfinished = '.writing-';

/** Describes one period's files; written last, so a folder with it is complete. */
interface Manifest {
  readonly format: string;
  readonly environment: string;
  readonly period: string;
  /** The first instant of the period, and the first after it. */
  readonly from: string;
  readonly to: string;
  readonly writtenAt: string;
  /** The version of Marina that wrote it. */
  readonly writtenBy: string;
  readonly files: readonly ArchivedFile[];
}

export interface ArchiveOptions {
  readonly database: Database;
  readonly folder: string;
  /** Objects are archived so many months after the month of their last change. */
  readonly months: number;
  readonly print: (line: string) => void;
}

/**
 * Archives every period that is due and not archived yet, and then removes from the database what partners
 * cannot read and a verified file has. A crash at any moment leaves each row in the database or in a verified file; the next
 * run goes on.
 */
export async function archive({ database, folder, months, print }: ArchiveOptions): Promise<void> {
  await ownFolder(folder, database.environment);
  await archivedPeriods(folder);
  const read = resting(database);
  const [row] = await read(sql`SELECT NOW(3) AS now, MIN(created_at) AS first FROM partners`);
  const [now, first] = [row?.now as Date, row?.first as Date | null];
  if (first === null) return print('there are no partners: nothing to archive');
  for (const period of duePeriods(first, now, months)) {
    const path = join(folder, period.name);
    const manifest = (await readManifest(path)) ?? (await writePeriod(read, database.environment, folder, period));
    if ((await readdir(path)).includes(removedFile)) continue;
    const removed = await removeArchived(database, path, period, manifest);
    await writeText(join(path, removedFile), '');
    const counts = manifest.files.map(({ name, rows }) => `${rows} ${name}`).join(', ');
    print(`${period.name}: ${counts}; removed ${removed} steps and look-ups from the database`);
  }
  print('done');
}

/** Checks every file of an archive against its manifest. Throws at the first that is not what was written. */
export async function verify(folder: string, print: (line: string) => void): Promise<void> {
  if (!(await isOurs(folder))) throw new ArchiveError(`${folder} is not an archive: it has no ${folderFile}`);
  const names = await archivedPeriods(folder);
  for (const name of names) {
    const { files } = await verifyPeriod(join(folder, name));
    const rows = files.reduce((sum, file) => sum + file.rows, 0);
    print(`${name}: ${files.length} files, ${rows} rows`);
  }
  print(`${names.length} periods are as they were written`);
}

/** The finished periods. Throws if a month between them is gone: its steps are no longer in the database. */
async function archivedPeriods(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}-\d{2}(-\d{2})?$/.test(name)).sort();
  const missing = missingMonths(names);
  if (missing.length > 0) throw new ArchiveError(`${folder} lacks ${missing.join(', ')}: copy it back`);
  return names;
}

/** Makes the folder, or checks that it is an archive of this environment. */
async function ownFolder(folder: string, environment: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const found = await readdir(folder);
  for (const name of found.filter((name) => name.startsWith(unfinished))) {
    await rm(join(folder, name), { recursive: true });
  }
  if (found.every((name) => name.startsWith(unfinished))) {
    const path = join(folder, `${unfinished}${folderFile}`);
    await writeText(path, `${JSON.stringify({ format, environment })}\n`);
    await rename(path, join(folder, folderFile));
    return syncFolder(folder);
  }
  if (!(await isOurs(folder))) throw new ArchiveError(`${folder} is not empty and not an archive: name another folder`);
  const about = JSON.parse(await readFile(join(folder, folderFile), 'utf8')) as { environment?: string };
  if (about.environment !== environment) {
    throw new ArchiveError(`${folder} is an archive of the ${about.environment} environment, not of ${environment}`);
  }
}

async function isOurs(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, folderFile), 'utf8').catch(() => '{}');
  return text.includes(`"${format}"`);
}

/** Writes a period's files in a folder of their own, reads them back, and only then gives their folder its name. */
async function writePeriod(read: Read, environment: string, folder: string, period: Period): Promise<Manifest> {
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
  await syncFolder(path);
  const verified = await verifyPeriod(path);
  await rename(path, join(folder, period.name));
  await syncFolder(folder);
  return verified;
}

async function verifyPeriod(path: string): Promise<Manifest> {
  const manifest = await readManifest(path);
  if (manifest === undefined) throw new ArchiveError(`${path} has no ${manifestFile}`);
  for (const file of manifest.files) await readRows(join(path, file.name), file);
  return manifest;
}

/** A finished period's manifest; undefined if the period is not archived. */
async function readManifest(path: string): Promise<Manifest | undefined> {
  let text: string;
  try {
    text = await readFile(join(path, manifestFile), 'utf8');
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return undefined;
    throw error;
  }
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== format) throw new ArchiveError(`${path} is of another format: ${manifest.format}`);
  return manifest;
}

const mostRemoved = 200;

/** Removes what may leave the database, by the archived rows themselves. Answers how many rows it removed. */
async function removeArchived(database: Database, path: string, { unit }: Period, manifest: Manifest): Promise<number> {
  // All of it is read before the first row goes.
  await verifyPeriod(path);
  let removed = 0;
  for (const set of sets[unit].filter(({ attached }) => attached.some(({ remove }) => remove !== undefined))) {
    const file = manifest.files.find(({ name }) => name === `${set.name}.ndjson.gz`);
    if (file === undefined) continue; // A version that did not know the set wrote it.
    await readRows(join(path, file.name), file, async (page) => {
      for (let at = 0; at < page.length; at += mostRemoved) {
        for (const change of removals(set, page.slice(at, at + mostRemoved) as ArchivedRow[])) {
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
