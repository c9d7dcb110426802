import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';

const root = join(import.meta.dirname, '../../src');

/** The folder that the programs share. It knows no program, and of what is generated only gRPC's own protos. */
const kit = 'kit';
/** These know everything, and no program knows them. */
const workshop = ['sandbox', 'tools'];
/** The parts of a program that another program may use: they are made to be used so. */
const ports: Record<string, RegExp> = {
  // It reads the headers of images itself, and starts decoders.
  gateway: /^(decoder\/(decoder|jpeg|jpeg-segments|png)|site\/site)\.ts$/,
  // A process of its own, which shares the database's mechanism with gateways. Its operators have a port like that of the gateway's.
  'fix-adapter': /^gateway\/(store\/[^/]+|operators\/calls\/(server|call|errors))\.ts$/,
  // It checks adapters over the wire, and judges records as the gateway does.
  'broker-check': /^gateway\/trading\/broker\//,
  // It describes the operations, and is served beside them.
  site: /^gateway\/edge\//,
};
/** The files that commands start. */
const commands = /^(gateway\/app\/commands|(fix-adapter|broker-check)\/command)\.ts$/;

/** The parts of the gateway, which only its composition root puts together. */
const parts = /^gateway\/app\/(?!app\.ts|commands\.ts|config)/;

function mayImport(from: string, to: string): boolean {
  const [fromProgram = ''] = from.split('/');
  const [toProgram = ''] = to.split('/');
  if (from === 'main.ts') return [kit, 'commands.ts'].includes(toProgram);
  if (to === 'main.ts' || to === 'commands.ts') return false;
  if (workshop.includes(toProgram)) return workshop.includes(fromProgram);
  if (workshop.includes(fromProgram)) return true;
  if (fromProgram === kit) return toProgram === kit || to.startsWith('gen/grpc/');
  if (toProgram === kit || toProgram === 'gen') return true;
  if (from === 'commands.ts') return commands.test(to) && !parts.test(to);
  if (fromProgram !== toProgram) return ports[fromProgram]?.test(to) ?? false;
  return fromProgram !== 'gateway' || mayImportInGateway(inGateway(from), inGateway(to));
}

const inGateway = (file: string) => file.slice('gateway/'.length);

/** The gateway's wings, from the top down. A wing uses those below it. */
const wings = ['app', 'operators', 'partners', 'trading', 'delivery', 'edge', 'store'];

/** Mechanisms that the other rooms of trading share. They know each other and no kind of submission. */
const mechanisms = ['submission', 'broker'];

/** Words of the contract that a wing's other rooms use too, with those above it. */
const words =
  /^(edge\/(errors|ids|origin|paging|personal-text|metrics|auth\/(key-addresses|key-rules)|peers\/(mac|untrusted))|trading\/shown-message|delivery\/notifications)\.ts$/;

/** Files that only tell the truth about data: any room may read another's. */
const isShared = (file: string) => /(\/rules|\/table|[/-]store)\.ts$/.test(file);

/** How a broker is reached. Its consumers know the interfaces in `trading/broker/broker` alone. */
const grpcBroker = /^trading\/broker\/grpc-/;

/** The protocols stand side by side over what they share; two of them also over the HTTP server. */
const protocols = ['rest', 'connect', 'grpc'];

function mayImportInGateway(from: string, to: string): boolean {
  const [fromWing = '', fromRoom = ''] = from.split('/');
  const [toWing = '', toRoom = ''] = to.split('/');
  if (fromWing === 'app') return ['app/app.ts', 'app/commands.ts'].includes(from) || to !== 'app/app.ts';
  if (grpcBroker.test(to)) return from.startsWith('trading/broker/');
  if (wings.indexOf(toWing) < wings.indexOf(fromWing)) return false;
  if (words.test(to)) return true;
  if (/\/rules\.ts$/.test(from)) return /\/rules\.ts$/.test(to);
  if (/(\/table|[/-]store)\.ts$/.test(from)) return toWing === 'store' || fromRoom === toRoom || isShared(to);
  if (fromWing !== toWing) return true;
  return mayImportInWing(fromWing, fromRoom, toRoom) || isShared(to);
}

/** Between two rooms of a wing, or files beside its rooms. */
function mayImportInWing(wing: string, from: string, to: string): boolean {
  if (from === to || wing === 'store') return true;
  if (wing === 'edge') {
    if (protocols.includes(to) || (to === 'http' && !['rest', 'connect'].includes(from))) return false;
    return !['json', 'auth', 'limits', 'peers'].includes(from) || (from === 'limits' && ['auth', 'peers'].includes(to));
  }
  if (wing === 'trading') return mechanisms.includes(to) && (from !== 'broker' || to === 'broker');
  if (wing === 'delivery') return from === 'webhooks';
  return wing === 'operators';
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
      ['kit/money.ts', 'gateway/store/database.ts'],
      ['kit/money.ts', 'gen/marina/gateway/v1/orders_pb.ts'],
      ['simulator/simulator.ts', 'gateway/store/database.ts'],
      ['gateway/trading/broker/grpc-orders.ts', 'simulator/simulator.ts'],
      ['gateway/trading/applications/handlers.ts', 'decoder/jpeg-pixels.ts'],
      ['gateway/app/app.ts', 'sandbox/run.ts'],
      ['gateway/app/parts.ts', 'simulator/simulator.ts'],
      ['fix-adapter/adapter.ts', 'gateway/trading/orders/rules.ts'],
      ['gateway/app/parts.ts', 'fix-adapter/adapter.ts'],
      ['commands.ts', 'fix-adapter/adapter.ts'],
      ['commands.ts', 'gateway/app/base.ts'],
      ['main.ts', 'gateway/app/base.ts'],
      ['gateway/app/base.ts', 'gateway/app/app.ts'],
      ['gateway/store/table.ts', 'gateway/edge/pipeline.ts'],
      ['gateway/edge/limits/caller-limits.ts', 'gateway/trading/submission/rules.ts'],
      ['gateway/delivery/events/feed.ts', 'gateway/trading/submission/table.ts'],
      ['gateway/trading/submission/submit.ts', 'gateway/operators/telemetry/health.ts'],
      ['gateway/partners/keys/handlers.ts', 'gateway/operators/calls/audit.ts'],
      ['gateway/trading/orders/handlers.ts', 'gateway/app/base.ts'],
      ['gateway/trading/orders/rules.ts', 'gateway/trading/orders/store.ts'],
      ['gateway/trading/orders/handlers.ts', 'gateway/trading/accounts/handlers.ts'],
      ['gateway/trading/submission/submit.ts', 'gateway/trading/orders/handlers.ts'],
      ['gateway/trading/broker/grpc-orders.ts', 'gateway/trading/submission/submit.ts'],
      ['gateway/trading/orders/kind.ts', 'gateway/trading/broker/grpc-orders.ts'],
      ['gateway/delivery/events/feed.ts', 'gateway/delivery/webhooks/attempt/sender.ts'],
      ['gateway/partners/keys/handlers.ts', 'gateway/partners/reference/handlers.ts'],
      ['gateway/edge/json/reader.ts', 'gateway/edge/auth/keys.ts'],
      ['gateway/edge/connect/protocol.ts', 'gateway/edge/rest/protocol.ts'],
      ['gateway/edge/http/server.ts', 'gateway/edge/rest/protocol.ts'],
      ['gateway/edge/grpc/protocol.ts', 'gateway/edge/http/server.ts'],
      ['gateway/edge/pipeline.ts', 'gateway/edge/http/messages.ts'],
    ] as const;
    for (const [from, to] of refused) assert.equal(mayImport(from, to), false, `${from} may import ${to}`);
    assert.equal(mayImport('gateway/edge/rest/protocol.ts', 'gateway/edge/http/messages.ts'), true);
    assert.equal(mayImport('gateway/trading/orders/handlers.ts', 'gateway/trading/accounts/store.ts'), true);
    assert.equal(mayImport('gateway/trading/orders/handlers.ts', 'gateway/edge/call.ts'), true);
    assert.equal(mayImport('gateway/trading/applications/image-checker.ts', 'decoder/decoder.ts'), true);
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
    assert.deepEqual(loading, ['gateway/store/typeorm.ts']);
  });

  it('no file imports itself, by whatever way round', () => {
    const imports = new Map(files.map((path) => [relative(root, path), importsOf(path)] as const));
    assert.deepEqual(circlesIn(imports), []);
  });

  it('no files of the client for TypeScript import each other in a circle', () => {
    const own = sourceFiles(join(root, '../clients/typescript/src'));
    assert.ok(own.length > 20, 'the files were found');
    assert.deepEqual(circlesIn(new Map(own.map((path) => [relative(root, path), importsOf(path)]))), []);
  });

  it('no modules of the client for Python import each other in a circle', () => {
    const folder = join(root, '../clients/python/src/marina');
    const modules = readdirSync(folder).filter((file) => file.endsWith('.py'));
    const imports = new Map(
      modules.map((file) => {
        const text = readFileSync(join(folder, file), 'utf8');
        return [file, [...text.matchAll(/^\s*from \.(\w+) import/gm)].map(([, name]) => `${name}.py`)] as const;
      }),
    );
    assert.ok(imports.get('client.py')?.includes('operations.py'), 'the imports were found');
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

  it('the exporter of spans is loaded where it is configured, and only then', () => {
    const exporter = 'gateway/operators/telemetry/otlp-tracer.ts';
    const texts = files.map((path) => [relative(root, path), readFileSync(path, 'utf8')] as const);
    const users = texts.filter(([, text]) => text.includes("'@opentelemetry/")).map(([path]) => path);
    assert.deepEqual(users, [exporter]);
    const loading = texts.flatMap(([path, text]) =>
      [...text.matchAll(/^.*otlp-tracer\.ts'.*$/gm)].map(([line]) => [path, line.trim()]),
    );
    const line = "const { otlpTracer } = await import('../operators/telemetry/otlp-tracer.ts');";
    assert.deepEqual(loading, [['gateway/app/base.ts', line]]);
  });

  it('only the configuration reads the environment of the process', () => {
    const readers = files
      .filter((path) => /process\.env/.test(readFileSync(path, 'utf8')))
      .map((path) => relative(root, path))
      // The last one writes a partner's program, which reads its own.
      .filter(
        (path) =>
          !['commands.ts', 'gateway/app/commands.ts', 'simulator/main.ts', 'site/samples/typescript.ts'].includes(
            path,
          ) && !path.startsWith('sandbox/'),
      );
    assert.deepEqual(readers, []);
  });
});
