import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';

const root = join(import.meta.dirname, '../..');
const levels = ['warn', 'error', 'fatal'];
/** The lines that a source logs at these levels, as `level: message`. */
function linesOf(source: string): string[] {
  const found: string[] = [];
  const constants = new Map<string, string>();
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true);
  const textOf = (node: ts.Node | undefined) => {
    if (node === undefined) return undefined;
    return ts.isStringLiteralLike(node) ? node.text : constants.get(node.getText(file));
  };
  const visit = (node: ts.Node) => {
    if (ts.isVariableDeclaration(node)) {
      const text = textOf(node.initializer);
      if (text !== undefined) constants.set(node.name.getText(file), text);
    }
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { name, expression } = node.expression;
      const isLog = levels.includes(name.text) && /log(\(\))?$/i.test(expression.getText(file));
      const message = textOf(node.arguments.at(-1));
      if (isLog && message !== undefined) found.push(`${name.text}: ${message}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The pages that list log lines, each with the files whose lines it lists. */
const pages = [
  {
    page: 'docs/operations/reference.md',
    writer: 'the gateway',
    isOurs: (name: string) => /^(?:gateway|decoder|kit|broker-check)\/|^\w+\.ts$/.test(name),
  },
  {
    page: 'docs/FIX.md',
    writer: 'the FIX adapter',
    isOurs: (name: string) =>
      name.startsWith('fix-adapter/') ||
      ['kit/process.ts', 'kit/worker.ts', 'gateway/operators/calls/server.ts'].includes(name),
  },
];

for (const { page, writer, isOurs } of pages) {
  describe(`the log lines of ${page}`, () => {
    const folder = join(root, 'src');
    const logged = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && isOurs(name))
      .flatMap((name) => linesOf(readFileSync(join(folder, name), 'utf8')));
    const listed = [...readFileSync(join(root, page), 'utf8').matchAll(/^\| (\w+) \| `([^`]+)` \|/gm)]
      .map(([, level = '', message = '']) => `${level}: ${message}`)
      .filter((line) => levels.includes(line.split(':')[0] ?? ''));

    it(`are those that ${writer} writes at warn, error and fatal`, () => {
      assert.ok(logged.length > 10, 'the lines were found');
      assert.deepEqual(
        logged.filter((line) => !listed.includes(line)),
        [],
        'the page lacks them',
      );
      assert.deepEqual(
        listed.filter((line) => !logged.includes(line)),
        [],
        'nothing logs them',
      );
    });
  });
}
