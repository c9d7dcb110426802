import type { MessageOutcome, MessagePlace, MessageTap } from '../messages/tap.ts';
import type { FixMessage } from '../wire/message.ts';
import { isApplied } from './messages.ts';

/** Notes for the message log what became of each message of the other side on one connection. */
export class Noting {
  /** The outcome of the message that is being handled. Undefined: it waits for its commit. */
  #outcome: MessageOutcome | undefined;
  readonly #places = new WeakMap<FixMessage, MessagePlace>();

  /** `moreTypes`: as in `isApplied`. */
  constructor(
    private readonly tap: MessageTap | undefined,
    private readonly moreTypes?: readonly string[],
  ) {}

  /** A message is handled now. It counts as applied unless something else is said. */
  begins(message: FixMessage): void {
    this.#outcome = 'applied';
    if (this.tap !== undefined) this.#places.set(message, this.tap.place());
  }

  /** Sets the outcome of the message that is being handled. */
  is(outcome: 'duplicate' | 'gap' | 'refused'): void {
    this.#outcome = outcome;
  }

  /** It is answered by a Reject, and nothing worse was said of it. */
  isRejected(): void {
    if (this.#outcome === 'applied') this.#outcome = 'refused';
  }

  /** It is given to the record, perhaps as a copy with more fields. */
  waits(message: FixMessage, given = message): void {
    this.#outcome = undefined;
    const place = this.#places.get(message);
    if (place !== undefined) this.#places.set(given, place);
  }

  /** The message was handled. */
  ends(message: FixMessage): void {
    if (this.#outcome !== undefined) this.#note(message, this.#outcome);
  }

  /** The record has these. */
  stored(messages: readonly FixMessage[]): void {
    for (const message of messages) {
      const applied = isApplied(message.type, this.moreTypes) ? 'applied' : 'refused';
      this.#note(message, message.isWhole ? applied : 'unreadable');
    }
  }

  /** The record does not have these, and they come again. */
  notStored(messages: readonly FixMessage[]): void {
    for (const message of messages) this.#note(message, 'not_applied');
  }

  garbage(problem: string): void {
    this.tap?.note({ direction: 'in', outcome: 'unreadable', number: 0, type: '', fields: [], problem });
  }

  #note(message: FixMessage, outcome: MessageOutcome): void {
    const { number, type, fields, isWhole } = message;
    const problem = isWhole ? {} : { problem: 'what follows cannot be read' };
    this.tap?.note({ direction: 'in', outcome, number, type, fields, ...problem }, this.#places.get(message));
  }
}
