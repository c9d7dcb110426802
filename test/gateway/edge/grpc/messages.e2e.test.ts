import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { Metadata, status } from '@grpc/grpc-js';
import { CreateOrderRequestSchema, OrderSide, OrderType } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { assertGrpcRefusal } from '../../../support/e2e/assert-grpc.ts';
import { type Call, goodBody, type OperationName } from '../../../support/e2e/calls.ts';
import { GrpcWire } from '../../../support/e2e/grpc-wire.ts';
import { toProtobuf } from '../../../support/e2e/protobuf-form.ts';
import type { Refusal } from '../../../support/e2e/refusals.ts';
import { useGateway } from '../../../support/e2e/suite.ts';
import { assertUntouched } from '../../../support/e2e/traces.ts';

/** Bytes that stand after a good order's. A tag is the field's number times 8 and its wire type. */
const badEndings: readonly (readonly [string, readonly number[], Refusal])[] = [
  ['a wire type there is none of', [0x0f], { code: 'invalid_request' }],
  ['a field with the number 0', [0x00, 0x00], { code: 'invalid_request' }],
  ['a tag without a value', [0x20], { code: 'invalid_request' }],
  ['a text longer than the message', [0x0a, 0x7f, 0x41], { code: 'invalid_request' }],
  ['a number that never ends', [0x20, ...Array.from({ length: 11 }, () => 0xff)], { code: 'invalid_request' }],
  ['a text that is not UTF-8', [0x12, 0x02, 0xff, 0xfe], { code: 'invalid_request' }],
  ['a number where a text belongs', [0x10, 0x05], { code: 'invalid_request' }],
  ['a text where a number belongs', [0x22, 0x01, 0x35], { code: 'invalid_request' }],
  ['a fixed number where a varint belongs', [0x25, 1, 0, 0, 0], { code: 'invalid_request' }],
  ['a side nobody knows', [0x18, 0x63], { code: 'invalid_request', param: 'side' }],
  ['a side of 0', [0x18, 0x00], { code: 'invalid_request', param: 'side' }],
  [
    'a negative side',
    [0x18, ...Array.from({ length: 9 }, () => 0xff), 0x01],
    { code: 'invalid_request', param: 'side' },
  ],
  ['a time_in_force of 0', [0x30, 0x00], { code: 'invalid_request', param: 'time_in_force' }],
];

describe('messages over gRPC', () => {
  const suite = useGateway();
  let wire: GrpcWire;
  before(() => {
    wire = new GrpcWire(suite.gateway.app.grpcPort);
  });
  after(() => wire.close());

  const call = (operation: OperationName = 'createOrder'): Call => ({
    operation,
    key: suite.partner.key,
    idempotencyKey: ['k'],
    body: goodBody(suite.partner.account),
  });
  const good = () => toProtobuf(call()) ?? new Uint8Array();

  for (const operation of ['createOrder', 'estimateOrder'] as const) {
    for (const [name, bytes, refusal] of badEndings) {
      it(`${operation} with ${name} is answered ${refusal.code}`, async () =>
        assertGrpcRefusal(
          await suite.protocols.grpc(call(operation), Buffer.concat([good(), Buffer.from(bytes)])),
          refusal,
        ));
    }

    for (const size of [1, 1000, 40_000]) {
      it(`${operation} of 16,384 bytes and ${size} more is answered request_too_large`, async () =>
        assertGrpcRefusal(await suite.protocols.grpc(call(operation), padded(good(), 16_384 + size)), {
          code: 'request_too_large',
        }));
    }

    it(`${operation} without any field is answered missing_required_field`, async () =>
      assertGrpcRefusal(await suite.protocols.grpc(call(operation), new Uint8Array()), {
        code: 'missing_required_field',
        param: 'account',
      }));
  }

  it('an order of 16,384 bytes, most of them of a field nobody knows, is estimated', async () => {
    const answer = await suite.protocols.grpc(call('estimateOrder'), padded(good(), 16_384));
    assert.equal(answer.code, status.OK, answer.details);
  });

  for (const operation of ['getOrder', 'getOrderHistory', 'cancelOrder'] as const) {
    it(`${operation} with an empty id is answered order_not_found`, async () =>
      assertGrpcRefusal(await suite.protocols.grpc(call(operation), Buffer.from([0x0a, 0x00])), {
        code: 'order_not_found',
      }));

    it(`${operation} without an id is answered missing_required_field`, async () =>
      assertGrpcRefusal(await suite.protocols.grpc(call(operation), new Uint8Array()), {
        code: 'missing_required_field',
        param: 'id',
      }));

    it(`${operation} with what is no message is answered invalid_request`, async () =>
      assertGrpcRefusal(await suite.protocols.grpc(call(operation), Buffer.from([0xff])), { code: 'invalid_request' }));
  }

  it('a method nobody serves is UNIMPLEMENTED', async () => {
    for (const path of ['/marina.gateway.v1.Orders/ReplaceOrder', '/marina.gateway.v1.Nothing/Nothing']) {
      const { code } = await wire.call(path, new Uint8Array(), authorized());
      assert.equal(code, status.UNIMPLEMENTED);
    }
  });

  it('no operator call is served to partners', async () => {
    const { code } = await wire.call('/marina.admin.v1.Trading/PauseTrading', new Uint8Array(), authorized());
    assert.equal(code, status.UNIMPLEMENTED);
  });

  it('the last of two values of one field counts, as protobuf has it', async () => {
    const again = create(CreateOrderRequestSchema, { side: OrderSide.BUY, type: OrderType.LIMIT, quantity: 0n });
    const bytes = Buffer.concat([good(), toBinary(CreateOrderRequestSchema, again)]);
    assertGrpcRefusal(await suite.protocols.grpc(call(), bytes), { code: 'invalid_request', param: 'quantity' });
  });

  it('nothing was stored or sent, and a good order is taken', () => assertUntouched(suite.gateway, suite.partner, 'k'));

  function authorized(): Metadata {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${suite.partner.key}`);
    return metadata;
  }
});

/** A message made as long as asked with a field nobody knows; at least 300 bytes more. */
function padded(bytes: Uint8Array, size: number): Buffer {
  const tag = [0xc2, 0x3e];
  const space = size - bytes.length - tag.length - 3;
  const length = [(space & 0x7f) | 0x80, ((space >> 7) & 0x7f) | 0x80, space >> 14];
  return Buffer.concat([bytes, Buffer.from([...tag, ...length]), Buffer.alloc(space)]);
}
