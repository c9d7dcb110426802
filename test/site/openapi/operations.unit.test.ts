import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { Feature, Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { commentOf, readComments } from '../../../src/site/comments.ts';
import { readExamples } from '../../../src/site/examples.ts';
import { gatewayOperations } from '../../../src/site/gateway-contract.ts';
import { bindingOf, operationNode, pathTemplate, scopeWord } from '../../../src/site/openapi/operations.ts';

interface Answer {
  readonly description: string;
  readonly headers: Record<string, { readonly $ref: string }>;
  readonly content: Record<string, { readonly example?: unknown; readonly examples?: object }>;
}

const comments = readComments();
const examples = readExamples();
const reference = { operations: gatewayOperations, comments, examples };
const addresses = { baseUrl: 'https://marina.example', grpcAddress: 'marina.example:50051' };
const schemas = { body: () => ({ is: 'body' }), message: () => ({ is: 'message' }) } as never;

function operationOf(name: string) {
  const operation = gatewayOperations.find(({ method }) => method.localName === name);
  assert.ok(operation, name);
  return operation;
}

function nodeOf(name: string) {
  return operationNode(operationOf(name), reference, schemas, addresses) as {
    readonly description: string;
    readonly security: object;
    readonly externalDocs: { readonly url: string };
    readonly parameters: readonly {
      readonly name?: string;
      readonly in?: string;
      readonly required?: boolean;
      readonly $ref?: string;
    }[];
    readonly requestBody?: {
      readonly content: Record<string, { readonly schema: object; readonly example?: unknown }>;
    };
    readonly responses: Record<string, Answer>;
    readonly 'x-codeSamples'?: readonly { readonly label: string }[];
  };
}

describe('an operation in the OpenAPI document', () => {
  it('an operation says which key it needs, and what else its access depends on', () => {
    for (const operation of gatewayOperations) {
      if (operation.http === undefined) continue;
      const { description, security } = nodeOf(operation.method.localName);
      const scope = scopeWord(operation.scope);
      assert.deepEqual(security, [{ apiKey: [scope] }]);
      assert.ok(description.startsWith(commentOf(comments, operation.method)), operation.name);
      assert.ok(description.includes(`the scope \`${scope}\``), operation.name);
      assert.equal(
        description.includes('partner by partner'),
        operation.feature !== Feature.UNSPECIFIED,
        operation.name,
      );
      assert.equal(description.includes('request in progress'), operation.takesSlot, operation.name);
    }
    assert.equal(scopeWord(Scope.TRADE), 'trade');
  });

  it('path parameters are required, and a key’s header is a parameter where one is taken', () => {
    const get = nodeOf('getOrder').parameters;
    assert.deepEqual(
      get.map(({ in: place, required }) => [place, required]),
      [['path', true]],
    );
    const list = nodeOf('listOrders').parameters.find(({ name }) => name === 'limit');
    assert.deepEqual([list?.in, list?.required], ['query', false]);
    const refs = (name: string) => nodeOf(name).parameters.flatMap(({ $ref }) => $ref ?? []);
    assert.deepEqual([refs('createOrder'), refs('getOrder')], [['#/components/parameters/IdempotencyKey'], []]);
    assert.equal(pathTemplate(bindingOf(operationOf('listOrders'))), '/v1/orders');
    assert.match(pathTemplate(bindingOf(operationOf('getOrder'))), /^\/v1\/orders\/\{\w+\}$/);
  });

  it('a body is the recorded one, a file has its media types, and a read has none', () => {
    const { content } = nodeOf('createOrder').requestBody ?? { content: {} };
    assert.deepEqual(content['application/json'], {
      schema: { is: 'body' },
      example: examples.operations.createOrder?.[0]?.request.body,
    });
    const file = nodeOf('sendDocument').requestBody?.content ?? {};
    assert.deepEqual(Object.keys(file), operationOf('sendDocument').file?.mediaTypes);
    assert.equal(nodeOf('getOrder').requestBody, undefined);
  });

  it('what creates something answers with 201 and its path, and with 200 to the same key again', () => {
    for (const operation of gatewayOperations) {
      if (operation.http === undefined) continue;
      const { responses } = nodeOf(operation.method.localName);
      const good = Object.keys(responses).filter((each) => Number(each) < 300);
      const { location, takesIdempotencyKey } = operation;
      const expected = location === undefined ? ['200'] : takesIdempotencyKey ? ['200', '201'] : ['201'];
      assert.deepEqual(good, expected, operation.name);
      assert.equal(responses[201]?.headers.Location !== undefined, location !== undefined, operation.name);
      const isReplayed = responses[200]?.headers['Idempotent-Replayed'] !== undefined;
      assert.equal(isReplayed, location !== undefined && takesIdempotencyKey, operation.name);
    }
  });

  it('an example of an answer has the status that it is shown with', () => {
    for (const [name, recorded] of Object.entries(examples.operations)) {
      const { responses } = nodeOf(name);
      for (const status of [200, 201]) {
        const shown = responses[status]?.content['application/json']?.example;
        if (responses[status] !== undefined)
          assert.deepEqual(
            shown,
            recorded.find(({ answer }) => answer.status === status)?.answer.body,
            `${name} ${status}`,
          );
      }
    }
  });

  it('every error is at its status, with the headers that go with it', () => {
    for (const operation of gatewayOperations) {
      if (operation.http === undefined) continue;
      const { responses } = nodeOf(operation.method.localName);
      const failures = Object.entries(responses).filter(([status]) => Number(status) >= 400);
      const leaves = operation.location !== undefined && operation.takesIdempotencyKey;
      for (const [status, { description, headers, content }] of failures) {
        const codes = operation.errors.filter((code) => new ApiError(code).status === Number(status));
        assert.deepEqual(
          Object.keys(content['application/json']?.examples ?? {}),
          codes,
          `${operation.name} ${status}`,
        );
        for (const code of codes) assert.ok(description.includes(`\`${code}\`: ${new ApiError(code).message}`));
        assert.equal(headers['WWW-Authenticate'] !== undefined, status === '401');
        const isRetried = codes.some((code) => new ApiError(code).retryAfterSeconds !== undefined);
        assert.equal(headers['Retry-After'] !== undefined, isRetried, `${operation.name} ${status}`);
        assert.equal(
          headers.Location !== undefined,
          leaves && ['422', '503'].includes(status),
          `${operation.name} ${status}`,
        );
      }
      const all = new Set(operation.errors.map((code) => new ApiError(code).status));
      assert.equal(failures.length, all.size, operation.name);
    }
  });

  it('an operation has a sample in each language and a link to its place in the reference', () => {
    const { 'x-codeSamples': samples, externalDocs } = nodeOf('createOrder');
    assert.deepEqual(
      samples?.map(({ label }) => label),
      ['curl', 'TypeScript', 'Python', 'Go', 'grpcurl'],
    );
    assert.equal(externalDocs.url, 'https://marina.example/docs/reference/orders#createOrder');
  });

  it('an operation that REST does not serve has no place in it', () => {
    const operation = { ...operationOf('getOrder'), http: undefined };
    assert.throws(() => bindingOf(operation), /is not served over REST/);
  });
});
