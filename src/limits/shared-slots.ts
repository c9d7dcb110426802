import type { Logger } from '../lib/log.ts';
import type { Participant, Sharing } from './sharing.ts';
import type { Holding, SlotBoard } from './slot-board.ts';
import { type Slot, type Slots, slot } from './slots.ts';

/** One name's places, as this replica knows them. */
interface Place {
  /** Places taken here now. */
  used: number;
  /**
   * Places the others leave to this replica. Fewer than are used only where too many are, because NATS was away or this
   * replica was taken for dead: then no more are taken.
   */
  reserved: number;
  /** How many there are, as was last asked for. */
  most: number;
  /** What the board says this replica has; undefined: not known. */
  written: number | undefined;
  writtenAt: number;
  idleSince: number;
  /** Until when another replica is known to wait for a place, and until when what was left to it is not taken here. */
  wantedUntil: number;
  heldOffUntil: number;
  /** What the board said last, as long as nothing says otherwise. */
  holding: Holding | undefined;
  /** Work on the board, one after the other. */
  turn: Promise<void>;
  readonly waiting: Waiting[];
  reserving: boolean;
}

interface Waiting {
  readonly most: number;
  readonly isInLine: boolean;
  readonly settle: (slot: Slot | undefined) => void;
}

/** Follows a name in the question of who waits in line. */
const inLine = 'line';
/** How long places nobody uses are kept, so that a partner's next request finds one without asking. */
const keptIdleMs = 2_000;
const mostAtOnce = 32;
/** Who waits in line asks again well within this time. */
const wantedMs = 100;
/** How long a place is left to the replica that waits for it. */
const heldOffMs = 60;
/** How long one change of a name's entry may be beaten by other replicas' changes. */
const writeWithinMs = 1_000;

/**
 * Places counted across replicas. A replica reserves places on the board and hands them out from memory; it gives back
 * what it has not used for a while, or at once when another replica needs it. What is reserved by all is never more than
 * there is, so what is used is not. While NATS is away each replica keeps to its share: what there is, divided by the
 * replicas there were last, and at least one.
 */
export class SharedSlots implements Slots, Participant {
  readonly #places = new Map<string, Place>();
  readonly #board: SlotBoard;
  #sweeping: Promise<void> | undefined;

  constructor(
    private readonly sharing: Sharing,
    private readonly log: Logger,
  ) {
    this.#board = sharing.board;
    sharing.add(this);
  }

  /** How many places of all names are taken here. */
  get takenHere(): number {
    let taken = 0;
    for (const { used } of this.#places.values()) taken += used;
    return taken;
  }

  async acquire(name: string, most: number, isInLine = false): Promise<Slot | undefined> {
    const place = this.#placeOf(name);
    place.most = most;
    if (this.sharing.isStarting) {
      // One is anybody's share; what goes beyond waits for the others.
      if (place.used === 0) return this.#take(name, place);
      await this.sharing.started();
      if (this.#places.get(name) !== place) return this.acquire(name, most, isInLine);
    }
    if (!this.sharing.isShared) return this.#takeOfShare(name, place, most);
    if (place.used >= this.#shareOf(place) && performance.now() < place.heldOffUntil) return undefined;
    if (place.used < place.reserved) return place.used < most ? this.#take(name, place) : undefined;
    // Those who wait already get what is left.
    if (place.used + place.waiting.length >= most) return undefined;
    return new Promise((settle) => {
      place.waiting.push({ most, isInLine, settle });
      void this.#reserve(name, place);
    });
  }

  /** On all replicas, or here while the others cannot be asked. */
  async taken(name: string): Promise<number> {
    const here = () => this.#places.get(name)?.used ?? 0;
    if (!this.sharing.isShared) return here();
    try {
      const sumOfOthers = ({ holders }: Holding) =>
        Object.entries(holders)
          .filter(([id]) => id !== this.#board.replica && !this.#board.isDead(id))
          .reduce((sum, [, count]) => sum + count, 0);
      const holding = await this.#board.read(name);
      if (sumOfOthers(holding) === 0) return here();
      // What they have may be kept for later: once asked they say what is used.
      await this.#board.ask(
        Object.keys(holding.holders).filter((id) => id !== this.#board.replica),
        name,
      );
      return sumOfOthers(await this.#board.read(name)) + here();
    } catch (error) {
      this.log.debug({ err: error }, 'the other replicas could not be asked for the places they have');
      return here();
    }
  }

  /** Gives back what is reserved. Places still taken come back to the others by the end of the lease. */
  async leave(): Promise<void> {
    await this.#sweeping;
    await this.#writeAll((place) => place.written !== 0);
  }

  #placeOf(name: string): Place {
    const found = this.#places.get(name);
    if (found !== undefined) return found;
    const place: Place = {
      used: 0,
      reserved: 0,
      most: 0,
      written: 0,
      writtenAt: 0,
      idleSince: performance.now(),
      wantedUntil: 0,
      heldOffUntil: 0,
      holding: undefined,
      turn: Promise.resolve(),
      waiting: [],
      reserving: false,
    };
    this.#places.set(name, place);
    return place;
  }

  #take(name: string, place: Place): Slot {
    place.used += 1;
    return slot(() => {
      place.used -= 1;
      place.idleSince = performance.now();
      if (place.idleSince < place.wantedUntil && place.used >= this.#shareOf(place)) this.#leaveToOthers(name, place);
      this.#forgetIfEmpty(name, place);
    });
  }

  /** Lets a replica that waits in line have the place that was just given back. */
  #leaveToOthers(name: string, place: Place): void {
    const now = performance.now();
    place.wantedUntil = 0;
    place.heldOffUntil = now + heldOffMs;
    void this.asked(name);
  }

  /** What this replica can have of what all of them want. */
  #shareOf({ most }: Place): number {
    return Math.floor(most / this.#board.replicas);
  }

  #takeOfShare(name: string, place: Place, most: number): Slot | undefined {
    const share = Math.max(1, Math.floor(most / this.#board.replicas));
    if (place.used < share) return this.#take(name, place);
    return undefined;
  }

  #forgetIfEmpty(name: string, place: Place): void {
    const isKept = place.used > 0 || place.reserved > 0 || place.waiting.length > 0 || place.reserving;
    if (!isKept && place.written === 0 && this.#places.get(name) === place) this.#places.delete(name);
  }

  /** Reserves places for those who wait, asking the others for what they do not use. */
  async #reserve(name: string, place: Place): Promise<void> {
    if (place.reserving) return;
    place.reserving = true;
    try {
      for (let asked = false; place.waiting.length > 0; ) {
        const reservedBefore = place.reserved;
        await this.#exclusively(place, () => this.#write(name, place, (others) => wanted(place, others)));
        this.#serve(name, place);
        if (place.waiting.length === 0 || place.reserved > reservedBefore) continue;
        if (asked) break;
        asked = await this.#askOthers(name, place);
        if (!asked) break;
      }
    } catch (error) {
      this.sharing.fail(error);
    } finally {
      place.reserving = false;
    }
    for (const { most, settle } of place.waiting.splice(0)) {
      settle(this.sharing.isShared ? undefined : this.#takeOfShare(name, place, most));
    }
    this.#forgetIfEmpty(name, place);
  }

  #serve(name: string, place: Place): void {
    if (!this.sharing.isShared) return;
    while (place.used < place.reserved) {
      const next = place.waiting.shift();
      if (next === undefined) return;
      next.settle(place.used < next.most ? this.#take(name, place) : undefined);
    }
  }

  /** Asks the other replicas that have some of a name to give up what they do not use. Answers whether there are any. */
  async #askOthers(name: string, place: Place): Promise<boolean> {
    const others = Object.keys(place.holding?.holders ?? {}).filter((replica) => replica !== this.#board.replica);
    if (others.length === 0) return false;
    const isInLine = place.waiting.some((each) => each.isInLine);
    await this.#board.ask(others, isInLine ? `${name} ${inLine}` : name);
    place.holding = undefined;
    return true;
  }

  /** Gives up, for another replica, what is not used; and learns what that one has. */
  async asked(text: string): Promise<void> {
    const [name = '', line] = text.split(' ');
    const place = this.#places.get(name);
    if (place === undefined || !this.sharing.isShared) return;
    if (line === inLine) place.wantedUntil = performance.now() + wantedMs;
    place.holding = undefined;
    try {
      await this.#exclusively(place, () => this.#writeUsed(name, place));
    } catch (error) {
      this.sharing.fail(error);
    }
  }

  /** Writes that only what is used is reserved. From now on no more is taken; afterwards the others can have it. */
  async #writeUsed(name: string, place: Place): Promise<void> {
    place.reserved = Math.min(place.reserved, place.used);
    await this.#write(name, place, () => Math.max(place.used, place.reserved));
    this.#forgetIfEmpty(name, place);
  }

  /** Changes what this replica has of a name on the board, from what the others have. */
  async #write(name: string, place: Place, own: (others: number) => number): Promise<void> {
    const board = this.#board;
    const end = performance.now() + writeWithinMs;
    const before = this.sharing.losses;
    do {
      place.holding ??= await board.read(name);
      if (this.sharing.losses !== before) throw new Error('the other replicas were lost');
      const { holders, revision } = place.holding;
      const others = Object.entries(holders).filter(([id]) => id !== board.replica && !board.isDead(id));
      const ofOthers = others.reduce((sum, [, each]) => sum + each, 0);
      const count = own(ofOthers);
      const reserved = Math.min(count, Math.max(0, place.most - ofOthers));
      const isFresh = performance.now() - place.writtenAt < board.refreshMs;
      if (count === (holders[board.replica] ?? 0) && (count === 0 || isFresh)) {
        place.written = count;
        place.reserved = reserved;
        return;
      }
      place.written = undefined;
      const changed = Object.fromEntries(count > 0 ? [...others, [board.replica, count]] : others);
      const written = await board.write(name, changed, revision);
      place.holding = written === undefined ? undefined : { holders: changed, revision: written };
      if (this.sharing.losses !== before) throw new Error('the other replicas were lost');
      if (written === undefined) continue;
      place.written = count;
      place.writtenAt = performance.now();
      place.reserved = reserved;
      return;
    } while (performance.now() < end);
    throw new Error('other replicas changed the places of a limit all the time');
  }

  /** Lets work on a name's entry wait for the work before it. */
  #exclusively(place: Place, work: () => Promise<void>): Promise<void> {
    const done = place.turn.then(work);
    place.turn = done.catch(() => undefined); // Whoever asked for it is told.
    return done;
  }

  /** What is reserved and not used for a while goes back; what is used is written again before it is forgotten. */
  sweep(): void {
    if (this.#sweeping !== undefined) return;
    const now = performance.now();
    this.#sweeping = this.#writeAll((place) => {
      const isIdle = place.reserved > place.used && now - place.idleSince >= keptIdleMs;
      return (
        isIdle ||
        place.written !== Math.max(place.used, place.reserved) ||
        (place.written > 0 && now - place.writtenAt >= this.#board.refreshMs)
      );
    }).finally(() => {
      this.#sweeping = undefined;
    });
  }

  /** Writes what is used of the names that match. A failure means that the others are lost. */
  async #writeAll(matches: (place: Place) => boolean): Promise<void> {
    const places = [...this.#places].filter(([, place]) => !place.reserving && matches(place));
    try {
      await this.#inTurn(places, (name, place) => this.#writeUsed(name, place));
    } catch (error) {
      this.sharing.fail(error);
    }
  }

  /** Forgets what the board said. */
  lost(): void {
    for (const place of this.#places.values()) {
      place.holding = undefined;
      place.written = undefined;
    }
  }

  /** Writes what is used of all names. Answers whether the others can see all that is used here. */
  async writeOwn(): Promise<boolean> {
    for (const place of this.#places.values()) place.holding = undefined;
    await this.#inTurn([...this.#places], async (name, place) => {
      place.reserved = place.used;
      await this.#write(name, place, () => place.used);
      this.#forgetIfEmpty(name, place);
    });
    return [...this.#places.values()].every(isWritten);
  }

  /** Where too many are taken, those who still have some left must know. */
  joined(): void {
    for (const [name, place] of this.#places) if (place.used > place.reserved) void this.#askOthers(name, place);
  }

  /** Works on the entries of some names, a bounded number at once. */
  async #inTurn(
    places: readonly (readonly [string, Place])[],
    work: (name: string, place: Place) => Promise<void>,
  ): Promise<void> {
    for (let first = 0; first < places.length; first += mostAtOnce) {
      const some = places.slice(first, first + mostAtOnce);
      await Promise.all(some.map(([name, place]) => this.#exclusively(place, () => work(name, place))));
    }
  }
}

/** Whether the others can see all that is used here. */
function isWritten(place: Place): boolean {
  return place.written !== undefined && place.used <= place.written;
}

/** How many places to have for those who wait, as far as the others leave some. */
function wanted(place: Place, others: number): number {
  const needed = Math.min(place.used + place.waiting.length, place.most - others);
  return Math.max(place.used, place.reserved, needed);
}
