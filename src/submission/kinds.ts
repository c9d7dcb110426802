import type { AnyKind } from './kind.ts';

/** Every kind of submission there is: whoever must treat all alike asks here. */
export class Kinds {
  constructor(readonly all: readonly AnyKind[]) {}

  /** The kind of an object, by how its id begins. */
  ofId(id: string): AnyKind | undefined {
    return this.all.find(({ prefix }) => id.startsWith(`${prefix}_`));
  }
}
