import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { readComments } from '../../src/site/comments.ts';
import { readExamples } from '../../src/site/examples.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { openApiDocument } from '../../src/site/openapi/document.ts';
import { temporaryFolder } from '../support/folders.ts';
import { generatedSchemas, installGenerators } from '../support/openapi-generators.ts';

interface ZodSchema {
  parse(value: unknown): unknown;
  safeParse(value: unknown): { success: boolean };
}
type Schemas = Readonly<Record<string, ZodSchema | undefined>>;

const examples = readExamples();
const addresses = { baseUrl: 'https://marina.example', grpcAddress: 'marina.example:443' };
const document = openApiDocument({ operations: gatewayOperations, comments: readComments(), examples }, addresses);
const later = {
  ...{ object: 'event', id: 'msg_1', type: 'voucher.issued', timestamp: '2026-03-02T09:30:00Z', version: 1 },
  data: { object: 'voucher', id: 'vch_1', state: 'issued' },
};

// In CI generators that cannot be had must not look like success.
const installed = await installGenerators().then(
  () => true,
  (error: unknown) => {
    if (process.env.CI === 'true') throw error;
    return false;
  },
);

describe('code that generators of others make of the OpenAPI document', {
  skip: !installed && 'npm is not reached',
}, () => {
  const generated: Record<string, (name: string) => ZodSchema> = {};

  before(async () => {
    const path = join(temporaryFolder(), 'openapi.json');
    writeFileSync(path, JSON.stringify(document));
    const { zodClient, heyApi } = await generatedSchemas(path);
    const one: { schemas: Schemas } = await import(pathToFileURL(zodClient).href);
    const other: Schemas = await import(pathToFileURL(heyApi).href);
    const known = (schema: ZodSchema | undefined, name: string) => {
      assert.ok(schema !== undefined, name);
      return schema;
    };
    generated['openapi-zod-client'] = (name) => known(one.schemas[name], name);
    generated['hey-api with zod'] = (name) => known(other[`z${name}`], name);
  });

  for (const generator of ['openapi-zod-client', 'hey-api with zod']) {
    const schema = (name: string): ZodSchema => generated[generator]?.(name) ?? assert.fail(generator);

    it(`${generator}: reads every event that was recorded`, () => {
      for (const event of Object.values(examples.events)) schema('Event').parse(event);
    });

    it(`${generator}: reads an event of an object that it does not know, alone and in a page`, () => {
      schema('Event').parse(later);
      const page = { object: 'list', data: [later], has_more: false, next_cursor: 'c' };
      schema('ListEventsResponse').parse(page);
    });

    it(`${generator}: reads every good answer that was recorded`, () => {
      for (const { method, output } of gatewayOperations) {
        for (const { answer } of examples.operations[method.localName] ?? []) {
          if (answer.status < 300) schema(output.name).parse(answer.body);
        }
      }
    });

    it(`${generator}: reads an order with a state, a reason and an object of later versions as what they are`, () => {
      const order = examples.events['order.filled'] as { data: object };
      schema('Order').parse({ ...order.data, state: 'later', reject_reason: 'later' });
      assert.equal(schema('Order').safeParse({ ...order.data, object: 'voucher' }).success, false);
    });

    it(`${generator}: takes every request that was recorded, and null for no price`, () => {
      for (const { method, input } of gatewayOperations) {
        for (const { request, answer } of examples.operations[method.localName] ?? []) {
          if (request.body !== undefined && answer.status < 300) schema(input.name).parse(request.body);
        }
      }
    });
  }
});
