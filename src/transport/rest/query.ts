import type { DescField, Message } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type ValueReader, valueReader } from '../../json/values.ts';
import { ApiError } from '../../lib/errors.ts';

/**
 * Compiles the reading of a query: every parameter is known and stands once, in the order written; then their types,
 * in the order of the proto. Throws `invalid_request` with the parameter's name.
 */
export function compileQuery(fields: readonly DescField[]): (message: Message, query: string) => void {
  const parameters = fields.map(compileParameter);
  const byName = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  return (message, query) => {
    if (query === '') return;
    const texts: (string | undefined)[] = new Array(parameters.length).fill(undefined);
    for (const pair of query.split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const rawName = equals === -1 ? pair : pair.slice(0, equals);
      const name = decode(rawName);
      const parameter = name === undefined ? undefined : byName.get(name);
      if (parameter === undefined) throw invalid(name ?? rawName, 'is not a parameter of this path.');
      if (texts[parameter.index] !== undefined) throw invalid(parameter.name, 'must not be repeated.');
      const text = equals === -1 ? '' : decode(pair.slice(equals + 1));
      if (text === undefined) throw invalid(parameter.name, 'is not properly percent-encoded UTF-8.');
      texts[parameter.index] = text;
    }
    for (const { name, key, index, readText, expected } of parameters) {
      const text = texts[index];
      if (text === undefined) continue;
      const value = readText(text);
      if (value === undefined) throw invalid(name, `must be ${expected}.`);
      (message as unknown as Record<string, unknown>)[key] = value;
    }
  };
}

interface Parameter extends Pick<ValueReader, 'readText' | 'expected'> {
  readonly name: string;
  readonly key: string;
  readonly index: number;
}

function compileParameter(field: DescField, index: number): Parameter {
  const reader = valueReader(field);
  if (reader === undefined || field.fieldKind === 'list') throw new Error(`${field} has no form in a query`);
  const { readText, expected } = reader;
  const isTime = field.message?.typeName === TimestampSchema.typeName;
  return {
    name: field.name,
    key: field.localName,
    index,
    expected,
    readText: isTime ? (text) => readText(text.replace(' ', '+')) : readText,
  };
}

/** What forms and HTTP libraries write: a plus is a space. A time's offset, whose plus is meant, is put right above. */
function decode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

const maxParamLength = 200;

function invalid(name: string, problem: string): ApiError {
  const param = name.slice(0, maxParamLength);
  return new ApiError('invalid_request', { param, message: `\`${param}\` ${problem}` });
}
