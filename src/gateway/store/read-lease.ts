import { atMost } from '../../kit/at-most.ts';
import { UnavailableError } from '../../kit/refusal.ts';
import { NotBegunError } from './errors.ts';

/**
 * How long after the beginning of a committed write this process reads at its node. No other node takes the place of one that
 * gateways write through before it was silent for five seconds (`gateway/store/writer`), so nothing newer is elsewhere meanwhile.
 */
export const readableMs = 4_000;
/** How long a read waits for a node to take over, and for how long others are refused after one that waited in vain. */
const waitMs = 1_500;
const refusedForMs = 250;

/**
 * Allows reads at a node of a Galera cluster only while it has all that gateways have written. A node that lags, gives its data
 * to another one, or was frozen and has not noticed answers reads with old rows, and says nothing of it. But it commits a write
 * only after all writes before it. So a write that this process committed there a moment ago proves that the node had everything.
 * The writer's beat is such a write, once a second; without a recent one the next read makes one.
 */
export class ReadLease {
  #node: string | undefined;
  #until = Number.NEGATIVE_INFINITY;
  #proving: Promise<unknown> | undefined;
  #refusedUntil = Number.NEGATIVE_INFINITY;

  constructor(
    /** Writes at the node if gateways may write there. It calls `note` when that is committed. */
    private readonly write: () => Promise<unknown>,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** A write at this node was committed that began at `beganAt`. One that began before another that is known proves nothing more. */
  note(node: string, beganAt: number): void {
    const until = beganAt + readableMs;
    if (until <= this.#until) return;
    this.#node = node;
    this.#until = until;
  }

  /** Whether no node has proven lately that it has everything. */
  get isOver(): boolean {
    return this.now() >= this.#until;
  }

  /** Whether this node has everything. */
  allows(node: string): boolean {
    return this.#node === node && this.now() < this.#until;
  }

  /** Waits a moment for the proof that a node has everything. Throws an `UnavailableError` if one waited in vain just now. */
  async prove(): Promise<void> {
    if (this.now() < this.#refusedUntil) throw refusal();
    this.#proving ??= this.write()
      .catch(() => undefined)
      .finally(() => {
        this.#proving = undefined;
      });
    await atMost(waitMs, this.#proving);
    if (this.now() >= this.#until) this.#refusedUntil = this.now() + refusedForMs;
  }

  /** Throws an `UnavailableError` unless this node has everything. */
  check(node: string | undefined): void {
    if (node !== undefined && !this.allows(node)) throw refusal();
  }
}

function refusal(): UnavailableError {
  return new UnavailableError({ cause: new NotBegunError("the database's node may lag") });
}
