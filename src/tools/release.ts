import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** A version that was released, and the commit whose tree it is. */
export interface Release {
  readonly version: string;
  readonly commit: string;
}

/** Names the last release in one line: its version and commit. */
const releaseFile = 'src/tools/last-release.txt';

/** The last release. Replicas of it run together with replicas of this tree. */
export function lastRelease(root: string): Release {
  const text = readFileSync(join(root, releaseFile), 'utf8');
  const [, version, commit] = /^(\d+\.\d+\.\d+) ([0-9a-f]{40})\n$/.exec(text) ?? [];
  if (version === undefined || commit === undefined)
    throw new Error(`${releaseFile} is not one line: version and commit`);
  return { version, commit };
}

/**
 * Why nothing can be compared with a release: the history that is here does not reach back to it. Undefined when it does.
 * Throws when the whole history is here and does not have the release, because then the file is wrong.
 */
export async function whyNotHere(root: string, { version, commit }: Release): Promise<string | undefined> {
  if (await fails(root, 'rev-parse', '--git-dir')) return 'there is no git history here';
  if (!(await fails(root, 'merge-base', '--is-ancestor', commit, 'HEAD'))) return undefined;
  const { stdout } = await execute('git', ['rev-parse', '--is-shallow-repository'], { cwd: root });
  if (stdout.trim() === 'true') {
    return `the history here is cut off (shallow clone) after release ${version}; git fetch --unshallow completes it`;
  }
  throw new Error(`${releaseFile} names ${commit}, which is not in the history of this branch`);
}

/** Writes files of a release into a folder: all of them, or those below some paths. */
export async function extractRelease(
  root: string,
  { commit }: Release,
  folder: string,
  paths: readonly string[] = [],
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const archive = join(folder, '.release.tar');
  await execute('git', ['archive', `--output=${archive}`, commit, ...paths], { cwd: root });
  await execute('tar', ['-xf', archive, '-C', folder]);
  rmSync(archive);
}

async function fails(root: string, ...args: string[]): Promise<boolean> {
  return execute('git', args, { cwd: root }).then(
    () => false,
    () => true,
  );
}
