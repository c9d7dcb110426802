import assert from 'node:assert/strict';
import { Ajv2020, type AnySchema, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { readComments } from '../../src/site/comments.ts';
import { readExamples } from '../../src/site/examples.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { openApiDocument } from '../../src/site/openapi/document.ts';

/** An answer of REST, as far as the OpenAPI document describes it. */
export interface DescribedAnswer {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly text: string;
}

// biome-ignore lint/suspicious/noExplicitAny: a document of JSON is walked freely.
type Json = any;

/** The document the gateway serves, with every object closed: a member it does not describe is a mistake. */
export const described: Json = closed(
  openApiDocument(
    { operations: gatewayOperations, comments: readComments(), examples: readExamples() },
    { baseUrl: 'http://gateway.test', grpcAddress: 'gateway.test:443' },
  ),
);

const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addFormat('int64', true);
ajv.addFormat('int32', true);
ajv.addSchema({ ...described, $id: 'document' });
const validators = new Map<string, ValidateFunction>();

/** Fails unless the answer is one the OpenAPI document describes: its status, headers, body and, of an error, its code. */
export function assertDescribed(answer: DescribedAnswer): void {
  const { method, status, text } = answer;
  const [path = ''] = answer.path.split('?');
  if (!path.startsWith('/v1/') || method === 'HEAD') return;
  const body = JSON.parse(text);
  const found = find(method, path);
  const code: unknown = body.error?.code;
  if (found === undefined || code === 'not_found' || code === 'method_not_allowed' || isUnreadable(answer)) {
    assertValid('/components/schemas/ErrorBody', body, answer);
    return;
  }
  const pointer = `${found.pointer}/responses/${status}`;
  const response = found.operation.responses[status];
  assert.ok(response, `${method} ${path} describes no answer ${status}: ${text}`);
  assertValid(`${pointer}/content/application~1json/schema`, body, answer);
  assertHeaders(response.headers, answer);
  if (code === undefined) return;
  const codes = Object.keys(response.content['application/json'].examples);
  assert.ok(codes.includes(String(code)), `${method} ${path} describes no ${status} ${code}`);
}

/** Tells if a request was answered before it was known to be one: its head was no HTTP, or too large. */
function isUnreadable({ status, text }: DescribedAnswer): boolean {
  return status === 413 && text.includes('request line');
}

function assertHeaders(headers: Json, answer: DescribedAnswer): void {
  for (const [name, reference] of Object.entries<Json>(headers)) {
    const header = described.components.headers[reference.$ref.split('/').at(-1)];
    const value = answer.header(name.toLowerCase());
    if (header.required) assert.ok(value !== undefined, `${answer.method} ${answer.path} has no ${name}`);
    if (value !== undefined && header.schema.type === 'integer') assert.match(value, /^\d+$/);
  }
  for (const name of ['location', 'idempotent-replayed', 'retry-after', 'www-authenticate']) {
    const isDescribed = Object.keys(headers).some((each) => each.toLowerCase() === name);
    const said = answer.header(name);
    assert.ok(
      isDescribed || said === undefined,
      `${answer.method} ${answer.path} ${answer.status} describes no ${name}`,
    );
  }
}

/** Fails unless a value is what a part of the document says. */
export function assertValid(pointer: string, value: unknown, about: object): void {
  const uri = `document#${pointer.split('/').map(encodeURIComponent).join('/')}`;
  const validate = validators.get(pointer) ?? ajv.compile({ $ref: uri });
  validators.set(pointer, validate);
  assert.ok(validate(value), `${JSON.stringify(about)} is not as described: ${ajv.errorsText(validate.errors)}`);
}

const templates = Object.keys(described.paths).map((template) => ({
  template,
  // A fixed segment beats a parameter.
  rank: template.split('{').length,
  expression: new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`),
}));
templates.sort((one, other) => one.rank - other.rank);

function find(method: string, path: string): { operation: Json; pointer: string } | undefined {
  const template = templates.find(({ expression }) => expression.test(path))?.template;
  if (template === undefined) return undefined;
  const operation = described.paths[template][method.toLowerCase()];
  const pointer = `/paths/${template.replaceAll('/', '~1')}/${method.toLowerCase()}`;
  return operation && { operation, pointer };
}

function closed(node: Json): Json {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries<Json>(node).map(([name, value]) => [name, closed(value)]));
  const isSchema = node.type === 'object' && typeof node.properties === 'object';
  return isSchema ? ({ additionalProperties: false, ...copy } satisfies AnySchema) : copy;
}
