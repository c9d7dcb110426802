import { link, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type ArchivedFile, ArchiveError, readRows, sync, writeText } from './files.ts';
import { missingMonths } from './periods.ts';

export const format = 'marina-archive-1';
const folderFile = 'archive.json';
export const manifestFile = 'manifest.json';
/** Marks a period of which nothing is left to be removed from the database. */
export const removedFile = 'removed';
/** The beginning of the name of a folder that is not complete. */
export const unfinished = '.writing-';

/** Describes one period's files; written last, so a folder with it is complete. */
export interface Manifest {
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

/** Whose archive a folder is. */
interface Owner {
  readonly environment: string;
  /** The database's name for itself. */
  readonly database: string;
}

/** Makes the folder, or checks that it is the archive of this database. */
export async function ownFolder(folder: string, owner: Owner): Promise<void> {
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (made !== undefined) await syncAbove(resolve(folder), resolve(made));
  const found = await readdir(folder);
  if (found.every((name) => name.startsWith(unfinished))) await begin(folder, owner);
  const about = await readOwner(folder);
  if (about === undefined) throw new ArchiveError(`${folder} is not empty and not an archive: name another folder`);
  if (about.environment !== owner.environment) {
    throw new ArchiveError(
      `${folder} is an archive of the ${about.environment} environment, not of ${owner.environment}`,
    );
  }
  if (about.database !== owner.database) throw new ArchiveError(`${folder} is the archive of another database`);
  for (const name of found.filter((name) => name.startsWith(unfinished))) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** Has the disk keep the names of new folders, one in the other. */
async function syncAbove(folder: string, first: string): Promise<void> {
  for (let path = folder; ; path = dirname(path)) {
    await sync(dirname(path));
    if (path === first) return;
  }
}

/** Writes whose archive an empty folder is, unless it has just become another database's. */
async function begin(folder: string, owner: Owner): Promise<void> {
  const path = join(folder, `${unfinished}${owner.database}`);
  await rm(path, { force: true });
  await writeText(path, `${JSON.stringify({ format, ...owner })}\n`);
  const target = join(folder, folderFile);
  await link(path, target).catch(async (error: { code?: string }) => {
    // Some file systems have no links.
    if (error.code !== 'EEXIST') await rename(path, target);
  });
  await rm(path, { force: true });
  await sync(folder);
}

/** Whose archive it is; undefined if it is none. */
async function readOwner(folder: string): Promise<Partial<Owner> | undefined> {
  const text = await readText(join(folder, folderFile));
  return text?.includes(`"${format}"`) ? (JSON.parse(text) as Partial<Owner>) : undefined;
}

/** Checks every file of an archive against its manifest. Throws at the first that is not what was written. */
export async function verify(folder: string, print: (line: string) => void): Promise<void> {
  if ((await readOwner(folder)) === undefined) {
    throw new ArchiveError(`${folder} is not an archive: it has no ${folderFile}`);
  }
  const names = await archivedPeriods(folder);
  const missing = missingMonths(names);
  if (missing.length > 0) throw lacks(folder, missing);
  for (const name of names) {
    const { files } = await verifyPeriod(join(folder, name));
    const rows = files.reduce((sum, file) => sum + file.rows, 0);
    print(`${name}: ${files.length} files, ${rows} rows`);
  }
  print(`${names.length} periods are as they were written`);
}

export function lacks(folder: string, months: readonly string[]): ArchiveError {
  return new ArchiveError(`${folder} lacks ${months.join(', ')}: copy it back`);
}

/** The finished periods. */
export async function archivedPeriods(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => /^\d{4}-\d{2}(-\d{2})?$/.test(name)).sort();
}

export async function verifyPeriod(path: string): Promise<Manifest> {
  const manifest = await readManifest(path);
  if (manifest === undefined) throw new ArchiveError(`${path} has no ${manifestFile}`);
  for (const file of manifest.files) await readRows(join(path, file.name), file);
  return manifest;
}

/** A finished period's manifest; undefined if the period is not archived. */
export async function readManifest(path: string): Promise<Manifest | undefined> {
  const text = await readText(join(path, manifestFile));
  if (text === undefined) return undefined;
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== format) throw new ArchiveError(`${path} is of another format: ${manifest.format}`);
  return manifest;
}

/** A small file's text; undefined if there is no such file. */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Has the disk keep a whole period, also if the run before this one died or a copy was put in its place. */
export async function syncPeriod(folder: string, path: string, { files }: Manifest): Promise<void> {
  for (const name of [...files.map((file) => file.name), manifestFile]) await sync(join(path, name));
  await sync(path);
  await sync(folder);
}
