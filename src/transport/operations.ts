import {
  type DescField,
  type DescMessage,
  type DescMethod,
  getOption,
  type Message,
  type MessageShape,
} from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { Handler, StreamHandler } from '../auth/call.ts';
import { type Feature, operation as operationOption, Scope } from '../gen/marina/options/v1/options_pb.ts';
import type { ErrorCode } from '../lib/errors.ts';
import { compileFieldRules, type FieldCheck } from './field-rules.ts';
import { type FileBody, fileBody } from './file-body.ts';
import { type HttpBinding, httpBinding } from './http-binding.ts';
import { operationErrors } from './operation-errors.ts';

/** One operation as the doors serve it: what its proto says of it, and its handler. */
export type Operation = UnaryOperation | StreamOperation;

/** An operation that answers with one message. */
export interface UnaryOperation extends OperationRules {
  readonly kind: 'unary';
  readonly handler: Handler<Message, Message>;
}

/** An operation that answers with a stream of messages; REST has no form for it. */
export interface StreamOperation extends OperationRules {
  readonly kind: 'stream';
  readonly handler: StreamHandler<Message, Message>;
}

/** What a proto says of an operation. */
export interface OperationRules {
  /** Service and method, as in `Orders.CreateOrder`: the operation's name in logs and metrics. */
  readonly name: string;
  readonly method: DescMethod;
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly scope: Scope;
  /** What must be enabled for the partner; `UNSPECIFIED`: nothing. */
  readonly feature: Feature;
  readonly takesPlace: boolean;
  readonly takesIdempotencyKey: boolean;
  /** The path of the object it creates; undefined on operations that create none. */
  readonly location: ((created: Message) => string) | undefined;
  /** The id of the object a request is about, whose form was checked; undefined where it is about none. */
  readonly objectOf: (request: Message) => string | undefined;
  /** The id of the object an answer is, of operations that create one. */
  readonly createdObjectOf: (answer: Message) => string | undefined;
  /** The file a request carries; undefined on operations that take none. */
  readonly file: FileBody | undefined;
  /** Undefined: not served over REST. */
  readonly http: HttpBinding | undefined;
  /** Every code of the catalogue it can answer with once its path and method are found. */
  readonly errors: readonly ErrorCode[];
  /**
   * The field rules in the parts in which they are checked: REST knows path and query before it reads a body, and the
   * other doors keep its order.
   */
  readonly checkPath: FieldCheck;
  readonly checkQuery: FieldCheck;
  readonly checkBody: FieldCheck;
}

/** A handler for each of a service's methods. */
export type ServiceHandlers<Shape extends GenServiceMethods> = {
  readonly [Name in keyof Shape]: Shape[Name]['methodKind'] extends 'unary'
    ? Handler<MessageShape<Shape[Name]['input']>, MessageShape<Shape[Name]['output']>>
    : Shape[Name]['methodKind'] extends 'server_streaming'
      ? StreamHandler<MessageShape<Shape[Name]['input']>, MessageShape<Shape[Name]['output']>>
      : never;
};

/** The handlers of a generated service, as in `HandlersOf<typeof Orders>`. */
export type HandlersOf<Service> =
  Service extends GenService<infer Shape extends GenServiceMethods> ? ServiceHandlers<Shape> : never;

/** Joins a service's descriptors with its handlers. Fails at the start on anything the doors could not serve. */
export function defineOperations<Shape extends GenServiceMethods>(
  service: GenService<Shape>,
  handlers: ServiceHandlers<Shape>,
): Operation[] {
  const byName = handlers as unknown as Record<string, Operation['handler'] | undefined>;
  return service.methods.map((method) => {
    const handler = byName[method.localName];
    if (handler === undefined) throw new Error(`${service.typeName}.${method.name} has no handler`);
    return defineOperation(method, handler);
  });
}

function defineOperation(method: DescMethod, handler: Operation['handler']): Operation {
  const rules = readRules(method);
  if (method.methodKind === 'unary') {
    return { ...rules, kind: 'unary', handler: handler as Handler<Message, Message> };
  }
  if (method.methodKind !== 'server_streaming') throw new Error(`${rules.name}: requests are no streams`);
  if (
    rules.http !== undefined ||
    rules.takesPlace ||
    rules.takesIdempotencyKey ||
    rules.location !== undefined ||
    rules.file !== undefined
  ) {
    throw new Error(`${rules.name}: a stream has no path, takes no place, key or file, and creates nothing`);
  }
  return { ...rules, kind: 'stream', handler: handler as StreamHandler<Message, Message> };
}

/** Reads what a proto says of an operation. Throws on anything the doors could not serve. */
export function readRules(method: DescMethod): OperationRules {
  const name = `${method.parent.name}.${method.name}`;
  const rules = getOption(method, operationOption);
  if (rules.scope === Scope.UNSPECIFIED) throw new Error(`${name} needs no scope`);
  const file = rules.file === undefined ? undefined : fileBody(method, rules.file);
  const binding = httpBinding(method, file);
  // In the order of the proto, whatever the order in the path.
  const check = (fields: readonly DescField[]) =>
    compileFieldRules(
      method.input,
      method.input.fields.filter((field) => fields.includes(field)),
    );
  return {
    name,
    method,
    input: method.input,
    output: method.output,
    scope: rules.scope,
    feature: rules.feature,
    takesPlace: rules.takesPlace,
    takesIdempotencyKey: rules.idempotencyKey,
    location: rules.location === '' ? undefined : compileLocation(method.output, rules.location),
    objectOf: textField(method.input, 'id'),
    createdObjectOf: textField(method.output, 'id'),
    file,
    http: binding,
    errors: operationErrors(method, rules, binding, file),
    checkPath: check(binding?.pathFields ?? []),
    checkQuery: check(binding?.queryFields ?? []),
    checkBody: check(binding?.bodyFields ?? method.input.fields),
  };
}

/** Where gRPC and Connect serve a method. */
export function rpcPath({ method }: Operation): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Reads a field of text; undefined where a message has no such field. */
function textField(schema: DescMessage, name: string): (message: Message) => string | undefined {
  const field = schema.fields.find((each) => each.name === name);
  if (field === undefined) return () => undefined;
  const { localName } = field;
  return (message) => {
    const value = (message as unknown as Record<string, unknown>)[localName];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
}

/** Fills in a template such as `/v1/orders/{id}` from the fields of the object created. */
function compileLocation(output: DescMessage, template: string): (created: Message) => string {
  const parts = template.split(/\{([^}]*)\}/).map((part, index) => {
    if (index % 2 === 0) return part;
    const field = output.fields.find(({ name }) => name === part);
    if (field === undefined) throw new Error(`${template}: ${output.typeName} has no field ${part}`);
    return { key: field.localName };
  });
  return (created) => {
    const values = created as unknown as Record<string, unknown>;
    return parts.map((part) => (typeof part === 'string' ? part : String(values[part.key]))).join('');
  };
}
