/** Why a counter's entry is changed. */
export type Purpose =
  /** To take more than is held here. */
  | 'draw'
  /** Another replica needs what is held here and not used. */
  | 'give'
  /** Now and then, while all count together. */
  | 'sweep'
  /** Before all count together: the others must see what was taken here by share. */
  | 'settle'
  /** The replica ends. */
  | 'leave';

/** A counter of which each replica holds a part. */
export interface Counter {
  /** Whether nothing is lost if it is forgotten. */
  readonly isUnused: boolean;
  /** Whether its entry must be changed for this purpose. */
  needs(purpose: Purpose): boolean;
  /** Changes the entry. Throws if NATS does not do it. */
  update(purpose: Purpose): Promise<unknown>;
  /** The others may be lost: what was read may no longer be so, and each replica keeps to its share. */
  lost(): void;
  /** Another replica needs what is held here and not used. Some may wait in line for it. */
  give(isInLine: boolean): Promise<void>;
}
