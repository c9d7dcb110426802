import type { Logger } from '../lib/log.ts';
import { pause } from '../lib/worker.ts';
import type { SlotBoard } from './slot-board.ts';

/** What is counted across replicas by the board. */
export interface Participant {
  /** The others may be lost: what the board said may be so no more, and each replica keeps to its share. */
  lost(): void;
  /** Writes what was taken here by share where the others see it. Answers whether they can see all of it. */
  writeOwn(): Promise<boolean>;
  /** From now on all count together. */
  joined?(): void;
  /** Another replica needs what is kept here of a name and not used. */
  asked(name: string): Promise<void>;
  /** Gives back what is kept and not used. Called now and then while all count together. */
  sweep?(): void;
  /** Gives back what is kept, because the replica ends. */
  leave?(): Promise<void>;
}

const sweepMs = 500;
/** How long a replica that has just started waits for the others before it goes on with its share. */
const firstWaitMs = 3_000;
const retryMs = 250;
/** Replicas that are there have reached a NATS that is new within this time, and been heard. */
const quietMs = 600;

/**
 * Whether this replica counts with the others or keeps to its share. Before it counts with them, everyone has written
 * what was taken by share.
 */
export class Sharing {
  readonly #participants: Participant[] = [];
  readonly #stopping = new AbortController();
  #isShared = false;
  #wasShared = false;
  #isFirst = false;
  #joining: Promise<void> | undefined;
  #started: Promise<void> | undefined;
  #losses = 0;
  #lostAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;

  constructor(
    readonly board: SlotBoard,
    private readonly log: Logger,
  ) {}

  /** Whether all count together now, and not by share. */
  get isShared(): boolean {
    return this.#isShared && this.board.isHeard;
  }

  /** Whether this replica has just started and is about to count with the others. */
  get isStarting(): boolean {
    return !this.#isShared && !this.#wasShared && this.#joining !== undefined;
  }

  /** Whether nothing was on the board and nobody else was there when this replica began to count by it. */
  get isFirst(): boolean {
    return this.#isFirst;
  }

  /** How often the others were lost. */
  get losses(): number {
    return this.#losses;
  }

  /** Since when this replica keeps to its share, on the monotonic clock; long ago where it never counted with others. */
  get lostAt(): number {
    return this.#isShared ? performance.now() : this.#lostAt;
  }

  /** What is counted so. Before the start. */
  add(participant: Participant): void {
    this.#participants.push(participant);
  }

  /** Finds the other replicas as soon as NATS is there. */
  start(): void {
    this.#timer = setInterval(() => this.#sweep(), sweepMs);
    this.board.start({
      lost: () => this.#lose(),
      found: () => this.#join(),
      asked: async (name) => {
        await Promise.all(this.#participants.map((each) => each.asked(name)));
      },
    });
  }

  /** Right after the start nobody knows what the others have taken: that is worth a moment, where NATS is there. */
  started(): Promise<void> {
    this.#started ??= this.#waitForStart();
    return this.#started;
  }

  /** What the board did not do: until it does, each keeps to its share. */
  fail(error: unknown): void {
    if (this.#isShared) this.log.warn({ err: error }, 'limits are not counted across replicas now');
    this.#lose();
    this.#join();
  }

  /** Gives back what is reserved and ends. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #waitForStart(): Promise<void> {
    const end = performance.now() + firstWaitMs;
    while (this.isStarting && performance.now() < end) {
      await Promise.race([this.#joining, pause(retryMs, this.#stopping.signal)]);
    }
    this.#wasShared ||= !this.#isShared;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    await this.#joining;
    if (this.isShared) await Promise.all(this.#participants.map((each) => each.leave?.()));
    this.#lose();
    await this.board.close();
  }

  #sweep(): void {
    if (this.board.isHeard && !this.#isShared) this.#join();
    if (this.isShared) for (const each of this.#participants) each.sweep?.();
  }

  #lose(): void {
    this.#losses += 1;
    if (this.#isShared) this.#lostAt = performance.now();
    this.#isShared = false;
    for (const each of this.#participants) each.lost();
  }

  #join(): void {
    this.#joining ??= this.#keepJoining().finally(() => {
      this.#joining = undefined;
    });
  }

  async #keepJoining(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted && !this.#isShared && this.board.isHeard) {
      try {
        await this.#joinOnce(signal);
      } catch (error) {
        this.log.debug({ err: error }, 'the board of limits could not be joined');
        await pause(retryMs, signal);
      }
    }
  }

  /** Writes what is used here where the others see it, waits until they all have, and counts with them from then on. */
  async #joinOnce(signal: AbortSignal): Promise<void> {
    const before = this.#losses;
    const waitMs = await this.board.join();
    await this.#writeOwn();
    await pause(Math.min(waitMs, quietMs), signal);
    const isAlone = this.board.replicas === 1;
    if (!isAlone) await pause(Math.max(0, waitMs - quietMs), signal);
    // By now everyone has written, and meanwhile more may have been taken of the share.
    let isWritten = false;
    while (!isWritten) {
      isWritten = await this.#writeOwn();
      if (this.#losses !== before || signal.aborted) return;
    }
    if (this.#wasShared) this.log.info('limits are counted across replicas again');
    this.#isFirst = isAlone && waitMs > 0;
    this.#isShared = true;
    this.#wasShared = true;
    for (const each of this.#participants) each.joined?.();
  }

  async #writeOwn(): Promise<boolean> {
    const written = await Promise.all(this.#participants.map((each) => each.writeOwn()));
    return written.every(Boolean);
  }
}
