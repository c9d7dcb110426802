import { unanswered, type WireCall } from '../wire/rpc.ts';

/** Counts concurrent reads, so that tests can see how many a caller lets through. */
export class Reads {
  #now = 0;
  #most = 0;
  #mostOfAccount = 0;
  readonly #ofAccount = new Map<string, number>();

  /** Counts a read, from its arrival to its answer or its cancellation. */
  async count<T>(call: WireCall, account: string, read: () => Promise<T | typeof unanswered>) {
    let ended = false;
    const end = () => {
      if (!ended) this.#change(account, -1);
      ended = true;
    };
    this.#change(account, 1);
    call.on('cancelled', end);
    try {
      const answer = await read();
      if (answer !== unanswered) end();
      return answer;
    } catch (error) {
      end();
      throw error;
    }
  }

  /** The most concurrent reads since the last call. */
  take(): { most: number; mostOfAccount: number; now: number } {
    const counted = { most: this.#most, mostOfAccount: this.#mostOfAccount, now: this.#now };
    this.#most = this.#now;
    this.#mostOfAccount = Math.max(0, ...this.#ofAccount.values());
    return counted;
  }

  #change(account: string, change: 1 | -1): void {
    this.#now += change;
    this.#most = Math.max(this.#most, this.#now);
    if (account === '') return;
    const count = (this.#ofAccount.get(account) ?? 0) + change;
    if (count === 0) this.#ofAccount.delete(account);
    else this.#ofAccount.set(account, count);
    this.#mostOfAccount = Math.max(this.#mostOfAccount, count);
  }
}
