import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { protobufForm } from '../../../../src/gateway/edge/json/protobuf-form.ts';
import { readJson } from '../../../../src/gateway/edge/json/reader.ts';
import { SendDocumentRequestSchema } from '../../../../src/gen/marina/gateway/v1/documents_pb.ts';
import {
  CreateOrderRequestSchema,
  ListOrdersRequestSchema,
  OrderSide,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';

function fieldOf(schema: DescMessage, name: string): DescField {
  const field = schema.fields.find(({ localName }) => localName === name);
  assert.ok(field !== undefined, name);
  return field;
}

const read = (field: DescField, json: string) =>
  protobufForm.readerOf(field as never)?.read(readJson(Buffer.from(json)));
const [side, quantity, account] = ['side', 'quantity', 'account'].map((name) =>
  fieldOf(CreateOrderRequestSchema, name),
) as [DescField, DescField, DescField];
const limit = fieldOf(ListOrdersRequestSchema, 'limit');

describe("protobuf's JSON", () => {
  it('a field may have its name in camelCase or as in the proto', () => {
    assert.deepEqual(protobufForm.namesOf(fieldOf(CreateOrderRequestSchema, 'priceKobo')), ['priceKobo', 'price_kobo']);
  });

  it('an enumeration is its full name or its number, which the field rules check', () => {
    for (const [json, value] of [
      ['"ORDER_SIDE_BUY"', OrderSide.BUY],
      ['"ORDER_SIDE_UNSPECIFIED"', 0],
      ['1', 1],
      ['0', 0],
      ['99', 99],
      ['999999999', 999_999_999],
      ['9999999999', undefined],
      ['-1', undefined],
      ['1.0', undefined],
      ['1e0', undefined],
      ['"buy"', undefined],
      ['"1"', undefined],
      ['true', undefined],
      ['["ORDER_SIDE_BUY"]', undefined],
    ] as const) {
      assert.equal(read(side, json), value, json);
    }
  });

  it('an integer is a number or a text, within the bounds of its type', () => {
    for (const [field, json, value] of [
      [quantity, '100', 100n],
      [quantity, '"100"', 100n],
      [quantity, '"-1"', -1n],
      [quantity, '"9007199254740991"', 9_007_199_254_740_991n],
      [quantity, '"9007199254740992"', undefined],
      [quantity, '"1.5"', undefined],
      [quantity, '1.5', undefined],
      [quantity, '""', undefined],
      [quantity, '" 1"', undefined],
      [quantity, 'true', undefined],
      [limit, '7', 7],
      [limit, '"7"', 7],
      [limit, '"2147483647"', 2_147_483_647],
      [limit, '"2147483648"', undefined],
    ] as const) {
      assert.equal(read(field, json), value, json);
    }
  });

  it('a text is any text, which the field rules check, and a time is one of RFC 3339', () => {
    assert.equal(read(account, '"a\\u0000b"'), 'a\u0000b');
    assert.equal(read(account, '1'), undefined);
    const time = fieldOf(ListOrdersRequestSchema, 'updatedSince');
    assert.deepEqual((read(time, '"2026-03-02T09:30:00Z"') as { seconds: bigint }).seconds, 1_772_443_800n);
    assert.equal(read(time, '"2026-03-02"'), undefined);
  });

  it('bytes are base64 of either alphabet, padded or not', () => {
    const content = fieldOf(SendDocumentRequestSchema, 'content');
    const bytes = Buffer.from([0xfb, 0xff, 0xbf, 0x01]);
    for (const json of ['"+/+/AQ=="', '"+/+/AQ"', '"-_-_AQ=="', '"-_-_AQ"', '"+/+/AQ="']) {
      assert.deepEqual(Buffer.from(read(content, json) as Uint8Array), bytes, json);
    }
    assert.deepEqual(Buffer.from(read(content, '""') as Uint8Array), Buffer.alloc(0));
    assert.deepEqual(Buffer.from(read(content, '"AQI="') as Uint8Array), Buffer.from([1, 2]));
    assert.deepEqual(Buffer.from(read(content, '"AQ"') as Uint8Array), Buffer.from([1]));
    for (const json of ['"+_+_"', '"AQ==="', '"A"', '"AQIDB"', '"A=Q="', '"AQ I"', '"AQ\\n"', '1', 'null']) {
      assert.equal(read(content, json), undefined, json);
    }
  });
});
