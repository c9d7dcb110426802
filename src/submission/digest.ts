import { createHmac } from 'node:crypto';
import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';

/**
 * Tells two requests apart without keeping them: a keyed digest of the message after defaults and upper-casing. Fields
 * of a later version that we do not know do not count, because we would not act on them.
 */
export function requestDigest<Schema extends DescMessage>(
  key: Buffer,
  schema: Schema,
  message: MessageShape<Schema>,
): Buffer {
  return createHmac('sha256', key)
    .update(schema.typeName)
    .update(toBinary(schema, message, { writeUnknownFields: false }))
    .digest();
}
