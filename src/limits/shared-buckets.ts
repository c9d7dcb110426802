import { setTimeout as delay } from 'node:timers/promises';
import { type Bucket, bucketFrom, change, holdersBut, type Rate, waitForToken } from './bucket.ts';
import type { Participant, Sharing } from './sharing.ts';
import type { SlotBoard } from './slot-board.ts';

/** One name's bucket, as this replica knows it. */
interface Known {
  readonly name: string;
  rate: Rate;
  /** Tokens that were drawn and can be handed out, until `goodUntil`. */
  stock: number;
  goodUntil: number;
  /** What the board said last, as long as nothing says otherwise. */
  entry: { readonly bucket: Bucket; readonly revision: number } | undefined;
  /** Those who wait for a token, in the order of arrival. */
  readonly waiting: ((granted: boolean | Promise<boolean>) => void)[];
  isDrawing: boolean;
  drawnAt: number;
  /** Before this the bucket has no token: nobody need ask. */
  emptyUntil: number;
  askedAt: number;
  takenAt: number;
  /** Work on the board, one after the other. */
  turn: Promise<void>;
  /** This replica's share, while it keeps to it, and what was taken of it that the board does not know. */
  share: { level: number; filledAt: number } | undefined;
  uncharged: number;
}

/** What is needed of the other replicas. */
type Together = Pick<
  Sharing,
  'add' | 'isShared' | 'isStarting' | 'isFirst' | 'losses' | 'lostAt' | 'started' | 'fail'
> & {
  readonly board: Pick<
    SlotBoard,
    'replica' | 'replicas' | 'createdAt' | 'keptMs' | 'serverTime' | 'readText' | 'writeText' | 'ask'
  >;
};

/** A clock that never goes back, in milliseconds, and waiting by it. */
export interface MonotonicTime {
  now(): number;
  wait(ms: number): Promise<unknown>;
}

const realTime: MonotonicTime = {
  now: () => performance.now(),
  wait: (ms) => delay(ms, undefined, { ref: false }),
};

const mostBuckets = 10_000;
/** How long tokens that were drawn can be handed out. Those of a replica that dies are lost for no longer. */
const stockMs = 2_000;
/** Who drew within this time draws some more to hand out without asking. */
const busyMs = 1_000;
/** Who took a token within this time gives another replica half of what it holds, otherwise all. */
const inUseMs = 100;
const askAgainMs = 250;
const writeWithinMs = 500;
const mostAtOnce = 32;
/** A request waits this long for a token of the share, right after the others were lost. */
const shareWaitMs = 250;
const othersLost = new Error('the other replicas were lost');

/**
 * Buckets of tokens that replicas draw from together. A replica draws what its requests need and, while there are more of
 * them, some to hand out from memory, so that hardly one waits for NATS; what it holds counts as if it were in the bucket
 * still, and is nobody's after two seconds. While NATS is away each replica keeps to its share: the rate and the burst
 * divided by the replicas there were last, beginning with what it holds.
 */
export class SharedBuckets implements Participant {
  readonly #known = new Map<string, Known>();
  readonly #board: Together['board'];

  constructor(
    private readonly sharing: Together,
    private readonly time: MonotonicTime = realTime,
  ) {
    this.#board = sharing.board;
    sharing.add(this);
  }

  /**
   * Takes a token of a name, or answers false when there is none. It never throws.
   *
   * @param name What is counted together: letters, digits, dots, hyphens, underscores.
   */
  take(name: string, rate: Rate): boolean | Promise<boolean> {
    const known = this.#of(name, rate);
    if (this.sharing.isStarting) return this.sharing.started().then(() => this.take(name, rate));
    const now = this.time.now();
    if (!this.sharing.isShared) return this.#takeOfShare(known, now);
    if (known.share !== undefined) this.#endShare(known);
    if (this.#stockOf(known, now) >= 1) {
      known.stock -= 1;
      known.takenAt = now;
      if (known.stock < spareOf(rate) / 2 && now >= known.emptyUntil) void this.#draw(known);
      return true;
    }
    if (now < known.emptyUntil || known.waiting.length >= rate.burst) return false;
    return new Promise((settle) => {
      known.waiting.push(settle);
      void this.#draw(known);
    });
  }

  /** Others need tokens: those that are not used go back. */
  async asked(name: string): Promise<void> {
    const known = this.#known.get(name);
    if (known === undefined || !this.sharing.isShared) return;
    const isInUse = this.time.now() - known.takenAt < inUseMs;
    try {
      await this.#giveBack(known, isInUse ? 0.5 : 0);
    } catch (error) {
      if (error !== othersLost) this.sharing.fail(error);
    }
  }

  /** The others need not wait until what is held here is nobody's. */
  async leave(): Promise<void> {
    await this.#inTurn(
      (known) => this.#giveBack(known, 0),
      ({ stock }) => stock > 0,
    ).catch(() => undefined); // Then they wait.
  }

  lost(): void {
    const now = this.time.now();
    for (const known of this.#known.values()) {
      known.entry = undefined;
      known.emptyUntil = 0;
      if (known.share === undefined)
        this.#beginShare(known, Math.min(this.#stockOf(known, now), this.#shareOf(known).burst));
      known.stock = 0;
    }
  }

  /** Takes from the buckets what was taken by share. What is taken so meanwhile is taken from them later. */
  async writeOwn(): Promise<boolean> {
    await this.#inTurn(
      (known) => this.#exclusively(known, () => this.#change(known, 0)),
      (known) => this.#chargeOf(known) > 0,
    );
    return true;
  }

  /** Works on some buckets, a bounded number at once. */
  async #inTurn(
    work: (known: Known) => Promise<unknown>,
    matches: (known: Known) => boolean = () => true,
  ): Promise<void> {
    const some = [...this.#known.values()].filter(matches);
    for (let first = 0; first < some.length; first += mostAtOnce) {
      await Promise.all(some.slice(first, first + mostAtOnce).map(work));
    }
  }

  /** Gives back what is held, but for a part. */
  #giveBack(known: Known, keptPart: number): Promise<unknown> {
    return this.#exclusively(known, async () => {
      const own = this.#stockOf(known, this.time.now());
      const kept = Math.floor(own * keptPart);
      known.stock = kept;
      known.entry = undefined;
      await this.#change(known, 0, own - kept);
    });
  }

  /** Draws tokens for those who wait, asking the others for what they do not use, and some to hand out later. */
  async #draw(known: Known): Promise<void> {
    if (known.isDrawing) return;
    known.isDrawing = true;
    try {
      do {
        const isBusy = this.time.now() - known.drawnAt < busyMs;
        const drawn = await this.#exclusively(known, () => this.#change(known, isBusy ? spareOf(known.rate) : 0));
        this.#serve(known);
        if (drawn === 0 && !(await this.#askOthers(known))) break;
      } while (known.waiting.length > 0);
    } catch (error) {
      if (error !== othersLost) this.sharing.fail(error);
    } finally {
      known.isDrawing = false;
    }
    for (const settle of known.waiting.splice(0)) {
      settle(this.sharing.isShared ? false : this.#takeOfShare(known, this.time.now()));
    }
  }

  #serve(known: Known): void {
    const now = this.time.now();
    while (known.waiting.length > 0 && this.#stockOf(known, now) >= 1) {
      known.stock -= 1;
      known.takenAt = now;
      known.waiting.shift()?.(true);
    }
  }

  /** Asks those who hold tokens to give up what they do not use. Answers whether it is worth drawing again. */
  async #askOthers(known: Known): Promise<boolean> {
    const now = this.time.now();
    if (known.waiting.length === 0 || now - known.askedAt < askAgainMs || known.entry === undefined) return false;
    const others = holdersBut(this.#board.replica, known.entry.bucket, this.#board.serverTime);
    if (others.length === 0) return false;
    known.askedAt = now;
    known.emptyUntil = 0;
    await this.#board.ask(others, known.name);
    known.entry = undefined;
    return true;
  }

  /**
   * Changes the bucket on the board: draws what those who wait need and up to `most` to have in hand, gives back what is
   * `given`, which also tells the others what was used, and pays what was taken by share. Answers how many tokens were
   * drawn.
   */
  async #change(known: Known, most: number, given?: number): Promise<number> {
    const board = this.#board;
    const { losses } = this.sharing;
    const end = this.time.now() + writeWithinMs;
    do {
      const entry = known.entry ?? (await this.#read(known));
      if (this.sharing.losses !== losses) throw othersLost;
      known.entry = entry;
      const sentAt = this.time.now();
      const own = this.#stockOf(known, sentAt);
      known.stock = own;
      const { uncharged } = known;
      const charge = this.#chargeOf(known);
      const now = board.serverTime;
      const { bucket, drawn } = change(entry.bucket, known.rate, {
        replica: board.replica,
        own,
        // One that was forgotten in between may have used it at any time.
        ownSince: Number.isFinite(known.takenAt) ? now.atMost - (sentAt - known.takenAt) : Number.POSITIVE_INFINITY,
        given: given ?? 0,
        charge,
        needed: Math.max(0, known.waiting.length - own),
        spare: Math.max(0, most - own),
        stockMs,
        now,
      });
      known.emptyUntil = drawn > 0 ? 0 : sentAt + Math.min(waitForToken(bucket, known.rate), askAgainMs);
      const isTold = given !== undefined && (entry.bucket.held[board.replica]?.tokens ?? 0) > own;
      if (drawn === 0 && charge === 0 && !isTold) return 0;
      const revision = await board.writeText(keyOf(known), JSON.stringify(bucket), entry.revision);
      if (this.sharing.losses !== losses) throw othersLost;
      known.entry = revision === undefined ? undefined : { bucket, revision };
      if (revision === undefined) continue;
      known.uncharged -= uncharged;
      known.stock += drawn;
      known.goodUntil = sentAt + stockMs;
      known.drawnAt = sentAt;
      return drawn;
    } while (this.time.now() < end);
    return 0;
  }

  async #read(known: Known): Promise<{ bucket: Bucket; revision: number }> {
    const { createdAt, keptMs } = this.#board;
    const { text, revision } = await this.#board.readText(keyOf(known));
    const now = this.#board.serverTime;
    const found = text === undefined ? undefined : bucketFrom(text);
    if (found !== undefined) return { bucket: found, revision };
    // It has been filling since the board began, for all that is known, or since its entry was forgotten.
    const isNew = this.sharing.isFirst && now.atMost - createdAt < keptMs;
    const level = isNew ? known.rate.burst : 0;
    return { bucket: { level, at: Math.max(createdAt, now.atLeast - keptMs), held: {} }, revision };
  }

  #stockOf({ stock, goodUntil }: Known, now: number): number {
    return now < goodUntil ? stock : 0;
  }

  /** What a replica has while it cannot ask. */
  #shareOf({ rate }: Known): Rate {
    const { replicas } = this.#board;
    return { perSecond: rate.perSecond / replicas, burst: Math.max(1, rate.burst / replicas) };
  }

  #beginShare(known: Known, level: number): { level: number; filledAt: number } {
    known.share = { level, filledAt: this.time.now() };
    known.uncharged = 0;
    return known.share;
  }

  #endShare(known: Known): void {
    known.uncharged = this.#chargeOf(known);
    known.share = undefined;
  }

  #takeOfShare(known: Known, now: number): boolean | Promise<boolean> {
    const { perSecond, burst } = this.#shareOf(known);
    const { lostAt } = this.sharing;
    const own = this.#stockOf(known, now);
    const filledSince = ((now - lostAt) * perSecond) / 1_000;
    const share = known.share ?? this.#beginShare(known, Math.min(burst, Math.max(own, filledSince)));
    known.stock = 0;
    share.level = Math.min(burst, share.level + ((now - share.filledAt) * perSecond) / 1_000);
    share.filledAt = now;
    const missingMs = perSecond > 0 ? (Math.max(0, 1 - share.level) * 1_000) / perSecond : Number.POSITIVE_INFINITY;
    // What others have in hand cannot be had now, so it is worth a moment.
    if (missingMs > (now - lostAt < busyMs ? shareWaitMs : 0)) return false;
    share.level -= 1;
    known.uncharged += 1;
    known.takenAt = now + missingMs;
    return missingMs === 0 || this.time.wait(missingMs).then(() => true);
  }

  /** What was taken by share and is not in it again. */
  #chargeOf(known: Known): number {
    const { share, uncharged } = known;
    if (share === undefined || uncharged === 0) return uncharged;
    const { perSecond, burst } = this.#shareOf(known);
    const level = share.level + ((this.time.now() - share.filledAt) * perSecond) / 1_000;
    return Math.min(uncharged, Math.max(0, burst - level));
  }

  /** Lets work on a name's entry wait for the work before it. */
  #exclusively<T>(known: Known, work: () => Promise<T>): Promise<T> {
    const done = known.turn.then(work);
    // Whoever asked for it is told.
    known.turn = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  #of(name: string, rate: Rate): Known {
    const known = this.#known.get(name) ?? {
      name,
      rate,
      stock: 0,
      goodUntil: 0,
      entry: undefined,
      waiting: [],
      isDrawing: false,
      drawnAt: Number.NEGATIVE_INFINITY,
      emptyUntil: 0,
      askedAt: Number.NEGATIVE_INFINITY,
      takenAt: Number.NEGATIVE_INFINITY,
      turn: Promise.resolve(),
      share: undefined,
      uncharged: 0,
    };
    known.rate = rate;
    // The map keeps the order of last use.
    this.#known.delete(name);
    this.#known.set(name, known);
    if (this.#known.size > mostBuckets) this.#forgetIdle();
    return known;
  }

  #forgetIdle(): void {
    for (const [name, { isDrawing, waiting }] of this.#known) {
      if (isDrawing || waiting.length > 0) continue;
      this.#known.delete(name);
      return;
    }
  }
}

/** How many tokens a busy replica has in hand. */
function spareOf({ perSecond, burst }: Rate): number {
  return Math.floor(Math.min(burst / 4, perSecond / 2));
}

const keyOf = ({ name }: Known) => `buckets.${name}`;
