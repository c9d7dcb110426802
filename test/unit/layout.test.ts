import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '../../src');

/** What the programs share. It knows no program, and of what is generated only gRPC's own protos. */
const kit = 'kit';
/** These know everything, and no program knows them. */
const workshop = ['sandbox', 'tools'];
/** What a program may use of another one: a part that is made to be used so. */
const ports: Record<string, RegExp> = {
  gateway: /^(decoder\/checker|site\/site)\.ts$/,
  // A process of its own, which shares the database's mechanism with gateways. Its operators have a port like that of the gateway's.
  'fix-adapter': /^gateway\/(db\/[^/]+|admin\/(server|call|errors))\.ts$/,
  // It checks adapters over the wire, and judges records as the gateway does.
  'broker-check': /^gateway\/broker\//,
  // It describes the operations, and is served beside them.
  site: /^gateway\/transport\//,
};
/** What the commands start. */
const commands = /^(gateway\/|(fix-adapter|broker-check)\/command\.ts$)/;

function mayImport(from: string, to: string): boolean {
  const [fromProgram = ''] = from.split('/');
  const [toProgram = ''] = to.split('/');
  if (from === 'main.ts') return [kit, 'commands.ts'].includes(toProgram);
  if (to === 'main.ts' || to === 'commands.ts') return false;
  if (workshop.includes(toProgram)) return workshop.includes(fromProgram);
  if (workshop.includes(fromProgram)) return true;
  if (fromProgram === kit) return toProgram === kit || to.startsWith('gen/grpc/');
  if (toProgram === kit || toProgram === 'gen') return true;
  if (from === 'commands.ts') return commands.test(to) && !to.startsWith('gateway/app/');
  if (fromProgram !== toProgram) return ports[fromProgram]?.test(to) ?? false;
  return fromProgram !== 'gateway' || mayImportInGateway(inGateway(from), inGateway(to));
}

const inGateway = (file: string) => file.slice('gateway/'.length);

/** What every part of the gateway above the foundations may use. */
const foundations = ['json', 'db', 'broker'];
/** Mechanisms capabilities share; they know each other and no capability. */
const mechanisms = ['auth', 'limits', 'events', 'submission', 'telemetry'];

const allowedFolders: Record<string, readonly string[]> = {
  json: ['json'],
  db: ['db'],
  broker: ['broker'],
  transport: ['json', 'auth', 'limits', 'transport'],
};

/** Files that only tell the truth about data: any part may read another's. */
const isShared = (file: string) => /(\/rules|\/table|[/-]store)\.ts$/.test(file);

/** Files that put the gateway together, each one part of it; `app.ts` makes the whole of them. */
const isPart = (file: string) => file.startsWith('app/');

/** Files that know everything in the gateway. */
const isRoot = (file: string) => /^(app|config(-forms|-settings)?)\.ts$/.test(file) || isPart(file);

/** The protocols stand side by side over what they share; two of them also over the HTTP server. */
function mayImportInTransport(from: string, to: string): boolean {
  const [, fromPart = '', fromFile] = from.split('/');
  const [, toPart = '', toFile] = to.split('/');
  if (toFile === undefined || toPart === fromPart) return true;
  return fromFile !== undefined && toPart === 'http' && ['rest', 'connect'].includes(fromPart);
}

function mayImportInGateway(from: string, to: string): boolean {
  if (isPart(to)) return from === 'app.ts' || isPart(from);
  if (isPart(from) && to === 'app.ts') return false;
  if (isRoot(from)) return true;
  if (isRoot(to)) return false;
  const [fromFolder = ''] = from.split('/');
  const [toFolder = ''] = to.split('/');
  if (/\/rules\.ts$/.test(from)) return /\/rules\.ts$/.test(to);
  if (/(\/table|[/-]store)\.ts$/.test(from)) {
    return ['json', 'db', fromFolder].includes(toFolder) || to === 'submission/table.ts';
  }
  // The operators' port is a gRPC server too.
  if (from === 'admin/server.ts' && toFolder === 'transport') return true;
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
    const refused = [
      ['kit/money.ts', 'gateway/db/database.ts'],
      ['kit/money.ts', 'gen/marina/gateway/v1/orders_pb.ts'],
      ['simulator/simulator.ts', 'gateway/db/database.ts'],
      ['gateway/broker/client.ts', 'simulator/simulator.ts'],
      ['gateway/applications/handlers.ts', 'decoder/jpeg.ts'],
      ['gateway/app.ts', 'sandbox/run.ts'],
      ['gateway/app.ts', 'simulator/simulator.ts'],
      ['gateway/app/parts.ts', 'simulator/simulator.ts'],
      ['fix-adapter/adapter.ts', 'gateway/orders/rules.ts'],
      ['gateway/app/parts.ts', 'fix-adapter/adapter.ts'],
      ['commands.ts', 'fix-adapter/adapter.ts'],
      ['commands.ts', 'gateway/app/base.ts'],
      ['main.ts', 'gateway/app/base.ts'],
      ['gateway/orders/rules.ts', 'gateway/orders/store.ts'],
      ['gateway/orders/handlers.ts', 'gateway/accounts/handlers.ts'],
      ['gateway/submission/submit.ts', 'gateway/orders/handlers.ts'],
      ['gateway/transport/pipeline.ts', 'gateway/orders/rules.ts'],
      ['gateway/transport/connect/protocol.ts', 'gateway/transport/rest/protocol.ts'],
      ['gateway/transport/http/server.ts', 'gateway/transport/rest/protocol.ts'],
      ['gateway/transport/grpc/protocol.ts', 'gateway/transport/http/server.ts'],
      ['gateway/transport/pipeline.ts', 'gateway/transport/http/messages.ts'],
      ['gateway/app/base.ts', 'gateway/app.ts'],
      ['gateway/orders/handlers.ts', 'gateway/app/base.ts'],
    ] as const;
    for (const [from, to] of refused) assert.equal(mayImport(from, to), false, `${from} may import ${to}`);
    assert.equal(mayImport('gateway/transport/rest/protocol.ts', 'gateway/transport/http/messages.ts'), true);
    assert.equal(mayImport('gateway/orders/handlers.ts', 'gateway/accounts/store.ts'), true);
    assert.equal(mayImport('gateway/applications/handlers.ts', 'decoder/checker.ts'), true);
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
    assert.deepEqual(loading, ['gateway/db/typeorm.ts']);
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
    const exporter = 'gateway/telemetry/otlp-tracer.ts';
    const texts = files.map((path) => [relative(root, path), readFileSync(path, 'utf8')] as const);
    const users = texts.filter(([, text]) => text.includes("'@opentelemetry/")).map(([path]) => path);
    assert.deepEqual(users, [exporter]);
    const loading = texts.flatMap(([path, text]) =>
      [...text.matchAll(/^.*otlp-tracer\.ts'.*$/gm)].map(([line]) => [path, line.trim()]),
    );
    const line = "const { otlpTracer } = await import('../telemetry/otlp-tracer.ts');";
    assert.deepEqual(loading, [['gateway/app/base.ts', line]]);
  });

  it('only the configuration reads the environment of the process', () => {
    const readers = files
      .filter((path) => /process\.env/.test(readFileSync(path, 'utf8')))
      .map((path) => relative(root, path))
      // The last one writes a partner's program, which reads its own.
      .filter(
        (path) =>
          !['commands.ts', 'simulator/main.ts', 'site/samples/typescript.ts'].includes(path) &&
          !path.startsWith('sandbox/'),
      );
    assert.deepEqual(readers, []);
  });
});
