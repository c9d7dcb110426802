import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Call,
  type OperationName,
  operationNames,
  operations,
  sampleBody,
  toJson,
} from '../../support/e2e/calls.ts';
import { protocolsOf } from '../../support/e2e/protocols.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { assertUntouched } from '../../support/e2e/traces.ts';

type Values = readonly string[];

const badLimits: Values = [
  ...['', '0', '101', '-1', '-0', '1.5', '1.0', '1e1', '025', '+5', ' 5', '5 ', '0x10', '1,000', '1_0', 'all', 'null'],
  ...['true', 'NaN', '٥', '5;6', '[5]', '1000000', '2147483648', '-2147483649', '9007199254740992', '9'.repeat(300)],
];
const badCursors: Values = ['', 'x', '0', 'null', 'AAAAAAAAAAAAAAAAAAAAAAAA', '!!!!', '../..', 'é', 'a'.repeat(600)];

/** Values each parameter of GET /v1/orders must refuse. */
const badFilters: Readonly<Record<string, Values>> = {
  state: [
    ...['', 'open', 'PENDING', 'Pending', ' pending', 'pending ', 'pending,filled', 'ORDER_STATE_PENDING', '2', '0'],
    ...['unspecified', 'pending\u0000'],
  ],
  account: ['', ' ', 'A B', 'A-B', 'A'.repeat(65), 'A\u0000', 'A\n', 'É', "A' OR '1'='1"],
  symbol: ['', 'A B', 'A/B', 'A_B', 'A'.repeat(21), 'A\u0000', 'A\n', 'É', '%'],
  client_reference: ['', 'r'.repeat(65), 'a\tb', 'a\n', 'a\u0000', 'a\u007f', 'é'],
  updated_since: [
    ...['', 'now', '0', '1772443800', '2026-03-02', '2026-03-02T09:30', '2026-03-02T09:30:00', '2026-03-02 09:30:00Z'],
    ...['2026-13-01T00:00:00Z', '2026-00-01T00:00:00Z', '2026-02-29T00:00:00Z', '2026-04-31T00:00:00Z'],
    ...['2026-03-02T24:00:00Z', '2026-03-02T09:60:00Z', '2026-03-02T09:30:00+0100', '2026-03-02T09:30:00+25:00'],
    ...[
      '0000-01-01T00:00:00Z',
      '10000-01-01T00:00:00Z',
      '-2026-03-02T09:30:00Z',
      '2026-3-2T9:30:00Z',
      '２026-03-02T09:30:00Z',
    ],
  ],
};

/** Values of `from` and `to` that the lists of trades and contract notes must refuse. */
const badDays: Values = [
  ...['', 'today', '0', '20260302', '2026-3-2', '2026-03-02T00:00:00Z', '2026-13-01', '2026-00-01', '2026-02-29'],
  ...['2026-04-31', '10000-01-01', '-2026-03-02', '2026-03-02 ', '2026-03-02\u0000', '２026-03-02'],
];

const lists = operationNames.filter((name) =>
  operations[name].rpc.input.fields.some((field) => field.name === 'limit'),
);

interface BadQuery {
  readonly operation: OperationName;
  readonly param: string;
  readonly value: string;
}

const badValues: readonly BadQuery[] = [
  ...lists.flatMap((operation) => badLimits.map((value) => ({ operation, param: 'limit', value }))),
  ...lists.flatMap((operation) => badCursors.map((value) => ({ operation, param: 'cursor', value }))),
  ...(['listTrades', 'listContractNotes', 'listAccountTransactions'] as const).flatMap((operation) =>
    ['from', 'to'].flatMap((param) => badDays.map((value) => ({ operation, param, value }))),
  ),
  ...Object.entries(badFilters).flatMap(([param, values]) =>
    values.map((value) => ({ operation: 'listOrders' as const, param, value })),
  ),
];

/** Whole queries as they are written, and the parameter that is named. */
const badQueries: readonly { operation: OperationName; query: string; param: string }[] = [
  ...[
    ['page=2', 'page'],
    ['offset=5', 'offset'],
    ['Limit=5', 'Limit'],
    ['LIMIT=5', 'LIMIT'],
    ['limit%20=5', 'limit '],
    ['limit[]=5', 'limit[]'],
    ['updatedSince=2026-03-02T09:30:00Z', 'updatedSince'],
    ['__proto__=1', '__proto__'],
    ['constructor=1', 'constructor'],
    ['partner_id=x', 'partner_id'],
    ['id=ord_abcdefghijklmnopqrst', 'id'],
    ['limit=5&limit=5', 'limit'],
    ['limit=5&limit=6', 'limit'],
    ['limit=5&%6cimit=5', 'limit'],
    ['limit=5&limit', 'limit'],
    ['limit=&limit=5', 'limit'],
    ['state=pending&state=filled', 'state'],
    ['limit', 'limit'],
    ['limit==5', 'limit'],
    ['limit=%', 'limit'],
    ['limit=%zz', 'limit'],
    ['limit=5%', 'limit'],
    ['client_reference=%ff', 'client_reference'],
    ['client_reference=%c1%81', 'client_reference'],
    ['client_reference=%ed%a0%80', 'client_reference'],
    ['limit=0&unknown=1', 'unknown'],
    ['limit=x&unknown=1', 'unknown'],
    ['unknown=1&other=2', 'unknown'],
    ['unknown=1&limit=5&limit=5', 'unknown'],
    ['limit=5&limit=5&unknown=1', 'limit'],
    ['limit=x&account=', 'limit'],
    ['limit=0&account=', 'account'],
    ['limit=0&symbol=&account=', 'account'],
    ['limit=x&state=x', 'state'],
    ['cursor=x&limit=0', 'limit'],
  ].map(([query = '', param = '']) => ({ operation: 'listOrders' as const, query, param })),
  ...operationNames.map((operation) => ({ operation, query: 'unknown=1', param: 'unknown' })),
  { operation: 'listEvents', query: 'state=pending', param: 'state' },
  { operation: 'listEvents', query: 'type=order.filled', param: 'type' },
  { operation: 'listEvents', query: 'limit=5&limit=5', param: 'limit' },
  { operation: 'createOrder', query: 'dry_run=true', param: 'dry_run' },
  { operation: 'createOrder', query: 'account=ABC', param: 'account' },
  { operation: 'estimateOrder', query: 'x', param: 'x' },
  { operation: 'getOrder', query: 'expand=fills', param: 'expand' },
  { operation: 'getOrder', query: 'limit=5', param: 'limit' },
  { operation: 'getOrderHistory', query: 'state=pending', param: 'state' },
  { operation: 'getOrderHistory', query: 'limit=5&limit=5', param: 'limit' },
  { operation: 'cancelOrder', query: 'force=true', param: 'force' },
];

const goodQueries: readonly (readonly [OperationName, string])[] = [
  ['listOrders', ''],
  ['listOrders', 'limit=1'],
  ['listOrders', 'limit=100'],
  ['listOrders', 'limit=%31%30'],
  ['listOrders', 'l%69mit=10'],
  ['listOrders', 'account=nobody5'],
  ['listOrders', `symbol=${'a'.repeat(20)}`],
  ['listOrders', 'client_reference=%20'],
  ['listOrders', `client_reference=${'%7E'.repeat(64)}`],
  ['listOrders', 'updated_since=2026-03-02T09:30:00Z'],
  ['listOrders', 'updated_since=2026-03-02T09:30:00.123456789Z'],
  ['listOrders', 'updated_since=2026-03-02T10:30:00%2B01:00'],
  ['listOrders', 'updated_since=9999-12-31T23:59:59Z'],
  ['listOrders', 'state=uncertain&account=A&symbol=B&client_reference=C&updated_since=2026-03-02T09:30:00Z&limit=5'],
  ['listEvents', ''],
  ['listEvents', 'limit=100'],
];

describe('query parameters', () => {
  const suite = useGateway();
  const auth = () => ['Authorization', `Bearer ${suite.partner.key}`] as const;

  for (const { operation, param, value } of badValues) {
    const shown = JSON.stringify(value.length > 40 ? `${value.slice(0, 10)}… (${value.length})` : value);
    const call: Call = { operation, query: { [param]: value } };
    for (const protocol of protocolsOf(call)) {
      it(`${protocol}: ${operation} with ${param} ${shown} is answered invalid_request of ${param}`, () =>
        suite.protocols.refuses(protocol, { ...call, key: suite.partner.key }, { code: 'invalid_request', param }));
    }
  }

  for (const { operation, query, param } of badQueries) {
    const { method, path, names } = operations[operation];
    const body = sampleBody(operation);
    it(`${method} ${path(`{${names?.[0]}}`)}?${query} is answered invalid_request of ${param}`, () =>
      suite.protocols.refusesRaw(
        {
          method,
          path: `${path(names?.[1] ?? '')}?${query}`,
          headers: [auth(), ['Content-Type', 'application/json'], ['Idempotency-Key', 'k']],
          body: body && toJson(body),
        },
        { code: 'invalid_request', param },
      ));
  }

  for (const [operation, query] of goodQueries) {
    const { method, path } = operations[operation];
    it(`${method} ${path('')}?${query} is answered with an empty list`, async () => {
      const answer = await suite.protocols.raw({ method, path: `${path('')}?${query}`, headers: [auth()] });
      assert.equal(answer.status, 200, answer.text);
      const { next_cursor: cursor, ...list } = JSON.parse(answer.text);
      assert.deepEqual(list, { object: 'list', has_more: false, data: [] });
      if (operation === 'listOrders') assert.equal(cursor, null);
      else assert.equal(typeof cursor, 'string');
    });
  }

  it('nothing was stored or sent, and a good order is taken', () => assertUntouched(suite.gateway, suite.partner, 'k'));
});
