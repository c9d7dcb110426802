import type { ClientOperation, Contract, Member, Schema } from './contract.ts';
import { knownChoice, membersOf, schemaName, withoutNull } from './contract.ts';

/** The contract as TypeScript: every type and operation. */
export function typescriptContract(contract: Contract): string {
  const { schemas, sent, operations, errorTypes, errorCodes } = contract;
  return `${[
    header,
    ...Object.entries(schemas).map(([name, schema]) => namedType(name, schema, sent.has(name))),
    `/** The families of errors. The list can grow. */\nexport type ErrorType = ${openUnion(errorTypes)};`,
    `/** The code of an error. A code never changes its meaning; the list can grow. */\nexport type ErrorCode = ${openUnion(errorCodes)};`,
    ...operations.flatMap((operation) => inputType(operation) ?? []),
    optionTypes,
    table(operations),
  ].join('\n\n')}\n`;
}

/** A class with a method for each operation. The contract's types, of which it is made, know nothing of it. */
export function typescriptCalls(contract: Contract): string {
  const text = methods(contract.operations, contract.schemas);
  const exported = [...typescriptContract(contract).matchAll(/^export (?:type|interface) (\w+)/gm)].map(
    ([, name = '']) => name,
  );
  const used = exported.filter((name) => new RegExp(`\\b${name}\\b`).test(text)).sort();
  return [
    header,
    [
      `import {\n${[...used.map((name) => `type ${name}`), 'operations'].map((name) => `  ${name},\n`).join('')}} from './contract.ts';`,
      "import type { IntegerMode, WithIntegers } from './integers.ts';",
      "import type { EventFeed, FeedOptions, Pages } from './pages.ts';",
    ].join('\n'),
    text,
  ].join('\n\n');
}

const header = `// Made from the OpenAPI document by \`make generate\`. Change the contract in proto/, not this file.`;

const optionTypes = `/** How one call is made. */
export interface CallOptions {
  /** Ends the call. A request that was sent stays sent: an order may have been placed. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take with all its attempts, in milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** How often the request is sent at most. */
  readonly maxAttempts?: number | undefined;
  /**
   * Called for every answer, also for those after which the request is sent again. It is not awaited. An error that it
   * throws, or that a promise of it rejects with, is written to the console, and changes nothing.
   */
  readonly onAnswer?: ((answer: AnswerDetails) => void) | undefined;
}

/** How one call is made that creates something. */
export interface CreateOptions extends CallOptions {
  /** Names the request. Store it before you send. Without one, the client makes one for this call. */
  readonly idempotencyKey?: string | undefined;
}

/** The details of an answer, in addition to its body. */
export interface AnswerDetails {
  readonly operation: string;
  readonly status: number;
  /** Names the answer to support. */
  readonly requestId: string | undefined;
  /** Whether this is the answer to an earlier request with the same Idempotency-Key. */
  readonly isReplayed: boolean;
  readonly idempotencyKey: string | undefined;
  /** 1 for the first attempt of this call. */
  readonly attempt: number;
}

/** The facts about an operation that the client needs. */
export interface Operation {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly pathNames: readonly string[];
  readonly queryNames: readonly string[];
  readonly body: 'none' | 'json' | 'file';
  readonly takesKey: boolean;
}`;

function namedType(name: string, schema: Schema, isSent: boolean): string {
  const { properties } = schema;
  const about = comment(schema.description ?? '');
  if (properties !== undefined) return `${about}export interface ${name} ${objectType(schema, isSent)}`;
  return `${about}export type ${name} = ${typeOf(schema, isSent)};`;
}

/** The type of a value. A whole number is a bigint where it comes from the gateway, so that none is ever rounded. */
function typeOf(schema: Schema, isSent: boolean): string {
  const { isNullable, value } = withoutNull(schema);
  if (value.not !== undefined) return 'null';
  if (isNullable) return `${typeOf(value, isSent)} | null`;
  if (value.$ref !== undefined) return schemaName(value);
  const words = value['x-extensible-enum'];
  if (words !== undefined) return openUnion(words);
  if (value.enum !== undefined) return value.enum.map((word) => quoted(String(word))).join(' | ');
  const choice = knownChoice(value);
  if (choice !== undefined) return choice.map((each) => typeOf(each, isSent)).join(' | ');
  switch (value.type) {
    case 'array':
      return `readonly ${wrapped(typeOf(value.items ?? {}, isSent))}[]`;
    case 'object':
      return objectType(value, isSent);
    case 'integer':
      return isSent ? 'number | bigint' : 'bigint';
    case 'string':
    case 'boolean':
      return value.type;
    default:
      throw new Error(`there is no type for ${JSON.stringify(value)}`);
  }
}

function wrapped(type: string): string {
  return type.includes(' ') ? `(${type})` : type;
}

function objectType({ properties = {}, required = [] }: Schema, isSent: boolean): string {
  const members = Object.entries(properties).map(([name, schema]) =>
    memberLine({ name, schema, isRequired: required.includes(name), description: schema.description ?? '' }, isSent),
  );
  return `{\n${members.join('')}}`;
}

function memberLine({ name, schema, isRequired, description }: Member, isSent: boolean): string {
  const type = typeOf(schema, isSent);
  const line = isRequired ? `readonly ${name}: ${type};` : `readonly ${name}?: ${type} | undefined;`;
  return indented(`${comment(description)}${line}\n`);
}

function openUnion(words: readonly string[]): string {
  return [...words.map(quoted), '(string & {})'].join(' | ');
}

/** Writes the input type of an operation, unless it takes nothing or its body alone. */
function inputType({ name, pathMembers, queryMembers, bodySchema, fileTypes }: ClientOperation): string | undefined {
  const members = [...pathMembers, ...queryMembers].map((member) => memberLine(member, true));
  if (members.length === 0) return undefined;
  if (fileTypes !== undefined) {
    members.push(
      indented(
        `/** The file itself, in a Buffer, a Uint8Array or an ArrayBuffer. An empty one is refused. */\nreadonly file: ArrayBufferView | ArrayBufferLike;\n`,
      ),
      indented(`/** The media type of the file. */\nreadonly media_type: ${fileTypes.map(quoted).join(' | ')};\n`),
    );
  }
  const body = bodySchema === undefined ? '' : ` & ${bodySchema}`;
  return `/** The input of \`${name}\`. */\nexport type ${inputName(name)} = {\n${members.join('')}}${body};`;
}

function inputName(name: string): string {
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`;
}

function table(operations: readonly ClientOperation[]): string {
  const entries = operations.map(
    ({ name, method, path, pathMembers, queryMembers, bodySchema, fileTypes, takesKey }) => {
      const operation = {
        name,
        method,
        path,
        pathNames: pathMembers.map((member) => member.name),
        queryNames: queryMembers.map((member) => member.name),
        body: fileTypes !== undefined ? 'file' : bodySchema === undefined ? 'none' : 'json',
        takesKey,
      };
      return `  ${name}: ${JSON.stringify(operation)},\n`;
    },
  );
  return `/** Every operation of REST. */\nexport const operations = {\n${entries.join('')}} as const satisfies Readonly<Record<string, Operation>>;`;
}

function methods(operations: readonly ClientOperation[], schemas: Contract['schemas']): string {
  return `/** A method for each operation. */
export abstract class Operations<Mode extends IntegerMode = 'bigint'> {
  protected abstract call<Answer>(operation: Operation, input: object, options?: CreateOptions): Promise<Answer>;
  protected abstract list<Page, Item>(operation: Operation, input: object, options?: CallOptions): Pages<Page, Item>;

  /** Follows the event feed: every event from a cursor on, in order and without a gap. It does not end by itself. */
  abstract followEvents(options?: FeedOptions): EventFeed<WithIntegers<Event, Mode>>;
${operations.map((operation) => method(operation, schemas)).join('')}}
`;
}

function method(operation: ClientOperation, schemas: Contract['schemas']): string {
  const { name, description, pathMembers, queryMembers, bodySchema, takesKey, answer, item, fileTypes } = operation;
  const members = [...pathMembers, ...queryMembers];
  const type = members.length === 0 && fileTypes === undefined ? bodySchema : inputName(name);
  const body = bodySchema === undefined ? [] : membersOf(schemas[bodySchema]);
  const isOptional = fileTypes === undefined && [...members, ...body].every(({ isRequired }) => !isRequired);
  const input = type === undefined ? '' : `input: ${type}${isOptional ? ' = {}' : ''}, `;
  const options = takesKey ? 'CreateOptions' : 'CallOptions';
  const passed = `operations.${name}, ${type === undefined ? '{}' : 'input'}, options`;
  const exact = (name: string) => `WithIntegers<${name}, Mode>`;
  const returned = item === undefined ? `Promise<${exact(answer)}>` : `Pages<${exact(answer)}, ${exact(item)}>`;
  const code = item === undefined ? `return this.call(${passed});` : `return this.list(${passed});`;
  return indented(`\n${comment(description)}${name}(${input}options?: ${options}): ${returned} {\n  ${code}\n}\n`);
}

function comment(text: string): string {
  if (text === '') return '';
  const lines = text.replaceAll('*/', '*\\/').split('\n');
  if (lines.length === 1) return `/** ${lines[0]} */\n`;
  return `/**\n${lines.map((line) => (line === '' ? ' *\n' : ` * ${line}\n`)).join('')} */\n`;
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "\\'")}'`;
}
