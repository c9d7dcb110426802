import { isList, recordedFile, recordedKey, type SampleLanguage, type SampleRequest, valuesOf } from './language.ts';
import { pythonArgument, snakeCase } from './names.ts';

export const python: SampleLanguage = { lang: 'Python', label: 'Python', highlighted: 'python', write };

/** The call with the client for Python. */
function write(request: SampleRequest): string {
  const { operation, addresses } = request;
  const mediaType = recordedFile(request);
  const values = Object.entries(valuesOf(request)).map(([name, value]) => `${pythonArgument(name)}=${literal(value)}`);
  if (mediaType !== undefined) values.push('file=Path("photo.jpg").read_bytes()', `media_type=${literal(mediaType)}`);
  const key = recordedKey(request);
  if (key !== undefined) values.push(`idempotency_key=${literal(key)}`);
  const call = `marina.${snakeCase(operation.method.localName)}(${argumentLines(values)})`;
  const use = isList(request) ? `page = ${call}.page()\nprint(page)` : `answer = ${call}\nprint(answer)`;
  return [
    'import os',
    ...(mediaType === undefined ? [] : ['from pathlib import Path']),
    '\nfrom marina import Marina\n',
    `marina = Marina(${literal(addresses.baseUrl)}, os.environ["MARINA_KEY"])\n`,
    use,
  ].join('\n');
}

function argumentLines(values: readonly string[]): string {
  const line = values.join(', ');
  return line.length <= 60 ? line : `\n${values.map((value) => `    ${value},\n`).join('')}`;
}

function literal(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  return JSON.stringify(value);
}
