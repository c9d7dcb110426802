/**
 * Runs tests against servers of their own: `node --import tsx test/run.ts unit integration e2e`, or single files. What
 * starts with a hyphen goes to Node's test runner (`--test-name-pattern=…`). Nothing stays behind, however it ends.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { explain } from '../src/dev/advice.ts';
import { sharedKeeper } from '../src/dev/keeper.ts';
import { progressLines } from '../src/dev/progress.ts';
import { startMariaDb, startNats } from '../src/dev/servers.ts';
import { temporaryFolder } from './support/folders.ts';

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
  const files = names.flatMap(testFiles);
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
  const report = join(folder, 'report.tap');
  // Tests that crash things mostly wait, and mind when the machine is short of time.
  const crashing = names.some((name) => name.includes('fault'));
  const atOnce = crashing ? Math.min(2, availableParallelism()) : availableParallelism();
  const tests = await keeper.start({
    name: 'tests',
    command: process.execPath,
    args: [
      ...['--import', 'tsx', '--test', `--test-concurrency=${atOnce}`],
      `--test-timeout=${crashing ? 300_000 : 120_000}`,
      ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
      ...['--test-reporter=tap', `--test-reporter-destination=${report}`],
      ...options,
      ...files,
    ],
    env: { ...process.env, MARINA_TEST_DATABASE_URL: mariadb.url, MARINA_TEST_NATS_URL: nats.url },
    logPath: 'inherit',
  });
  const { code } = await tests.wait();
  if (code === 0 && testsRun(report) === 0) throw new Error('No test ran.');
  return code ?? 1;
}

async function finish(code: number): Promise<never> {
  await keeper.close();
  process.exit(code);
}

/** The test files a name stands for: a folder of `test/`, or a file. */
function testFiles(name: string): string[] {
  const path = [name, join('test', name)].find((each) => statSync(each, { throwIfNoEntry: false }) !== undefined);
  if (path === undefined) throw new Error(`There is no ${name} in test/`);
  if (statSync(path).isFile()) return [path];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names
    .filter((each) => each.endsWith('.test.ts'))
    .map((each) => join(path, each))
    .sort();
}

/** Tests that ran and were not skipped, by the runner's own count, which counts an empty file as a test. */
function testsRun(report: string): number {
  const text = readFileSync(report, 'utf8');
  const count = (word: string) => Number(text.match(new RegExp(`^# ${word} (\\d+)$`, 'm'))?.[1] ?? 0);
  const emptyFiles = text.match(/^ok \d+ - .+\.test\.ts$/gm)?.length ?? 0;
  return count('tests') - count('skipped') - count('todo') - emptyFiles;
}
