import type { FixMessage } from '../wire/message.ts';
import type { Noting } from './noting.ts';
import type { SessionRecord } from './types.ts';

/**
 * The messages of one connection that the record does not have yet. They are committed together with the number of the next
 * one, and with the fact that others were passed over. If a commit fails, all of that stays.
 */
export class Inbox {
  #batch: FixMessage[] = [];
  #storedNext: number;
  /** Messages behind the last stored number were passed over, and the record does not have that yet. */
  #hasPassedOver = false;
  #hasMissed: boolean;

  constructor(
    private readonly record: Pick<SessionRecord<never>, 'received'>,
    private readonly noting: Pick<Noting, 'stored'>,
    storedNext: number,
    /** Whether messages were passed over on an earlier connection, and nobody was told. */
    hasMissed: boolean,
  ) {
    this.#storedNext = storedNext;
    this.#hasMissed = hasMissed;
  }

  /** Whether the record has that messages were passed over, and nobody was told since. */
  get hasMissed(): boolean {
    return this.#hasMissed;
  }

  /** Messages that the record does not have. */
  get waiting(): readonly FixMessage[] {
    return this.#batch;
  }

  /** The number before which the record lacks nothing that it must have, if `next` is that of the next message. */
  storedTo(next: number): number {
    return this.#batch.length > 0 || this.#hasPassedOver ? this.#storedNext : next;
  }

  add(message: FixMessage): void {
    this.#batch.push(message);
  }

  /** Messages were passed over, and may have been reports. */
  passOver(): void {
    this.#hasPassedOver = true;
  }

  told(): void {
    this.#hasMissed = false;
  }

  /** Commits what the record must have before the session goes on. Administrative messages are not stored one by one. */
  async store(next: number): Promise<void> {
    if (this.#batch.length > 0 || this.#hasPassedOver) await this.commit(next);
  }

  /** Commits the number of the next message at the end of a connection, unless a commit before failed. */
  async storeAtEnd(next: number): Promise<void> {
    if (this.#batch.length === 0 && this.#storedNext !== next) await this.commit(next);
  }

  async commit(next: number): Promise<void> {
    const hadPassedOver = this.#hasPassedOver;
    await this.record.received(this.#batch, next, hadPassedOver);
    this.noting.stored(this.#batch);
    this.#batch = [];
    this.#storedNext = next;
    this.#hasPassedOver = false;
    this.#hasMissed ||= hadPassedOver;
  }
}
