/** Where a message that was not decoded carries its JSON. Set and read by `stored.ts`; the encoder writes it. */
export const storedBytes: unique symbol = Symbol('stored JSON');

/** A message that may carry its JSON. */
export interface MaybeStored {
  [storedBytes]?: Buffer | undefined;
}
