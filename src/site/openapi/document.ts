import { ApiError, catalogue, docUrl, type ErrorCode } from '../../gateway/edge/errors.ts';
import { EventSchema } from '../../gen/marina/gateway/v1/events_pb.ts';
import { commentOf } from '../comments.ts';
import type { GatewayAddresses, Reference } from '../reference.ts';
import { contactHref } from '../support.ts';
import { bindingOf, operationNode, pathTemplate } from './operations.ts';
import { type Node, oneWord, openList, Schemas } from './schemas.ts';

/** Makes the OpenAPI 3.1 document of all operations REST serves. */
export function openApiDocument(reference: Reference, addresses: GatewayAddresses): Node {
  const { baseUrl } = addresses;
  const schemas = new Schemas(reference.comments);
  const served = reference.operations.filter(({ http }) => http !== undefined);
  const paths: { [path: string]: Node } = {};
  for (const operation of served) {
    const http = bindingOf(operation);
    const path = pathTemplate(http);
    paths[path] = {
      ...paths[path],
      [http.method.toLowerCase()]: operationNode(operation, reference, schemas, addresses),
    };
  }
  const event = webhook(schemas, reference);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Marina',
      version: '1',
      summary: 'A brokerage gateway for the Nigerian market.',
      description: introduction,
      contact: contactOf(addresses),
      license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
    },
    externalDocs: { description: 'Guides, examples, errors and events', url: `${baseUrl}/docs` },
    servers: [{ url: baseUrl }],
    security: [{ apiKey: [] }],
    tags: tags(reference),
    paths,
    webhooks: { event: { post: event } },
    components: {
      securitySchemes: { apiKey },
      parameters: { IdempotencyKey: idempotencyKey },
      headers,
      schemas: { ...schemas.all, ErrorBody: errorBody },
      examples: errorExamples(served, baseUrl),
    },
  };
}

const introduction = [
  'Open accounts, fund them, place and follow stock orders, and hear of every change.',
  'Money is in whole kobo. Integers are written with all their digits, and some, such as the value of a day’s orders, ' +
    'can be greater than 2^53: read them with a parser that keeps them exact. A member whose name ends in ' +
    '`_kobo_decimal` is an exact decimal text.',
  'Every list of values can grow: accept a state, a code or an event type you do not know. Every member of an answer is ' +
    'always there, null where there is no value.',
  'Any path may also answer 404 `not_found` and 405 `method_not_allowed` (with `Allow`), when there is nothing at it or ' +
    'the method is another.',
].join('\n\n');

const apiKey = {
  type: 'http',
  scheme: 'bearer',
  description:
    'An API key: `marina_test_…` in a sandbox, `marina_live_…` in live. The scopes named are those the key needs.',
};

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description:
    'Names the request, so that sending it again never does it twice: 1 to 255 printable ASCII characters, unique ' +
    'among the requests of this operation. A random UUID does well.',
  schema: { type: 'string', pattern: '^[ -~]{1,255}$' },
};

const text = { type: 'string' };
const headers = {
  RequestId: { description: 'Names this answer to our support.', required: true, schema: text },
  CacheControl: { description: 'No answer may be kept.', required: true, schema: text },
  Location: { description: 'The path of the new object.', required: true, schema: text },
  LocationOfFailed: {
    description: 'The path of the object that the request left behind, if any.',
    schema: text,
  },
  IdempotentReplayed: {
    description: 'This is the answer to an earlier request with the same Idempotency-Key.',
    required: true,
    schema: oneWord('true'),
  },
  RetryAfter: {
    description: 'How many seconds to wait before the same request is sent again.',
    schema: { type: 'integer', minimum: 1 },
  },
  WwwAuthenticate: { description: 'What kind of credential is wanted.', required: true, schema: text },
};

const types = [...new Set((Object.keys(catalogue) as ErrorCode[]).map((code) => new ApiError(code).type))];
const errorBody = {
  type: 'object',
  description: 'An error.',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      description: 'What went wrong.',
      required: ['type', 'code', 'message', 'doc_url'],
      properties: {
        type: { ...openList(types), description: 'The family of the code. The list can grow.' },
        code: {
          ...openList(Object.keys(catalogue)),
          description: 'What happened, for program logic. A code never changes its meaning; the list can grow.',
        },
        message: { type: 'string', description: 'A sentence for people. Never use it in logic.' },
        doc_url: { type: 'string', format: 'uri', description: 'Where the code is described.' },
        param: {
          type: 'string',
          description: 'The offending parameter, header or field, when there is one: `a.b[0].c` inside a body.',
        },
        reject_reason: { type: 'string', description: 'Why the exchange or broker refused, when it did.' },
      },
    },
  },
};

function errorExamples(operations: Reference['operations'], baseUrl: string): Node {
  const codes = new Set(operations.flatMap(({ errors }) => errors));
  return Object.fromEntries(
    [...codes].map((code) => {
      const { type, message } = new ApiError(code);
      return [code, { summary: message, value: { error: { type, code, message, doc_url: docUrl(baseUrl, code) } } }];
    }),
  );
}

function tags({ operations, comments }: Reference): Node[] {
  const services = [...new Set(operations.map(({ method }) => method.parent))];
  return services.map((service) => ({ name: service.name, description: commentOf(comments, service) }));
}

function webhook(schemas: Schemas, { comments, examples }: Reference): Node {
  const parameter = (name: string, description: string) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  });
  const example = examples.events['order.filled'];
  return {
    operationId: 'receiveEvent',
    tags: ['Events'],
    summary: 'Receive event',
    description: [
      'An event, as it is sent to your endpoint.',
      commentOf(comments, EventSchema),
      'Verify the signature over the raw bytes before you read them, and answer with any 2xx within 10 seconds. An event ' +
        'can come more than once, and out of order.',
    ].join('\n\n'),
    security: [],
    parameters: [
      parameter('webhook-id', 'The id of the event, the same on every attempt.'),
      parameter('webhook-timestamp', 'When this attempt was made, in Unix seconds.'),
      parameter('webhook-signature', 'One or more signatures, separated by spaces, each `v1,` and base64.'),
    ],
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: schemas.message(EventSchema), ...(example === undefined ? {} : { example }) },
      },
    },
    responses: {
      '2XX': { description: 'Received. The event is not sent again.' },
      '4XX': { description: 'Not received: the event is sent again later, on its schedule.' },
      '5XX': { description: 'Not received: the event is sent again, and after three failures the endpoint is paused.' },
    },
  };
}

/** Whom partners ask; without a contact of the operator, the pages. */
function contactOf({ baseUrl, support }: GatewayAddresses): Node {
  if (support === undefined) return { name: 'Marina', url: `${baseUrl}/docs` };
  const href = contactHref(support);
  return { name: 'Marina', ...(href === support ? { url: support } : { email: support }) };
}
