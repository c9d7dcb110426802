import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create, toBinary, toJsonString } from '@bufbuild/protobuf';
import { credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import type { Call, ReceivedFile } from '../../../src/gateway/edge/call.ts';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { Applications } from '../../../src/gen/marina/gateway/v1/applications_pb.ts';
import {
  DocumentSchema,
  DocumentType,
  type SendDocumentRequest,
  SendDocumentRequestSchema,
} from '../../../src/gen/marina/gateway/v1/documents_pb.ts';
import { GetOrderRequestSchema, Orders } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import {
  callGrpc,
  noLimits,
  openServers,
  orderId,
  RawConnection,
  type RestRequest,
  requestText,
  type Servers,
  send,
} from './fixture.ts';

const id = 'app_aaaaaaaaaaaaaaaaaaaa';
const unknownId = 'app_bbbbbbbbbbbbbbbbbbbb';
const path = `/v1/applications/${id}/documents/photo`;
const { sendDocument } = Applications.method;

/** A value that no type of document has. */
const noType = 99 as DocumentType;

let servers: Servers;
let received: ReceivedFile[] = [];
let places = 0;
/** How many places are left for files. */
let free = Number.POSITIVE_INFINITY;
/** How many places were taken while each file was handled. */
let taken: number[] = [];
before(async () => {
  const handler = async ({ id: application }: SendDocumentRequest, call: Call) => {
    if (application === unknownId) throw new ApiError('application_not_found');
    received.push(await call.receiveFile());
    taken.push(places);
    return create(DocumentSchema, { application, type: DocumentType.PHOTO });
  };
  servers = await openServers({
    applications: { sendDocument: handler },
    pipeline: {
      limits: {
        ...noLimits,
        takeFile: () => {
          if (places >= free) throw new ApiError('rate_limited', { limit: 'files' });
          places += 1;
          return () => {
            places -= 1;
          };
        },
      },
    },
    limits: { bodyTimeoutMs: 300 },
  });
});
after(() => servers.close());

function put(request: RestRequest = {}) {
  received = [];
  return send(servers.restPort, {
    method: 'PUT',
    target: path,
    body: 'a file',
    ...request,
    headers: { 'Content-Type': 'image/jpeg', ...request.headers },
  });
}

interface Wanted {
  readonly id?: string;
  readonly type?: DocumentType;
  readonly contentType?: string;
  readonly content?: Uint8Array;
}

function messageOf(wanted: Wanted) {
  return create(SendDocumentRequestSchema, {
    id,
    type: DocumentType.PHOTO,
    contentType: 'image/jpeg',
    content: Buffer.from('a file'),
    ...wanted,
  });
}

/** The same request through each protocol; what it answered as an error's code, or `ok`. */
const everyProtocol: Record<string, (wanted: Wanted) => Promise<string>> = {
  REST: async ({ id: application = id, type = DocumentType.PHOTO, contentType = 'image/jpeg', content }) => {
    const target = `/v1/applications/${application}/documents/${DocumentType[type]?.toLowerCase() ?? 'nothing'}`;
    const body = content === undefined ? 'a file' : Buffer.from(content);
    const answer = await put({ target, body, headers: { 'Content-Type': contentType } });
    return answer.status === 200 ? 'ok' : answer.json.error.code;
  },
  gRPC: async (wanted) => {
    received = [];
    const { code, error } = await callGrpc(servers.grpcPort, sendDocument, messageOf(wanted));
    return code === 0 ? 'ok' : (error?.code ?? `status ${code}`);
  },
  'Connect binary': (wanted) => connect('application/proto', toBinary(SendDocumentRequestSchema, messageOf(wanted))),
  'Connect JSON': ({ type, ...wanted }) => {
    const json = toJsonString(SendDocumentRequestSchema, messageOf(wanted));
    return connect('application/json', Buffer.from(type === noType ? json.replace('_PHOTO', '_NOTHING') : json));
  },
};

async function connect(contentType: string, body: Uint8Array): Promise<string> {
  received = [];
  const answer = await send(servers.restPort, {
    target: '/marina.gateway.v1.Applications/SendDocument',
    body: Buffer.from(body),
    headers: { 'Content-Type': contentType },
  });
  if (answer.status === 200) return 'ok';
  const { details } = JSON.parse(answer.body) as { details: { debug?: { code?: string } }[] };
  return details.find(({ debug }) => debug?.code !== undefined)?.debug?.code ?? answer.body;
}

for (const [protocol, ask] of Object.entries(everyProtocol)) {
  describe(`a file over ${protocol}`, () => {
    test('arrives as it was sent', async () => {
      const content = Buffer.from(Array.from({ length: 999_999 }, (_, at) => at % 251));
      assert.equal(await ask({ content, contentType: 'image/png' }), 'ok');
      assert.equal(received[0]?.mediaType, 'image/png');
      assert.ok(received[0]?.content.equals(content));
      assert.equal(places, 0, 'the place was given back');
    });

    test('takes a slot among the files in memory, and is refused without one', async () => {
      taken = [];
      assert.equal(await ask({}), 'ok');
      assert.deepEqual(taken, [1], `${taken[0]} places were taken while the file was handled`);
      free = 0;
      try {
        assert.equal(await ask({}), 'rate_limited');
      } finally {
        free = Number.POSITIVE_INFINITY;
      }
      assert.deepEqual(received, [], 'the refused file was handled');
      assert.equal(places, 0);
    });

    test('is refused for what comes first in the order of checks', async () => {
      const [empty, large] = [Buffer.alloc(0), Buffer.alloc(1_000_000)];
      const cases: [Wanted, string][] = [
        [{ type: noType, id: 'nonsense' }, 'invalid_request'],
        [{ id: 'nonsense', contentType: 'text/plain' }, 'application_not_found'],
        [{ id: unknownId, contentType: 'text/plain', content: empty }, 'application_not_found'],
        [{ id: unknownId, contentType: 'image/png', content: empty }, 'application_not_found'],
        [{ contentType: 'text/plain', content: large }, 'unsupported_media_type'],
        [{ contentType: 'image/gif', content: empty }, 'unsupported_media_type'],
        [{ contentType: 'image/jpegs' }, 'unsupported_media_type'],
        [{ content: large }, 'document_too_large'],
        [{ content: empty }, 'invalid_request'],
      ];
      for (const [wanted, code] of cases) assert.equal(await ask(wanted), code, JSON.stringify(wanted).slice(0, 100));
      assert.equal(places, 0);
    });

    for (const size of [1_000_000, 1_013_000, 2_000_000, 5_000_000]) {
      test(`of ${size} bytes is refused for its size in its turn in the order of checks`, async () => {
        const content = Buffer.alloc(size);
        const cases: [Wanted, string][] = [
          [{ type: noType, id: 'nonsense' }, 'invalid_request'],
          [{ id: 'nonsense', contentType: 'text/plain' }, 'application_not_found'],
          [{ id: unknownId }, 'application_not_found'],
          [{ contentType: 'text/plain' }, 'unsupported_media_type'],
          [{}, 'document_too_large'],
        ];
        for (const [wanted, code] of cases) assert.equal(await ask({ content, ...wanted }), code, code);
        assert.equal(places, 0);
        assert.deepEqual(received, []);
      });
    }

    test('has a media type whatever its case, with parameters or without', async () => {
      assert.equal(await ask({ contentType: 'Image/JPEG; name=photo' }), 'ok');
      assert.equal(received[0]?.mediaType, 'image/jpeg');
    });
  });
}

describe('a file that is the body', () => {
  /** Writes a request's head, then lets the test write its body. */
  async function onWire<T>(
    headers: Record<string, string>,
    use: (connection: RawConnection) => Promise<T>,
  ): Promise<T> {
    const connection = new RawConnection(servers.restPort);
    const head = requestText({
      method: 'PUT',
      target: path,
      headers: { 'Content-Type': 'image/jpeg', ...headers },
    });
    try {
      return await use(connection.send(head));
    } finally {
      connection.close();
    }
  }

  test('of 1,000,000 bytes and more is refused unread', async () => {
    for (const length of ['1000000', '99999999999']) {
      const answer = await onWire({ 'Content-Length': length }, (connection) => connection.answer());
      assert.equal(answer.json.error.code, 'document_too_large');
      assert.equal(answer.status, 413);
    }
  });

  test('that says so first is neither asked for nor read when it is too large', async () => {
    const answer = await onWire({ 'Content-Length': '1000000', Expect: '100-continue' }, (connection) =>
      connection.answer(),
    );
    assert.equal(answer.status, 413);
  });

  test('is asked for where the client waits for that', async () => {
    await onWire({ 'Content-Length': '6', Expect: '100-continue' }, async (connection) => {
      assert.equal((await connection.answer()).status, 100);
      assert.equal((await connection.send('a file').answer()).status, 200);
    });
  });

  test('in chunks is cut as soon as it is too large', async () => {
    await onWire({ 'Transfer-Encoding': 'chunked' }, async (connection) => {
      const chunk = Buffer.concat([Buffer.from('186a0\r\n'), Buffer.alloc(100_000), Buffer.from('\r\n')]);
      for (let sent = 0; sent < 10; sent += 1) connection.send(chunk);
      const answer = await connection.answer();
      assert.equal(answer.json.error.code, 'document_too_large');
      assert.equal(answer.headers.get('connection'), 'close');
    });
  });

  test('in chunks arrives whole', async () => {
    received = [];
    await onWire({ 'Transfer-Encoding': 'chunked' }, async (connection) => {
      assert.equal((await connection.send('2\r\na \r\n4\r\nfile\r\n0\r\n\r\n').answer()).status, 200);
    });
    assert.equal(received[0]?.content.toString(), 'a file');
  });

  test('that does not arrive whole in its time is refused, and gives its place back', async () => {
    await onWire({ 'Content-Length': '6' }, async (connection) => {
      const answer = await connection.send('a f').answer();
      assert.equal(answer.status, 400);
      assert.equal(answer.json.error.code, 'invalid_request');
    });
    assert.equal(places, 0);
  });

  test('that is compressed, or of two types or none, is refused', async () => {
    const cases: NonNullable<RestRequest['headers']>[] = [
      { 'Content-Encoding': 'gzip' },
      { 'Content-Type': ['image/jpeg', 'image/png'] },
      { 'Content-Type': null },
    ];
    for (const headers of cases) {
      assert.equal((await put({ headers })).json.error.code, 'unsupported_media_type');
    }
  });

  test('is nobody else’s business: a key without the scope, or none, is refused first', async () => {
    assert.equal((await put({ headers: { Authorization: 'Bearer reader' } })).json.error.code, 'insufficient_scope');
    assert.equal((await put({ headers: { Authorization: null } })).json.error.code, 'unauthorized');
    assert.equal((await put({ method: 'POST' })).headers.get('allow'), 'PUT');
    assert.equal((await put({ target: `${path}?a=b` })).json.error.code, 'invalid_request');
  });
});

describe('a file over Connect that is announced as too large', () => {
  for (const [name, start, code] of [
    [
      'is asked for as far as the other fields go',
      `{"id":"${unknownId}","type":"DOCUMENT_TYPE_PHOTO",`,
      'application_not_found',
    ],
    ['is refused for its size if its file comes first', '', 'document_too_large'],
  ] as const) {
    test(name, async () => {
      const connection = new RawConnection(servers.restPort);
      const head = requestText({
        target: '/marina.gateway.v1.Applications/SendDocument',
        headers: { 'Content-Type': 'application/json', 'Content-Length': '2000000', Expect: '100-continue' },
      });
      try {
        assert.equal((await connection.send(head).answer()).status, 100);
        connection.send(`${start || '{'}"content":"AAAA`);
        const answer = await connection.answer();
        assert.match(answer.body, new RegExp(code));
        assert.equal(answer.headers.get('connection'), 'close');
      } finally {
        connection.close();
      }
    });
  }
});

describe('gRPC', () => {
  for (const size of [1_000_000, 1_080_000, 1_200_000, 3_000_000, 4 * 1_024 * 1_024 - 200, 6_000_000]) {
    test(`answers a document of ${size} bytes with its typed error`, async () => {
      const { code, error } = await callGrpc(
        servers.grpcPort,
        sendDocument,
        messageOf({ content: Buffer.alloc(size) }),
      );
      assert.deepEqual([code, error?.code], [8, 'document_too_large']);
      assert.equal(places, 0);
    });
  }

  test('takes no message of a file’s size where there is no file', async () => {
    const client = new GrpcClient(`127.0.0.1:${servers.grpcPort}`, credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set('authorization', 'Bearer full');
    const { getOrder } = Orders.method;
    const outcome = await new Promise<number | undefined>((resolve) => {
      client.makeUnaryRequest(
        `/marina.gateway.v1.Orders/${getOrder.name}`,
        (each: Buffer) => each,
        (each: Buffer) => each,
        Buffer.alloc(500_000),
        metadata,
        { deadline: Date.now() + 10_000 },
        (error) => resolve(error?.code),
      );
    });
    client.close();
    assert.equal(outcome, 8, 'RESOURCE_EXHAUSTED');
    const thisOrder = create(GetOrderRequestSchema, { id: orderId });
    assert.equal((await callGrpc(servers.grpcPort, getOrder, thisOrder)).code, 0);
  });
});
