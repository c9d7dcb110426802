import { isPythonWord, pythonArgument, snakeCase } from '../../site/samples/names.ts';
import type { ClientOperation, Contract, Member, Schema } from './contract.ts';
import { knownChoice, membersOf, schemaName, withoutNull } from './contract.ts';

/** The contract as Python: every type and operation, and the families and codes of errors. */
export function pythonContract(contract: Contract): string {
  const { schemas, sent, operations, errorTypes, errorCodes } = contract;
  const answered = Object.entries(schemas).filter(([name]) => !sent.has(name));
  const isObject = ([, { properties }]: [string, Schema]) => properties !== undefined;
  return `${[
    header,
    ...answered.filter((each) => !isObject(each)).map(([name, schema]) => alias(name, schema)),
    `# The families of errors. The list can grow.\nErrorType = ${openUnion(errorTypes)}`,
    `# What happened. A code never changes its meaning; the list can grow.\nErrorCode = ${openUnion(errorCodes)}`,
    ...answered.filter(isObject).map(([name, schema]) => typedDict(name, schema)),
    operationType,
    ...operations.map(constant),
  ].join('\n\n\n')}\n`;
}

const header = `# Made from the OpenAPI document by \`make generate\`. Change the contract in proto/, not this file.
"""Every type and operation of the contract."""

from __future__ import annotations

from typing import List, Literal, NamedTuple, Optional, Tuple, TypedDict, Union`;

const operationType = `class Operation(NamedTuple):
    """What the client has to know about an operation."""

    name: str
    method: str
    path: str
    path_names: Tuple[str, ...]
    query_names: Tuple[str, ...]
    body: Literal["none", "json", "file"]
    takes_key: bool`;

function alias(name: string, schema: Schema): string {
  const lines = (schema.description ?? '').split('\n').map((line) => `# ${line}`.trimEnd());
  return `${lines.join('\n')}\n${name} = ${typeOf(schema)}`;
}

function typedDict(name: string, schema: Schema): string {
  const members = membersOf(schema).map((member) => {
    if (isPythonWord(member.name)) throw new Error(`${name}.${member.name} is a word of Python`);
    return `    ${member.name}: ${typeOf(member.schema)}\n${docstring(member.description, 4)}`;
  });
  return `class ${name}(TypedDict):\n${docstring(schema.description ?? '', 4)}\n${members.join('')}`.trimEnd();
}

/** The type of a value. Python's whole numbers are exact, however long. */
function typeOf(schema: Schema): string {
  const { isNullable, value } = withoutNull(schema);
  if (isNullable) return `Optional[${typeOf(value)}]`;
  if (value.$ref !== undefined) return schemaName(value);
  const words = value['x-extensible-enum'];
  if (words !== undefined) return openUnion(words);
  if (value.enum !== undefined) return `Literal[${value.enum.map((word) => quoted(String(word))).join(', ')}]`;
  const choice = knownChoice(value);
  if (choice !== undefined) return `Union[${choice.map(typeOf).join(', ')}]`;
  switch (value.type) {
    case 'array':
      return `List[${typeOf(value.items ?? {})}]`;
    case 'integer':
      return 'int';
    case 'string':
      return 'str';
    case 'boolean':
      return 'bool';
    default:
      throw new Error(`there is no type for ${JSON.stringify(value)}`);
  }
}

function openUnion(words: readonly string[]): string {
  return `Union[Literal[${words.map(quoted).join(', ')}], str]`;
}

function constant(operation: ClientOperation): string {
  const { name, method, path, pathMembers, queryMembers, bodySchema, fileTypes, takesKey } = operation;
  const names = (members: readonly Member[]) => `(${members.map((member) => `${quoted(member.name)},`).join(' ')})`;
  const body = fileTypes !== undefined ? 'file' : bodySchema === undefined ? 'none' : 'json';
  const parts = [quoted(snakeCase(name)), quoted(method), quoted(path), names(pathMembers), names(queryMembers)];
  return `${constantName(name)} = Operation(${[...parts, quoted(body), takesKey ? 'True' : 'False'].join(', ')})`;
}

function constantName(name: string): string {
  return snakeCase(name).toUpperCase();
}

/** How a method is defined and calls. A list is not awaited: its pages are. */
interface Manner {
  readonly className: string;
  readonly module: string;
  readonly define: string;
  readonly call: string;
  readonly pages: string;
}
const waiting: Manner = {
  ...{ className: 'Operations', module: 'pages', define: 'def', call: 'self._call', pages: 'Pages' },
};
/** For asyncio: a call is awaited, and a list is gone through with `async for`. */
const awaited: Manner = {
  ...{ className: 'AsyncOperations', module: 'async_pages', define: 'async def', call: 'await self._call' },
  pages: 'AsyncPages',
};

export const pythonOperations = (contract: Contract) => operationsOf(contract, waiting);
export const pythonAsyncOperations = (contract: Contract) => operationsOf(contract, awaited);

/** A class with a method for each operation. */
function operationsOf({ schemas, operations }: Contract, manner: Manner): string {
  const named = operations.flatMap(({ name, answer, item }) => [constantName(name), answer, ...(item ? [item] : [])]);
  const imported = [...new Set([...named, 'Operation'])].sort();
  const { className, module, define, pages } = manner;
  return `# Made from the OpenAPI document by \`make generate\`. Change the contract in proto/, not this file.
"""A method for each operation of the contract${manner === awaited ? ', for asyncio' : ''}."""

from __future__ import annotations

from typing import Any, Dict, Literal, Optional, Sequence

from .${module} import ${pages}
from .contract import (
${imported.map((name) => `    ${name},\n`).join('')})


class ${className}:
    """A method for each operation."""

    ${define} _call(
        self,
        operation: Operation,
        values: Dict[str, Any],
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Any:
        raise NotImplementedError

    def _list(
        self, operation: Operation, values: Dict[str, Any], deadline: Optional[float]
    ) -> ${pages}[Any, Any]:
        raise NotImplementedError
${operations.map((operation) => method(operation, schemas, manner)).join('')}`;
}

function method(operation: ClientOperation, schemas: Readonly<Record<string, Schema>>, manner: Manner): string {
  const { name, takesKey, answer, item } = operation;
  const members = membersTaken(operation, schemas);
  const values = `{${members.map(({ name: member }) => `${quoted(member)}: ${pythonArgument(member)}`).join(', ')}}`;
  const returned = item === undefined ? answer : `${manner.pages}[${answer}, ${item}]`;
  const call =
    item !== undefined
      ? `self._list(${constantName(name)}, ${values}, deadline)`
      : `${manner.call}(${constantName(name)}, ${values}, ${takesKey ? 'idempotency_key' : 'None'}, deadline)`;
  return `
    ${item === undefined ? manner.define : 'def'} ${snakeCase(name)}(
        self,
        *,
        ${parametersOf(members, takesKey).join(',\n        ')},
    ) -> ${returned}:
${docstring(aboutMethod(operation, members), 8)}        return ${call}
`;
}

function membersTaken(operation: ClientOperation, schemas: Readonly<Record<string, Schema>>): Member[] {
  const { pathMembers, queryMembers, bodySchema, fileTypes } = operation;
  const body = bodySchema === undefined ? [] : membersOf(schemas[bodySchema]);
  return [...pathMembers, ...queryMembers, ...body, ...fileMembers(fileTypes)];
}

function parametersOf(members: readonly Member[], takesKey: boolean): string[] {
  const sorted = [
    ...members.filter(({ isRequired }) => isRequired),
    ...members.filter(({ isRequired }) => !isRequired),
  ];
  const parameters = sorted.map(({ name, schema, isRequired }) => {
    const { value } = withoutNull(schema);
    // A tuple does as well as a list where one is sent.
    const type = parameterTypes[value.type as string] ?? typeOf(value).replace(/^List\[/, 'Sequence[');
    return isRequired ? `${pythonArgument(name)}: ${type}` : `${pythonArgument(name)}: Optional[${type}] = None`;
  });
  const key = takesKey ? ['idempotency_key: Optional[str] = None'] : [];
  return [...parameters, ...key, 'deadline: Optional[float] = None'];
}

function aboutMethod({ description }: ClientOperation, members: readonly Member[]): string {
  const about = members
    .filter((member) => member.description !== '')
    .map((member) => `${pythonArgument(member.name)}: ${member.description.replaceAll('\n', ' ')}`);
  return [description, ...(about.length > 0 ? [about.join('\n')] : [])].join('\n\n');
}

const parameterTypes: Readonly<Record<string, string>> = { bytes: 'bytes' };

function fileMembers(fileTypes: readonly string[] | undefined): Member[] {
  if (fileTypes === undefined) return [];
  return [
    { name: 'file', schema: { type: 'bytes' }, isRequired: true, description: 'The file itself.' },
    { name: 'media_type', schema: { enum: fileTypes }, isRequired: true, description: 'What the file is.' },
  ];
}

function docstring(text: string, indentation: number): string {
  if (text === '') return '';
  const space = ' '.repeat(indentation);
  const lines = text.replaceAll('\\', '\\\\').replaceAll('"""', "'''").split('\n');
  const written = lines.map((line, index) => (line === '' || index === 0 ? line : `${space}${line}`)).join('\n');
  return lines.length === 1 ? `${space}"""${written}"""\n` : `${space}"""${written}\n${space}"""\n`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
