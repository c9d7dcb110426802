import { accessSync, constants, mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder for what a test run throws away: in memory where there is room, since nothing in it must last. */
export function temporaryFolder(): string {
  return mkdtempSync(join(hasRoom('/dev/shm') ? '/dev/shm' : tmpdir(), 'marina-test-'));
}

function hasRoom(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize > 2 ** 31;
  } catch {
    return false;
  }
}
