import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, rmSync, symlinkSync, utimesSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { copyContext } from '../support/dockerfile.ts';
import { temporaryFolder } from '../support/folders.ts';

const run = promisify(execFile);
/** Older versions of npm, as in Debian 13, write no bill of materials. */
const writesBills = Number.parseInt((await run('npm', ['--version'])).stdout, 10) >= 10;

describe('make build, on what a container engine is given of the project', () => {
  const folder = temporaryFolder();
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs make on what was given, with the packages that are installed here. */
  async function make(...args: string[]): Promise<string> {
    const { MAKEFLAGS: _flags, MAKELEVEL: _level, ...env } = process.env;
    const { stdout } = await run('make', ['-o', 'node_modules/.package-lock.json', ...args], { cwd: folder, env });
    return stdout;
  }

  const wouldBuild = async () => (await make('-n', 'build')).includes('rm -rf dist');

  it('makes all of dist/', async () => {
    copyContext(folder);
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    await make('build');
    for (const file of [
      'package.json',
      'docs/deploy/rights.sql',
      'docs/deploy/archive-rights.sql',
      ...(writesBills ? ['sbom.cdx.json'] : []),
      'src/main.js',
      'src/decoder/checker-process.js',
      'src/decoder/walls.pl',
      'src/site/guides',
    ]) {
      assert.ok(existsSync(join(folder, 'dist', file)), file);
    }
    assert.equal(await wouldBuild(), false);
  });

  it('makes dist/ again when a proto has changed, and when a file is gone', async () => {
    const later = new Date(Date.now() + 1_000);
    const proto = join(folder, 'proto/marina/gateway/v1/orders.proto');
    utimesSync(proto, later, later);
    assert.equal(await wouldBuild(), true);
    utimesSync(proto, new Date(0), new Date(0));
    assert.equal(await wouldBuild(), false);
    rmSync(join(folder, 'src/site/guides/start.md'));
    assert.equal(await wouldBuild(), true);
  });
});
