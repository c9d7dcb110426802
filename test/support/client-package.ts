import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { temporaryFolder } from './folders.ts';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
export const packageFolder = join(root, 'clients/typescript');
const tsc = join(root, 'node_modules/typescript/bin/tsc');

/** The client for TypeScript as npm packs it, in a folder of a partner's own, with what a program needs to be compiled. */
export async function installClient(): Promise<string> {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const source = join(folder, 'source');
  cpSync(packageFolder, source, { recursive: true, filter: (path) => !/\/(?:dist|node_modules)$/.test(path) });
  mkdirSync(join(folder, 'node_modules/@marina'), { recursive: true });
  for (const name of ['typescript', '@types', 'undici-types']) {
    const from = join(root, 'node_modules', name);
    if (existsSync(from)) symlinkSync(from, join(folder, 'node_modules', name));
  }
  const { scripts } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const build = scripts.build.replaceAll(/(^|&& )tsc /g, `$1${process.execPath} ${tsc} `);
  await execute('sh', ['-c', build], { cwd: source });
  const { stdout } = await execute('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: source,
  });
  const [{ filename, files }] = JSON.parse(stdout);
  const names = files.map(({ path }: { path: string }) => path);
  const needed = ['LICENSE', 'README.md', 'dist/index.js', 'dist/index.d.ts', 'dist/listen/main.js'];
  for (const name of [...needed, 'dist/cjs/index.js', 'dist/cjs/index.d.ts', 'dist/cjs/package.json']) {
    assert.ok(names.includes(name), `${name} is packed`);
  }
  await execute('tar', ['-xzf', join(folder, filename), '-C', folder]);
  cpSync(join(folder, 'package'), join(folder, 'node_modules/@marina/client'), { recursive: true });
  return folder;
}

/** Compiles programs of a partner's, each with arguments of its own. Throws with what the compiler says. */
export async function compile(folder: string, ...programs: readonly (readonly string[])[]): Promise<void> {
  const settings = ['--target', 'es2022', '--types', 'node', '--strict', '--noUncheckedIndexedAccess'];
  const all = JSON.stringify(programs.map((args) => [...settings, ...args]));
  const compiler = join(import.meta.dirname, 'compile-programs.ts');
  await execute(process.execPath, ['--import', import.meta.resolve('tsx'), compiler, all], { cwd: folder }).catch(
    ({ stdout, stderr }) => {
      throw new Error(`${stdout}${stderr}`);
    },
  );
}
