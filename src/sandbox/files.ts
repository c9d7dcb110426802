import { randomBytes } from 'node:crypto';
import { existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** Writes a file only its owner can read; readers find the old content or the new, never a half. */
export function writePrivately(path: string, content: string): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(draft, content, { mode: 0o600 });
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Renames a file that is larger than `maxBytes` to `….1`, in place of the one that was renamed before. */
export function setAsideIfLarge(path: string, maxBytes: number): void {
  if (existsSync(path) && statSync(path).size > maxBytes) renameSync(path, `${path}.1`);
}

/** A path as it is shown: short, where it is below the current folder. */
export function shownPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith('..') ? path : short;
}
