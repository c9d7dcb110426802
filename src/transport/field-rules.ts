import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';

/** Checks some of a request's fields and then fills in defaults and upper-cases; throws what it refuses. */
export type FieldCheck = (message: Message) => void;

/** Compiles the rules of some of a message's fields. */
export function compileFieldRules(_schema: DescMessage, _fields: readonly DescField[]): FieldCheck {
  return () => {};
}
