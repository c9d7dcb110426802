import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from './folders.ts';

const execute = promisify(execFile);

/** Generators that partners use, and what their code needs. The second needs Node 22 from its next version on. */
const packages = [
  'openapi-zod-client@1.18.3',
  '@zodios/core@10.9.6',
  '@hey-api/openapi-ts@0.95.0',
  'zod@3.25.76',
  'typescript@5.9.3',
];

/** Installs the generators from npm next to the sandbox's data, once. */
export async function installGenerators(): Promise<string> {
  const folder = resolve(process.env.MARINA_DATA_DIR || '.local', 'openapi-generators');
  if (existsSync(folder)) return folder;
  const work = `${folder}.new-${process.pid}`;
  mkdirSync(work, { recursive: true, mode: 0o700 });
  writeFileSync(join(work, 'package.json'), '{"private":true,"type":"module"}');
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  await execute('npm', ['install', ...options, ...packages], { cwd: work, timeout: 300_000 });
  renameSync(work, folder);
  return folder;
}

/** The zod schemas that both generators make of an OpenAPI document: two folders' modules. */
export async function generatedSchemas(document: string): Promise<{ zodClient: string; heyApi: string }> {
  const tools = await installGenerators();
  const folder = temporaryFolder();
  // The second writes for the zod that it finds here.
  writeFileSync(join(folder, 'package.json'), '{"type":"module","dependencies":{"zod":"3.25.76"}}');
  symlinkSync(join(tools, 'node_modules'), join(folder, 'node_modules'));
  const bin = (name: string) => join(tools, 'node_modules/.bin', name);
  const run = (program: string, args: string[]) => execute(program, args, { cwd: folder, timeout: 120_000 });
  const zodClient = join(folder, 'zod-client.ts');
  await run(bin('openapi-zod-client'), [document, '-o', zodClient, '--export-schemas']);
  await run(bin('openapi-ts'), ['-i', document, '-o', join(folder, 'hey-api'), '-p', 'zod']);
  return { zodClient, heyApi: join(folder, 'hey-api/zod.gen.ts') };
}
