import {
  chunk,
  ended,
  estimate,
  estimateBytes,
  type FramingCase,
  get,
  head,
  hex,
  onPost,
  type Parts,
  post,
  read,
  refused,
  served,
} from './http1-cases.ts';

const lengths: FramingCase[] = [
  ...[
    `${estimateBytes}, ${estimateBytes}`,
    `${estimateBytes},${estimateBytes}`,
    `+${estimateBytes}`,
    '-1',
    `${estimateBytes} 0`,
    `0x${hex}`,
    '',
    ' ',
    `${estimateBytes};`,
    `${estimateBytes}.0`,
    `${estimateBytes}e0`,
    `"${estimateBytes}"`,
    `${2n ** 64n + BigInt(estimateBytes)}`,
    `${2n ** 32n + BigInt(estimateBytes)}${'0'.repeat(20)}`,
    `${estimateBytes}\x00`,
    `\x00${estimateBytes}`,
    `${estimateBytes}\x0b`,
    '\xb2',
    'NaN',
    'Infinity',
    `1_0`,
  ].map((value) => refused(`Content-Length: ${JSON.stringify(value)}`, onPost([`Content-Length: ${value}`]))),
  refused('Content-Length: 2^63', onPost([`Content-Length: ${2n ** 63n}`]), 413),
  refused('two equal lengths', onPost([`Content-Length: ${estimateBytes}`, `Content-Length: ${estimateBytes}`])),
  refused('two lengths', onPost([`Content-Length: ${estimateBytes}`, 'Content-Length: 0'])),
  refused('two lengths, the smaller first', onPost(['Content-Length: 0', `Content-Length: ${estimateBytes}`])),
  refused('a length with a space before its colon', onPost([`Content-Length : ${estimateBytes}`])),
  refused('a length with a tab before its colon', onPost([`Content-Length\t: ${estimateBytes}`])),
  refused('a folded length', onPost([`Content-Length:\r\n ${estimateBytes}`])),
  refused('a length that is folded on', onPost(['Content-Length: 6\r\n 3'])),
  served(
    'a length with zeros before it',
    ({ auth }) => [post(auth, `Content-Length: 000${estimateBytes}`), estimate],
    read,
  ),
  // Of a name that is not the header's the body has no length, so what follows would be a request of its own.
  served('Content_Length is no length', ({ auth }) => [get(auth, 'Content_Length: 5')]),
];

/** Requests that need no body, or are refused before it is read: all of it stays a body. */
const unread: FramingCase[] = [
  ...[
    'GET /v1/limits',
    'GET /v1/orders',
    'GET /docs',
    'GET /openapi.json',
    'GET /docs/assets/none',
    'GET /nothing',
    'DELETE /v1/orders/ord_22222222222222222222',
    'OPTIONS /v1/orders',
    'PUT /v1/orders',
    'GET /marina.gateway.v1.Orders/ListOrders',
    'POST /marina.gateway.v1.Orders/Nothing',
    'POST /marina.gateway.v1.Orders/ListOrders',
    'OPTIONS *',
  ].flatMap((line) => [
    {
      name: `${line} with a body`,
      packets: ({ auth, canary }: Parts) => [
        head(`${line} HTTP/1.1`, auth, `Content-Length: ${canary.length}`),
        canary,
      ],
    },
    {
      name: `${line} with a body in chunks`,
      packets: ({ auth, canary }: Parts) => [
        head(`${line} HTTP/1.1`, auth, 'Transfer-Encoding: chunked'),
        chunk(canary),
        '0\r\n\r\n',
      ],
    },
  ]),
];

const expectations: FramingCase[] = [
  ...['200-ok', '100-continue, other', 'other', '', ' 100-continue;q=1'].map((value) => ({
    name: `Expect: ${JSON.stringify(value)}`,
    packets: ({ auth }: Parts) => [post(auth, `Content-Length: ${estimateBytes}`, `Expect: ${value}`), estimate],
    answers: read,
    ends: false,
  })),
  served(
    'a body that does not wait',
    ({ auth }) => [post(auth, `Content-Length: ${estimateBytes}`, 'Expect: 100-continue'), estimate],
    read,
  ),
  served(
    'two expectations',
    ({ auth }) => [
      post(auth, `Content-Length: ${estimateBytes}`, 'Expect: 100-continue', 'Expect: 100-continue'),
      estimate,
    ],
    read,
  ),
  ended('a GET that expects to be asked for its body (0.CL)', ({ auth, canary }) => [
    get(auth, `Content-Length: ${canary.length}`, 'Expect: 100-continue'),
    canary,
  ]),
  ended('a GET without a body that expects', ({ auth }) => [get(auth, 'Expect: 100-continue')]),
  refused(
    'a body refused before it was asked for, and sent',
    ({ auth, canary }) => [
      post(auth, `Content-Length: ${20_000 + canary.length}`, 'Expect: 100-continue'),
      canary,
      canary,
    ],
    413,
  ),
  refused(
    'a wrong key, and a body behind Expect',
    ({ canary }) => [
      post('Authorization: Bearer wrong', `Content-Length: ${canary.length}`, 'Expect: 100-continue'),
      canary,
    ],
    401,
  ),
  refused(
    'HTTP/1.0 with Expect',
    ({ auth, canary }) => [
      head(
        'POST /v1/orders/estimate HTTP/1.0',
        auth,
        'Connection: keep-alive',
        'Content-Type: text/plain',
        `Content-Length: ${canary.length}`,
        'Expect: 100-continue',
      ),
      canary,
    ],
    415,
  ),
];

const early: FramingCase[] = [
  ended(
    'a body too large to be read',
    ({ auth, canary }) => [post(auth, 'Content-Length: 17000'), canary, canary],
    [413],
  ),
  ended(
    'a body of the wrong type',
    ({ auth, canary }) => [
      head('POST /v1/orders HTTP/1.1', auth, 'Content-Type: text/plain', `Content-Length: ${canary.length}`),
      canary,
    ],
    [400],
  ),
  ended(
    'a wrong key before a body',
    ({ canary }) => [post('Authorization: Bearer wrong', `Content-Length: ${canary.length}`), canary, canary],
    [401],
  ),
  ended('Connection: close before a canary', ({ auth, canary }) => [get(auth, 'Connection: close'), canary]),
  ended(
    'Connection: close before a body and a canary',
    onPost([`Content-Length: ${estimateBytes}`, 'Connection: close']),
    read,
  ),
  // The first answer is the last one when the nonsense comes before it.
  {
    name: 'nonsense between two requests',
    ends: true,
    packets: ({ auth, canary }) => [get(auth), '\x01\x02\r\n\r\n', canary],
  },
];

/** Attacks by where a body ends, and by when it is sent. */
export const attacksByBody: readonly (readonly [string, readonly FramingCase[]])[] = [
  ['lengths', lengths],
  ['bodies that nobody reads', unread],
  ['expectations', expectations],
  ['early answers', early],
];
