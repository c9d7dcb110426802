import {
  ended,
  estimateBytes,
  type FramingCase,
  get,
  head,
  onPost,
  read,
  refused,
  served,
  wholeBody,
} from './http1-cases.ts';

const upgrades: FramingCase[] = [
  ...['h2c', 'websocket', 'TLS/1.0', 'anything', 'h2c, websocket', ''].map((protocol) =>
    ended(`Upgrade: ${protocol || '(empty)'}`, ({ auth, canary }) => [
      get(auth, `Upgrade: ${protocol}`, 'Connection: Upgrade'),
      canary,
    ]),
  ),
  ended('an upgrade to h2c with its settings', ({ auth, canary }) => [
    get(auth, 'Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    canary,
  ]),
  ended('Upgrade without Connection', ({ auth, canary }) => [get(auth, 'Upgrade: websocket'), canary]),
  ended('Upgrade with Connection: keep-alive, Upgrade', ({ auth, canary }) => [
    get(auth, 'Upgrade: websocket', 'Connection: keep-alive, Upgrade'),
    canary,
  ]),
  ended(
    'Upgrade before a body with a length',
    onPost([`Content-Length: ${estimateBytes}`, 'Upgrade: h2c', 'Connection: Upgrade']),
    read,
  ),
  ended(
    'Upgrade before a body in chunks',
    onPost(['Transfer-Encoding: chunked', 'Upgrade: h2c', 'Connection: Upgrade'], wholeBody),
    read,
  ),
  ended(
    'Upgrade before a body of no bytes',
    onPost(['Content-Length: 0', 'Upgrade: h2c', 'Connection: Upgrade'], ''),
    [400],
  ),
  ended(
    'Upgrade behind another request',
    ({ auth, canary }) => [get(auth), get(auth, 'Upgrade: h2c', 'Connection: Upgrade'), canary],
    [200, 200],
  ),
  ended('two upgrades', ({ auth, canary }) => [
    get(auth, 'Upgrade: h2c', 'Connection: Upgrade'),
    get(auth, 'Upgrade: h2c', 'Connection: Upgrade'),
    canary,
  ]),
  ended('the canary as the body that Node drops', ({ auth, canary }) => [
    `${get(auth, 'Upgrade: h2c', 'Connection: Upgrade')}POST /v1/orders/estimate HTTP/1.1\r\nHost: gateway\r\n` +
      `Content-Length: ${canary.length}\r\n\r\n`,
    canary,
  ]),
  ended('Upgrade with HTTP/1.0', ({ auth, canary }) => [
    head('GET /v1/limits HTTP/1.0', auth, 'Upgrade: h2c', 'Connection: Upgrade, keep-alive'),
    canary,
  ]),
  ended('an upgrade of a page', ({ auth, canary }) => [
    head('GET /docs HTTP/1.1', auth, 'Upgrade: websocket', 'Connection: Upgrade'),
    canary,
  ]),
  served('Connection: Upgrade without Upgrade', ({ auth }) => [get(auth, 'Connection: Upgrade')]),
  refused("HTTP/2's preface", ({ canary }) => ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', canary]),
];

const versions: FramingCase[] = [
  refused('HTTP/0.9', ({ canary }) => ['GET /v1/limits\r\n', canary]),
  refused('HTTP/0.9 with an empty line', ({ canary }) => ['GET /v1/limits\r\n\r\n', canary]),
  ...[
    'HTTP/0.9',
    'HTTP/1.2',
    'HTTP/2.0',
    'HTTP/2',
    'HTTP/3.0',
    'HTTP/1.10',
    'HTTP/1',
    'HTTP/01.1',
    'http/1.1',
    'HTTP/ 1.1',
    'HTTP/1.1 ',
    'HTTP/1.1\t',
    'HTTP/1.1x',
    'ICE/1.0',
    'HTTPS/1.1',
  ].map((version) =>
    refused(`the version ${JSON.stringify(version)}`, ({ auth, canary }) => [
      head(`GET /v1/limits ${version}`, auth),
      canary,
    ]),
  ),
  refused('HTTP/1.0 with chunks', ({ auth, canary }) => [
    head(
      'POST /v1/orders/estimate HTTP/1.0',
      auth,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      'Connection: keep-alive',
    ),
    wholeBody,
    canary,
  ]),
  refused('HTTP/1.0 with chunks where no body belongs', ({ auth, canary }) => [
    head('GET /v1/limits HTTP/1.0', auth, 'Transfer-Encoding: chunked', 'Connection: keep-alive'),
    '0\r\n\r\n',
    canary,
  ]),
  ended('HTTP/1.0 without keep-alive', ({ auth, canary }) => [head('GET /v1/limits HTTP/1.0', auth), canary]),
  refused('HTTP/1.0 with a body of no length', ({ auth, canary }) => [
    head('POST /v1/orders/estimate HTTP/1.0', auth, 'Content-Type: application/json'),
    canary,
  ]),
  // Node takes it for HTTP/1.0, and does not say what it was.
  ended('RTSP/1.0', ({ auth, canary }) => [head('GET /v1/limits RTSP/1.0', auth), canary]),
  served('HTTP/1.0 with keep-alive', ({ auth }) => [head('GET /v1/limits HTTP/1.0', auth, 'Connection: keep-alive')]),
];

const headers: FramingCase[] = [
  ...[
    'X: y\r\n z',
    'X: y\rZ',
    'X: a\x00b',
    'X : y',
    'X\t: y',
    'X',
    ': y',
    ' X: y',
    'X: y\n z',
    'X: y\nZ: z',
    '\x00X: y',
    'X\x80: y',
    'X(: y',
    'X"Y: z',
    'X: \x7f',
    'X: \x01',
    'X: y\r\n\rZ: z',
    'X: y\r\r',
    '\rX: y',
    'X: y\r\n\t',
  ].map((line) => refused(`the header line ${JSON.stringify(line)}`, ({ auth, canary }) => [get(auth, line), canary])),
  refused('lines that end in a bare LF', ({ auth, canary }) => [get(auth).replaceAll('\r\n', '\n'), canary]),
  refused('a first header line with a space before it', ({ auth, canary }) => [
    `GET /v1/limits HTTP/1.1\r\n Host: gateway\r\n${auth}\r\n\r\n`,
    canary,
  ]),
  refused('a head that ends in CR LF CR', ({ auth, canary }) => [`${get(auth).slice(0, -1)}X: y\r\n\r\n`, canary]),
  refused('a head that ends in CR LF LF', ({ auth, canary }) => [`${get(auth).slice(0, -2)}\n`, canary]),
  refused('no Host', ({ auth, canary }) => [`GET /v1/limits HTTP/1.1\r\n${auth}\r\n\r\n`, canary]),
  refused('two Hosts', ({ auth, canary }) => [get(auth, 'Host: other'), canary]),
  ...['a b', 'a/b', 'user@a', 'a?b', 'a#b', 'a\\b', '\xfc', '<a>'].map((host) =>
    refused(`Host: ${JSON.stringify(host)}`, ({ auth, canary }) => [
      `GET /v1/limits HTTP/1.1\r\nHost: ${host}\r\n${auth}\r\n\r\n`,
      canary,
    ]),
  ),
  ...['', '[::1]:8080', 'a_b.example:80', '127.0.0.1'].map((host) =>
    served(`the good Host: ${JSON.stringify(host)}`, ({ auth }) => [
      `GET /v1/limits HTTP/1.1\r\nHost: ${host}\r\n${auth}\r\n\r\n`,
    ]),
  ),
  refused(
    '101 headers',
    ({ auth, canary }) => [get(auth, ...Array.from({ length: 100 }, (_, at) => `X-${at}: y`)), canary],
    413,
  ),
  refused('a head of 20,000 bytes', ({ auth, canary }) => [get(auth, `X: ${'y'.repeat(20_000)}`), canary], 413),
];

const targets: FramingCase[] = [
  ...[
    'GET\t/v1/limits HTTP/1.1',
    'GET /v1/limits\tHTTP/1.1',
    'GET /v1/lim its HTTP/1.1',
    'GET /v1/limits\x00 HTTP/1.1',
    'GET /v1/limits\rX HTTP/1.1',
    ' GET /v1/limits HTTP/1.1',
    'G\x00T /v1/limits HTTP/1.1',
    'GET',
    'GET /v1/limits#x HTTP/1.1 X',
  ].map((line) =>
    refused(`the request line ${JSON.stringify(line)}`, ({ auth, canary }) => [head(line, auth), canary]),
  ),
  // The answer names the path's methods when the whole line is there, and says 400 when it is not.
  {
    name: 'a method in lower case',
    packets: ({ auth, canary }) => [head('get /v1/limits HTTP/1.1', auth), canary],
    ends: true,
  },
  // Node's parser passes over further spaces, as RFC 9112 (3) lets it.
  ...['GET  /v1/limits HTTP/1.1', 'GET /v1/limits  HTTP/1.1'].map((line) =>
    served(`the request line ${JSON.stringify(line)}`, ({ auth }) => [head(line, auth)]),
  ),
  ended('CONNECT', ({ auth, canary }) => [head('CONNECT gateway:443 HTTP/1.1', auth), canary], [404]),
  ended(
    'CONNECT with a body',
    ({ auth, canary }) => [head('CONNECT gateway:443 HTTP/1.1', auth, `Content-Length: ${canary.length}`), canary],
    [404],
  ),
  ended('CONNECT of a path', ({ auth, canary }) => [head('CONNECT /v1/limits HTTP/1.1', auth), canary], [404]),
  served('a whole address and another Host', ({ auth }) => [head('GET http://other.example/v1/limits HTTP/1.1', auth)]),
  served('the asterisk', ({ auth }) => [head('OPTIONS * HTTP/1.1', auth)], [404]),
  served('empty lines before a request', ({ auth }) => ['\r\n\r\n', get(auth)]),
];

/** Attacks by the request line and the headers. */
export const attacksByHead: readonly (readonly [string, readonly FramingCase[]])[] = [
  ['upgrades', upgrades],
  ['versions', versions],
  ['header lines', headers],
  ['targets', targets],
];
