import { closeSync, existsSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { eventually } from './eventually.ts';
import { temporaryFolder } from './folders.ts';

/** A file system of its own with little room. */
export interface SmallDisk {
  readonly path: string;
  /** Takes all the room that is left. */
  fill(): void;
  /** Gives back what `fill` took. */
  free(): void;
  /** Unmounts it; what uses it must have ended. */
  remove(): Promise<void>;
}

/** Mounts one in memory. Undefined where this process may not mount. It is unmounted however this process ends. */
export async function mountSmallDisk(sizeMiB: number): Promise<SmallDisk | undefined> {
  const folder = temporaryFolder();
  const path = join(folder, 'disk');
  // Its process unmounts it when it is stopped: the keeper stops the newest first, so after what was started later.
  const mounting = await sharedKeeper().start({
    name: 'a small disk',
    command: '/bin/sh',
    args: [
      '-c',
      `mkdir "$0" && mount -t tmpfs -o size=${sizeMiB}m tmpfs "$0" && trap 'umount -l "$0"; rm -r "$1"; exit' TERM &&
        touch "$0/mounted" && while :; do sleep 1; done`,
      path,
      folder,
    ],
    logPath: join(folder, 'mount.log'),
  });
  let hasFailed = false;
  void mounting.exited.then(() => {
    hasFailed = true;
  });
  await eventually(() => {
    if (!hasFailed && !existsSync(join(path, 'mounted'))) throw new Error('the small disk is not mounted');
  });
  if (hasFailed) {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const filler = join(path, 'filler');
  return {
    path,
    fill: () => fillUp(filler),
    free: () => rmSync(filler, { force: true }),
    remove: async () => {
      await mounting.stop();
    },
  };
}

/** Writes until nothing more fits, to the last byte. */
function fillUp(filler: string): void {
  const file = openSync(filler, 'a');
  const bytes = Buffer.alloc(1024 * 1024);
  try {
    for (;;) writeSync(file, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
  const { bavail } = statfsSync(filler);
  if (bavail > 0) throw new Error(`${bavail} blocks are still free`);
}
