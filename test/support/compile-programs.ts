/**
 * Compiles programs as `tsc` does with the arguments of each, and prints what is wrong with them and with the packages that
 * they use. The declarations of the language and of Node are read once for all programs, and are not checked themselves, as
 * `tsc` would, because that takes most of its time.
 */
import { createRequire } from 'node:module';
import type { SourceFile } from 'typescript';

// As a module of its own it would be read once more, for the names in it.
const ts: typeof import('typescript') = createRequire(import.meta.url)('typescript');
const programs: readonly string[][] = JSON.parse(process.argv[2] ?? '');
const read = new Map<string, SourceFile | undefined>();

/** Whether a file belongs to TypeScript or to Node's declarations. */
const isOthers = (path: string) => /\/node_modules\/(?:typescript|@types|undici-types)\//.test(path);

for (const args of programs) {
  const { options, fileNames, errors } = ts.parseCommandLine(args);
  const host = ts.createCompilerHost(options);
  const readOne = host.getSourceFile.bind(host);
  host.getSourceFile = (path, settings, ...more) => {
    if (!isOthers(path)) return readOne(path, settings, ...more);
    // The same text has another meaning as a module of another kind.
    const key = JSON.stringify([path, settings, options.moduleResolution]);
    if (!read.has(key)) read.set(key, readOne(path, settings, ...more));
    return read.get(key);
  };
  const program = ts.createProgram(fileNames, options, host);
  const ours = program.getSourceFiles().filter(({ fileName }) => !isOthers(fileName));
  const complaints = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...ours.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]),
    // To write all files at once would check all files.
    ...ours.filter((file) => !file.isDeclarationFile).flatMap((file) => program.emit(file).diagnostics),
  ];
  if (complaints.length === 0) continue;
  console.log(`${args.join(' ')}:\n${ts.formatDiagnostics(complaints, host)}`);
  process.exitCode = 1;
}
