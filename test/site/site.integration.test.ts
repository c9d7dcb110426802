import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { unzipSync } from 'fflate';
import { catalogue, docUrl, type ErrorCode } from '../../src/gateway/edge/errors.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { readComments } from '../../src/site/comments.ts';
import { type Examples, examplesFile, readExamples } from '../../src/site/examples.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { operationHref, referencePath, servicePath } from '../../src/site/links.ts';
import { openApiDocument } from '../../src/site/openapi/document.ts';
import { curl } from '../../src/site/samples/curl.ts';
import { assertValid, described } from '../support/described.ts';
import { eventTypes, takeTour } from '../support/example-tour.ts';
import { temporaryFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const execute = promisify(execFile);
const buf = fileURLToPath(new URL('../../node_modules/.bin/buf', import.meta.url));

/** Set to write down again what the pages show. */
const isRecording = process.env.MARINA_TEST_RECORD === 'true';

let gateway: TestGateway;
let receiver: WebhookReceiver;
let taken: Examples;

before(async () => {
  receiver = await WebhookReceiver.start();
  const variables = { MARINA_SUBMIT_TIMEOUT_MS: '1000', MARINA_READ_TIMEOUT_MS: '5000', ...receiver.variables };
  gateway = await startGateway(variables);
  taken = await takeTour(gateway, receiver);
  if (isRecording) writeFileSync(examplesFile, `${JSON.stringify(taken, undefined, 2)}\n`);
});

after(async () => {
  await gateway?.stop();
  await receiver?.close();
});

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`http://127.0.0.1:${gateway.app.restPort}${path}`, { headers });
}

async function textOf(path: string): Promise<string> {
  const response = await get(path);
  assert.equal(response.status, 200, path);
  return response.text();
}

describe('the pages for partners', () => {
  it('are reached from each other, and every link and anchor among them leads somewhere', async () => {
    const pages = new Map<string, string>();
    const wanted = ['/docs'];
    const links: { from: string; to: URL }[] = [];
    for (let path = wanted.pop(); path !== undefined; path = wanted.pop()) {
      if (pages.has(path)) continue;
      pages.set(path, await textOf(path));
      for (const [, href = ''] of (pages.get(path) ?? '').matchAll(/ href="([^"]+)"/g)) {
        const to: URL = new URL(href.replaceAll('&#38;', '&'), `http://docs.test${path}`);
        // Readers of the feed need whole addresses.
        const host: string = path.endsWith('.atom') ? `127.0.0.1:${gateway.app.restPort}` : 'docs.test';
        assert.equal(to.host, host, `${path} links to ${href}`);
        links.push({ from: path, to });
        wanted.push(to.pathname);
      }
    }
    assert.ok(pages.size > 10, `there are ${pages.size} pages`);
    for (const { from, to } of links) {
      const id = decodeURIComponent(to.hash.slice(1));
      const found = id === '' || pages.get(to.pathname)?.includes(` id="${id}"`);
      assert.ok(found, `${from} links to ${to.pathname}${to.hash}`);
    }
  });

  it('have an entry where the `doc_url` of every error points', async () => {
    for (const code of Object.keys(catalogue) as ErrorCode[]) {
      const { pathname, hash } = new URL(docUrl('http://127.0.0.1', code));
      assert.ok((await textOf(pathname)).includes(`<section class="error" id="${hash.slice(1)}">`), code);
    }
  });

  it('describe every operation, object and type of event, and let each be found', async () => {
    const [reference, events, index] = await Promise.all([
      textOf(referencePath),
      textOf('/docs/events'),
      textOf('/docs/search.json'),
    ]);
    for (const { method } of gatewayOperations) {
      assert.ok(reference.includes(`href="${operationHref(method)}"`), `${method.name} is in the list of all`);
      assert.ok((await textOf(servicePath(method.parent))).includes(`id="${method.localName}"`), method.name);
      assert.ok(index.includes(operationHref(method)), method.name);
    }
    for (const type of Object.keys(readExamples().events)) {
      assert.ok(events.includes(`id="${type}"`), type);
      assert.ok(index.includes(`/docs/events#${type}`), type);
    }
  });

  it('load nothing from elsewhere, and no script or style that stands in them', async () => {
    const response = await get('/docs/reference/orders');
    const policy = response.headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    const text = await response.text();
    assert.doesNotMatch(
      text,
      /<script(?! src="\/docs\/(?:docs|workbench)\.js" type="module">)|<style| style=| on\w+="/,
    );
    assert.doesNotMatch(text, /marina_(?:test|live)_[a-z0-9]/i);
  });

  it('are sent once: a client that has one is told that it did not change', async () => {
    const first = await get('/docs/reference/orders', { 'accept-encoding': 'identity' });
    const etag = first.headers.get('etag') ?? '';
    const again = await get('/docs/reference/orders', { 'if-none-match': etag });
    assert.deepEqual([first.status, again.status, await again.text()], [200, 304, '']);
    assert.equal(first.headers.get('cache-control'), 'no-cache');
    assert.equal((await get('/docs/reference/orders', { 'if-none-match': '"other"' })).status, 200);
    const packed = await get('/docs/reference/orders', { 'accept-encoding': 'br, gzip;q=0.8' });
    assert.equal(packed.headers.get('content-encoding'), 'gzip');
    assert.ok(Number(packed.headers.get('content-length')) < Number(first.headers.get('content-length')) / 4);
    assert.equal(await packed.text(), await first.text());
    assert.equal(
      (await get('/docs/reference/orders', { 'accept-encoding': 'gzip;q=0' })).headers.get('content-encoding'),
      null,
    );
  });

  it('are where a browser is led that was given no path; a program finds nothing there', async () => {
    const root = `http://127.0.0.1:${gateway.app.restPort}/`;
    const led = await fetch(root, { headers: { accept: 'text/html,application/xhtml+xml' }, redirect: 'manual' });
    assert.deepEqual([led.status, led.headers.get('location')], [302, `${root}docs`]);
    assert.equal((await fetch(root, { headers: { accept: 'text/html' } })).url, `${root}docs`);
    assert.deepEqual([(await get('/')).status, (await fetch(root, { method: 'POST' })).status], [404, 404]);
  });

  it('are only read, and are where they are', async () => {
    for (const path of ['/docs/', '/docs/nothing', '/docs/docs.ts', '/openapi.json/']) {
      assert.equal((await get(path)).status, 404, path);
    }
    const response = await fetch(`http://127.0.0.1:${gateway.app.restPort}/docs`, { method: 'POST' });
    assert.deepEqual([response.status, response.headers.get('allow')], [405, 'GET']);
    await response.body?.cancel();
  });
});

describe('a command of the reference', () => {
  const options = { skip: spawnSync('curl', ['--version']).status !== 0 && 'there is no curl here' };

  it('places an order when it is pasted, with a key in the environment', options, async () => {
    const { key, account } = await gateway.newPartner();
    const [example] = readExamples().operations.createOrder ?? [];
    assert.ok(example, 'there is an example');
    const { account: _, ...order } = example.request.body as Record<string, unknown>;
    const own = { ...example, request: { ...example.request, body: { ...order, account } } };
    const command = curl(own, `http://127.0.0.1:${gateway.app.restPort}`);
    const { stdout } = await execute('bash', ['-c', command], { env: { ...process.env, MARINA_KEY: key } });
    const placed = JSON.parse(stdout);
    assert.deepEqual([placed.object, placed.account, placed.symbol], ['order', account, order.symbol]);
  });
});

describe('the page on gRPC', () => {
  async function download(name: string): Promise<string> {
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const response = await get(`/docs/${name}`);
    assert.equal(response.status, 200);
    writeFileSync(join(folder, name), Buffer.from(await response.arrayBuffer()));
    return folder;
  }

  it('has protos that compile without any other file', async () => {
    const folder = await download('marina-protos.zip');
    const files = Object.entries(unzipSync(readFileSync(join(folder, 'marina-protos.zip'))));
    for (const [name, bytes] of files) {
      mkdirSync(dirname(join(folder, 'protos', name)), { recursive: true });
      writeFileSync(join(folder, 'protos', name), bytes);
    }
    const out = join(folder, 'set.json');
    await execute(buf, ['build', join(folder, 'protos'), '--as-file-descriptor-set', '-o', out]);
    const built = JSON.parse(readFileSync(out, 'utf8')).file as { package?: string; service?: { name: string }[] }[];
    const services = built.flatMap(({ package: of, service = [] }) => service.map(({ name }) => `${of}.${name}`));
    assert.deepEqual(
      services.sort(),
      [...new Set(gatewayOperations.map(({ method }) => method.parent.typeName))].sort(),
    );
    assert.ok(
      files.every(([name]) => !/admin|broker|simulator/.test(name)),
      'nothing of others',
    );
  });

  it('has a program for Node that places an order, and reads the code of an error', async () => {
    const { key } = await gateway.newPartner();
    const folder = await download('marina.binpb');
    const program = fileURLToPath(new URL('../../src/site/snippets/grpc.mjs', import.meta.url));
    const env = {
      ...process.env,
      MARINA_KEY: key,
      MARINA_GRPC: `127.0.0.1:${gateway.app.grpcPort}`,
      MARINA_TLS: 'off',
    };
    const { stdout } = await execute(process.execPath, [program], { cwd: folder, env });
    assert.match(stdout, /^ord_\w+ ORDER_STATE_PENDING\nNOT_FOUND order_not_found\n$/);
  });

  it('names the address, and TLS where there is any', async () => {
    const text = (await textOf('/docs/grpc')).replaceAll(/<[^>]*>/g, '');
    assert.ok(text.includes(`MARINA_GRPC=127.0.0.1:${gateway.app.grpcPort} MARINA_TLS=off`), 'a gateway without TLS');
  });
});

describe('the OpenAPI document', () => {
  it('is what the answers of all tests are held against, at the address of the gateway', async () => {
    const baseUrl = `http://127.0.0.1:${gateway.app.restPort}`;
    const reference = { operations: gatewayOperations, comments: readComments(), examples: readExamples(baseUrl) };
    const served = JSON.parse(await textOf('/openapi.json'));
    assert.deepEqual(
      served,
      JSON.parse(
        JSON.stringify(openApiDocument(reference, { baseUrl, grpcAddress: `127.0.0.1:${gateway.app.grpcPort}` })),
      ),
    );
    assert.deepEqual(served.servers, [{ url: baseUrl }]);
  });
});

describe('the recorded examples', () => {
  it('are of every operation and every type of event there is', () => {
    const { operations, events } = readExamples();
    const names = gatewayOperations.filter(({ http }) => http !== undefined).map(({ method }) => method.localName);
    assert.deepEqual(Object.keys(operations).sort(), names.sort());
    assert.deepEqual(Object.keys(events).sort(), [...eventTypes].sort());
  });

  it('are what a gateway answers today, but for ids, times and the like', () => {
    const kept = readExamples();
    for (const [name, examples] of Object.entries(taken.operations)) {
      assertAlike(kept.operations[name]?.map(shapeOfExample), examples.map(shapeOfExample), name);
    }
    for (const [type, event] of Object.entries(taken.events))
      assertAlike(shapeOf(kept.events[type]), shapeOf(event), type);
  });

  it('are as described', () => {
    const { operations, events } = readExamples();
    for (const methods of Object.values<Record<string, { operationId: string; responses: object }>>(described.paths)) {
      for (const { operationId, responses } of Object.values(methods)) {
        for (const { answer } of operations[operationId] ?? []) {
          assert.ok(String(answer.status) in responses, `${operationId} describes ${answer.status}`);
        }
      }
    }
    for (const event of Object.values(events)) assertValid('/components/schemas/Event', event, { event });
  });

  it('hold no key', () => {
    assert.doesNotMatch(JSON.stringify(readExamples()), /marina_(?:test|live)_[a-z0-9]/i);
  });
});

function shapeOfExample({ title, request, answer }: Examples['operations'][string][number]): unknown {
  return [
    title,
    request.method,
    shapeOf(request.body),
    answer.status,
    shapeOf(answer.body),
    Object.keys(answer.headers),
  ];
}

/** A value without what is different each time: members and their types, and words that say what something is. */
function shapeOf(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map((item) => shapeOf(item));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([member, inside]) => [member, shapeOf(inside, member)]));
  }
  if (value === null) return null;
  return ['object', 'code', 'param'].includes(name) ? value : typeof value;
}

/** Fails unless two shapes are the same. Where one has null the other may have a value: that is a matter of moments. */
function assertAlike(one: unknown, other: unknown, path: string): void {
  if (one === null || other === null) return;
  if (typeof one !== 'object' || typeof other !== 'object') {
    assert.deepEqual(one, other, path);
    return;
  }
  assert.deepEqual(Object.keys(one), Object.keys(other), path);
  for (const [name, inside] of Object.entries(one)) {
    assertAlike(inside, (other as Record<string, unknown>)[name], `${path}.${name}`);
  }
}
