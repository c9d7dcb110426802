import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { freePort } from '../../src/sandbox/ports.ts';
import { type ClientGateway, startClientGateway } from '../support/client-gateway.ts';
import { compile, installClient, packageFolder } from '../support/client-package.ts';
import { assertFirstDay } from '../support/first-day.ts';

const execute = promisify(execFile);
let folder: string;
let clients: ClientGateway;
before(async () => {
  [folder, clients] = await Promise.all([installClient(), startClientGateway()]);
});
after(() => clients?.stop());

async function run(name: string, text: string, ...flags: string[]): Promise<string> {
  writeFileSync(join(folder, name), text);
  const { stdout, stderr } = await execute(process.execPath, [...flags, name], { cwd: folder });
  assert.equal(stderr, '', 'it warns of nothing');
  return stdout.trim();
}

/** A partner's program with types, which uses the answer of a call, a list, an event and an error. */
const program = `
import { Marina, type Order, UnsafeIntegerError, verifyWebhook } from '@marina/client';
const settings = { baseUrl: 'http://127.0.0.1:9', key: 'key' };
export async function quantities(): Promise<[bigint, number, string]> {
  const order: Order = await new Marina(settings).getOrder({ id: 'ord_1' });
  const { quantity } = await new Marina({ ...settings, integers: 'number' }).getOrder({ id: 'ord_1' });
  const [first] = await new Marina({ ...settings, integers: 'string' }).listOrders().toArray(1);
  const event = await verifyWebhook('', new Headers(), Buffer.from(''), { integers: 'number' });
  return [order.quantity, quantity + event.version, first?.quantity ?? ''];
}
console.log(typeof Marina, typeof verifyWebhook, new UnsafeIntegerError('1') instanceof Error);
`;

const kinds: [string, string, string, string[]][] = [
  [
    'CommonJS with the resolution node10',
    'node10.ts',
    'node10.js',
    ['--module', 'commonjs', '--moduleResolution', 'node10'],
  ],
  ['CommonJS of node16', 'node16.cts', 'node16.cjs', ['--module', 'node16']],
  ['CommonJS of nodenext', 'nodenext.cts', 'nodenext.cjs', ['--module', 'nodenext']],
  ['ESM of nodenext', 'nodenext.mts', 'nodenext.mjs', ['--module', 'nodenext']],
  ['ESM of a bundler', 'bundler.mts', 'bundler.mjs', ['--module', 'esnext', '--moduleResolution', 'bundler']],
];

let compiling: Promise<void> | undefined;

/** All programs are compiled at once, which takes a third of the time. */
function compiled(): Promise<void> {
  compiling ??= compileAll();
  return compiling;
}

async function compileAll(): Promise<void> {
  for (const [, source] of kinds) writeFileSync(join(folder, source), program);
  const home = join(folder, 'first-day');
  mkdirSync(home);
  writeFileSync(join(home, 'package.json'), '{"type":"module"}');
  cpSync(join(packageFolder, 'examples/first-day.ts'), join(home, 'first-day.ts'));
  const firstDay = ['--module', 'nodenext', '--lib', 'es2023', '--exactOptionalPropertyTypes'];
  await compile(folder, ...kinds.map(([, source, , settings]) => [source, ...settings]), [
    'first-day/first-day.ts',
    ...firstDay,
  ]);
}

describe('the package of the client for TypeScript', () => {
  for (const [kind, , made] of kinds) {
    it(`compiles and runs as ${kind}`, async () => {
      await compiled();
      const { stdout, stderr } = await execute(process.execPath, [made], { cwd: folder });
      assert.deepEqual([stdout.trim(), stderr], ['function function true', '']);
    });
  }

  it('is loaded by require, and is the same for require and import', async () => {
    const both = `const { Marina, MarinaError } = require('@marina/client');
import('@marina/client').then((module) => console.log(module.Marina === Marina, module.MarinaError === MarinaError));`;
    assert.equal(await run('both.cjs', both), 'true true');
  });

  it('is loaded by require also where Node does not load ESM that way', async () => {
    const text = `console.log(typeof require('@marina/client').Marina, require.resolve('@marina/client'));`;
    const said = await run('old.cjs', text, '--no-experimental-require-module');
    assert.match(said, /^function .*\/dist\/cjs\/index\.js$/);
  });

  it('works in Jest, which loads CommonJS in a realm of its own', async () => {
    const { Marina, signWebhook, verifyWebhook, WebhookVerificationError, NoAnswerError, inRealm } = loadAsJestDoes();
    const secret = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;
    const text = '{"id":"msg_1","version":7}';
    const headers = await signWebhook(secret, 'msg_1', text);
    const bodies = [text, Buffer.from(text), inRealm(`new TextEncoder().encode('${text}').buffer`)];
    for (const body of [...bodies, inRealm(`Uint8Array.from(${JSON.stringify([...Buffer.from(text)])})`)]) {
      for (const each of [
        headers,
        new Headers(headers),
        inRealm(`new Map(${JSON.stringify(Object.entries(headers))})`),
      ]) {
        assert.equal((await verifyWebhook(secret, each, body)).version, 7n);
      }
    }
    await assert.rejects(verifyWebhook(secret, {}, text), WebhookVerificationError);
    await assert.rejects(verifyWebhook(secret, headers, inRealm(text)), /raw bytes/);
    const marina = new Marina({ baseUrl: 'http://127.0.0.1:9', key: 'key', maxAttempts: 1 });
    await assert.rejects(marina.getWallet(), NoAnswerError);
    // A file is sent with modules of Node, which are loaded when the first one is sent.
    const sending = marina.sendDocument({
      id: 'app_1',
      type: 'photo',
      file: Buffer.from('x'),
      media_type: 'image/png',
    });
    await assert.rejects(sending, (error) => {
      assert.ok(error instanceof NoAnswerError);
      assert.equal((error.cause as NodeJS.ErrnoException).code, 'ECONNREFUSED');
      return true;
    });
  });

  it('is enough for a program written from the pages to place, repeat, lose and settle orders, follow events and verify webhooks', async () => {
    await compiled();
    const partner = await clients.gateway.newPartner();
    const secret = await clients.register(partner, '/first-day-ts');
    const port = await freePort();
    clients.passOn('/first-day-ts', port);
    const env = {
      PATH: process.env.PATH,
      MARINA_BASE_URL: clients.baseUrl,
      MARINA_KEY: partner.key,
      MARINA_ACCOUNT: partner.account,
      MARINA_WEBHOOK_SECRET: secret,
      MARINA_WEBHOOK_PORT: String(port),
    };
    const { stdout, stderr } = await execute(process.execPath, ['first-day.js'], {
      cwd: join(folder, 'first-day'),
      env,
      timeout: 100_000,
    });
    assert.equal(stderr, '');
    assertFirstDay(stdout);
    const help = await execute(process.execPath, ['node_modules/@marina/client/dist/listen/main.js', '--help'], {
      cwd: folder,
    });
    assert.match(help.stdout, /--forward URL/);
  });

  it('needs nothing at run time but the platform', () => {
    const { dependencies, engines } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'));
    assert.equal(dependencies, undefined);
    assert.equal(engines.node, '>=20.19');
  });
});

/** The package's exports, and a way to make a value in the realm in which it was loaded. */
type Loaded = typeof import('@marina/client') & { inRealm(code: string): never };

/** Loads the package as Jest does: the file of the condition `require`, in a new realm with Node's own globals. */
function loadAsJestDoes(): Loaded {
  const home = join(folder, 'node_modules/@marina/client');
  const { exports } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  const { fetch, Headers, Response, AbortController, AbortSignal, DOMException, crypto, atob, btoa } = globalThis;
  const { TextEncoder, TextDecoder, URL, URLSearchParams, performance, setTimeout, clearTimeout } = globalThis;
  const realm = createContext({
    ...{ fetch, Headers, Response, AbortController, AbortSignal, DOMException, crypto, atob, btoa, Buffer },
    ...{ TextEncoder, TextDecoder, URL, URLSearchParams, performance, setTimeout, clearTimeout },
  });
  const loaded = new Map<string, { exports: object }>();
  const load = (path: string): object => {
    const known = loaded.get(path);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    loaded.set(path, module);
    const wrapped = runInContext(`(function (module, exports, require) {${readFileSync(path, 'utf8')}\n})`, realm);
    const require = (name: string) => {
      return name.startsWith('node:') ? createRequire(path)(name) : load(join(dirname(path), name));
    };
    wrapped(module, module.exports, require);
    return module.exports;
  };
  const main = load(join(home, exports['.'].require.default));
  return { ...(main as typeof import('@marina/client')), inRealm: (code) => runInContext(`(${code})`, realm) as never };
}
