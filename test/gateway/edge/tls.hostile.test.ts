import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { credentials, Metadata } from '@grpc/grpc-js';
import { Limits } from '../../../src/gen/marina/gateway/v1/limits_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { makeAuthority } from '../../../src/sandbox/certificates.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { HonestCalls } from '../../support/hostile/http1-honest.ts';
import {
  clientHello,
  closing,
  handshake,
  protocols,
  record,
  sendBytes,
  serverName,
  u16,
  usual,
} from '../../support/hostile/tls-client.ts';

/** How long a connection that did something wrong may stay open. */
const boundMs = 5_000;
/** The same of one that does nothing: the gateway gives a handshake 10 s. */
const handshakeBoundMs = 14_000;

type PortName = 'restPort' | 'grpcPort' | 'adminPort';
const ports: readonly PortName[] = ['restPort', 'grpcPort', 'adminPort'];

const alert = 21;
const hello = clientHello();
const certificateAsked = Buffer.from([2, 80]);

/** Bytes after which the port has nothing to wait for. */
const nonsense: Record<string, Buffer> = {
  'plain HTTP/1.1': Buffer.from('GET /v1/limits HTTP/1.1\r\nHost: gateway\r\n\r\n'),
  'plain HTTP/2': Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'),
  'an answer of HTTP': Buffer.from('HTTP/1.1 200 OK\r\n\r\n'),
  'the hello of SSH': Buffer.from('SSH-2.0-OpenSSH_9.6\r\n'),
  'the hello of SSL 2': Buffer.from([0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10, ...Buffer.alloc(37, 1)]),
  'an unknown record': record(99, Buffer.alloc(10)),
  'a record of 65,535 bytes': record(22, Buffer.alloc(20_000), 0x0301, 65_535),
  'a record above 2^14 bytes': record(22, Buffer.alloc(18_000), 0x0301),
  'a record of no bytes': Buffer.concat(Array.from({ length: 100 }, () => record(22, Buffer.alloc(0)))),
  'a heartbeat': record(24, Buffer.from([1, 0x40, 0])),
  'application data before the handshake': record(23, Buffer.alloc(100)),
  'a fatal alert': record(alert, certificateAsked),
  'an alert of 1,000 bytes': record(alert, Buffer.alloc(1_000, 1)),
  'an alert of one byte': record(alert, Buffer.from([1])),
  'a thousand warnings': Buffer.concat(Array.from({ length: 1_000 }, () => record(alert, Buffer.from([1, 90])))),
  'a change of ciphers first': record(20, Buffer.from([1])),
  "a server's hello": handshake(2, Buffer.alloc(70)),
  'a Finished first': handshake(20, Buffer.alloc(12)),
  'a handshake message of 16 MiB': record(22, Buffer.from([1, 0xff, 0xff, 0xff, ...Buffer.alloc(100)])),
  'two hellos': Buffer.concat([hello, hello]),
  'a hello, then nonsense': Buffer.concat([hello, Buffer.from('nonsense, not a record')]),
  'a hello, then a fatal alert': Buffer.concat([hello, record(alert, certificateAsked)]),
  'a hello, then application data': Buffer.concat([hello, record(23, Buffer.alloc(64))]),
  'a hello without ciphers': clientHello({ ciphers: [] }),
  'a hello with unknown ciphers': clientHello({ ciphers: [0xfafa, 0x1a1a] }),
  'a hello with ciphers without a key': clientHello({ ciphers: [0x0000, 0x0001, 0x003b] }),
  'a hello with export ciphers': clientHello({ ciphers: [0x0003, 0x0006, 0x0008, 0x0014] }),
  'a hello with CBC and 3DES': clientHello({ ciphers: [0x000a, 0xc008] }),
  'SSL 3': clientHello({ version: 0x0300, recordVersion: 0x0300 }),
  'TLS 1.0': clientHello({ version: 0x0301 }),
  'TLS 1.1': clientHello({ version: 0x0302 }),
  'TLS 1.0 among the versions': clientHello({ extensions: [...usual, [43, Buffer.from([4, 3, 1, 3, 2])]] }),
  'a fallback from a version that was better': clientHello({ version: 0x0302, ciphers: [0x5600, 0xc009] }),
  'an extension longer than the hello': clientHello({ extensions: [...usual, [0, u16(60_000)]] }),
  'two server names of one kind': clientHello({ extensions: [...usual, serverName('a.example', 'b.example')] }),
  'the server name twice': clientHello({ extensions: [...usual, serverName('a'), serverName('b')] }),
  'an empty server name': clientHello({ extensions: [...usual, serverName('')] }),
  'a server name with a NUL': clientHello({ extensions: [...usual, serverName('localhost\0.example')] }),
  'a server name of 300 bytes': clientHello({ extensions: [...usual, serverName('a'.repeat(300))] }),
  'protocols without a name': clientHello({ extensions: [...usual, protocols('')] }),
  'protocols that are cut off': clientHello({ extensions: [...usual, [16, Buffer.from([0, 9, 8])]] }),
  'protocols nobody knows': clientHello({ extensions: [...usual, protocols('spdy/3', 'x'.repeat(255))] }),
};

describe('the TLS ports', () => {
  let gateway: TestGateway;
  let ca: string;
  let key: string;
  let honest: HonestCalls;
  let honestGrpc: ReturnType<typeof callOverGrpc>;

  before(async () => {
    const folder = temporaryFolder();
    const [authority, operators] = [await makeAuthority('Marina test'), await makeAuthority('Marina operators')];
    ca = authority.cert;
    const identity = await authority.issue(['localhost', '127.0.0.1']);
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const [cert, secret] = [file('cert.pem', identity.cert), file('key.pem', identity.key)];
    gateway = await startGateway({
      MARINA_TLS_CERT_FILE: cert,
      MARINA_TLS_KEY_FILE: secret,
      MARINA_ADMIN_TLS_CERT_FILE: cert,
      MARINA_ADMIN_TLS_KEY_FILE: secret,
      MARINA_ADMIN_TLS_CLIENT_CA_FILE: file('operators.pem', operators.cert),
    });
    ({ key } = await gateway.newPartner());
    honest = new HonestCalls({ port: gateway.app.restPort, ca }, key);
    honestGrpc = callOverGrpc();
  });
  after(async () => {
    await Promise.all([honest.stop(), honestGrpc.stop()]);
    await gateway.stop();
  });

  for (const name of ports) {
    describe(name, { concurrency: 8 }, () => {
      for (const [what, bytes] of Object.entries(nonsense)) {
        it(`closes a connection that sends ${what}`, async () => {
          const seen = await sendBytes(gateway.app[name], [bytes], { boundMs: handshakeBoundMs });
          assert.ok(seen.isClosed, `it is open after ${Math.round(seen.tookMs)} ms`);
          assert.doesNotMatch(seen.bytes.toString('latin1'), /HTTP\/1\.1 2\d\d/);
        });
      }
    });
  }

  for (const version of ['SSL 3', 'TLS 1.0', 'TLS 1.1', 'TLS 1.0 among the versions']) {
    it(`${version} is refused with an alert, on each port`, async () => {
      for (const name of ports) {
        const { bytes } = await sendBytes(gateway.app[name], [nonsense[version] as Buffer], { boundMs });
        assert.equal(bytes[0], alert, `${name} answered ${bytes.subarray(0, 16).toString('hex')}`);
      }
      const bounds = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
      await assert.rejects(open('restPort', bounds));
    });
  }

  describe('a handshake that stops is given up in time', { concurrency: true }, () => {
    const stops: Record<string, Buffer[]> = {
      'before its first byte': [],
      'after one byte': [hello.subarray(0, 1)],
      'in the middle of a record': [hello.subarray(0, 40)],
      'after the hello': [hello],
      'in the middle of a long hello': [record(22, Buffer.concat([Buffer.from([1, 0, 0x40, 0]), Buffer.alloc(4_000)]))],
    };
    for (const [when, pieces] of Object.entries(stops)) {
      it(when, () => eachPort((port) => closes(port, pieces, 40)));
    }
    it('though a byte comes now and then', () =>
      eachPort((port) =>
        closes(
          port,
          [...hello].map((byte) => Buffer.from([byte])),
          5,
          500,
        ),
      ));
  });

  it('a hello of which any byte is another one ends in time', async () => {
    const random = seeded(14);
    const wrong = Array.from({ length: 150 }, () => {
      const bytes = Buffer.from(
        clientHello({ extensions: [...usual, serverName('localhost'), protocols('http/1.1')] }),
      );
      for (let flips = 1 + random(4); flips > 0; flips -= 1) bytes[random(bytes.length)] = random(256);
      return bytes;
    });
    await eachPort((port) => Promise.all(wrong.map((bytes) => closes(port, [bytes], 1))));
  });

  describe('a client whose handshake is good', { concurrency: true }, () => {
    it('is served whichever name it asks for', async () => {
      for (const servername of ['localhost', 'unknown.example', 'xn--nxasmq6b.example', `${'a'.repeat(60)}.example`]) {
        const socket = await open('restPort', { servername });
        assert.equal(await statusOf(socket), 200, servername);
      }
    });

    it('is served by REST when it offers no protocol, and refused when it offers only h2', async () => {
      assert.equal(await statusOf(await open('restPort', { ALPNProtocols: [] })), 200);
      await assert.rejects(open('restPort', { ALPNProtocols: ['h2'] }));
    });

    for (const name of ['grpcPort', 'adminPort'] as const) {
      it(`is refused by ${name} when it offers only http/1.1`, async () => {
        await assert.rejects(open(name, { ALPNProtocols: ['http/1.1'] }));
      });
    }

    it('is closed by gRPC in time when it offers no protocol', async () => {
      const socket = await open('grpcPort', { ALPNProtocols: [] });
      socket.resume();
      await within(handshakeBoundMs, closing(socket));
    });

    for (const name of ['restPort', 'grpcPort'] as const) {
      it(`is closed by ${name} when it negotiates again and again`, async () => {
        const protocol = name === 'restPort' ? 'http/1.1' : 'h2';
        const socket = await open(name, { maxVersion: 'TLSv1.2', ALPNProtocols: [protocol] });
        socket.resume();
        const closed = closing(socket);
        let times = 0;
        while (!socket.destroyed && times < 20 && (await negotiateAgain(socket))) times += 1;
        assert.ok(times < 5, `it negotiated ${times} times`);
        await within(boundMs, closed);
      });

      it(`is closed by ${name} when it sends what is not encrypted`, async () => {
        const raw = connectTcp({ port: gateway.app[name], host: '127.0.0.1' });
        raw.on('error', () => {});
        const socket = connect({ socket: raw, ca, ALPNProtocols: [name === 'restPort' ? 'http/1.1' : 'h2'] });
        socket.on('error', () => {});
        await within(boundMs, new Promise((resolve) => socket.once('secureConnect', resolve)));
        const closed = closing(raw);
        raw.write(record(23, Buffer.alloc(200, 1)));
        await within(boundMs, closed);
      });
    }
  });

  it('clients that break off anywhere are forgotten', async () => {
    await eachPort(async (port) => {
      for (const size of [0, 1, 10, hello.length])
        await Promise.all(Array.from({ length: 20 }, () => breakOff(port, size)));
    });
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = await open('restPort');
        socket.write(`GET /v1/limits HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${key}\r\n\r\n`);
        socket.destroy();
      }),
    );
  });

  it('300 handshakes that never begin keep nobody away, and are given up in time', async () => {
    const before = honest.calls;
    await Promise.all([closes(gateway.app.restPort, [], 150), closes(gateway.app.grpcPort, [], 150)]);
    assert.ok(honest.calls > before + 50, 'honest calls went on meanwhile');
  });

  it('answered every honest call meanwhile, and logged no error', async () => {
    await honest.stop();
    assert.deepEqual(honest.failures, []);
    const { calls, failures } = await honestGrpc.stop();
    assert.deepEqual(failures, []);
    assert.ok(honest.calls > 100 && calls > 100, `${honest.calls} calls over REST, ${calls} over gRPC`);
    const wrong = gateway.logged.filter((line) => /uncaught|unhandled|"level":"(?:error|fatal)"/.test(line));
    assert.deepEqual(wrong, []);
  });

  async function eachPort(test: (port: number) => Promise<unknown>): Promise<void> {
    await Promise.all(ports.map((name) => test(gateway.app[name])));
  }

  /** Some clients send the same at once; each must be closed in the time of a handshake. */
  async function closes(port: number, pieces: readonly Buffer[], clients: number, betweenMs = 0): Promise<void> {
    const all = Array.from({ length: clients }, () =>
      sendBytes(port, pieces, { boundMs: handshakeBoundMs, betweenMs }),
    );
    const open = (await Promise.all(all)).filter(({ isClosed }) => !isClosed);
    assert.equal(open.length, 0, `${open.length} connections are open after ${handshakeBoundMs} ms`);
  }

  /** Resolves after the handshake; rejects when the server refuses it. */
  function open(name: PortName, options: ConnectionOptions = {}): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const where = { port: gateway.app[name], host: '127.0.0.1', ca, checkServerIdentity: () => undefined };
      const socket = connect({ ...where, ALPNProtocols: ['http/1.1'], ...options }, () => resolve(socket));
      socket.on('error', reject);
      socket.once('close', () => reject(new Error('the connection was closed')));
    });
  }

  async function statusOf(socket: TLSSocket): Promise<number> {
    const answered = new Promise<string>((resolve) =>
      socket.once('data', (bytes) => resolve(bytes.toString('latin1'))),
    );
    socket.write(`GET /v1/limits HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    const text = await within(boundMs, answered);
    socket.destroy();
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
  }

  /** Honest calls over gRPC, one after the other, until they are stopped. */
  function callOverGrpc() {
    const client = createGrpcClient(
      Limits,
      `127.0.0.1:${gateway.app.grpcPort}`,
      {},
      credentials.createSsl(Buffer.from(ca)),
    );
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${key}`);
    const failures: string[] = [];
    let calls = 0;
    let isOver = false;
    const run = async () => {
      while (!isOver) {
        calls += 1;
        await client.getLimits({}, { timeoutMs: 10_000, metadata }).catch((error) => failures.push(String(error)));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const running = run();
    return {
      stop: async () => {
        isOver = true;
        await running;
        client.close();
        return { calls, failures };
      },
    };
  }
});

/** Whether another handshake on an open connection was gone through. */
function negotiateAgain(socket: TLSSocket): Promise<boolean> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve(false));
    const isBegun = socket.renegotiate({}, (error) => resolve(error === null));
    if (!isBegun) resolve(false);
  });
}

/** Sends some bytes of a hello and resets the connection. */
async function breakOff(port: number, bytes: number): Promise<void> {
  const socket = connectTcp({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  await new Promise<void>((resolve) => socket.write(hello.subarray(0, bytes), () => resolve()));
  socket.resetAndDestroy();
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The same numbers in each run: each below the bound it is asked with. */
function seeded(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * bound);
  };
}
