import type { DescField } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import type { OperationRules } from '../../../../src/gateway/edge/operations.ts';
import { enumNames } from '../../../../src/kit/enums.ts';
import { goodFields } from '../../documents.ts';

export const protocols = ['REST', 'gRPC', 'Connect JSON', 'Connect binary'] as const;
export type Protocol = (typeof protocols)[number];

/** The faults of a request as a whole. */
export const twists = [
  'unknown field',
  'repeated field',
  'broken body',
  'no body',
  'other body',
  'wrong media type',
  'compressed',
  'odd header',
  'no key',
  'other key',
  'repeated key',
  'no idempotency key',
  'odd idempotency key',
  'other method',
  'odd path',
  'odd query',
  'large body',
] as const;
export type Twist = (typeof twists)[number] | 'none';

/** One request: the fields of a message, and how it is sent. */
export interface FuzzCase {
  readonly protocol: Protocol;
  readonly twist: Twist;
  /** By the names of the proto; what is absent is not sent. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The fault that a twist makes in the request. */
  readonly oddity: string;
  readonly idempotencyKey: string;
}

/** The objects of the gateway that requests may name. */
export interface World {
  readonly accounts: readonly string[];
  readonly orders: readonly string[];
  readonly applications: readonly string[];
  readonly allocations: readonly string[];
  readonly withdrawals: readonly string[];
  readonly picture: Buffer;
}

/** Makes requests of an operation from its descriptor: most fields are good, and some are anything. */
export function fuzzCases(operation: OperationRules, world: World): fc.Arbitrary<FuzzCase> {
  const { fields } = operation.input;
  const values = fields.map((field) =>
    fc.oneof(
      { weight: 12, arbitrary: good(operation, field, world) },
      { weight: 2, arbitrary: fc.constant(undefined) },
      { weight: 2, arbitrary: nearly(field) },
      { weight: 1, arbitrary: anything },
    ),
  );
  const ofProtocol = protocols.filter((protocol) => protocol !== 'REST' || operation.http !== undefined);
  const known = operation.method.methodKind === 'unary' ? ofProtocol : (['gRPC'] as const);
  return fc.record({
    protocol: fc.constantFrom(...known),
    twist: fc.oneof(
      { weight: 6, arbitrary: fc.constant<Twist>('none') },
      { weight: 4, arbitrary: fc.constantFrom<Twist>(...twists) },
    ),
    fields: fc
      .tuple(...values)
      .map((made) =>
        Object.fromEntries(fields.map(({ name }, at) => [name, made[at]]).filter(([, each]) => each !== undefined)),
      ),
    oddity: fc.oneof(strangeText, fc.string({ maxLength: 40 })),
    idempotencyKey: fc.uuid(),
  });
}

/** Texts that have broken something somewhere. */
const strangeText = fc.constantFrom(
  '',
  ' ',
  '\u0000',
  '\ud800',
  'ẞé😀',
  '\u202eabc',
  '%00',
  '%2e%2e%2f',
  '../../etc/passwd',
  "' OR 1=1 --",
  '$(id)',
  '__proto__',
  'constructor',
  'NaN',
  'null',
  '-0',
  '1e400',
  '9007199254740993',
  'a'.repeat(201),
  'x'.repeat(5_000),
);

const extremes = [0, -1, 1, -0.5, 1.5, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, 2 ** 53, 1e21, 1e308, -1e308];

const anything: fc.Arbitrary<unknown> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.constantFrom(...extremes),
  strangeText,
  fc.constant([]),
  fc.constant({}),
  fc.constant([[[[[[[[]]]]]]]]),
  fc.jsonValue({ maxDepth: 3 }),
);

/** The right type, and perhaps the wrong value. */
function nearly(field: DescField): fc.Arbitrary<unknown> {
  if (field.fieldKind === 'list')
    return fc.array(fc.oneof(strangeText, fc.constantFrom(...extremes)), { maxLength: 40 });
  if (field.enum !== undefined)
    return fc.constantFrom<unknown>('UNSPECIFIED', 'unspecified', 'BUY', '', 99, -1, 2 ** 31);
  if (field.scalar === 9) return strangeText;
  return fc.constantFrom<unknown>(...extremes, '1', '', true);
}

const orderSymbols = ['SIM-REST', 'SIM-PARTS', 'SIM-REJECT', 'NONE', 'sim-rest'];

function good(operation: OperationRules, field: DescField, world: World): fc.Arbitrary<unknown> {
  const { name } = field;
  if (field.fieldKind === 'list') return goodList(field);
  if (field.enum !== undefined) return fc.constantFrom(...enumNames(field.enum).values());
  if (field.message?.typeName === TimestampSchema.typeName) {
    return fc.constantFrom(
      '2026-03-02T09:30:00Z',
      '2020-01-01T00:00:00.5Z',
      '9999-12-31T23:59:59Z',
      '0001-01-01T00:00:00Z',
    );
  }
  if (name === 'id') return fc.constantFrom(...idsOf(operation, world));
  if (name === 'account') return fc.constantFrom(...world.accounts, 'NOBODYS1', world.accounts[0]?.toLowerCase() ?? '');
  if (name === 'symbol') return fc.constantFrom(...orderSymbols);
  if (name === 'quantity') return fc.integer({ min: 1, max: 1_000_000 });
  if (name === 'price_kobo') return fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.constant(1_000_000_000));
  if (name === 'amount_kobo') return fc.integer({ min: 1, max: 10_000 });
  if (name === 'limit') return fc.constantFrom(1, 2, 25, 100);
  if (name === 'cursor') return fc.constantFrom(undefined, undefined, 'abc', 'AAAA', 'eyJ2IjoxfQ');
  if (name === 'from' || name === 'to') return fc.constantFrom('2026-01-01', '2026-11-20', '2020-02-30', '2026-1-1');
  if (name === 'content') return fc.constantFrom(world.picture, world.picture.subarray(0, 100), Buffer.alloc(0));
  if (name === 'content_type') return fc.constantFrom('image/png', 'image/png', 'image/jpeg', 'image/gif', '');
  if (name === 'state' && operation.name === 'Reference.ListLgas') return fc.constantFrom('LAGOS', 'lagos', 'NOWHERE');
  const application = (goodFields as Record<string, string>)[name];
  if (application !== undefined) return fc.constant(application);
  if (field.scalar === 9) return fc.string({ minLength: 1, maxLength: 64, unit: 'grapheme-ascii' });
  return fc.integer({ min: 0, max: 100 });
}

function goodList(field: DescField): fc.Arbitrary<unknown> {
  if (field.enum !== undefined) {
    return fc.array(fc.constantFrom(...enumNames(field.enum).values()), { minLength: 1, maxLength: 3 });
  }
  return fc.array(fc.constantFrom('127.0.0.1', '10.0.0.0/8', '::1', '2001:db8::/32', '0.0.0.0/0'), { maxLength: 3 });
}

/** Ids that there are, one that there is not, and one of another kind. */
function idsOf({ name }: OperationRules, world: World): string[] {
  const nobodys = 'aaaaaaaaaaaaaaaaaaaa';
  if (name.startsWith('Keys')) return [`key_${nobodys}`, `ord_${nobodys}`];
  if (name.includes('Allocation')) return [...world.allocations, `alc_${nobodys}`, `ord_${nobodys}`];
  if (name.includes('Withdrawal')) return [...world.withdrawals, `wdr_${nobodys}`, `ord_${nobodys}`];
  if (name.includes('Application') || name.includes('Document')) {
    return [...world.applications, `app_${nobodys}`, `ord_${nobodys}`];
  }
  return [...world.orders, `ord_${nobodys}`, `app_${nobodys}`];
}
