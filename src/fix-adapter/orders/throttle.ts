import { pause } from '../../kit/worker.ts';
import type { Outgoing } from '../session/types.ts';

/** A clock in milliseconds that never goes back, and waits. */
export interface ThrottleClock {
  now(): number;
  /** Waits for a time, or until the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export interface ThrottleLimit {
  /** How many messages may be sent in any window of time. */
  readonly messages: number;
  readonly windowMs: number;
}

/** A turn whose message was never settled is given back after so long, which is more than a commit and a write take. */
const longestTurnMs = 30_000;
/** How often a turn is looked for that depends on a message which is being sent. */
const lookEveryMs = 5;
/** So that a message is in no window that begins with the one before it, however the exchange rounds its times. */
const marginMs = 1;

const monotonic: ThrottleClock = { now: () => performance.now(), wait: pause };

interface Waiter {
  readonly deadline: number;
  readonly resolve: (hasTurn: boolean) => void;
}

/**
 * Lets so many messages be sent in any window of time, in the order in which they came. A message counts from its turn, and
 * then from the moment when it was written. So one that waited for its commit does not come close to those of the next window.
 */
export class Throttle {
  /** When the last messages were sent, oldest first. */
  readonly #sent: number[] = [];
  /** When turns were given whose messages are neither sent nor given up, oldest first. */
  readonly #turns: number[] = [];
  readonly #waiting: Waiter[] = [];
  #isGiving = false;

  constructor(
    private readonly limit: ThrottleLimit,
    readonly stopping: AbortSignal,
    private readonly clock: ThrottleClock = monotonic,
  ) {}

  /**
   * Waits for a turn. False if it does not come within this time: at once, where that is known. A message that has its turn must
   * be settled.
   */
  async take(withinMs: number): Promise<boolean> {
    const now = this.clock.now();
    const deadline = now + withinMs;
    if (this.stopping.aborted || this.#turnAt(this.#waiting.length, now) > deadline) return false;
    if (this.#waiting.length === 0 && this.#turnAt(0, now) <= now) {
      this.#turns.push(now);
      return true;
    }
    const turn = new Promise<boolean>((resolve) => {
      this.#waiting.push({ deadline, resolve });
    });
    if (!this.#isGiving) void this.#giveTurns();
    return turn;
  }

  /** The message of the oldest turn was written now, or never will be. */
  settled(wasWritten: boolean): void {
    this.#turns.shift();
    if (!wasWritten) return;
    this.#sent.push(this.clock.now());
    if (this.#sent.length > this.limit.messages) this.#sent.shift();
  }

  async #giveTurns(): Promise<void> {
    this.#isGiving = true;
    while (this.#waiting.length > 0) {
      const now = this.clock.now();
      this.#giveUp(now);
      const [next] = this.#waiting;
      if (next === undefined) break;
      const at = this.#turnAt(0, now);
      if (at <= now) {
        this.#waiting.shift();
        this.#turns.push(now);
        next.resolve(true);
        continue;
      }
      // A message that is being sent may be given up, and its turn is free then.
      const look = this.#turns.length > 0 ? now + lookEveryMs : at;
      const until = Math.min(at, look, ...this.#waiting.map(({ deadline }) => deadline + marginMs));
      await this.clock.wait(until - now, this.stopping);
    }
    this.#isGiving = false;
  }

  /** Those whose time is over. */
  #giveUp(now: number): void {
    const isOver = ({ deadline }: Waiter) => this.stopping.aborted || deadline < now;
    for (const waiter of this.#waiting.filter(isOver)) {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      waiter.resolve(false);
    }
  }

  /** When the turn behind so many others can come at the earliest. */
  #turnAt(behind: number, now: number): number {
    const { messages } = this.limit;
    const windowMs = this.limit.windowMs + marginMs;
    while (now - (this.#turns[0] ?? now) >= longestTurnMs) this.#turns.shift();
    while (now - (this.#sent[0] ?? now) >= windowMs) this.#sent.shift();
    const nth = behind % messages;
    const free = Math.max(0, messages - this.#sent.length - this.#turns.length);
    // Each message gives its turn back a window after it was sent, and one that is being sent is sent now at the earliest.
    const first = nth < free ? now : (this.#sent[nth - free] ?? now) + windowMs;
    return first + Math.floor(behind / messages) * windowMs;
  }
}

/** A session whose messages have each had a turn. */
export function withTurns<Message extends Outgoing>(
  session: { readonly isUp: boolean; send(message: Message): void },
  throttle: Pick<Throttle, 'settled'>,
): { readonly isUp: boolean; send(message: Message): void } {
  return {
    get isUp() {
      return session.isUp;
    },
    send: (message) =>
      session.send({
        ...message,
        settled: (outcome) => {
          throttle.settled(outcome === 'written');
          message.settled(outcome);
        },
      }),
  };
}
