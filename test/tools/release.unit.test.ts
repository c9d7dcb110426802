import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import ts from 'typescript';
import { extractRelease, lastRelease, whyNotHere } from '../../src/tools/release.ts';

const root = join(import.meta.dirname, '../..');
const skip = (await whyNotHere(root, lastRelease(root))) ?? false;

describe('the last release', () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-release-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('is in CHANGELOG.md with its date', { skip }, () => {
    const { version, commit } = lastRelease(root);
    const date = execFileSync('git', ['log', '-1', '--format=%ad', '--date=short', commit], {
      cwd: root,
      encoding: 'utf8',
    });
    const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split('\n');
    assert.ok(changelog.includes(`## ${version} (${date.trim()})`), `it has the heading of ${version}, ${date}`);
  });

  it('has no migration that was changed, removed or moved since', { skip }, async () => {
    await extractRelease(root, lastRelease(root), folder, ['migrations']);
    const files = readdirSync(join(folder, 'migrations'), { recursive: true, encoding: 'utf8' });
    const released = files.filter((file) => file.endsWith('.ts') && !file.endsWith('index.ts'));
    assert.ok(released.length > 0, 'the release has migrations');
    for (const file of released) {
      const now = readFileSync(join(root, 'migrations', file), 'utf8');
      const then = readFileSync(join(folder, 'migrations', file), 'utf8');
      assert.equal(
        codeOf(now),
        codeOf(then),
        `migrations/${file} was released: add a migration, do not change this one`,
      );
    }
    for (const index of files.filter((file) => file.endsWith('index.ts'))) {
      const order = (of: string) => [
        ...codeOf(readFileSync(join(of, 'migrations', index), 'utf8')).matchAll(/'(.+)'/g),
      ];
      const [before, now] = [order(folder), order(root)].map((found) => found.map(([, file]) => file));
      assert.deepEqual(
        now?.slice(0, before?.length),
        before,
        `${index}: new migrations come after those of the release`,
      );
    }
  });
});

/** A comment may say it better; what a migration does may not change. */
function codeOf(text: string): string {
  return ts.transpileModule(text, { compilerOptions: { removeComments: true, target: ts.ScriptTarget.ESNext } })
    .outputText;
}

describe('make check, which compares the protos with the last release', () => {
  const folder = mkdtempSync(join(tmpdir(), 'marina-release-'));
  const repository = join(folder, 'repository');
  after(() => rmSync(folder, { recursive: true, force: true }));

  const git = (cwd: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args], {
      cwd,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim();
  const compare = (cwd: string) => {
    const script = join(root, 'src/tools/breaking.ts');
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', import.meta.resolve('tsx'), script], {
      cwd,
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  };
  const writeProto = (...fields: string[]) =>
    writeFileSync(
      join(repository, 'proto/marina/test/v1/test.proto'),
      `syntax = "proto3";\npackage marina.test.v1;\nmessage Test {\n${fields.join('\n')}\n}\n`,
    );
  const releaseFile = 'src/tools/last-release.txt';
  const [first, second, third] = ['string first = 1;', 'string second = 2;', 'string third = 3;'];

  before(() => {
    mkdirSync(join(repository, 'proto/marina/test/v1'), { recursive: true });
    mkdirSync(join(repository, 'src/tools'), { recursive: true });
    git(repository, 'init', '-q');
    writeFileSync(join(repository, 'buf.yaml'), 'version: v2\nmodules:\n  - path: proto\n');
    writeProto(first, second);
    git(repository, 'add', '.');
    git(repository, 'commit', '-qm', 'the release');
    writeFileSync(join(repository, releaseFile), `0.1.0 ${git(repository, 'rev-parse', 'HEAD')}\n`);
    git(repository, 'add', '.');
    git(repository, 'commit', '-qm', 'names the release');
  });

  it('passes when something was added', () => {
    writeProto(first, second, third);
    assert.deepEqual(compare(repository), { status: 0, output: '' });
  });

  it('fails, and names it, when a field of the release is gone', () => {
    writeProto(first);
    const { status, output } = compare(repository);
    assert.notEqual(status, 0);
    assert.match(output, /field "2" with name "second"/);
    assert.match(output, /break clients of release 0\.1\.0/);
  });

  it('says so, and passes, when the history is cut off after the release', () => {
    const clone = join(folder, 'shallow');
    git(folder, 'clone', '-q', '--depth', '1', `file://${repository}`, clone);
    const { status, output } = compare(clone);
    assert.match(
      output,
      /^buf breaking: skipped, the history here is cut off \(shallow clone\) after release 0\.1\.0;/,
    );
    assert.equal(status, 0);
  });

  it('says so, and passes, when there is no history', () => {
    const copy = join(folder, 'copy');
    mkdirSync(join(copy, 'src/tools'), { recursive: true });
    writeFileSync(join(copy, releaseFile), readFileSync(join(repository, releaseFile)));
    const { status, output } = compare(copy);
    assert.match(output, /^buf breaking: skipped, there is no git history here/);
    assert.equal(status, 0);
  });

  it('fails when the named release is no commit of the history', () => {
    writeFileSync(join(repository, releaseFile), `0.1.0 ${'1'.repeat(40)}\n`);
    const { status, output } = compare(repository);
    assert.notEqual(status, 0);
    assert.match(output, /src\/tools\/last-release\.txt names 1{40}, which is not in the history/);
  });
});
