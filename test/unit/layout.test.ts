import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '../../src');

/** What every part above the foundations may use. */
const foundations = ['lib', 'gen', 'json', 'db', 'broker'];
/** Mechanisms capabilities share; they know each other and no capability. */
const mechanisms = ['auth', 'limits', 'events', 'submission', 'telemetry'];
const transport = ['lib', 'gen', 'json', 'auth', 'limits', 'transport'];

const allowedFolders: Record<string, readonly string[]> = {
  lib: ['lib'],
  json: ['lib', 'gen', 'json'],
  db: ['lib', 'db'],
  broker: ['lib', 'gen', 'broker'],
  transport,
  docs: [...transport, 'docs'],
  simulator: ['lib', 'gen', 'simulator'],
  // A process of its own, which shares the database's mechanism with gateways.
  fix: ['lib', 'gen', 'db', 'fix'],
  // It checks adapters over the wire, and judges records as the gateway does.
  'broker-check': ['lib', 'gen', 'broker', 'broker-check'],
};

/** Files that only tell the truth about data: any part may read another's. */
const isShared = (file: string) => /(\/rules|\/table|[/-]store)\.ts$/.test(file);

/** Files that put the gateway together, each one part of it; `app.ts` makes the whole of them. */
const isPart = (file: string) => file.startsWith('app/');

/** Files that know everything. */
const isRoot = (file: string) =>
  /^(app|main|commands|config(-forms|-settings)?)\.ts$/.test(file) || isPart(file) || file.startsWith('dev/');

/** The protocols stand side by side over what they share; two of them also over the HTTP server. */
function mayImportInTransport(from: string, to: string): boolean {
  const [, fromPart = '', fromFile] = from.split('/');
  const [, toPart = '', toFile] = to.split('/');
  if (toFile === undefined || toPart === fromPart) return true;
  return fromFile !== undefined && toPart === 'http' && ['rest', 'connect'].includes(fromPart);
}

function mayImport(from: string, to: string): boolean {
  if (to.startsWith('fix/') && !from.startsWith('fix/')) return from === 'commands.ts' && to === 'fix/command.ts';
  if (to.startsWith('broker-check/') && !from.startsWith('broker-check/')) {
    return (from === 'commands.ts' && to === 'broker-check/command.ts') || from.startsWith('dev/');
  }
  if (to.startsWith('simulator/')) return from.startsWith('simulator/') || from.startsWith('dev/');
  if (isPart(to)) return from === 'app.ts' || isPart(from) || from.startsWith('dev/');
  if (isPart(from) && ['app.ts', 'commands.ts', 'main.ts'].includes(to)) return false;
  if (isRoot(from)) return true;
  if (isRoot(to) || to.startsWith('dev/')) return false;
  const [fromFolder = ''] = from.split('/');
  const [toFolder = ''] = to.split('/');
  if (/\/rules\.ts$/.test(from)) return ['lib', 'gen'].includes(toFolder) || /\/rules\.ts$/.test(to);
  if (/(\/table|[/-]store)\.ts$/.test(from)) {
    return ['lib', 'gen', 'json', 'db', fromFolder].includes(toFolder) || to === 'submission/table.ts';
  }
  // The FIX adapter's operators have a port like that of the gateway's.
  if (from.startsWith('fix/operations/') && /^admin\/(server|call|errors)\.ts$/.test(to)) return true;
  // The operators' port is a gRPC server too.
  if (from === 'admin/server.ts' && toFolder === 'transport') return true;
  // What is made of gRPC's own protos counts as a library.
  if (fromFolder === 'lib' && to.startsWith('gen/grpc/')) return true;
  if (fromFolder === 'transport' && toFolder === 'transport') return mayImportInTransport(from, to);
  const folders = allowedFolders[fromFolder];
  if (folders !== undefined) return folders.includes(toFolder);
  if (mechanisms.includes(fromFolder)) {
    return [...foundations, ...mechanisms].includes(toFolder) || isShared(to);
  }
  return [...foundations, ...mechanisms, fromFolder].includes(toFolder) || isShared(to);
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'gen' ? [] : sourceFiles(path);
    return entry.name.endsWith('.ts') ? [path] : [];
  });
}

function importsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].map((match) =>
    relative(root, join(dirname(path), match[1] ?? '')),
  );
}

/**
 * The files that import each other, directly or through others, a list for each circle. Imports of types count too: two
 * files that know each other are hard to read one by one.
 */
function circlesIn(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const reachedFrom = (start: string): ReadonlySet<string> => {
    const reached = new Set<string>();
    const waiting = [...(imports.get(start) ?? [])];
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (reached.has(file)) continue;
      reached.add(file);
      waiting.push(...(imports.get(file) ?? []));
    }
    return reached;
  };
  const reached = new Map([...imports.keys()].map((file) => [file, reachedFrom(file)] as const));
  const circles = [...imports.keys()]
    .filter((file) => reached.get(file)?.has(file))
    .map((file) => [...(reached.get(file) ?? [])].filter((each) => reached.get(each)?.has(file)).sort());
  return [...new Map(circles.map((circle) => [circle.join(' '), circle])).values()];
}

describe('the layout', () => {
  const files = sourceFiles(root);

  it('every import is one the architecture allows', () => {
    assert.ok(files.length > 50, 'the source files were found');
    const wrong = files.flatMap((path) => {
      const from = relative(root, path);
      return importsOf(path)
        .filter((to) => !to.startsWith('..'))
        .filter((to) => !mayImport(from, to))
        .map((to) => `${from} must not import ${to}`);
    });
    assert.deepEqual(wrong, []);
  });

  it('the rule itself catches what it should', () => {
    assert.equal(mayImport('lib/money.ts', 'db/database.ts'), false);
    assert.equal(mayImport('orders/rules.ts', 'orders/store.ts'), false);
    assert.equal(mayImport('orders/handlers.ts', 'accounts/handlers.ts'), false);
    assert.equal(mayImport('submission/submit.ts', 'orders/handlers.ts'), false);
    assert.equal(mayImport('transport/pipeline.ts', 'orders/rules.ts'), false);
    assert.equal(mayImport('transport/connect/protocol.ts', 'transport/rest/protocol.ts'), false);
    assert.equal(mayImport('transport/http/server.ts', 'transport/rest/protocol.ts'), false);
    assert.equal(mayImport('transport/grpc/protocol.ts', 'transport/http/server.ts'), false);
    assert.equal(mayImport('transport/pipeline.ts', 'transport/http/messages.ts'), false);
    assert.equal(mayImport('transport/rest/protocol.ts', 'transport/http/messages.ts'), true);
    assert.equal(mayImport('app.ts', 'simulator/simulator.ts'), false);
    assert.equal(mayImport('app/parts.ts', 'simulator/simulator.ts'), false);
    assert.equal(mayImport('app/base.ts', 'app.ts'), false);
    assert.equal(mayImport('main.ts', 'app/base.ts'), false);
    assert.equal(mayImport('commands.ts', 'app/base.ts'), false);
    assert.equal(mayImport('orders/handlers.ts', 'app/base.ts'), false);
    assert.equal(mayImport('orders/handlers.ts', 'accounts/store.ts'), true);
  });

  it('a client library needs nothing of the gateway, and the gateway nothing of a client library', () => {
    const clients = join(root, '../clients/typescript/src');
    const outside = sourceFiles(clients).flatMap((path) =>
      importsOf(path).filter((to) => !to.startsWith('../clients/typescript/src/')),
    );
    assert.deepEqual(outside, []);
    const importsOne = /^(?:import|export) .*'(?:@marina\/client|(?:\.\.\/)+clients\/.*)';$/m;
    const using = files.filter((path) => importsOne.test(readFileSync(path, 'utf8')));
    assert.deepEqual(using, []);
  });

  it('a gateway starts without TypeORM, which is slow to load', () => {
    const loadsIt = (path: string) =>
      /^import (?!type ).*'(typeorm|reflect-metadata)';$/m.test(readFileSync(path, 'utf8'));
    const loading = files.filter(loadsIt).map((path) => relative(root, path));
    assert.deepEqual(loading, ['db/typeorm.ts']);
  });

  it('no file imports itself, by whatever way round', () => {
    const imports = new Map(files.map((path) => [relative(root, path), importsOf(path)] as const));
    assert.deepEqual(circlesIn(imports), []);
  });

  it('the search for circles finds them', () => {
    const imports = new Map([
      ['start', ['a', 'lonely']],
      ['a', ['b']],
      ['b', ['c', 'lonely']],
      ['c', ['a']],
      ['lonely', []],
      ['own', ['own']],
    ]);
    assert.deepEqual(circlesIn(imports), [['a', 'b', 'c'], ['own']]);
  });

  it('what exports spans is loaded where it is configured, and only then', () => {
    const exporter = 'telemetry/otlp-tracer.ts';
    const texts = files.map((path) => [relative(root, path), readFileSync(path, 'utf8')] as const);
    const users = texts.filter(([, text]) => text.includes("'@opentelemetry/")).map(([path]) => path);
    assert.deepEqual(users, [exporter]);
    const loading = texts.flatMap(([path, text]) =>
      [...text.matchAll(/^.*otlp-tracer\.ts'.*$/gm)].map(([line]) => [path, line.trim()]),
    );
    const line = "const { otlpTracer } = await import('../telemetry/otlp-tracer.ts');";
    assert.deepEqual(loading, [['app/base.ts', line]]);
  });

  it('only the configuration reads the environment of the process', () => {
    const readers = files
      .filter((path) => /process\.env/.test(readFileSync(path, 'utf8')))
      .map((path) => relative(root, path))
      // The last one writes a partner's program, which reads its own.
      .filter(
        (path) =>
          !['commands.ts', 'simulator/main.ts', 'docs/samples/typescript.ts'].includes(path) &&
          !path.startsWith('dev/'),
      );
    assert.deepEqual(readers, []);
  });
});
