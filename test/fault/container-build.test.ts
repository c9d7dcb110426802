import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';

const root = join(import.meta.dirname, '../..');

/** Copies what the build of the container is given: what is let in, and then of it what is kept out after all. */
function copyContext(to: string): void {
  const lines = readFileSync(join(root, 'docs/deploy/Dockerfile.dockerignore'), 'utf8').trim().split('\n');
  assert.equal(lines.shift(), '*', 'everything is kept out but what is named');
  for (const line of lines) {
    if (!line.startsWith('!')) {
      rmSync(join(to, line), { recursive: true, force: true });
      continue;
    }
    for (const path of named(line.slice(1)))
      cpSync(join(root, path), join(to, path), { recursive: true, preserveTimestamps: true });
  }
}

/** The paths a pattern names; one with a star has it in the place of a file's whole name but for its end. */
function named(pattern: string): string[] {
  const [start, end] = basename(pattern).split('*');
  if (end === undefined) return [pattern];
  const folder = dirname(pattern);
  return readdirSync(join(root, folder))
    .filter((name) => name.startsWith(start ?? '') && name.endsWith(end))
    .map((name) => join(folder, name));
}

describe('the build of the container', () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-context-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('makes a gateway of what it is given', { timeout: 240_000 }, () => {
    copyContext(folder);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    execFileSync('make', ['build'], { cwd: folder, stdio: 'pipe' });
    const settings = execFileSync('node', ['src/main.js', 'config'], { cwd: join(folder, 'dist'), encoding: 'utf8' });
    assert.match(settings, /MARINA_BROKER_ADDRESS/);
    assert.ok(existsSync(join(folder, 'dist/docs/deploy/rights.sql')), 'what operators are told to use');
  });
});
