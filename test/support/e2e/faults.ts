import { type Call, type Members, operations } from './calls.ts';
import type { Refusal } from './refusals.ts';
import type { WireRequest } from './wire.ts';
import { type Circumstance, usedKey } from './worlds.ts';

/** One thing wrong with a request: what it is answered with alone, and how a request gets it. */
export interface Fault {
  readonly name: string;
  readonly refusal: Refusal;
  readonly circumstance?: Circumstance;
  /** Trading is paused for everyone. */
  readonly paused?: true;
  readonly call?: Partial<Call>;
  readonly members?: Members;
  /** Changes the request as HTTP carries it. */
  readonly http?: (request: WireRequest) => WireRequest;
  /** Changes the message as gRPC carries it. */
  readonly protobuf?: (bytes: Uint8Array) => Uint8Array;
  /** It has no form in gRPC. */
  readonly restOnly?: true;
}

const invalid = (param: string): Refusal => ({ code: 'invalid_request', param });

const rate: Fault = { name: 'the rate', refusal: { code: 'rate_limited' }, circumstance: 'rate' };
const credential: Fault = { name: 'the credential', refusal: { code: 'unauthorized' }, circumstance: 'credential' };
const scope: Fault = { name: 'the scope', refusal: { code: 'insufficient_scope' }, circumstance: 'scope' };
const place: Fault = { name: 'the place', refusal: { code: 'rate_limited' }, circumstance: 'place' };

const unknownPath: Fault = {
  name: 'the path',
  refusal: { code: 'not_found' },
  restOnly: true,
  http: (request) => ({ ...request, path: request.path.replace('/v1/orders', '/v1/order') }),
};
const method = (allow: readonly string[]): Fault => ({
  name: 'the method',
  refusal: { code: 'method_not_allowed', allow },
  restOnly: true,
  http: (request) => ({ ...request, method: 'PUT' }),
});
const query: Fault = {
  name: 'the query',
  refusal: invalid('x'),
  restOnly: true,
  http: (request) => ({ ...request, path: `${request.path}?x=1` }),
};

/** A field no message has, with 20,000 bytes. */
const padding = Buffer.concat([Buffer.from([0xc2, 0x3e, 0xa0, 0x9c, 0x01]), Buffer.alloc(20_000)]);

const withoutType = (request: WireRequest): WireRequest => ({
  ...request,
  headers: [...(request.headers ?? []).filter(([name]) => name !== 'Content-Type'), ['Content-Type', 'text/plain']],
});

/** The faults of POST /v1/orders, in the order in which the gateway looks for them. */
export const createFaults: readonly Fault[] = [
  rate,
  unknownPath,
  method(['GET', 'POST']),
  credential,
  scope,
  place,
  query,
  {
    name: 'the Idempotency-Key',
    refusal: { code: 'missing_required_field', param: 'Idempotency-Key' },
    call: { idempotencyKey: [] },
  },
  { name: 'the media type', refusal: { code: 'unsupported_media_type' }, restOnly: true, http: withoutType },
  {
    name: 'the size',
    refusal: { code: 'request_too_large' },
    http: (request) => ({ ...request, body: `${request.body}${' '.repeat(20_000)}` }),
    protobuf: (bytes) => Buffer.concat([bytes, padding]),
  },
  {
    name: 'the form of the whole',
    refusal: { code: 'invalid_request' },
    http: (request) => ({ ...request, body: `${request.body}}` }),
    protobuf: (bytes) => Buffer.concat([bytes, Buffer.from([0x0f])]),
  },
  { name: 'an unknown field', refusal: invalid('extra'), restOnly: true, members: { extra: 1 } },
  { name: 'a wrong type', refusal: invalid('side'), members: { side: 'hold' } },
  {
    name: 'a missing field',
    refusal: { code: 'missing_required_field', param: 'type' },
    members: { type: undefined },
  },
  { name: 'a range', refusal: invalid('quantity'), members: { quantity: 0 } },
  {
    name: 'the same key',
    refusal: { code: 'duplicate_order', param: 'Idempotency-Key' },
    circumstance: 'same key',
    call: { idempotencyKey: [usedKey] },
  },
  { name: 'the pause', refusal: { code: 'trading_paused' }, paused: true },
  {
    name: 'the account',
    refusal: { code: 'unknown_account', param: 'account' },
    members: { account: 'NOBODYS' },
  },
  { name: 'the instrument', refusal: { code: 'unknown_symbol', param: 'symbol' }, members: { symbol: 'NOTHING' } },
  { name: 'a similar order', refusal: { code: 'similar_order_unresolved' }, circumstance: 'similar' },
  { name: "the day's limit", refusal: { code: 'limit_exceeded' }, circumstance: 'limit' },
];

/** The faults of DELETE /v1/orders/{id}. */
export const cancelFaults: readonly Fault[] = [
  rate,
  unknownPath,
  method(['GET', 'DELETE']),
  credential,
  scope,
  place,
  { name: 'the path parameter', refusal: { code: 'order_not_found' }, call: { id: 'x' } },
  query,
  { name: 'the order', refusal: { code: 'order_not_found' } },
];

/** The faults of POST /v1/orders/estimate that an order cannot have. */
export const estimateFaults: readonly Fault[] = createFaults.filter(
  ({ name }) =>
    !['the method', 'the Idempotency-Key', 'the same key', 'the pause', 'a similar order', "the day's limit"].includes(
      name,
    ),
);

/** Two faults at once, of which the first must be answered; or one alone. */
export type Pair = readonly [Fault, Fault];

/** All pairs of a list in its order, a fault with itself too. Two circumstances of one kind are one. */
export function pairsOf(faults: readonly Fault[]): Pair[] {
  return faults.flatMap((first, at) => faults.slice(at).map((second) => inOrder(first, second)));
}

/** A refused credential has no rate, so nothing is looked for there. */
function inOrder(first: Fault, second: Fault): Pair {
  return first === rate && second === credential ? [second, first] : [first, second];
}

export function circumstancesOf(pair: Pair): ReadonlySet<Circumstance> {
  return new Set(pair.flatMap(({ circumstance }) => circumstance ?? []));
}

/** A call with both faults; where they would change the same, the one looked for first does. */
export function callWith([first, second]: Pair, base: Call): Call {
  const call = { ...base, ...second.call, ...first.call };
  if (!operations[base.operation].takesBody) return call;
  return { ...call, body: { ...base.body, ...second.members, ...first.members } };
}
