import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { ErrorAnswer, Marina, type MarinaOptions, NoAnswerError } from '@marina/client';
import { Agent, getGlobalDispatcher, Pool, setGlobalDispatcher } from 'undici';
import { CertificateFiles } from '../support/certificate-files.ts';
import { eventually } from '../support/eventually.ts';

const body = JSON.stringify({ error: { type: 'authentication_error', code: 'unauthorized', message: 'No.' } });
const answer =
  'HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n' +
  `content-length: ${body.length}\r\n\r\n${body}`;

/** Answers the first bytes of a request and closes the connection with the rest unread, in a process of its own. */
const program = `
const server = require('node:net').createServer((socket) => {
  socket.on('error', () => undefined);
  socket.once('data', () => {
    socket.pause();
    socket.write(${JSON.stringify(answer)});
    socket.destroy();
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;

function document(file: Uint8Array): Parameters<Marina['sendDocument']>[0] {
  return { id: 'app_x', type: 'photo', file, media_type: 'image/jpeg' };
}

function marinaAt(port: unknown, options: Partial<MarinaOptions> = {}): Marina {
  return new Marina({ baseUrl: `http://127.0.0.1:${port}`, key: 'marina_test_key', maxAttempts: 1, ...options });
}

/** A server that ends with the test. */
async function serve(context: TestContext, listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

describe('a document that the client for TypeScript sends', () => {
  it('is answered with the refusal that came although the connection broke, each time', async (context) => {
    const child: ChildProcess = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    context.after(() => child.kill());
    assert.ok(child.stdout);
    const [port] = await once(child.stdout, 'data');
    const marina = marinaAt(String(port).trim());
    const usual = getGlobalDispatcher();
    context.after(() => setGlobalDispatcher(usual));
    for (const size of [999_000, 8_000_000]) {
      // undici sets one like this when it is imported.
      setGlobalDispatcher(new Agent());
      for (let time = 0; time < 20; time += 1) {
        await assert.rejects(marina.sendDocument(document(Buffer.alloc(size))), (error) => {
          assert.ok(error instanceof ErrorAnswer, `${size} bytes: ${error} ${(error as Error).cause}`);
          assert.deepEqual([error.status, error.code, error.call.isOutcomeUnknown], [401, 'unauthorized', false]);
          return true;
        });
      }
    }
  });

  it('arrives as it is, with its headers, and its connection is closed', async (context) => {
    const received: unknown[] = [];
    const file = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251));
    const { server, port } = await serve(context, async (request, response) => {
      const sent = Buffer.concat(await request.toArray());
      const { authorization, 'content-type': type, 'content-length': length } = request.headers;
      received.push([request.method, request.url, authorization, type, length, sent.equals(file)]);
      response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': 'req_1' }).end('{"version":7}');
    });
    const ids: unknown[] = [];
    const marina = marinaAt(port, { onAnswer: ({ requestId, status }) => ids.push([requestId, status]) });
    assert.deepEqual(await marina.sendDocument(document(file)), { version: 7n });
    const path = '/v1/applications/app_x/documents/photo';
    assert.deepEqual(received, [['PUT', path, 'Bearer marina_test_key', 'image/jpeg', '300000', true]]);
    assert.deepEqual(ids, [['req_1', 200]]);
    await eventually(async () => {
      const open = await new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
      assert.equal(open, 0);
    });
  });

  it('goes over connections like those of the program’s Agent, with its authority and its certificate', async (context) => {
    const files = await CertificateFiles.make();
    const [ca, cert, key] = [files.serverAuthority, files.client.certificate, files.client.key].map((path) =>
      readFileSync(path),
    );
    const server = createSecureServer(
      {
        ...{ key: readFileSync(files.server.key), cert: readFileSync(files.server.certificate) },
        ...{ ca: readFileSync(files.clientAuthority), requestCert: true, rejectUnauthorized: false },
      },
      (request, response) => {
        const name = (request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? '';
        request.resume().once('end', () => response.end(JSON.stringify({ method: request.method, name })));
      },
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const usual = getGlobalDispatcher();
    const { port } = server.address() as AddressInfo;
    const baseUrl = `https://localhost:${port}`;
    const before = marinaAt(port, { baseUrl });
    const agents: Agent[] = [];
    context.after(async () => {
      setGlobalDispatcher(usual);
      server.closeAllConnections();
      server.close();
      await Promise.all(agents.map((agent) => agent.destroy()));
    });
    for (const [connect, name] of [
      [{ ca }, ''],
      [{ ca, cert, key }, 'gateway'],
    ] as const) {
      const agent = new Agent({ connect });
      agents.push(agent);
      setGlobalDispatcher(agent);
      // Also a client that was made before.
      for (const marina of [before, marinaAt(port, { baseUrl })]) {
        assert.deepEqual(await marina.getWallet(), { method: 'GET', name });
        assert.deepEqual(await marina.sendDocument(document(Buffer.from('x'))), { method: 'PUT', name });
      }
    }
  });

  it('goes through what the program put before the usual Agent, and through one of its own', async (context) => {
    const { port } = await serve(context, (request, response) => {
      request.resume().once('end', () => response.end('{}'));
    });
    const usual = getGlobalDispatcher();
    context.after(() => setGlobalDispatcher(usual));
    let passed = 0;
    class OwnAgent extends Agent {
      override dispatch(...[options, handler]: Parameters<Agent['dispatch']>): boolean {
        passed += 1;
        return super.dispatch(options, handler);
      }
    }
    Object.defineProperty(OwnAgent, 'name', { value: 'Agent' });
    const composed = new Agent().compose((dispatch) => (options, handler) => {
      passed += 1;
      return dispatch(options, handler);
    });
    const factory = new Agent({
      factory: (origin, options) => {
        passed += 1;
        return new Pool(origin, options);
      },
    });
    for (const dispatcher of [composed, new OwnAgent(), factory]) {
      passed = 0;
      setGlobalDispatcher(dispatcher);
      assert.deepEqual(await marinaAt(port).sendDocument(document(Buffer.from('x'))), {});
      assert.equal(passed, 1);
    }
  });

  it('is a NoAnswerError if nobody answers until its deadline, if it is stopped, and if nobody is there', async (context) => {
    const { server, port } = await serve(context, () => undefined);
    const file = Buffer.alloc(1_000);
    const unknown = (error: unknown) => error instanceof NoAnswerError && error.call.isOutcomeUnknown;
    await assert.rejects(marinaAt(port).sendDocument(document(file), { deadlineMs: 300 }), unknown);
    const stop = new AbortController();
    server.once('request', () => stop.abort(new Error('enough')));
    await assert.rejects(marinaAt(port).sendDocument(document(file), { signal: stop.signal }), unknown);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await assert.rejects(marinaAt(port).sendDocument(document(file)), unknown);
  });

  it('is not led elsewhere, and an answer that is too long is none', async (context) => {
    const { port } = await serve(context, (request, response) => {
      request.resume();
      if (request.headers['content-length'] === '1') response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
      else response.end(Buffer.alloc(9 * 2 ** 20, 0x20));
    });
    const redirected = marinaAt(port).sendDocument(document(Buffer.alloc(1)));
    await assert.rejects(redirected, (error) => error instanceof ErrorAnswer && error.status === 307);
    const long = marinaAt(port).sendDocument(document(Buffer.alloc(2)));
    await assert.rejects(long, (error) => /longer than/.test(String((error as Error).cause)));
  });

  it('goes through the fetch and the dispatcher that the program chose', async (context) => {
    const chosen = async () => Response.json({ state: 'delivered' });
    const file = Buffer.from('x');
    assert.deepEqual(await marinaAt(1, { fetch: chosen }).sendDocument(document(file)), { state: 'delivered' });
    const dispatcher = Symbol.for('undici.globalDispatcher.1');
    const globals = globalThis as unknown as Record<symbol, unknown>;
    const usual = globals[dispatcher];
    context.after(() => {
      globals[dispatcher] = usual;
    });
    globals[dispatcher] = new (class ProxyAgent {
      dispatch() {
        throw new Error('through the proxy');
      }
    })();
    await assert.rejects(marinaAt(65_530).sendDocument(document(file)), (error) => {
      const { cause } = error as { cause: Error };
      return /through the proxy/.test(`${cause} ${cause.cause}`);
    });
    globals[dispatcher] = usual;
    context.mock.method(globalThis, 'fetch', chosen);
    assert.deepEqual(await marinaAt(1).sendDocument(document(file)), { state: 'delivered' });
  });
});
