/**
 * Holds the tree against the style that CONTRIBUTING asks for, for `make check`. Each rule counts what breaks it, and
 * `tidy-bounds.json` has the most there may be. A count may only fall: whoever lowers it lowers its bound in the same commit.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastRelease, whyNotHere } from './release.ts';
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
    .map((path) => ({ path, file: join(root, path) }))
    .filter(({ file }) => existsSync(file)) // Git lists a file until it knows that it is removed.
    .map(({ path, file }) => ({ path, text: readFileSync(file, 'utf8') }));
}

/** The subjects of the commits since the last release; none where the history does not reach back to it. */
async function subjectsSinceRelease(): Promise<string[]> {
  const release = lastRelease(root);
  if ((await whyNotHere(root, release)) !== undefined) return [];
  const range = `${release.commit}..HEAD`;
  const log = execFileSync('git', ['log', '--no-merges', '--format=%s', range], { cwd: root, encoding: 'utf8' });
  return log.split('\n').filter((subject) => subject !== '');
}

if (!existsSync(join(root, '.git'))) {
  process.stdout.write('tidy: skipped, there is no git history here\n');
  process.exit();
}
const bounds = JSON.parse(readFileSync(join(root, boundsFile), 'utf8')) as Record<string, number>;
const complaints = brokenRules(ownFiles(), await subjectsSinceRelease()).flatMap(({ rule, advice, places }) => {
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
