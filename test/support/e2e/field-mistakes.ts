import { type Members, raw } from './calls.ts';
import type { ErrorCode } from './refusals.ts';

/** A body that differs from a good one in one mistake, or in more of which one must answer. */
export interface FieldMistake {
  readonly name: string;
  /** The members that replace the good ones; undefined: the member is left out. */
  readonly body: Members;
  /** `invalid_request` when absent. */
  readonly code?: ErrorCode;
  readonly param: string;
}

/** Values no JSON text is, by a word for them. */
const notTexts: readonly (readonly [string, unknown])[] = [
  ['a number', 5],
  ['true', true],
  ['a list', []],
  ['a list of one text', ['SIM-REST']],
  ['an object', {}],
];

const wrongIntegers: readonly (readonly [string, unknown])[] = [
  ['1.5', raw('1.5')],
  ['1.0', raw('1.0')],
  ['1e3', raw('1e3')],
  ['1E3', raw('1E3')],
  ['10e-1', raw('10e-1')],
  ['-0', raw('-0')],
  ['0.0', raw('0.0')],
  ['1e400', raw('1e400')],
  ['2^53', raw('9007199254740992')],
  ['2^53 + 1', raw('9007199254740993')],
  ['-2^53', raw('-9007199254740992')],
  ['2^63', raw('9223372036854775808')],
  ['a number of 400 digits', raw('9'.repeat(400))],
  ['the text "5"', '5'],
  ['an empty text', ''],
  ['true', true],
  ['false', false],
  ['a list of one number', [5]],
  ['an object', { value: 5 }],
];

const outside = (most: number): readonly (readonly [string, unknown])[] => [
  ['0', 0],
  ['-1', -1],
  [`${most + 1}`, most + 1],
  ['2^53 - 1', raw('9007199254740991')],
  ['-(2^53 - 1)', raw('-9007199254740991')],
];

function each(param: string, values: readonly (readonly [string, unknown])[]): FieldMistake[] {
  return values.map(([name, value]) => ({ name: `${param} ${name}`, body: { [param]: value }, param }));
}

function missing(param: string): FieldMistake[] {
  const code = 'missing_required_field';
  return [
    { name: `no ${param}`, body: { [param]: undefined }, code, param },
    { name: `${param} null`, body: { [param]: null }, code, param },
  ];
}

function words(param: string, good: string, values: readonly string[]): FieldMistake[] {
  const wrong = ['', good.toUpperCase(), ` ${good}`, `${good} `, `${good}\n`, ...values];
  return each(param, [...wrong.map((word) => [JSON.stringify(word), word] as const), ...notTexts, ['0', 0], ['1', 1]]);
}

const texts: readonly FieldMistake[] = ['account', 'symbol'].flatMap((param) => [
  ...missing(param),
  ...each(param, [
    ...notTexts,
    ['empty', ''],
    ['of a space', ' '],
    ['with a space after it', 'ABC '],
    ['with a line end after it', 'ABC\n'],
    ['with an underscore', 'A_B'],
    ['with a slash', 'A/B'],
    ['with a letter beyond ASCII', 'ABÇ'],
    ['with a full-width letter', 'AB\uff23'],
    ['with a dotless i', 'abcı'],
    ['with a character above U+FFFF', 'A😀'],
    ['with NUL', 'A\u0000B'],
    ['of NUL', '\u0000'],
    ['with an escaped lone surrogate', raw('"A\\ud800"')],
    ['with a reversed surrogate pair', raw('"\\udc00\\ud800"')],
    ['with a quote and SQL', "A' OR '1'='1"],
  ]),
]);

const combined: readonly FieldMistake[] = [
  {
    name: 'an empty object',
    body: {
      account: undefined,
      symbol: undefined,
      side: undefined,
      quantity: undefined,
      type: undefined,
      price_kobo: undefined,
    },
    code: 'missing_required_field',
    param: 'account',
  },
  {
    name: 'two missing',
    body: { symbol: undefined, type: undefined },
    code: 'missing_required_field',
    param: 'symbol',
  },
  { name: 'two out of range', body: { price_kobo: 0, quantity: 0 }, param: 'quantity' },
  { name: 'two of a wrong type', body: { price_kobo: '1', side: 'x' }, param: 'side' },
  {
    name: 'one missing and an earlier one out of range',
    body: { account: '', type: undefined },
    code: 'missing_required_field',
    param: 'type',
  },
  { name: 'one of a wrong type and an earlier one missing', body: { account: undefined, type: 'x' }, param: 'type' },
  {
    name: 'one of a wrong type and an earlier one out of range',
    body: { account: '', quantity: '1' },
    param: 'quantity',
  },
  { name: 'an unknown member and nothing else right', body: { account: 1, quantity: '1', zzz: 1 }, param: 'zzz' },
  {
    name: 'no type with no price',
    body: { type: undefined, price_kobo: undefined },
    code: 'missing_required_field',
    param: 'type',
  },
  {
    name: 'a limit order without a price and a bad client_reference',
    body: { price_kobo: undefined, client_reference: '' },
    code: 'missing_required_field',
    param: 'price_kobo',
  },
];

const unknownMembers: readonly FieldMistake[] = [
  ...[
    'priceKobo',
    'Account',
    'ACCOUNT',
    'account ',
    'id',
    'state',
    'idempotency_key',
    'object',
    '',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'é',
    '😀',
  ].map((param) => ({ name: `the unknown member ${JSON.stringify(param)}`, body: own(param, 1), param })),
  { name: 'an unknown member that is null', body: { extra: null }, param: 'extra' },
  { name: 'an unknown member that holds unknown members', body: { extra: { inner: [{ deep: 1 }] } }, param: 'extra' },
  { name: 'the first of two unknown members, as written', body: { zeta: 1, alpha: 1 }, param: 'zeta' },
  { name: 'unknown members inside a text field', body: { account: { inner: 1 } }, param: 'account' },
];

/** An object whose own member has any name, `__proto__` too. */
function own(name: string, value: unknown): Members {
  return Object.fromEntries([[name, value]]);
}

/** Everything that can be wrong with the members of an order. */
export const fieldMistakes: readonly FieldMistake[] = [
  ...texts,
  ...each('account', [
    ['of 65 letters', 'A'.repeat(65)],
    ['of 5,000 letters', 'A'.repeat(5000)],
    ['with a hyphen', 'A-B'],
    ['with a dot', 'A.B'],
  ]),
  ...each('symbol', [
    ['of 21 letters', 'A'.repeat(21)],
    ['of 5,000 letters', 'A'.repeat(5000)],
    ['with a comma', 'A,B'],
  ]),
  ...missing('side'),
  ...words('side', 'buy', [
    'Sell',
    'SELL',
    'hold',
    'order_side_buy',
    'ORDER_SIDE_BUY',
    'unspecified',
    'ORDER_SIDE_UNSPECIFIED',
  ]),
  ...missing('quantity'),
  ...each('quantity', wrongIntegers),
  ...each('quantity', outside(100_000_000)),
  ...missing('type'),
  ...words('type', 'limit', ['Market', 'stop', 'ORDER_TYPE_LIMIT', 'unspecified']),
  ...words('time_in_force', 'day', ['GTC', 'gtd', 'TIME_IN_FORCE_DAY', 'unspecified']),
  ...missing('price_kobo').map((mistake) => ({ ...mistake, name: `a limit order with ${mistake.name}` })),
  ...each('price_kobo', wrongIntegers),
  ...each('price_kobo', outside(1_000_000_000)),
  { name: 'a market order with a price', body: { type: 'market' }, param: 'price_kobo' },
  { name: 'a market order with the price 0', body: { type: 'market', price_kobo: 0 }, param: 'price_kobo' },
  {
    name: 'a market order with a price of a wrong type',
    body: { type: 'market', price_kobo: '' },
    param: 'price_kobo',
  },
  ...each('client_reference', [
    ...notTexts,
    ['empty', ''],
    ['of 65 characters', 'r'.repeat(65)],
    ['with a tab', 'a\tb'],
    ['with a line end after it', 'ref\n'],
    ['with DEL', 'a\u007f'],
    ['with NUL', 'a\u0000'],
    ['with an escaped lone surrogate', raw('"\\udfff"')],
    ['with a letter beyond ASCII', 'référence'],
  ]),
  ...unknownMembers,
  ...combined,
];
