import { ApiError } from '../lib/errors.ts';
import type { Operation } from './operations.ts';

/** The header's name, as errors write it. */
export const idempotencyKeyName = 'Idempotency-Key';

const maxBytes = 255;
const printableAscii = /^[ -~]*$/;

/**
 * The key of a request, from all the values its door found; undefined on operations that take none, where the header
 * means nothing.
 */
export function checkIdempotencyKey(operation: Operation, values: readonly string[]): string | undefined {
  if (!operation.takesIdempotencyKey) return undefined;
  if (values.length > 1) throw invalid('must not be repeated.');
  const [value = ''] = values;
  if (value === '') {
    throw new ApiError('missing_required_field', {
      param: idempotencyKeyName,
      message: 'The header `Idempotency-Key` is required.',
    });
  }
  if (value.length > maxBytes || !printableAscii.test(value)) {
    throw invalid('must be 1 to 255 bytes of printable ASCII.');
  }
  return value;
}

function invalid(problem: string): ApiError {
  return new ApiError('invalid_request', {
    param: idempotencyKeyName,
    message: `The header \`Idempotency-Key\` ${problem}`,
  });
}
