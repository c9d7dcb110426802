/** A part of the OpenAPI document that says what a value may be. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly (string | null)[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  /** Beside null: the type that the value has not, so that only null is left. */
  readonly not?: Schema;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly 'x-extensible-enum'?: readonly string[];
}

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
}

interface Content {
  readonly [mediaType: string]: { readonly schema: Schema };
}

interface OperationNode {
  readonly operationId: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content: Content }>>;
}

/** The parts of the OpenAPI document that the clients are made of. */
export interface ContractDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationNode>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** A named value: a member of an object, or one that an operation takes. */
export interface Member {
  readonly name: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly description: string;
}

/**
 * An operation as a client has it. The members of its path, query and body have different names, so its input is one
 * object.
 */
export interface ClientOperation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly description: string;
  readonly pathMembers: readonly Member[];
  readonly queryMembers: readonly Member[];
  /** The name of the body's schema. */
  readonly bodySchema: string | undefined;
  /** The media types of the file that is its body. */
  readonly fileTypes: readonly string[] | undefined;
  readonly takesKey: boolean;
  /** The name of the schema of a good answer. */
  readonly answer: string;
  /** The type of a list's items. */
  readonly item: string | undefined;
}

/** The contract as the clients are made of it. */
export interface Contract {
  readonly operations: readonly ClientOperation[];
  readonly schemas: Readonly<Record<string, Schema>>;
  /** The schemas of what is sent. All others are of what is answered. */
  readonly sent: ReadonlySet<string>;
  readonly errorTypes: readonly string[];
  readonly errorCodes: readonly string[];
}

/** Errors are classes. An object of an unknown kind has no members that a type could name. */
const withoutType = new Set(['ErrorBody', 'UnknownObject']);

/** Reads the OpenAPI document. Throws if it has something that the clients have no form for. */
export function readContract({ paths, components: { schemas } }: ContractDocument): Contract {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, node]) => readOperation(method.toUpperCase(), path, node, schemas)),
  );
  const error = schemas.ErrorBody?.properties?.error?.properties ?? {};
  return {
    operations,
    schemas: Object.fromEntries(Object.entries(schemas).filter(([name]) => !withoutType.has(name))),
    sent: new Set(operations.flatMap(({ bodySchema }) => bodySchema ?? [])),
    errorTypes: error.type?.['x-extensible-enum'] ?? [],
    errorCodes: error.code?.['x-extensible-enum'] ?? [],
  };
}

function readOperation(
  method: string,
  path: string,
  node: OperationNode,
  schemas: Readonly<Record<string, Schema>>,
): ClientOperation {
  const { operationId: name, description, parameters, requestBody, responses } = node;
  const content = Object.entries(requestBody?.content ?? {});
  const json = requestBody?.content['application/json']?.schema;
  const good = (responses[200] ?? responses[201])?.content['application/json']?.schema;
  if (good?.$ref === undefined) throw new Error(`${name} has no named answer`);
  const answer = schemaName(good);
  const list = schemas[answer]?.properties;
  const operation = {
    name,
    method,
    path,
    description,
    pathMembers: membersIn(parameters, 'path'),
    queryMembers: membersIn(parameters, 'query'),
    bodySchema: json === undefined ? undefined : schemaName(json),
    fileTypes: json === undefined && content.length > 0 ? content.map(([mediaType]) => mediaType) : undefined,
    takesKey: parameters.some(({ $ref }) => $ref?.endsWith('/IdempotencyKey')),
    answer,
    item:
      list?.object?.enum?.[0] === 'list' && list.data?.items !== undefined ? schemaName(list.data.items) : undefined,
  };
  const body = operation.bodySchema === undefined ? [] : membersOf(schemas[operation.bodySchema]);
  const names = [...operation.pathMembers, ...operation.queryMembers, ...body].map((member) => member.name);
  if (new Set(names).size < names.length) throw new Error(`${name} takes two values of one name`);
  return operation;
}

function membersIn(parameters: readonly Parameter[], place: string): Member[] {
  return parameters
    .filter((parameter) => parameter.in === place)
    .map(({ name, schema, required, description }) => ({ name, schema, isRequired: required, description }));
}

/** The name of the schema that another refers to. */
export function schemaName({ $ref }: Schema): string {
  const name = $ref?.split('/').at(-1);
  if (name === undefined) throw new Error('a schema has no name');
  return name;
}

/**
 * The members of an object. Of one that has several forms, those of all forms: a member is required if each form requires
 * it, and may be what any form allows.
 */
export function membersOf(schema: Schema | undefined): Member[] {
  const forms = schema?.oneOf ?? (schema === undefined ? [] : [schema]);
  const names = [...new Set(forms.flatMap(({ properties = {} }) => Object.keys(properties)))];
  return names.map((name) => {
    const found = forms.flatMap(({ properties }) => properties?.[name] ?? []);
    const [first = {}] = found;
    const enums = found.flatMap((each) => each.enum ?? []);
    return {
      name,
      schema: enums.length > 0 ? { ...first, enum: [...new Set(enums)] } : first,
      isRequired: forms.every(({ required = [] }) => required.includes(name)),
      description: first.description ?? '',
    };
  });
}

/** The kinds of objects that a choice has today, if it is one. */
export function knownChoice({ oneOf, anyOf }: Schema): readonly Schema[] | undefined {
  return oneOf ?? anyOf?.find((each) => each.oneOf !== undefined)?.oneOf;
}

/** Whether a value may be null, and what it is otherwise. */
export function withoutNull(schema: Schema): { isNullable: boolean; value: Schema } {
  const { type, enum: words, anyOf } = schema;
  if (Array.isArray(type) && type.includes('null')) {
    const value = { ...schema, type: type.find((each) => each !== 'null') };
    return {
      isNullable: true,
      value: words === undefined ? value : { ...value, enum: words.filter((each) => each !== null) },
    };
  }
  if (anyOf?.some((each) => each.type === 'null')) {
    const [value = {}] = anyOf.filter((each) => each.type !== 'null');
    return { isNullable: true, value };
  }
  return { isNullable: false, value: schema };
}
