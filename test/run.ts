/**
 * Runs tests against servers of their own. Each argument is a kind of test (`unit`, `integration`, …: the word before
 * `.test.ts`), a folder of `test/`, or a file; kinds and folders together choose the files of these kinds in these
 * folders: `node --import tsx test/run.ts unit integration gateway/delivery`. What starts with a hyphen goes to Node's
 * test runner (`--test-name-pattern=…`). Nothing stays behind, however it ends.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join, relative } from 'node:path';
import { explain } from '../src/sandbox/advice.ts';
import { serverVersion } from '../src/sandbox/databases.ts';
import { sharedKeeper } from '../src/sandbox/keeper.ts';
import { progressLines } from '../src/sandbox/progress.ts';
import { startMariaDb, startNats } from '../src/sandbox/servers.ts';
import { temporaryFolder } from './support/folders.ts';
import { filesInPart } from './support/part.ts';
import { slownessNow } from './support/patience.ts';
import { compareStatements } from './support/scale/registry.ts';
import { type SharedProcesses, shareProcesses } from './support/shared-processes.ts';
import { chosenFiles, kindOf, type TestKind } from './support/test-files.ts';

/** Where what was promised is compared with what is. */
const checkers = ['fault/checker', 'fault/money', 'fault/withdrawals', 'ledger'].map((name) => `support/${name}.ts`);

/** A machine is busy when things take so many times longer than on a quiet one. */
const busyFrom = 2;
/** A test may take so many times longer than on a quiet machine: what keeps it busy may come in the middle of a run. */
const maxTimesLonger = 3;

const keeper = sharedKeeper({ output: 'inherit' });
const progress = progressLines((text) => process.stderr.write(text));
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.on(signal, () => void finish(code));
}
main().then(finish, (error: unknown) => {
  process.stderr.write(`${explain(error)}\n`);
  return finish(1);
});

async function main(): Promise<number> {
  const options = process.argv.slice(2).filter((argument) => argument.startsWith('-'));
  const names = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
  const files = filesInPart(chosenFiles(names));
  if (files.length === 0) throw new Error(`There are no tests in: ${names.join(', ') || 'nothing was named'}`);
  const folder = temporaryFolder();
  keeper.removeAtEnd(folder);
  const [mariadb, nats] = await progress.step(
    'MariaDB and NATS for the tests',
    Promise.all([
      startMariaDb({ dataDir: join(folder, 'mariadb'), disposable: true, progress }),
      startNats({ dataDir: join(folder, 'nats'), disposable: true, progress }),
    ]),
  );
  progress.note(`The database server is ${await serverVersion(mariadb.url)}.`);
  const report = join(folder, 'report.tap');
  const sent = join(folder, 'statements');
  const servers = {
    MARINA_TEST_DATABASE_URL: mariadb.url,
    MARINA_TEST_NATS_URL: nats.url,
    MARINA_TEST_STATEMENTS: sent,
  };
  const kinds = new Set(files.map(kindOf));
  const has = (...some: readonly TestKind[]) => some.some((kind) => kinds.has(kind));
  const usualMs = has('scale', 'cluster')
    ? 3_600_000
    : has('hostile')
      ? 900_000
      : has('fault', 'fix', 'interop')
        ? // Some have hundreds of moments: an hour, and longer beside others.
          2_400_000
        : 120_000;
  // The random run over FIX takes as long as it is asked to, and the model of the whole runs as many sequences.
  const askedMs = 1_000 * Number(process.env.FIX_SECONDS ?? 0) + 2_000 * Number(process.env.MODEL_SEQUENCES ?? 0);
  const longestMs = usualMs + askedMs;
  // All files of a process count as one test.
  const filesAtMost = has('unit', 'integration', 'e2e') ? 10 : 1;
  // Half of the time a test waits, for a server or for what it crashed. A busy machine gets no more work than it can do.
  const isBusy = (await slownessNow()) > busyFrom;
  const atOnce = isBusy ? availableParallelism() : Math.min(8, 2 * availableParallelism());
  if (isBusy) process.stderr.write(`This machine is busy: ${atOnce} files at once, and more time for each test.\n`);
  const run = async (some: readonly string[], concurrency: number) => {
    const tests = await keeper.start({
      name: 'tests',
      command: process.execPath,
      args: [
        ...[
          'tsx',
          ...['quick-ok.ts', 'restored-mocks.ts', 'record-statements.ts'].map((file) =>
            join(import.meta.dirname, 'support', file),
          ),
        ].flatMap((module) => ['--import', module]),
        '--test',
        `--test-concurrency=${concurrency}`,
        `--test-timeout=${maxTimesLonger * longestMs * filesAtMost}`,
        ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
        ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
        ...options,
        ...some,
      ],
      env: { ...process.env, ...servers },
      logPath: 'inherit',
    });
    const { code } = await tests.wait();
    return { code: code ?? 1, report: readFileSync(report, 'utf8') };
  };

  const compare = () => {
    const complaint = compareStatements(sent, names);
    if (complaint !== undefined) process.stderr.write(`\n${complaint}\n`);
    return complaint === undefined ? 0 : 1;
  };

  // The tests that measure a gateway's speed run when nothing else does.
  const measuring = files.filter((file) => kindOf(file) === 'hostile');
  const others = files.filter((file) => !measuring.includes(file));
  const first = { code: 0, report: '' };
  const shared = shareProcesses(others, join(folder, 'processes'));
  for (const some of [[...shared.keys()], measuring].filter(({ length }) => length > 0)) {
    const { code, report } = await run(some, atOnce);
    first.code ||= code;
    first.report += report;
  }
  if (first.code === 0) {
    if (testsRun(first.report) === 0) throw new Error('No test ran.');
    return compare();
  }
  const again = unsteadyFiles(first.report, files, shared);
  if (again.length === 0) return first.code;
  process.stderr.write(`\nFailed, and run once more by themselves: ${again.join(', ')}\n\n`);
  const second = await run(again, 1);
  if (second.code !== 0) return second.code;
  process.stderr.write(`\nUnsteady, passed the second time: ${again.join(', ')}\n`);
  return compare();
}

/**
 * The files that get a second chance after a run of many: those with real processes and real time that failed, when
 * they are few. There is none for a unit test, nor when anything failed in one of the checkers, which tell of a promise
 * broken to a partner: once is too often. A test that needed a second chance has a defect, and the end of the run says
 * so.
 */
function unsteadyFiles(report: string, files: readonly string[], shared: SharedProcesses): string[] {
  if (files.length < 3 || checkers.some((path) => report.includes(path))) return [];
  const failed = report.matchAll(/^ *not ok .*\n *---\n(?: .*\n)*? *location: '(.+?)(?::\d+:\d+)?'$/gm);
  const places = [...new Set([...failed].map(([, path]) => path as string))];
  // A process that ended is told by the file that loads its files.
  const paths = places.flatMap((path) => shared.get(path) ?? [relative(process.cwd(), path)]);
  const named = paths.filter((path) => files.includes(path));
  // A test that is written in `support` is known by the suite around it, if that is in the test file.
  const others = paths
    .filter((path) => !named.includes(path))
    .map((path) => filesWith(path, files))
    .filter((using) => !using.some((file) => named.includes(file)));
  const found = [...new Set([...named, ...others.flat()])];
  const mayFail = found.length > 0 && found.length <= 3 && found.every((path) => kindOf(path) !== 'unit');
  return mayFail && found.every((path) => files.includes(path)) ? found : [];
}

async function finish(code: number): Promise<never> {
  await keeper.close();
  process.exit(code);
}

/** The test files that use the tests written in a file. */
function filesWith(path: string, files: readonly string[]): string[] {
  const name = basename(path);
  return files.filter((file) => readFileSync(file, 'utf8').includes(`/${name}'`));
}

/** Tests that ran and were not skipped, by the runner's own count, which counts an empty file as a test. */
function testsRun(text: string): number {
  const count = (word: string) =>
    [...text.matchAll(new RegExp(`^# ${word} (\\d+)$`, 'gm'))].reduce((sum, [, each]) => sum + Number(each), 0);
  const emptyFiles = text.match(/^ok \d+ - .+\.test\.(?:ts|mjs)$/gm)?.length ?? 0;
  return count('tests') - count('skipped') - count('todo') - emptyFiles;
}
