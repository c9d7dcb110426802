import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { UsageError } from './settings.ts';

/** How far a run got. */
export interface Progress {
  /** Where in the feed to go on; absent: at its beginning. */
  readonly cursor: string | undefined;
  /** The version of the last event that was posted, which may be behind the cursor. */
  readonly version: string;
}

/** Reads the progress that an earlier run wrote; undefined if there was none. */
export function readProgress(path: string): Progress | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const { cursor, version } = parsed(text, path);
  const isRead =
    (cursor === undefined || typeof cursor === 'string') && typeof version === 'string' && /^\d{1,19}$/.test(version);
  if (!isRead) throw unreadable(path);
  return { cursor, version };
}

/** Writes it, whole or not at all. */
export function writeProgress(path: string, progress: Progress): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const next = `${path}.${process.pid}`;
  writeFileSync(next, `${JSON.stringify(progress)}\n`, { mode: 0o600 });
  renameSync(next, path);
}

function parsed(text: string, path: string): { cursor?: unknown; version?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Reported below: what is in the file is not what a run writes.
  }
  throw unreadable(path);
}

function unreadable(path: string): UsageError {
  return new UsageError(`${path} is not what an earlier run wrote. Remove it, or say where to begin with --from.`);
}
