import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { inPart } from '../part.ts';
import { patient } from '../patience.ts';
import { testServers } from '../servers.ts';

/** A bug put into a copy of the code, and the tests that must fail of it. */
export interface SeededBug {
  readonly name: string;
  readonly file: string;
  /** Replaced once; a bug whose place is gone fails, so that the list stays true. */
  readonly find: string;
  readonly replace: string;
  readonly test: string;
  readonly pattern: string;
}

/** Puts each bug into a copy of the code, and sees its test fail. */
export function describeBugs(name: string, all: readonly SeededBug[]): void {
  const bugs = inPart(all);
  describe(name, () => {
    const root = join(import.meta.dirname, '../../..');
    let copy: string;
    before(async () => {
      await testServers();
      copy = mkdtempSync(join(tmpdir(), 'marina-bugs-'));
      for (const name of ['docs', 'migrations', 'test', 'package.json', 'tsconfig.json']) {
        cpSync(join(root, name), join(copy, name), { recursive: true });
      }
      symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    });
    after(() => rmSync(copy, { recursive: true, force: true }));

    function copySource(): void {
      rmSync(join(copy, 'src'), { recursive: true, force: true });
      mkdirSync(join(copy, 'src'));
      cpSync(join(root, 'src'), join(copy, 'src'), { recursive: true });
    }

    for (const test of new Set(bugs.map((bug) => bug.test))) {
      it(`nothing in a copy without a bug: ${test}`, async () => {
        copySource();
        const patterns = bugs.filter((bug) => bug.test === test).map(({ pattern }) => pattern);
        const { code, output } = await runTest(copy, test, patterns);
        assert.equal(code, 0, output);
        for (const pattern of patterns) {
          const passed = new RegExp(`^ *ok \\d+ - (?!.*# SKIP).*${pattern}`, 'm');
          assert.match(output, passed, `no test of ${test} is named "${pattern}"`);
        }
      });
    }

    for (const bug of bugs) {
      it(`when ${bug.name}`, async () => {
        copySource();
        const path = join(copy, bug.file);
        const text = readFileSync(path, 'utf8');
        assert.equal(text.split(bug.find).length, 2, `the place of the bug stands once in ${bug.file}`);
        writeFileSync(
          path,
          text.replace(bug.find, () => bug.replace),
        );
        const { code, output } = await runTest(copy, bug.test, [bug.pattern]);
        assert.notEqual(code, 0, `no test failed:\n${output}`);
        // It must be the named test that failed, by itself, not because the copy does not start.
        assert.match(output, new RegExp(`^ +not ok \\d+ - .*${bug.pattern}`, 'm'), output);
        assert.match(output, /failureType: 'testCodeFailure'/, output);
      });
    }
  });
}

/** Runs the tests a bug must fail, in the copy. */
async function runTest(
  folder: string,
  test: string,
  patterns: readonly string[],
): Promise<{ code: number | null; output: string }> {
  const servers = await testServers();
  const child = spawn(
    process.execPath,
    [
      ...['--import', 'tsx', '--test', '--test-reporter=tap'],
      ...patterns.map((pattern) => `--test-name-pattern=${pattern}`),
      test,
    ],
    {
      cwd: folder,
      env: {
        ...process.env,
        NODE_TEST_CONTEXT: undefined,
        // The bug is in the source.
        MARINA_TEST_BUILD: undefined,
        MARINA_TEST_DATABASE_URL: servers.databaseUrl,
        MARINA_TEST_NATS_URL: servers.natsUrl,
        // A test that never comes to rest is seen soon enough.
        MARINA_TEST_BOUND_MS: '6000',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: patient(120_000),
    },
  );
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}
