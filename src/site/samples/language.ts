import { getOption } from '@bufbuild/protobuf';
import type { OperationRules } from '../../gateway/edge/operations.ts';
import { message as messageOption } from '../../gen/marina/options/v1/options_pb.ts';
import type { Example } from '../examples.ts';
import type { GatewayAddresses } from '../reference.ts';

/** A recorded request as the languages write it down. */
export interface SampleRequest {
  readonly operation: OperationRules;
  readonly example: Example;
  readonly addresses: GatewayAddresses;
}

/** A language that the reference has each operation in. */
export interface SampleLanguage {
  /** As OpenAPI's `x-codeSamples` names it. */
  readonly lang: string;
  readonly label: string;
  /** How it is highlighted. */
  readonly highlighted: string;
  readonly write: (request: SampleRequest) => string;
}

/** The values that a recorded request has for an operation's fields, by their names: of path, query and body. */
export function valuesOf({ operation, example }: SampleRequest): Record<string, unknown> {
  const { http } = operation;
  const [path = '', query = ''] = example.request.path.split('?');
  const segments = path.split('/').slice(1);
  const values: Record<string, unknown> = {};
  for (const [index, segment] of (http?.segments ?? []).entries()) {
    if (typeof segment !== 'string') values[segment.name] = decodeURIComponent(segments[index] ?? '');
  }
  for (const [name, text] of new URLSearchParams(query)) {
    const field = operation.input.fields.find((each) => each.name === name);
    values[name] = field?.enum === undefined && /^\d+$/.test(text) ? Number(text) : text;
  }
  return http?.body === 'json' ? { ...values, ...(example.request.body as object) } : values;
}

/** The key that a request was recorded with, if its operation takes one. */
export function recordedKey({ operation, example }: SampleRequest): string | undefined {
  return operation.takesIdempotencyKey ? example.request.headers['idempotency-key'] : undefined;
}

/** Returns the media type of the image that a recorded request sends, if it sends one. */
export function recordedFile({ operation, example }: SampleRequest): string | undefined {
  return operation.http?.body === 'file' ? example.request.headers['content-type'] : undefined;
}

/** Whether an operation answers with a list. The clients would read on: the samples ask for one page, as the request does. */
export function isList({ operation }: SampleRequest): boolean {
  return getOption(operation.output, messageOption).object === 'list';
}
