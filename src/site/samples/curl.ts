import type { Example } from '../examples.ts';
import type { SampleLanguage } from './language.ts';

export const curlLanguage: SampleLanguage = {
  lang: 'Shell',
  label: 'curl',
  highlighted: 'sh',
  write: ({ example, addresses }) => curl(example, addresses.baseUrl),
};

/** A recorded request as a command. The key stands in a variable, so that it is in no page and no history. */
export function curl({ request }: Example, baseUrl: string): string {
  const { method, path, headers, body } = request;
  const parts = [
    `curl ${method === 'GET' || (method === 'POST' && body !== undefined) ? '' : `-X ${method} `}${quote(baseUrl + path)}`,
  ];
  parts.push('-H "Authorization: Bearer $MARINA_KEY"');
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quote(`${headerName(name)}: ${value}`)}`);
  if (body !== undefined) parts.push(`-d ${quote(JSON.stringify(body, undefined, 2).replaceAll('\n', '\n  '))}`);
  else if (method === 'PUT') parts.push('--data-binary @photo.jpg');
  return parts.join(' \\\n  ');
}

function quote(text: string): string {
  return /^[\w:/.=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function headerName(name: string): string {
  return name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
