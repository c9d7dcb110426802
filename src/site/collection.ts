import type { DescService } from '@bufbuild/protobuf';
import type { OperationRules } from '../gateway/edge/operations.ts';
import { commentOf } from './comments.ts';
import type { Example } from './examples.ts';
import { bindingOf } from './openapi/operations.ts';
import { pretty, servicesOf } from './pages/reference.ts';
import type { GatewayAddresses, Reference } from './reference.ts';
import { titleOf } from './samples/names.ts';

/** A part of the collection. */
type Node = Readonly<Record<string, unknown>>;

/** The variables of the collection. The key is empty: whoever imports it keeps it as a secret of the tool. */
const variables = { base_url: '', key: '', account: '' };

/**
 * Every operation of REST as a collection in Postman's format 2.1, which Bruno, Insomnia and Hoppscotch import too: a folder for each service,
 * the body of a recorded request, and a new Idempotency-Key for each send.
 */
export function collection(reference: Reference, { baseUrl }: GatewayAddresses): Node {
  const operations = reference.operations.filter(({ http }) => http !== undefined);
  return {
    info: {
      name: 'Marina',
      description: `Set the variables key and account of the collection. The pages are at ${baseUrl}/docs.`,
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{key}}', type: 'string' }] },
    variable: Object.entries({ ...variables, base_url: baseUrl }).map(([key, value]) => ({
      key,
      value,
      type: 'string',
    })),
    item: servicesOf({ operations }).map((service) => ({
      name: titleOf(service.name),
      description: commentOf(reference.comments, service),
      item: operations
        .filter(({ method }) => method.parent === service)
        .map((operation) => request(operation, reference)),
    })),
  };
}

function request(operation: OperationRules, { comments, examples }: Reference): Node {
  const { method, takesIdempotencyKey } = operation;
  const http = bindingOf(operation);
  const [example] = examples.operations[method.localName] ?? [];
  const contentType = example?.request.headers['content-type'];
  return {
    name: titleOf(method.name),
    request: {
      method: http.method,
      description: commentOf(comments, method),
      header: [
        ...(contentType === undefined ? [] : [{ key: 'Content-Type', value: contentType }]),
        // The same request may be sent again with the same key: then put here the one that was sent.
        ...(takesIdempotencyKey ? [{ key: 'Idempotency-Key', value: '{{$guid}}' }] : []),
      ],
      url: url(operation, comments),
      ...(http.body === 'none' ? {} : { body: body(http.body, example) }),
    },
    response: [],
    ...(operation.location === undefined ? {} : { event: [keeping(operation)] }),
  };
}

/** A script that keeps the id of what was created, for the calls after it. */
function keeping({ method }: OperationRules): Node {
  const exec = [
    `if (pm.response.code < 300) pm.collectionVariables.set('${idVariable(method.parent)}', pm.response.json().id);`,
  ];
  return { listen: 'test', script: { type: 'text/javascript', exec } };
}

/** The variable that has the id of what a service creates. */
function idVariable({ name }: DescService): string {
  return `${name.toLowerCase().replace(/s$/, '')}_id`;
}

function url(operation: OperationRules, comments: Reference['comments']): Node {
  const { segments, queryFields } = bindingOf(operation);
  const path = segments.map((segment) => (typeof segment === 'string' ? segment : `:${segment.name}`));
  const fields = segments.flatMap((segment) => (typeof segment === 'string' ? [] : [segment]));
  const query = queryFields.map((field) => ({
    key: field.name,
    value: '',
    description: commentOf(comments, field),
    disabled: true,
  }));
  return {
    raw: `{{base_url}}/${path.join('/')}`,
    host: ['{{base_url}}'],
    path,
    query,
    variable: fields.map((field) => ({
      key: field.name,
      value: pathValue(field.name, operation),
      description: commentOf(comments, field),
    })),
  };
}

/** The reader's own account, or what the call before created. The reader fills in a value that cannot be known. */
function pathValue(name: string, { method, http }: OperationRules): string {
  if (name === 'account') return '{{account}}';
  if (name === 'type') return 'photo';
  if (name === 'symbol') return 'ZENITHBANK';
  if (name !== 'id') return '';
  // The calls of a sandbox have the kind of their object in the path.
  const kind = http?.segments[1] === 'sandbox' ? String(http.segments[2]).replace(/s$/, '') : undefined;
  return `{{${kind === undefined ? idVariable(method.parent) : `${kind}_id`}}}`;
}

function body(kind: 'json' | 'file', example: Example | undefined): Node {
  if (kind === 'file') return { mode: 'file', file: { src: '' } };
  const recorded = (example?.request.body ?? {}) as Readonly<Record<string, unknown>>;
  const own = 'account' in recorded ? { ...recorded, account: '{{account}}' } : recorded;
  return { mode: 'raw', raw: pretty(own), options: { raw: { language: 'json' } } };
}
