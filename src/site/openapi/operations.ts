import { type DescField, getOption } from '@bufbuild/protobuf';
import { ApiError, type ErrorCode } from '../../gateway/edge/errors.ts';
import type { HttpBinding, OperationRules } from '../../gateway/edge/operations.ts';
import { Feature, field as fieldOption, Scope, ScopeSchema } from '../../gen/marina/options/v1/options_pb.ts';
import { enumNames } from '../../kit/enums.ts';
import { commentOf, firstSentence } from '../comments.ts';
import { operationHref } from '../links.ts';
import type { GatewayAddresses, Reference } from '../reference.ts';
import type { SampleRequest } from '../samples/language.ts';
import { languages } from '../samples/languages.ts';
import { titleOf } from '../samples/names.ts';
import { type Node, requestValue, type Schemas } from './schemas.ts';

const commonHeaders = { 'x-request-id': header('RequestId'), 'Cache-Control': header('CacheControl') };

/** One operation as its place in the document. */
export function operationNode(
  operation: OperationRules,
  reference: Reference,
  schemas: Schemas,
  addresses: GatewayAddresses,
): Node {
  const { comments } = reference;
  const comment = commentOf(comments, operation.method);
  const http = bindingOf(operation);
  const [example] = reference.examples.operations[operation.method.localName] ?? [];
  return {
    operationId: operation.method.localName,
    tags: [operation.method.parent.name],
    // Generators make names, menus and comments of it.
    summary: titleOf(operation.method.name),
    description: [comment, accessNote(operation)].join('\n\n'),
    externalDocs: {
      description: 'With examples',
      url: `${addresses.baseUrl}${operationHref(operation.method)}`,
    },
    security: [{ apiKey: [scopeWord(operation.scope)] }],
    parameters: parameters(operation, reference),
    ...(http.body === 'none' ? {} : { requestBody: requestBody(operation, reference, schemas) }),
    responses: { ...successes(operation, reference, schemas), ...failures(operation) },
    ...(example && { 'x-codeSamples': codeSamples({ operation, example, addresses }) }),
  };
}

function codeSamples(request: SampleRequest): Node[] {
  return languages.map(({ lang, label, write }) => ({ lang, label, source: write(request) }));
}

/** An operation's place in REST. Throws for one that has none. */
export function bindingOf({ name, http }: OperationRules): HttpBinding {
  if (http === undefined) throw new Error(`${name} is not served over REST`);
  return http;
}

/** A path as OpenAPI writes it. */
export function pathTemplate({ segments }: HttpBinding): string {
  return `/${segments.map((segment) => (typeof segment === 'string' ? segment : `{${segment.name}}`)).join('/')}`;
}

/** A scope's name, as keys have it. */
export function scopeWord(scope: Scope): string {
  return enumNames(ScopeSchema).get(scope) ?? Scope[scope];
}

function accessNote({ scope, feature, takesSlot }: OperationRules): string {
  const notes = [`Needs a key with the scope \`${scopeWord(scope)}\`.`];
  if (feature !== Feature.UNSPECIFIED) notes.push('It is enabled partner by partner.');
  if (takesSlot) notes.push('It counts as a request in progress until it is answered.');
  return notes.join(' ');
}

function parameters(operation: OperationRules, { comments }: Reference): Node[] {
  const { pathFields, queryFields } = bindingOf(operation);
  const parameter = (field: DescField, place: 'path' | 'query') => ({
    name: field.name,
    in: place,
    required: place === 'path' || getOption(field, fieldOption).required,
    description: commentOf(comments, field),
    schema: requestValue(field, comments),
  });
  return [
    ...pathFields.map((field) => parameter(field, 'path')),
    ...queryFields.map((field) => parameter(field, 'query')),
    ...(operation.takesIdempotencyKey ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
  ];
}

function requestBody(
  { method, input, file, http }: OperationRules,
  { comments, examples }: Reference,
  schemas: Schemas,
): Node {
  if (file !== undefined) {
    const field = input.fields.find(({ name }) => name === file.content);
    const description = field === undefined ? '' : commentOf(comments, field);
    // Bytes are no text: OpenAPI 3.1 has them without a type.
    const schema = (contentMediaType: string) => ({ contentMediaType, description });
    const content = Object.fromEntries(file.mediaTypes.map((mediaType) => [mediaType, { schema: schema(mediaType) }]));
    return { description: 'The file itself, as it is.', required: true, content };
  }
  const schema = schemas.body(input, http?.bodyFields ?? []);
  const recorded = examples.operations[method.localName]?.[0]?.request.body;
  const example = recorded === undefined ? {} : { example: recorded };
  return { required: true, content: { 'application/json': { schema, ...example } } };
}

function successes(operation: OperationRules, { comments, examples }: Reference, schemas: Schemas): Node {
  const { method, output, location, takesIdempotencyKey } = operation;
  const schema = schemas.message(output);
  const whole = firstSentence(commentOf(comments, output));
  const content = (status: number) => {
    const recorded = examples.operations[method.localName]?.find((each) => each.answer.status === status);
    return { 'application/json': { schema, ...(recorded && { example: recorded.answer.body }) } };
  };
  const created = {
    description: `${whole} It was made by this request.`,
    headers: { ...commonHeaders, Location: header('Location') },
    content: content(201),
  };
  const known = { description: whole, headers: commonHeaders, content: content(200) };
  const replayed = {
    description: `${whole} An earlier request with the same key made it; this is the object as it is now.`,
    headers: { ...commonHeaders, 'Idempotent-Replayed': header('IdempotentReplayed') },
    content: content(200),
  };
  if (location === undefined) return { 200: known };
  return takesIdempotencyKey ? { 200: replayed, 201: created } : { 201: created };
}

function failures({ errors, location, takesIdempotencyKey }: OperationRules): Node {
  const leaves = location !== undefined && takesIdempotencyKey;
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errors) {
    const { status } = new ApiError(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries([...byStatus].map(([status, codes]) => [status, failure(status, codes, leaves)]));
}

function failure(status: number, codes: readonly ErrorCode[], leavesObjects: boolean): Node {
  const headers: Node = { ...commonHeaders };
  if (status === 401) headers['WWW-Authenticate'] = header('WwwAuthenticate');
  if (codes.some((code) => new ApiError(code).retryAfterSeconds !== undefined)) {
    headers['Retry-After'] = header('RetryAfter');
  }
  if (leavesObjects && (status === 422 || status === 503)) headers.Location = header('LocationOfFailed');
  const examples = codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
  return {
    description: codes.map((code) => `- \`${code}\`: ${new ApiError(code).message}`).join('\n'),
    headers,
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/ErrorBody' },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function header(name: string): Node {
  return { $ref: `#/components/headers/${name}` };
}
