import type { Message } from '@bufbuild/protobuf';

/** The JSON of messages that were not decoded, by message. Made and read by `stored.ts`; the encoder writes it. */
export const storedBytes = new WeakMap<Message, Buffer>();
