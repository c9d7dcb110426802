import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Event, verifyWebhook } from '@marina/client';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { freePort } from '../../src/sandbox/ports.ts';
import { type ClientGateway, startClientGateway } from '../support/client-gateway.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';
import type { TestPartner } from '../support/gateway.ts';

const program = fileURLToPath(new URL('../../clients/typescript/src/listen/main.ts', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

let clients: ClientGateway;
const running = new Set<ChildProcess>();
before(async () => {
  clients = await startClientGateway();
});
after(async () => {
  for (const child of running) child.kill('SIGKILL');
  await clients?.stop();
});

/** A program on this machine that takes webhooks, answers as it is told, and keeps what it received. */
class Endpoint {
  readonly received: { headers: IncomingHttpHeaders; body: string }[] = [];
  readonly answers: number[] = [];
  #server: Server | undefined;

  constructor(readonly port: number) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}/hooks`;
  }

  async start(): Promise<void> {
    this.#server = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString('utf8');
      this.received.push({ headers: request.headers, body });
      response.writeHead(this.answers.shift() ?? 200).end();
    }).listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  /** The verified events, as soon as there are so many. */
  events(count: number, by = secret): Promise<Event[]> {
    return eventually(async () => {
      assert.equal(this.received.length, count);
      return Promise.all(this.received.map(({ headers, body }) => verifyWebhook(by, headers, body)));
    }, 20_000);
  }
}

interface Run {
  readonly child: ChildProcess;
  readonly lines: () => string;
  /** Ends it as Ctrl-C does, and returns how. */
  interrupt(): Promise<number | null>;
}

function listen(args: readonly string[], env: Record<string, string>): Run {
  const child = spawn(process.execPath, ['--import', 'tsx', program, ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: '/nowhere', ...env },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  }
  return {
    child,
    lines: () => text,
    async interrupt() {
      const ended = once(child, 'close');
      child.kill('SIGINT');
      const [code] = await ended;
      return code;
    },
  };
}

function folder(): string {
  const path = temporaryFolder();
  sharedKeeper().removeAtEnd(path);
  return path;
}

const waits = (run: Run) => eventually(() => assert.match(run.lines(), /Waiting for events/), 20_000);

function place(partner: TestPartner, quantity: number) {
  return clients.gateway.place(partner, { symbol: 'SIM-REST', quantity });
}

describe('the listener', () => {
  it('posts new events in order, byte for byte as a webhook, ends at once, and goes on where it was', async () => {
    const partner = await clients.gateway.newPartner();
    await clients.register(partner, '/listen');
    const endpoint = new Endpoint(await freePort());
    await endpoint.start();
    const state = join(folder(), 'deep/state.json');
    const env = { MARINA_KEY: partner.key, MARINA_BASE_URL: clients.baseUrl, MARINA_WEBHOOK_SECRET: secret };
    const args = ['--forward', endpoint.url, '--state', state, '--poll-ms', '100'];
    await place(partner, 1);
    const first = listen(args, env);
    await waits(first);
    const placed: string[] = [];
    for (const quantity of [2, 3]) placed.push((await place(partner, quantity)).body.id);
    const events = await endpoint.events(2);
    assert.deepEqual(
      events.map(({ data }) => data.id),
      placed,
      'what happened before is not posted',
    );
    await eventually(() => assert.match(first.lines(), new RegExp(`order.pending +${events[1]?.id} 200`)));
    assert.equal(first.lines().includes(secret), false, 'a secret that was given is not shown');
    assert.equal(first.lines().includes(partner.key), false);
    const delivered = await eventually(() => {
      const all = clients.receiver.at('/listen');
      assert.ok(all.length >= 3);
      return all;
    });
    for (const { headers, body } of endpoint.received) {
      assert.equal(delivered.find(({ id }) => id === headers['webhook-id'])?.body, body);
      assert.equal(headers['user-agent'], 'Marina-Webhooks/1.0');
    }
    const began = performance.now();
    assert.equal(await first.interrupt(), 130);
    assert.ok(performance.now() - began < 5_000);
    placed.push((await place(partner, 4)).body.id);
    const second = listen(args, env);
    assert.deepEqual(
      (await endpoint.events(3)).map(({ data }) => data.id),
      placed,
    );
    await second.interrupt();
    assert.deepEqual(Object.keys(JSON.parse(readFileSync(state, 'utf8'))).sort(), ['cursor', 'version']);
    await endpoint.stop();
  });

  it('shows the secret it made, posts what is refused again a few times, and then the next one', async () => {
    const partner = await clients.gateway.newPartner();
    const endpoint = new Endpoint(await freePort());
    const args = ['--forward', endpoint.url, '--state', join(folder(), 'state'), '--from', 'oldest', '--attempts', '2'];
    await place(partner, 1);
    await place(partner, 2);
    await endpoint.start();
    endpoint.answers.push(500, 302, 500, 200);
    const run = listen([...args, '--base-url', clients.baseUrl], { MARINA_KEY: partner.key });
    await eventually(() => assert.equal(endpoint.received.length, 4), 20_000);
    const shown = /signed with (whsec_\S+)/.exec(run.lines())?.[1] ?? '';
    const events = await endpoint.events(4, shown);
    assert.deepEqual(
      events.map(({ version }) => version),
      [1n, 1n, 2n, 2n],
    );
    await eventually(() => assert.match(run.lines(), /was not taken after 2 attempts/));
    await endpoint.stop();
    await place(partner, 3);
    await eventually(() => assert.match(run.lines(), /no answer \(connect ECONNREFUSED/), 20_000);
    await run.interrupt();
  });

  it('refuses what would send events or the key away, and says why', async () => {
    const key = { MARINA_KEY: 'marina_test_key' };
    const here = ['--forward', 'http://127.0.0.1:3000/'];
    const gateway = ['--base-url', clients.baseUrl];
    const cases: [readonly string[], Record<string, string>, RegExp, number][] = [
      [['--forward', 'http://example.com/', ...gateway], key, /example\.com is not this machine/, 2],
      [['--forward', 'http://127.0.0.1.example.com/', ...gateway], key, /is not this machine/, 2],
      [['--forward', 'file:///etc/passwd', ...gateway], key, /a URL of http/, 2],
      [[...here, ...gateway], {}, /Set MARINA_KEY/, 2],
      [here, key, /Say where the gateway is/, 2],
      [[...here, ...gateway, '--key', 'marina_test_key'], key, /Unknown option '--key'/, 2],
      [[...here, '--base-url', 'http://example.com'], key, /plain text/, 1],
      [[...here, ...gateway, '--from', 'oldest'], key, /unauthorized/, 1],
      [['--forward', 'http://me:hunter2@127.0.0.1/', ...gateway], key, /--forward has a user name or a password/, 2],
      [[...here, '--base-url', 'http://hunter2@127.0.0.1/'], key, /The base URL has a user name or a password/, 2],
      [[...here, ...gateway], { ...key, MARINA_WEBHOOK_SECRET: 'whsec_' }, /has to be `whsec_` and base64/, 2],
      [[...here, ...gateway], { ...key, MARINA_WEBHOOK_SECRET: 'hunter2' }, /has to be `whsec_` and base64/, 2],
      [[...here, ...gateway, 'marina_live_hunter2'], key, /Unexpected argument '\[hidden\]'/, 2],
      [[...here, ...gateway, '--from\u001b[2J'], key, /Unknown option '--from\\u\{1b\}\[2J'/, 2],
    ];
    await Promise.all(
      cases.map(async ([args, env, expected, status]) => {
        const run = listen([...args, ...(args.includes('--state') ? [] : ['--state', join(folder(), 'state')])], env);
        const [code] = await once(run.child, 'close');
        assert.match(run.lines(), expected);
        assert.equal(code, status, run.lines());
        assert.doesNotMatch(run.lines(), /hunter2|[^\P{C}\n]/u);
      }),
    );
  });

  it('prints no credential and nothing that a terminal acts on, whatever the gateway and the program answer', async () => {
    const key = 'marina_test_hunter2';
    const evil = '\u001b]0;owned\u0007\u202e\r\n\u009b31m';
    const event = { id: 'evt_1', version: 1, type: `order.${evil}`, timestamp: evil };
    const events = { has_more: false, next_cursor: 'c', data: [event] };
    const error = { error: { type: 'api_error', code: 'internal_error', message: `${evil} ${key} ${secret}` } };
    let reads = 0;
    const gateway = createServer((_request, response) => {
      reads += 1;
      response.writeHead(reads === 1 ? 200 : 500, { 'content-type': 'application/json' });
      response.end(JSON.stringify(reads === 1 ? events : error));
    }).listen(0, '127.0.0.1');
    await once(gateway, 'listening');
    const { port } = gateway.address() as AddressInfo;
    const endpoint = new Endpoint(await freePort());
    await endpoint.start();
    const args = ['--forward', `${endpoint.url}?token=hunter2`, '--base-url', `http://127.0.0.1:${port}`];
    const state = ['--state', join(folder(), 'state'), '--from', 'oldest', '--poll-ms', '100'];
    const run = listen([...args, ...state], { MARINA_KEY: key, MARINA_WEBHOOK_SECRET: secret });
    await eventually(() => assert.match(run.lines(), /internal_error/), 20_000);
    await run.interrupt();
    assert.match(run.lines(), /order\.\\u\{1b\}\]0;owned\\u\{7\}\\u\{202e\}\\u\{d\}\\u\{a\}\\u\{9b\}31m/);
    assert.match(run.lines(), /\[hidden\] \[hidden\]/);
    assert.doesNotMatch(run.lines(), /hunter2|[^\P{C}\n]/u);
    assert.ok(!run.lines().includes(secret));
    await endpoint.stop();
    gateway.closeAllConnections();
    gateway.close();
  });
});
