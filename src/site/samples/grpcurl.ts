import type { DescField, DescMessage } from '@bufbuild/protobuf';
import type { OperationRules } from '../../gateway/edge/operations.ts';
import { enumNames } from '../../kit/enums.ts';
import { isTimestamp } from '../openapi/schemas.ts';
import type { GatewayAddresses } from '../reference.ts';
import { recordedFile, recordedKey, type SampleLanguage, type SampleRequest, valuesOf } from './language.ts';

export const grpcurl: SampleLanguage = { lang: 'Shell', label: 'grpcurl', highlighted: 'sh', write };

/** The call of an operation that has no place in REST, without a request of its own. */
export function grpcurlOf(operation: OperationRules, addresses: GatewayAddresses): string {
  return [...begin(addresses), target(operation, addresses)].join(continued);
}

/** The call over gRPC, with the messages learnt by reflection. */
function write(request: SampleRequest): string {
  const { operation, addresses } = request;
  const values = protoJson(operation.input, valuesOf(request));
  const mediaType = recordedFile(request);
  const key = recordedKey(request);
  const parts = [
    ...begin(addresses),
    ...(key === undefined ? [] : [`-H 'idempotency-key: ${key.replaceAll("'", "'\\''")}'`]),
  ];
  if (mediaType !== undefined && operation.file !== undefined) {
    const { content } = operation.file;
    const name = operation.input.fields.find(({ localName }) => localName === operation.file?.mediaTypeKey)?.name ?? '';
    const text = pretty({ ...values, [name]: mediaType, [content]: "$(base64 < photo.jpg | tr -d '\\n')" });
    return `${[...parts, `-d @ ${target(operation, addresses)} <<JSON`].join(continued)}\n${text.replaceAll('\\\\n', '\\n')}\nJSON`;
  }
  if (Object.keys(values).length > 0)
    parts.push(`-d '${pretty(values).replaceAll("'", "'\\''").replaceAll('\n', '\n  ')}'`);
  return [...parts, target(operation, addresses)].join(continued);
}

const continued = ' \\\n  ';

function begin({ baseUrl }: GatewayAddresses): string[] {
  return [`grpcurl ${baseUrl.startsWith('https:') ? '' : '-plaintext '}-H "authorization: Bearer $MARINA_KEY"`];
}

function target({ method }: OperationRules, { grpcAddress }: GatewayAddresses): string {
  return `${grpcAddress} ${method.parent.typeName}/${method.name}`;
}

/** Values of REST as protobuf's JSON has them: words of a list of values have their whole names there. */
function protoJson(desc: DescMessage, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const entries = desc.fields
    .filter(({ name }) => values[name] !== undefined && values[name] !== null)
    .map((field) => [field.name, fieldJson(field, values[field.name])]);
  return Object.fromEntries(entries);
}

function fieldJson(field: DescField, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => fieldJson(field, each));
  if (field.enum !== undefined) {
    const names = enumNames(field.enum);
    return field.enum.values.find(({ number }) => names.get(number) === value)?.name ?? value;
  }
  if (field.message === undefined || isTimestamp(field)) return value;
  return protoJson(field.message, value as Record<string, unknown>);
}

function pretty(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}
