import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';

/**
 * Makes JavaScript of `inside/` in a folder, and returns the option of Node that loads it. A gateway that is built loads no
 * TypeScript, and starts in half the time.
 */
export function compileInside(folder: string): string {
  const source = join(import.meta.dirname, 'inside');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const { ModuleKind, ScriptTarget } = ts;
  const compilerOptions = {
    module: ModuleKind.ESNext,
    target: ScriptTarget.ES2023,
    rewriteRelativeImportExtensions: true,
  };
  for (const name of readdirSync(source)) {
    const { outputText } = ts.transpileModule(readFileSync(join(source, name), 'utf8'), { compilerOptions });
    writeFileSync(join(folder, name.replace(/\.ts$/, '.js')), outputText);
  }
  return `--import=${pathToFileURL(join(folder, 'preload.js')).href}`;
}
