import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gatewayOperations } from '../../../src/site/gateway-contract.ts';
import { nobodysOrder, operationNames, operations, sampleBody } from '../../support/e2e/calls.ts';
import { protocolsOf } from '../../support/e2e/protocols.ts';
import type { Refusal } from '../../support/e2e/refusals.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { assertUntouched } from '../../support/e2e/traces.ts';

/** Paths that are not the contract's, most by one character. */
const unknownPaths: readonly string[] = [
  '/',
  '//',
  '/v1',
  '/v1/',
  '/v2/orders',
  '/v1/order',
  '/v1/orderss',
  '/v1/orders/',
  '/v1/orders//',
  '//v1/orders',
  '/v1//orders',
  '/./v1/orders',
  '/v1/./orders',
  '/v1/orders/.',
  '/v1/orders/..',
  '/v1/../v1/orders',
  '/v1/orders/../orders',
  '/v1/orders/%2e',
  '/v1/orders/%2E%2e',
  '/v1/%2e/orders',
  '/V1/orders',
  '/v1/Orders',
  '/v1/ORDERS',
  '/v1/%6Frders',
  '/v1/order%73',
  '/%76%31/orders',
  '/%2Fv1/orders',
  '/v1%2Forders',
  '/v1%2forders',
  '/v1/orders%2F',
  '/v1/orders%3Flimit=1',
  '/v1/orders%00',
  '/v1/orders%20',
  '/v1/orders;a=b',
  '/v1/orders.json',
  '/v1\\orders',
  '/v1/orders/estimate/',
  '/v1/orders/estimate/history',
  `/v1/orders/${nobodysOrder}/`,
  `/v1/orders//${nobodysOrder}`,
  `/v1/orders/${nobodysOrder}/History`,
  `/v1/orders/${nobodysOrder}/histor%79`,
  `/v1/orders/${nobodysOrder}/history/`,
  `/v1/orders/${nobodysOrder}/history/1`,
  `/v1/orders/${nobodysOrder}//history`,
  `/v1/orders/${nobodysOrder}%2Fhistory`,
  `/v1/orders/${nobodysOrder}%2fhistory`,
  `/v1/orders/%2F${nobodysOrder}`,
  '/v1/orders//history',
  '/v1/events/',
  '/v1/Events',
  '/v1/events/watch',
  '/v1/events/msg_000000000000000000000000',
  '/orders',
  '/healthz',
  '/metrics',
  '*',
];

/** The paths there are, with the methods each supports. */
const knownPaths: readonly (readonly [string, readonly string[]])[] = [
  ...byPath(),
  ['/v1/orders/not-an-id', ['GET', 'DELETE']],
  ['/v1/orders/estimat%65', ['GET', 'DELETE']],
];

function byPath(): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const name of operationNames) {
    const { method, path, names } = operations[name];
    const text = path(names?.[1] ?? '');
    paths.set(text, [...(paths.get(text) ?? []), method]);
  }
  return paths;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'];

/** Values in the place of an id that are no id. */
const malformed = (id: string): readonly (readonly [string, string])[] => [
  ['one letter', 'x'],
  ['the prefix alone', id.slice(0, 4)],
  ['19 characters', id.slice(0, -1)],
  ['21 characters', `${id}a`],
  ['5,000 characters', `${id.slice(0, 4)}${'a'.repeat(5000)}`],
  ['upper case', id.toUpperCase()],
  ['an upper-case prefix', `${id.slice(0, 4).toUpperCase()}${id.slice(4)}`],
  ['the digit 1', `${id.slice(0, -1)}1`],
  ['the digit 8', `${id.slice(0, -1)}8`],
  ["another object's prefix", `wtr_${id.slice(4)}`],
  ['no prefix', id.slice(4)],
  ['a space after it', `${id} `],
  ['a line end after it', `${id}\n`],
  ['NUL after it', `${id}\u0000`],
  ['a letter beyond ASCII', `${id.slice(0, -1)}é`],
  ['a percent sign', `${id.slice(0, -1)}%`],
  ['SQL', `${id}' OR '1'='1`],
  ['a wildcard', `${id.slice(0, 4)}%%%%%%%%%%%%%%%%%%%%`],
];

/** The same of an account's code and a state's. */
const malformedAccounts: readonly (readonly [string, string])[] = [
  ['65 characters', 'A'.repeat(65)],
  ['a hyphen', 'A-B'],
  ['an underscore', 'A_B'],
  ['a space after it', 'A '],
  ['a line end after it', 'A\n'],
  ['NUL after it', 'A\u0000'],
  ['a letter beyond ASCII', 'É'],
  ['a letter that becomes another in upper case', 'ß'],
  ['SQL', "A' OR '1'='1"],
];
const malformedStates = malformedAccounts
  .filter(([name]) => name !== 'a hyphen' && name !== '65 characters')
  .concat([['33 characters', 'A'.repeat(33)]]);

const malformedSymbols = malformedAccounts
  .filter(([name]) => name !== 'a hyphen' && name !== '65 characters')
  .concat([['21 characters', 'A'.repeat(21)]]);

/** Why an operation is refused when what its path names is malformed or nobody's. */
const notFound: Readonly<Record<string, Refusal['code']>> = {
  ord: 'order_not_found',
  app: 'application_not_found',
  alc: 'allocation_not_found',
  wdr: 'withdrawal_not_found',
  NOBODYS: 'account_not_found',
};
const malformedFor = {
  id: malformed,
  account: () => malformedAccounts,
  state: () => malformedStates,
  symbol: () => malformedSymbols,
};

/** The same where only the bytes of a path can say it. */
const malformedSegments: readonly (readonly [string, string])[] = [
  ['a percent sign without digits', `${nobodysOrder.slice(0, -1)}%`],
  ['a percent sign with one digit', `${nobodysOrder.slice(0, -1)}%6`],
  ['a percent sign with what is no digit', '%zz'],
  ['bytes that are not UTF-8', '%ff%fe'],
  ['an overlong encoding', `%c1%af${nobodysOrder}`],
  ['half of a surrogate pair', '%ed%a0%80'],
  ['an id encoded twice', '%256Frd_abcdefghijklmnopqrst'],
  ['a matrix parameter', `${nobodysOrder};a=b`],
];

describe('the operations', () => {
  it('are those of the protos, with their methods, paths and scopes', () => {
    const inTables = operationNames.map((name) => {
      const { rpc, method, path, names, scope } = operations[name];
      return [rpc.name, method, path(`{${names?.[0]}}`).replace('photo', '{type}'), scope];
    });
    const inProtos = gatewayOperations
      .filter(({ method }) => method.methodKind === 'unary')
      .map(({ method: { name }, http, scope }) => {
        const segments = http?.segments.map((segment) => (typeof segment === 'string' ? segment : `{${segment.name}}`));
        return [name, http?.method, `/${segments?.join('/')}`, scope];
      });
    assert.deepEqual(inTables.sort(), inProtos.sort());
  });
});

describe('paths', () => {
  const suite = useGateway();
  const keyHeader = () => [['Authorization', `Bearer ${suite.partner.key}`]] as const;

  for (const path of unknownPaths) {
    it(`${path} is answered not_found, with a key and without`, async () => {
      await suite.protocols.refusesRaw({ method: 'GET', path, headers: keyHeader() }, { code: 'not_found' });
      await suite.protocols.refusesRaw({ method: 'GET', path }, { code: 'not_found' });
    });
  }

  for (const method of methods) {
    it(`${method} of an unknown path is answered not_found`, () =>
      suite.protocols.refusesRaw({ method, path: '/v1/nothing', headers: keyHeader() }, { code: 'not_found' }));
  }

  for (const [path, allow] of knownPaths) {
    for (const method of methods.filter((candidate) => !allow.includes(candidate))) {
      it(`${method} ${path} is answered method_not_allowed, with a key and without`, async () => {
        const refusal = { code: 'method_not_allowed', allow } as const;
        await suite.protocols.refusesRaw({ method, path, headers: keyHeader() }, refusal);
        await suite.protocols.refusesRaw({ method, path }, refusal);
      });
    }
  }

  it('a preflight of a browser is answered method_not_allowed too', () =>
    suite.protocols.refusesRaw(
      {
        method: 'OPTIONS',
        path: '/v1/orders',
        headers: [
          ['Origin', 'https://example.com'],
          ['Access-Control-Request-Method', 'POST'],
        ],
      },
      { code: 'method_not_allowed', allow: ['GET', 'POST'] },
    ));

  it('a method cannot be overridden by a header', () =>
    suite.protocols.refusesRaw(
      { method: 'PUT', path: '/v1/orders', headers: [...keyHeader(), ['X-HTTP-Method-Override', 'GET']] },
      { code: 'method_not_allowed', allow: ['GET', 'POST'] },
    ));

  for (const operation of operationNames) {
    const { method, path, names } = operations[operation];
    if (names === undefined) continue;
    const [field, nobodys] = names;
    const code = notFound[nobodys.split('_')[0] ?? ''] ?? 'not_found';
    for (const [name, id] of malformedFor[field](nobodys)) {
      for (const protocol of protocolsOf({ operation, id })) {
        it(`${protocol}: ${operation} of ${field} with ${name} is answered ${code}`, () =>
          suite.protocols.refuses(protocol, { operation, id, key: suite.partner.key }, { code }));
      }
    }
    for (const [name, segment] of malformedSegments) {
      it(`${operation} of a path with ${name} is answered ${code}`, () =>
        suite.protocols.refusesRaw({ method, path: path(segment), headers: keyHeader() }, { code }));
    }
    for (const protocol of protocolsOf({ operation })) {
      it(`${protocol}: ${operation} of ${field} nobody has is answered ${code}`, () =>
        suite.protocols.refuses(
          protocol,
          { operation, key: suite.partner.key, body: sampleBody(operation) },
          { code },
        ));
    }
  }

  it('an id may be percent-encoded', () =>
    suite.protocols.refusesRaw(
      { method: 'GET', path: `/v1/orders/%6F${nobodysOrder.slice(1)}`, headers: keyHeader() },
      { code: 'order_not_found' },
    ));

  it('nothing was stored or sent, and a good order is taken', () => assertUntouched(suite.gateway, suite.partner));
});
