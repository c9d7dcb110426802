import { isList, recordedFile, recordedKey, type SampleLanguage, type SampleRequest, valuesOf } from './language.ts';

export const typescript: SampleLanguage = { lang: 'TypeScript', label: 'TypeScript', highlighted: 'js', write };

/** The call with the client for TypeScript. */
function write(request: SampleRequest): string {
  const { operation, addresses } = request;
  const { localName } = operation.method;
  const mediaType = recordedFile(request);
  const values = Object.entries(valuesOf(request)).map(([name, value]) => `${name}: ${literal(value)}`);
  if (mediaType !== undefined) values.push("file: await readFile('photo.jpg')", `media_type: ${literal(mediaType)}`);
  const key = recordedKey(request);
  const call = `marina.${localName}(${callArguments(values, key)})`;
  const use = isList(request)
    ? `const page = await ${call}.page();\nconsole.log(page);`
    : `const answer = await ${call};\nconsole.log(answer);`;
  return [
    ...(mediaType === undefined ? [] : ["import { readFile } from 'node:fs/promises';"]),
    `import { Marina } from '@marina/client';\n`,
    `const marina = new Marina({\n  baseUrl: ${literal(addresses.baseUrl)},\n  key: process.env.MARINA_KEY ?? '',\n});\n`,
    use,
  ].join('\n');
}

function callArguments(values: readonly string[], key: string | undefined): string {
  const input = values.length > 0 ? object(values) : '';
  if (key === undefined) return input;
  return `\n${[input, `{ idempotencyKey: ${literal(key)} }`].map((each) => `${each.replace(/^/gm, '  ')},\n`).join('')}`;
}

function object(members: readonly string[]): string {
  const line = `{ ${members.join(', ')} }`;
  return line.length <= 60 ? line : `{\n${members.map((member) => `  ${member},\n`).join('')}}`;
}

function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  return JSON.stringify(value);
}
