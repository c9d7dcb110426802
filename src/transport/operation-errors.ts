import { type DescMethod, getOption } from '@bufbuild/protobuf';
import { Feature, field as fieldOption, type OperationRules } from '../gen/marina/options/v1/options_pb.ts';
import { catalogue, type ErrorCode } from '../lib/errors.ts';
import type { FileBody } from './file-body.ts';
import type { HttpBinding } from './http-binding.ts';

const everyOperation: readonly ErrorCode[] = [
  'unauthorized',
  'insufficient_scope',
  'rate_limited',
  'invalid_request',
  'internal_error',
  'service_unavailable',
];

/**
 * The codes an operation can answer with: those of every operation, those that follow from what it takes, and those its
 * proto names; in the order of the catalogue. Throws on one the catalogue does not have.
 */
export function operationErrors(
  method: DescMethod,
  rules: OperationRules,
  http: HttpBinding | undefined,
  file: FileBody | undefined,
): readonly ErrorCode[] {
  const codes = new Set<string>([...everyOperation, ...rules.errors]);
  if (rules.feature !== Feature.UNSPECIFIED) codes.add('feature_not_enabled');
  if (http !== undefined && http.body !== 'none') codes.add('unsupported_media_type');
  if (file !== undefined) codes.add(file.tooLargeCode);
  else if (http?.body === 'json') codes.add('request_too_large');
  if (rules.idempotencyKey) codes.add('missing_required_field');
  for (const field of method.input.fields) {
    const { malformedCode, required, onlyWith } = getOption(field, fieldOption);
    if (malformedCode !== '') codes.add(malformedCode);
    if ((required || onlyWith !== '') && http?.bodyFields.includes(field)) codes.add('missing_required_field');
  }
  const unknown = [...codes].filter((code) => !(code in catalogue));
  if (unknown.length > 0) throw new Error(`${method.name}: the catalogue has no ${unknown.join(', ')}`);
  return (Object.keys(catalogue) as ErrorCode[]).filter((code) => codes.has(code));
}
