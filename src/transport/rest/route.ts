import { create, type DescField, getOption, type Message } from '@bufbuild/protobuf';
import { field as fieldOption } from '../../gen/marina/options/v1/options_pb.ts';
import { compileDecoder, type Decoder } from '../../json/decoder.ts';
import { compileEncoder, type Encoder } from '../../json/encoder.ts';
import { valueReader } from '../../json/values.ts';
import { ApiError, type ErrorCode } from '../../lib/errors.ts';
import type { Operation } from '../operations.ts';
import { compileQuery } from './query.ts';

/** An operation at its path and method, with what REST compiles for it. */
export interface Route {
  readonly operation: Operation;
  /** The request as far as the path and the query say it, checked. Throws what a malformed one is answered with. */
  readonly readTarget: (pathTexts: readonly string[], query: string) => Message;
  /** Reads a JSON body into the request; undefined on operations that take none. */
  readonly decode: Decoder<Message> | undefined;
  readonly encode: Encoder;
}

/** Compiles an operation for REST. */
export function compileRoute(operation: Operation): Route {
  const { input, output, http } = operation;
  // Read in the order of the proto, whatever their order in the path.
  const pathFields = http?.pathFields ?? [];
  const parameters = input.fields
    .filter((field) => pathFields.includes(field))
    .map((field) => ({ read: compileParameter(field), at: pathFields.indexOf(field) }));
  const fillQuery = compileQuery(http?.queryFields ?? []);
  return {
    operation,
    readTarget: (pathTexts, query) => {
      const message = create(input);
      for (const { read, at } of parameters) read(message, pathTexts[at] ?? '');
      operation.checkPath(message);
      fillQuery(message, query);
      operation.checkQuery(message);
      return message;
    },
    decode: http?.body === 'json' ? compileDecoder(input, http.bodyFields) : undefined,
    encode: compileEncoder(output),
  };
}

function compileParameter(field: DescField): (message: Message, text: string) => void {
  const reader = valueReader(field);
  const { malformedCode } = getOption(field, fieldOption);
  if (reader === undefined) throw new Error(`${field} has no form in a path`);
  return (message, text) => {
    const value = reader.readText(text);
    if (value !== undefined) {
      (message as unknown as Record<string, unknown>)[field.localName] = value;
    } else if (malformedCode !== '') {
      throw new ApiError(malformedCode as ErrorCode);
    } else {
      throw new ApiError('invalid_request', {
        param: field.name,
        message: `\`${field.name}\` must be ${reader.expected}.`,
      });
    }
  };
}
