import { recordedFile, type SampleLanguage, type SampleRequest } from './language.ts';

export const go: SampleLanguage = { lang: 'Go', label: 'Go', highlighted: 'go', write };

/** The request with Go's own HTTP. */
function write(request: SampleRequest): string {
  const { example, addresses } = request;
  const { method, path, headers, body } = example.request;
  const isFile = recordedFile(request) !== undefined;
  const imports = ['fmt', 'io', 'log', 'net/http', 'os', ...(body === undefined ? [] : ['strings']), 'time'];
  const given = isFile ? 'file' : body === undefined ? 'nil' : `strings.NewReader(${raw(body)})`;
  const set = Object.entries(headers).map(([name, value]) => header(name, quoted(value)));
  const lines = [
    ...(isFile ? ['file, err := os.Open("photo.jpg")', ...onError, 'defer file.Close()'] : []),
    `request, err := http.NewRequest(${quoted(method)}, ${quoted(addresses.baseUrl + path)}, ${given})`,
    ...onError,
    header('authorization', '"Bearer "+os.Getenv("MARINA_KEY")'),
    ...set,
    '',
    'client := &http.Client{Timeout: 45 * time.Second}',
    'response, err := client.Do(request)',
    ...onError,
    'defer response.Body.Close()',
    'answer, err := io.ReadAll(response.Body)',
    ...onError,
    'fmt.Println(response.StatusCode, string(answer))',
  ];
  return `package main

import (
${imports.map((name) => `\t"${name}"\n`).join('')})

func main() {
${lines.map((line) => (line === '' ? '\n' : `\t${line}\n`)).join('')}}`;
}

const onError = ['if err != nil {', '\tlog.Fatal(err)', '}'];

function header(name: string, value: string): string {
  const written = name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase());
  return `request.Header.Set(${quoted(written)}, ${value})`;
}

/** A raw text of Go, which has no way to write a backquote. */
function raw(body: unknown): string {
  const text = JSON.stringify(body, undefined, 2);
  return text.includes('`') ? quoted(text) : `\`${text}\``;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
