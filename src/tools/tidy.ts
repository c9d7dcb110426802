/**
 * Holds the tree against the style that CONTRIBUTING asks for, for `make check`. Each rule counts what breaks it, and
 * `tidy-bounds.json` has the most there may be. A count may only fall: whoever lowers it lowers its bound in the same commit.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brokenRules, type SourceText } from './tidy-rules.ts';

const root = join(import.meta.dirname, '../..');
const boundsFile = 'src/tools/tidy-bounds.json';

/** The files that people wrote: what git has or would add, without what is generated. */
function ownFiles(): SourceText[] {
  const listed = execFileSync(
    'git',
    ['ls-files', '-co', '--exclude-standard', '-z', 'src', 'test', 'docs', 'clients'],
    {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  return listed
    .split('\0')
    .filter((path) => /\.(ts|mts|md)$/.test(path))
    .flatMap((path) => {
      try {
        return [{ path, text: readFileSync(join(root, path), 'utf8') }];
      } catch {
        return []; // It is removed, and git does not know yet.
      }
    });
}

/** The subjects of the commits since the last release; none where the history does not reach back to it. */
function subjectsSinceRelease(): string[] {
  const [, commit = ''] = readFileSync(join(root, 'src/tools/last-release.txt'), 'utf8').trim().split(' ');
  try {
    const log = execFileSync('git', ['log', '--no-merges', '--format=%s', `${commit}..HEAD`], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return log.split('\n').filter((subject) => subject !== '');
  } catch {
    return [];
  }
}

if (!existsSync(join(root, '.git'))) {
  process.stdout.write('tidy: skipped, there is no git history here\n');
  process.exit();
}
const bounds = JSON.parse(readFileSync(join(root, boundsFile), 'utf8')) as Record<string, number>;
const complaints = brokenRules(ownFiles(), subjectsSinceRelease()).flatMap(({ rule, advice, places }) => {
  const bound = bounds[rule] ?? 0;
  if (places.length === bound) return [];
  if (places.length < bound)
    return [`${rule}: ${places.length}, fewer than ${bound}. Lower the bound in ${boundsFile}.`];
  return [[`${rule}: ${places.length}, and at most ${bound} may be. ${advice}`, ...places.slice(-10)].join('\n  ')];
});
if (complaints.length > 0) {
  process.stderr.write(`${complaints.join('\n')}\n`);
  process.exitCode = 1;
}
