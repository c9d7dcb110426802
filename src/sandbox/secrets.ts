import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writePrivately } from './files.ts';

/** A secret of so many bytes in hex, made once and kept in a file only its owner can read. */
export function keptSecret(path: string, bytes: number): string {
  try {
    const kept = readFileSync(path, 'utf8').trim();
    if (kept.length === bytes * 2) return kept;
  } catch {
    // Made below.
  }
  const secret = randomBytes(bytes).toString('hex');
  writePrivately(path, `${secret}\n`);
  return secret;
}
