import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { ErrorAnswer, Marina, type MarinaOptions, NoAnswerError } from '@marina/client';

const key = 'marina_test_key';
const baseUrl = 'http://127.0.0.1:1';
const buy = { account: 'LAG0012345', symbol: 'ZENITHBANK', side: 'buy', quantity: 100, type: 'market' } as const;

/** A client that sends nothing: what it would send is kept, and each request gets the answer. */
function recording(answer: () => Promise<Response> = async () => Response.json({ id: 'x' }), options = {}) {
  const sent: { url: string; headers: Headers; body: unknown }[] = [];
  const fetch: MarinaOptions['fetch'] = async (url, init) => {
    sent.push({ url: String(url), headers: new Headers(init?.headers), body: init?.body });
    return answer();
  };
  return { sent, marina: new Marina({ baseUrl, key, fetch, ...options }) };
}

function document(file: unknown, mediaType: unknown = 'image/jpeg') {
  const input = { id: 'app_x', type: 'id_front', file, media_type: mediaType };
  return input as Parameters<Marina['sendDocument']>[0];
}

describe('the documents that the client for TypeScript sends', () => {
  it('have the bytes of any view or buffer, and are a copy', async () => {
    const bytes = Buffer.from('0123456789abcdef');
    const own = new Uint8Array(bytes).buffer;
    const shared = new SharedArrayBuffer(16);
    new Uint8Array(shared).set(bytes);
    const foreign = runInNewContext(`Uint8Array.from(${JSON.stringify([...bytes])}).buffer`);
    const files = [bytes, own, shared, foreign, new Uint16Array(own), new Float64Array(own), new DataView(own)];
    for (const file of [...files, Buffer.concat([Buffer.alloc(3), bytes]).subarray(3)]) {
      const { sent, marina } = recording();
      await marina.sendDocument(document(file));
      const body = sent[0]?.body;
      assert.ok(body instanceof Uint8Array);
      assert.deepEqual(Buffer.from(body), bytes);
      assert.notEqual(body.buffer, (file as Uint8Array).buffer);
    }
  });

  it('are refused if they are empty, or no bytes, before anything is sent', async () => {
    const { sent, marina } = recording();
    for (const empty of [Buffer.alloc(0), new ArrayBuffer(0), new Uint8Array(), new DataView(new ArrayBuffer(0))]) {
      await assert.rejects(marina.sendDocument(document(empty)), /^TypeError: The `file` of sendDocument is empty/);
    }
    const wrong = [undefined, null, '', 'photo.jpg', 5, [1, 2], {}, new Blob(['x']), Promise.resolve(Buffer.from('x'))];
    for (const file of wrong) {
      await assert.rejects(marina.sendDocument(document(file)), /^TypeError: The `file` of sendDocument has to be its/);
    }
    for (const mediaType of [null, '', 7]) {
      await assert.rejects(marina.sendDocument(document(Buffer.from('x'), mediaType)), /needs `media_type`/);
    }
    assert.deepEqual(sent, []);
  });
});

describe('the Idempotency-Key of the client for TypeScript', () => {
  it('is sent and reported without the blanks around it', async () => {
    for (const [given, expected] of [
      ['  mine', 'mine'],
      ['mine\t ', 'mine'],
      [' \t my own \t', 'my own'],
      [` ${'k'.repeat(255)} `, 'k'.repeat(255)],
    ] as const) {
      const { sent, marina } = recording(async () => new Response('{}', { status: 400 }));
      const failing = marina.createOrder(buy, { idempotencyKey: given });
      await assert.rejects(failing, (error) => error instanceof ErrorAnswer && error.call.idempotencyKey === expected);
      assert.equal(sent[0]?.headers.get('idempotency-key'), expected);
    }
  });

  it('is refused if nothing but blanks is in it, or what no header may have', async () => {
    const { sent, marina } = recording();
    for (const idempotencyKey of ['', ' ', '\t', ' '.repeat(300), 'k'.repeat(256), 'mine\n', '\nmine', 'mi\tne', 'é']) {
      await assert.rejects(marina.createOrder(buy, { idempotencyKey }), TypeError);
    }
    assert.deepEqual(sent, []);
  });
});

describe('the options of the client for TypeScript', () => {
  it('are refused if the base URL would carry a password or another request, without showing it', () => {
    const wrong = [
      'http://me:hunter2@127.0.0.1',
      'https://hunter2@api.example.com',
      'https://api.example.com?t=hunter2',
    ];
    for (const each of [...wrong, 'https://api.example.com/#hunter2', 'ftp://hunter2', 'hunter2', '']) {
      assert.throws(
        () => new Marina({ baseUrl: each, key }),
        (error) => error instanceof TypeError && !error.message.includes('hunter2'),
        each,
      );
    }
    assert.ok(new Marina({ baseUrl: 'https://api.example.com/gateway//', key }));
  });

  it('say in a browser that browsers are not supported', (context) => {
    const globals = globalThis as { window?: unknown };
    globals.window = { document: {} };
    context.after(() => delete globals.window);
    assert.throws(() => new Marina({ baseUrl, key }), /^TypeError: Browsers are not supported: .*CORS/);
    assert.ok(recording().marina, 'a program may bring a fetch of its own');
  });
});

describe('the retries of the client for TypeScript', () => {
  const refused = async (): Promise<Response> => {
    throw new TypeError('fetch failed');
  };
  const proxy = async () => new Response('Bad gateway', { status: 502 });
  const unavailable = { error: { type: 'api_error', code: 'service_unavailable', message: 'Later.' } };
  const restarting = async () => Response.json(unavailable, { status: 503, headers: { 'retry-after': '1' } });
  const ways: [string, () => Promise<Response>][] = [
    ['refuses connections', refused],
    ['is behind a proxy that answers 502', proxy],
    ['answers service_unavailable and asks for a second', restarting],
  ];
  for (const [what, during] of ways) {
    for (const drawn of [0, 0.999]) {
      it(`outlast a restart of 30 s during which the gateway ${what}, with waits drawn at ${drawn}`, async (context) => {
        context.mock.timers.enable({ apis: ['setTimeout'] });
        context.mock.method(Math, 'random', () => drawn);
        let nowMs = 0;
        const { sent, marina } = recording(() => (nowMs < 30_000 ? during() : Promise.resolve(Response.json({}))));
        let outcome: unknown;
        marina.createOrder(buy).then(
          () => (outcome = 'answered'),
          (error) => (outcome = error),
        );
        for (; outcome === undefined && nowMs < 120_000; nowMs += 50) {
          context.mock.timers.tick(50);
          for (let turns = 0; turns < 8; turns += 1) await turn();
        }
        assert.equal(outcome, 'answered');
        assert.equal(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size, 1);
        assert.ok(sent.length <= 12, `${sent.length} requests`);
      });
    }
  }

  it('never repeat what is done as often as it is sent', async () => {
    for (const during of [refused, proxy, restarting]) {
      const { sent, marina } = recording(during);
      await assert.rejects(marina.createKey({ scopes: ['read'] }));
      assert.equal(sent.length, 1);
    }
  });
});

describe('the answer that comes before a request is sent', () => {
  const body = JSON.stringify({ error: { type: 'authentication_error', code: 'unauthorized', message: 'No.' } });
  const head = (status: string) =>
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`;
  const endings: [string, (socket: Socket, answer: string) => void][] = [
    ['resets the connection', (socket, answer) => socket.write(answer, () => socket.resetAndDestroy())],
    ['closes it', (socket, answer) => socket.end(answer, () => socket.destroy())],
    ['ends it and resets it at the next byte', (socket, answer) => socket.end(answer)],
  ];
  for (const [ending, end] of endings) {
    it(`is read by the client for TypeScript although the gateway reads no more and ${ending}`, async (context) => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => end(socket.pause(), `${head('401 Unauthorized')}${body}`));
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      context.after(() => server.close());
      const { port } = server.address() as AddressInfo;
      const marina = new Marina({ baseUrl: `http://127.0.0.1:${port}`, key, maxAttempts: 1 });
      for (const size of [20_000, 900_000, 5_000_000]) {
        const sending = marina.sendDocument(document(Buffer.alloc(size, 1)));
        await assert.rejects(sending, (error) => error instanceof ErrorAnswer && error.status === 401);
      }
    });
  }
});

describe('the event feed of the client for TypeScript', () => {
  const page = () => Response.json({ has_more: true, next_cursor: 'c', data: [{ id: 'evt_1', version: 1 }] });

  /**
   * Counts the signals that a signal holds of those made of it: Node keeps an entry for each for as long as it lives.
   */
  function dependants(signal: AbortSignal): number {
    const symbols = Object.getOwnPropertySymbols(signal).filter((each) => String(each).includes('Dependant'));
    return symbols.reduce((sum, each) => sum + ((signal as never)[each] as Set<unknown>).size, 0);
  }

  it('leaves nothing behind of a page with a signal that lives as long as the program', async () => {
    const { marina, sent } = recording(async () => page());
    const { signal } = new AbortController();
    for await (const _ of marina.followEvents({ signal })) if (sent.length === 2_000) break;
    assert.deepEqual([dependants(signal), getEventListeners(signal, 'abort').length], [0, 0]);
  });

  it('leaves no timer behind of a call that has ended', async (context) => {
    const timers = new Set<unknown>();
    const set = globalThis.setTimeout;
    const clear = globalThis.clearTimeout;
    context.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
      const timer = set(run, ms);
      timers.add(timer);
      return timer;
    });
    context.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
      timers.delete(timer);
      clear(timer);
    });
    context.mock.method(AbortSignal, 'timeout', () => assert.fail('its timer stays'));
    const { marina } = recording(async () => page());
    for (let call = 0; call < 20; call += 1) await marina.getWallet();
    assert.equal(timers.size, 0);
  });

  it('tells of trouble after a few attempts, although a call makes many', async () => {
    const stop = new AbortController();
    const { sent, marina } = recording(async () => {
      throw new TypeError('fetch failed');
    });
    const onTrouble = () => stop.abort(new Error('enough'));
    const following = (async () => {
      for await (const _ of marina.followEvents({ signal: stop.signal, onTrouble }));
    })();
    await assert.rejects(following, (error) => !(error instanceof NoAnswerError));
    assert.equal(sent.length, 3);
  });
});

describe('a function that is called for each answer, and throws', () => {
  it('takes neither the answer nor its key away, and is written to the console', async (test) => {
    const written = test.mock.method(console, 'error', () => undefined);
    const onAnswer = () => assert.fail('a mistake in a log');
    const { sent, marina } = recording(async () => Response.json({ id: 'ord_x' }, { status: 201 }), { onAnswer });
    const order = await marina.createOrder(buy, { idempotencyKey: 'one', onAnswer });
    assert.equal(order.id, 'ord_x');
    assert.equal(sent.length, 1);
    assert.equal(written.mock.callCount(), 2);
  });
});

describe('a function of the program that fails later, as a rejected promise', () => {
  // A rejection that nobody handles ends this process, and fails the test.
  const odd: [string, () => unknown][] = [
    ['is asynchronous', async () => assert.fail('the log is away')],
    ['is asynchronous and fails after a turn', () => turn().then(() => assert.fail('the log is away'))],
    [
      'returns what only looks like a promise',
      () =>
        Object.fromEntries([['then', (_: unknown, no: (error: Error) => void) => no(new Error('the log is away'))]]),
    ],
    [
      'returns what cannot even be asked whether it is a promise',
      () => Object.defineProperty({}, 'then', { get: () => assert.fail('the log is away') }),
    ],
  ];
  for (const [what, fail] of odd) {
    it(`changes no call and no feed, and is written to the console, if it ${what}`, async (test) => {
      const written = test.mock.method(console, 'error', () => undefined);
      const onAnswer = fail as () => void;
      const { marina } = recording(async () => Response.json({ id: 'ord_x' }, { status: 201 }), { onAnswer });
      assert.equal((await marina.createOrder(buy, { idempotencyKey: 'one', onAnswer })).id, 'ord_x');
      for (let turns = 0; turns < 8; turns += 1) await turn();
      assert.equal(written.mock.callCount(), 2);

      let asked = 0;
      const page = { has_more: false, next_cursor: 'end', data: [{ id: 'msg_1' }] };
      const answers = async () => (++asked === 1 ? new Response('', { status: 502 }) : Response.json(page));
      const { marina: troubled } = recording(answers, { maxAttempts: 1 });
      for await (const event of troubled.followEvents({ onTrouble: fail as () => void, onAnswer })) {
        assert.equal(event.id, 'msg_1');
        break;
      }
      for (let turns = 0; turns < 8; turns += 1) await turn();
      assert.equal(written.mock.callCount(), 5);
    });
  }

  it('changes no feed if it throws at once', async (test) => {
    const written = test.mock.method(console, 'error', () => undefined);
    let asked = 0;
    const page = { has_more: false, next_cursor: 'end', data: [{ id: 'msg_1' }] };
    const answers = async () => (++asked === 1 ? new Response('', { status: 502 }) : Response.json(page));
    const { marina } = recording(answers, { maxAttempts: 1 });
    for await (const event of marina.followEvents({ onTrouble: () => assert.fail('the log is away') })) {
      assert.equal(event.id, 'msg_1');
      break;
    }
    assert.equal(written.mock.callCount(), 1);
  });
});
