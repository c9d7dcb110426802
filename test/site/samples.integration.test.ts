import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { fromJson, type JsonValue, toJson } from '@bufbuild/protobuf';
import { AccountStatus } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { linkAccount } from '../../src/sandbox/provision.ts';
import { readExamples } from '../../src/site/examples.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { languages } from '../../src/site/samples/languages.ts';
import { goodApplication } from '../support/applications.ts';
import { temporaryFolder } from '../support/folders.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import { badlyIndented } from '../support/go-format.ts';
import { plain } from '../support/images.ts';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const has = (program: string) => spawnSync(program, ['--help']).error === undefined;
const operations = gatewayOperations.filter(({ http }) => http !== undefined);
/** These change what is there in such a way that only one language could do it. */
const once = new Set(['sendDocument', 'revokeKey']);

let gateway: TestGateway;
let partner: TestPartner;
let folder: string;
/** The id of an object in a recorded request, and of an object that exists. */
const ids = new Map<string, string>();

before(async () => {
  gateway = await startGateway();
  partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
  const account = 'LAG0012345';
  await linkAccount(gateway.database, { partnerId: partner.id, account });
  await gateway.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
  await gateway.fund(partner, 10_000_000n);
  folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  writeFileSync(join(folder, 'photo.jpg'), await plain(320, 240).jpeg().toBuffer());
  const { key } = partner;
  const { body: order } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 });
  const { body: allocation } = await gateway.allocate(partner, {});
  const { body: withdrawal } = await gateway.withdraw(partner, {});
  const request = { key, idempotencyKey: randomUUID(), body: goodApplication };
  const { body: application } = await gateway.rest('POST', '/v1/applications', request);
  for (const { id } of [order, allocation, withdrawal, application]) ids.set(id.slice(0, 4), id);
});

after(() => gateway?.stop());

/** The code of an operation's first recorded request, about objects that are there. */
function sampleOf(label: string, name: string): string {
  const operation = operations.find(({ method }) => method.localName === name);
  const [example] = readExamples().operations[name] ?? [];
  const language = languages.find((each) => each.label === label);
  assert.ok(operation !== undefined && example !== undefined && language !== undefined, `${label} ${name}`);
  const addresses = {
    baseUrl: `http://127.0.0.1:${gateway.app.restPort}`,
    grpcAddress: `127.0.0.1:${gateway.app.grpcPort}`,
  };
  const text = language.write({ operation, example, addresses });
  return text.replaceAll(/\b(?:ord|alc|app|wdr)_[a-z2-7]{20}\b/g, (id) => ids.get(id.slice(0, 4)) ?? id);
}

/** The programs of the guides. */
const guidesGo = ['grpc.go', 'verify.go'].map((name) => join(root, 'src/site/snippets', name));
const names = operations.map(({ method }) => method.localName);
/**
 * The samples that run in each language, in turn. Cancelling again, and creating again with the same key, changes
 * nothing.
 */
const run = operations
  .filter(({ http, method }) => http?.segments[1] !== 'sandbox' && !once.has(method.localName))
  .map(({ method }) => method.localName);

function write(label: string, extension: string, list = names): string[] {
  return list.map((name) => {
    const path = join(folder, `${name}-${label.toLowerCase()}.${extension}`);
    writeFileSync(path, `${sampleOf(label, name)}\n`);
    return path;
  });
}

/** The code of the guide on client libraries, in one language. */
function guideBlocks(language: string): string[] {
  const text = readFileSync(join(root, 'src/site/guides/clients.md'), 'utf8');
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code,
  );
  assert.ok(blocks.length >= 4, `${blocks.length} blocks`);
  return blocks;
}

/** Returns the code around a block of the guide: the reader's own, and the results of earlier blocks. */
function givenInTypeScript(code: string): string {
  const given = {
    marina: "declare const marina: import('@marina/client').Marina;",
    load: 'declare function load(): Promise<string | undefined>;',
    handle: "declare function handle(event: import('@marina/client').Event): Promise<void>;",
    store: 'declare function store(cursor: string | undefined): Promise<void>;',
    request: "declare const request: import('node:http').IncomingMessage;",
    body: 'declare const body: Buffer;',
  };
  const used = Object.entries(given).filter(
    ([name]) => new RegExp(`\\b${name}\\b`).test(code) && !code.includes(`const ${name} =`),
  );
  return used.map(([, line]) => line).join('\n');
}

describe('the code of the reference', () => {
  const placed: Record<string, string> = {};

  it('all TypeScript code compiles', async () => {
    write('TypeScript', 'mts');
    const settings = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        paths: { '@marina/client': [join(root, 'clients/typescript/src/index.ts')] },
        typeRoots: [join(root, 'node_modules/@types')],
        incremental: false,
        noUnusedLocals: false,
      },
      include: ['*.mts'],
    };
    for (const [at, code] of guideBlocks('js').entries()) {
      writeFileSync(join(folder, `guide-${at}.mts`), `${givenInTypeScript(code)}\n${code}`);
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = await execute(process.execPath, [tsc, '-p', folder]).catch((error) => error);
    assert.equal(stdout, '');
  });

  it('TypeScript code does what it says, against a gateway', async () => {
    const said: string[] = [];
    const log = console.log;
    process.env.MARINA_KEY = partner.key;
    try {
      for (const name of run) {
        const path = join(folder, `run-${name}.mts`);
        const client = pathToFileURL(join(root, 'clients/typescript/src/index.ts')).href;
        writeFileSync(path, sampleOf('TypeScript', name).replace("'@marina/client'", `'${client}'`));
        console.log = (value: { id?: string }) => {
          said.push(name);
          if (value.id !== undefined) placed[`TypeScript ${name}`] ??= value.id;
        };
        await import(pathToFileURL(path).href);
      }
    } finally {
      console.log = log;
      delete process.env.MARINA_KEY;
    }
    assert.deepEqual(said, run, 'each prints one answer, of a list one page');
  });

  it("the guide's code that handles errors meets a rejected order", async (context) => {
    const code = guideBlocks('js').find((block) => block.includes("'order_rejected'")) ?? '';
    const client = pathToFileURL(join(root, 'clients/typescript/src/index.ts')).href;
    const path = join(folder, 'run-errors.mts');
    const address = `http://127.0.0.1:${gateway.app.restPort}`;
    writeFileSync(path, code.replace("'@marina/client'", `'${client}'`).replace('{base_url}', address));
    const log = context.mock.method(console, 'log', () => undefined);
    process.env.MARINA_KEY = partner.key;
    try {
      await import(pathToFileURL(path).href);
    } finally {
      delete process.env.MARINA_KEY;
    }
    const said = log.mock.calls.map(({ arguments: [first] }) => first);
    assert.deepEqual(said, ['insufficient_funds']);
  });

  const noPython = !has('python3') && process.env.CI !== 'true' && 'there is no Python here';
  it('Python code compiles, and does what it says', { skip: noPython }, async () => {
    const paths = write('Python', 'py');
    for (const [at, code] of guideBlocks('python').entries()) {
      paths.push(join(folder, `guide-${at}.py`));
      writeFileSync(paths.at(-1) ?? '', code);
    }
    await execute('python3', ['-m', 'py_compile', ...paths]);
    const runner = join(folder, 'run_all.py');
    const program = `import runpy, sys
for name in sys.argv[1:]:
    print("=", name)
    found = runpy.run_path(f"{name}-python.py")
    if isinstance(found.get("answer"), dict) and "id" in found["answer"]:
        print("id", name, found["answer"]["id"])
`;
    writeFileSync(runner, program);
    const env = { PATH: process.env.PATH, PYTHONPATH: join(root, 'clients/python/src'), MARINA_KEY: partner.key };
    const { stdout } = await execute('python3', [runner, ...run], { cwd: folder, env, maxBuffer: 1 << 26 });
    assert.equal(stdout.match(/^= /gm)?.length, run.length);
    for (const [, name, id = ''] of stdout.matchAll(/^id (\w+) (\w+)$/gm)) placed[`Python ${name}`] = id;
  });

  it('commands can be read by a shell, and curl does what it says', {
    skip: !has('curl') && 'there is no curl',
  }, async () => {
    for (const path of [...write('curl', 'sh'), ...write('grpcurl', 'sh')]) await execute('bash', ['-n', path]);
    const env = { PATH: process.env.PATH, MARINA_KEY: partner.key };
    for (const name of run) {
      const { stdout } = await execute('bash', [join(folder, `${name}-curl.sh`)], { cwd: folder, env });
      const answer = JSON.parse(stdout);
      assert.equal(answer.error, undefined, `${name}: ${stdout}`);
      if (answer.id !== undefined) placed[`curl ${name}`] = answer.id;
    }
    for (const name of ['createOrder', 'createAllocation', 'createApplication']) {
      const same = ['TypeScript', 'Python', 'curl'].flatMap((label) => placed[`${label} ${name}`] ?? []);
      assert.equal(new Set(same).size, 1, `${name} with one key is one object: ${same}`);
      assert.ok(same.length >= 2);
    }
  });

  it('code for gRPC has a message that means the same as the request of REST', () => {
    for (const { method, input, http } of operations) {
      const text = sampleOf('grpcurl', method.localName);
      assert.match(text, new RegExp(` ${method.parent.typeName}/${method.name}(?: <<JSON)?$`, 'm'));
      const json = /<<JSON\n([\s\S]*)\nJSON$/.exec(text)?.[1] ?? /-d '([^']*)'/.exec(text)?.[1];
      if (json === undefined) {
        assert.equal(http?.pathFields.length, 0, method.name);
        continue;
      }
      const parsed: JsonValue = JSON.parse(json.replace(/"\$\(base64[^)]*\)"/, '"AAAA"'));
      const message = fromJson(input, parsed, { ignoreUnknownFields: false });
      const again = toJson(input, message, { useProtoFieldName: true });
      assert.deepEqual(Object.keys(again as object).sort(), Object.keys(parsed as object).sort(), method.name);
    }
  });

  it('Go code, in the guides too, is indented with tabs as gofmt does it', () => {
    for (const path of [...write('Go', 'go'), ...guidesGo]) {
      assert.deepEqual(badlyIndented(readFileSync(path, 'utf8')), [], path);
    }
  });

  it('Go code is formatted as gofmt does it', { skip: !has('gofmt') && 'there is no gofmt here' }, async () => {
    const { stdout, stderr } = await execute('gofmt', ['-e', '-l', ...write('Go', 'go'), ...guidesGo]);
    assert.deepEqual([stdout, stderr], ['', '']);
  });
});
