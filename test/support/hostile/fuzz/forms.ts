import type { DescField } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import type { OperationRules } from '../../../../src/gateway/edge/operations.ts';
import { enumNames } from '../../../../src/kit/enums.ts';
import type { WireRequest } from '../../e2e/wire.ts';
import type { FuzzCase } from './cases.ts';

type Header = readonly [string, string];

/** A request over REST. Characters that no URL and no header may hold are escaped; the rest is as the case has it. */
export function restRequest(operation: OperationRules, fuzz: FuzzCase, key: string): WireRequest {
  const { http } = operation;
  if (http === undefined) throw new Error(`${operation.name} is not served over REST`);
  const { fields, twist, oddity } = fuzz;
  const segments = http.segments.map((segment) =>
    typeof segment === 'string' ? segment : encodeURIComponent(wellFormed(asText(fields[segment.name] ?? '-'))) || '-',
  );
  const query = http.queryFields.flatMap(({ name }) =>
    fields[name] === undefined ? [] : [[name, asText(fields[name])]],
  );
  if (twist === 'odd query') query.push([oddity, oddity], ['limit', '1'], ['limit', '2']);
  const asked = query.map((pair) => pair.map((each) => encodeURIComponent(wellFormed(each ?? ''))).join('='));
  const path = `/${segments.join('/')}${asked.length === 0 ? '' : `?${asked.join('&')}`}`;
  const isFile = http.body === 'file';
  const body = isFile
    ? asBytes(fields.content)
    : http.body === 'json'
      ? jsonBody(bodyOf(operation, fields), fuzz)
      : undefined;
  const type = isFile ? headerText(asText(fields.content_type)) : 'application/json';
  return twisted(
    { method: http.method, path, headers: [...headersOf(operation, fuzz, key), ['Content-Type', type]], body },
    fuzz,
  );
}

export function connectRequest(operation: OperationRules, fuzz: FuzzCase, key: string): WireRequest {
  const { method, input } = operation;
  const isBinary = fuzz.protocol === 'Connect binary';
  const members = Object.entries(fuzz.fields).map(([name, value]) => {
    const field = input.fields.find((each) => each.name === name);
    return [
      fuzz.oddity.length % 2 ? name : (field?.jsonName ?? name),
      field === undefined ? value : connectValue(field, value),
    ];
  });
  const body = isBinary ? protobufBody(operation, fuzz) : jsonBody(Object.fromEntries(members), fuzz);
  const type = `application/${isBinary ? 'proto' : 'json'}`;
  const path = `/${method.parent.typeName}/${method.name}`;
  return twisted(
    { method: 'POST', path, headers: [...headersOf(operation, fuzz, key), ['Content-Type', type]], body },
    fuzz,
  );
}

/** A message on the wire: each field as its type says where its value has the type, else as the value is. */
export function protobufBody({ input }: OperationRules, { fields, twist, oddity }: FuzzCase): Buffer {
  const writer = new BinaryWriter();
  for (const [name, value] of Object.entries(fields)) {
    const field = input.fields.find((each) => each.name === name);
    if (field === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) writeValue(writer, field, each);
  }
  if (twist === 'unknown field') writer.tag(1_000, WireType.LengthDelimited).string(wellFormed(oddity));
  if (twist === 'repeated field') for (const field of input.fields) writeValue(writer, field, fields[field.name] ?? 1);
  const bytes = Buffer.from(writer.finish());
  if (twist === 'broken body')
    return Buffer.concat([bytes.subarray(0, Math.max(0, bytes.length - 3)), Buffer.from(oddity)]);
  if (twist === 'other body') return Buffer.from(oddity);
  if (twist === 'no body') return Buffer.alloc(0);
  if (twist === 'large body') return Buffer.concat([bytes, Buffer.alloc(70_000)]);
  return bytes;
}

/** The header fields of a request, over gRPC as metadata. */
export function headersOf(
  { takesIdempotencyKey }: OperationRules,
  { protocol, twist, idempotencyKey, oddity }: FuzzCase,
  key: string,
): Header[] {
  const odd = headerText(oddity);
  const headers: Header[] = [];
  if (twist === 'other key') headers.push(['Authorization', `Bearer ${odd}`]);
  else if (twist !== 'no key') headers.push(['Authorization', `Bearer ${key}`]);
  // A client of gRPC cannot send it twice.
  if (twist === 'repeated key' && protocol !== 'gRPC') headers.push(['Authorization', `Bearer ${key}`]);
  if (twist === 'odd idempotency key') headers.push(['Idempotency-Key', odd]);
  else if (takesIdempotencyKey && twist !== 'no idempotency key') headers.push(['Idempotency-Key', idempotencyKey]);
  if (twist === 'odd header')
    headers.push(['X-Request-Id', odd], ['traceparent', odd], ['Accept', odd], ['X-Forwarded-For', odd]);
  return headers;
}

function twisted(request: WireRequest, { twist, oddity }: FuzzCase): WireRequest {
  const { headers = [] } = request;
  const withType = (type: string): WireRequest => ({
    ...request,
    headers: [...headers.filter(([name]) => name !== 'Content-Type'), ['Content-Type', type]],
  });
  if (twist === 'wrong media type') return withType(headerText(oddity) || 'text/plain');
  if (twist === 'compressed') return { ...request, headers: [...headers, ['Content-Encoding', 'gzip']] };
  if (twist === 'other method')
    return { ...request, method: ['PATCH', 'PUT', 'DELETE', 'GET', 'OPTIONS'][oddity.length % 5] ?? 'PUT' };
  if (twist === 'odd path') return { ...request, path: `${request.path}/${encodeURIComponent(wellFormed(oddity))}` };
  return request;
}

function bodyOf({ http }: OperationRules, fields: FuzzCase['fields']): Record<string, unknown> {
  const names = new Set(http?.bodyFields.map(({ name }) => name));
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.has(name)));
}

function jsonBody(members: Record<string, unknown>, { twist, oddity }: FuzzCase): Buffer | undefined {
  const more = twist === 'unknown field' ? { [oddity]: oddity } : {};
  const text = JSON.stringify({ ...members, ...more }, (_, value) =>
    value instanceof Buffer ? value.toString('base64') : value,
  );
  if (twist === 'no body') return undefined;
  if (twist === 'repeated field') return Buffer.from(text.replace('{', `{"account":${JSON.stringify(oddity)},"id":1,`));
  if (twist === 'broken body') return Buffer.from(text.slice(0, -1 - (oddity.length % 5)) + oddity);
  if (twist === 'other body')
    return Buffer.from(['[]', 'null', '"a"', '1', '', '{}', '\ufeff{}', '\xff', oddity][oddity.length % 9] ?? '');
  if (twist === 'large body') return Buffer.from(text.replace('{', `{${' '.repeat(17_000)}`));
  return Buffer.from(text);
}

/** Protobuf's JSON has the whole names of enumerations. */
function connectValue(field: DescField, value: unknown): unknown {
  if (field.enum === undefined) return value;
  const whole = (word: unknown) => {
    const number = [...enumNames(field.enum).entries()].find(([, name]) => name === word)?.[0];
    return field.enum?.values.find((each) => each.number === number)?.name ?? word;
  };
  return Array.isArray(value) ? value.map(whole) : whole(value);
}

function writeValue(writer: BinaryWriter, field: DescField, value: unknown): void {
  const { number } = field;
  const word = field.enum && [...enumNames(field.enum).entries()].find(([, name]) => name === value)?.[0];
  if (word !== undefined) writer.tag(number, WireType.Varint).int32(word);
  else if (field.message?.typeName === TimestampSchema.typeName && typeof value === 'string') {
    const seconds = BigInt(Math.trunc(Date.parse(value) / 1_000) || 0);
    writer.tag(number, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.Varint).int64(seconds).join();
  } else if (value instanceof Buffer) writer.tag(number, WireType.LengthDelimited).bytes(value);
  else if (typeof value === 'boolean') writer.tag(number, WireType.Varint).bool(value);
  else if (typeof value !== 'number') writer.tag(number, WireType.LengthDelimited).string(wellFormed(asText(value)));
  else if (Number.isSafeInteger(value)) writer.tag(number, WireType.Varint).int64(value);
  else writer.tag(number, WireType.Bit64).double(value);
}

function asText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined) return '';
  return value instanceof Buffer ? value.toString('latin1') : JSON.stringify(value);
}

function asBytes(value: unknown): Buffer {
  return value instanceof Buffer ? value : Buffer.from(asText(value));
}

/** Half a surrogate pair has no form in a URL, nor in protobuf. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

/** Turns a text into one that a header can hold. */
function headerText(text: string): string {
  return text
    .replace(/[^ -~]/g, '?')
    .slice(0, 3_000)
    .trim();
}
