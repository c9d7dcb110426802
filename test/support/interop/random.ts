import { setTimeout as delay } from 'node:timers/promises';
import { findingsOf } from './at-work.ts';
import type { Chain, Finding } from './chain.ts';
import type { Habit } from './habit.ts';
import { nextSecondInLagos } from './numbers.ts';
import type { PartnerSide } from './partner.ts';
import { isFinal, isTrue, judge } from './rule.ts';

/** Orders that are judged at once. */
const judgesAtOnce = 16;
/** Orders that are being placed at once. */
const maxUnderWay = 12;

interface RandomOrder {
  readonly id: string;
  readonly habit: Habit;
  readonly partner: PartnerSide;
}

/** Random habits, and random faults of everything around them, over one chain. */
export class RandomRun {
  readonly orders: RandomOrder[] = [];
  readonly counts = { orders: 0, cancels: 0, cuts: 0, adapterKills: 0, gatewayKills: 0, days: 0, otherManners: 0 };
  readonly failures: Error[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(
    readonly chain: Chain,
    readonly habits: readonly Habit[],
    /** A number from 0 up to 1, the same for the same seed. */
    readonly random: () => number,
  ) {}

  /** Runs for a time, and then lets everything come to rest. */
  async run(seconds: number): Promise<void> {
    for (const until = Date.now() + seconds * 1_000; Date.now() < until; await delay(20)) {
      if (this.random() < 0.93) await this.#placeOne();
      else await this.#disturb();
    }
    const { acceptor } = this.chain;
    acceptor.manners = {};
    acceptor.isOpen = true;
    await Promise.all(this.#underWay);
    await this.chain.up(60_000);
  }

  /** The orders that are shown untrue without a finding, with what is wrong; and how many there are of each kind. */
  async judgeAll(orders: readonly RandomOrder[] = this.orders) {
    const wrong: { order: RandomOrder; complaint: string }[] = [];
    const kinds = { right: 0, openWithFinding: 0, finalWithFinding: 0, uncertain: 0 };
    const { findings, inDoubt } = await this.chain.observe();
    const byName = namesIn(findings);
    const judgeOne = async (order: RandomOrder) => {
      const truth = this.chain.acceptor.orders.get(order.id);
      const view = await order.partner.view(order.id);
      const seen = { view, truth, findings: [], isDoubtShown: inDoubt > 0 };
      // Each name is looked up: a long run has tens of thousands of orders and of findings.
      const named = isTrue(seen) ? [] : findingsOf(byName(order.id, truth?.orderId), order.id, truth?.orderId);
      const facts = { ...seen, findings: named };
      const complaint = judge(facts, order.habit.excuse !== undefined);
      const sent = this.chain.acceptor.newOrders.get(order.id) ?? 0;
      if (complaint !== undefined) wrong.push({ order, complaint });
      if (sent > 1) wrong.push({ order, complaint: `it was sent ${sent} times` });
      if (isTrue(facts)) kinds.right += 1;
      else if (named.length === 0) kinds.uncertain += 1;
      else if (isFinal(view)) kinds.finalWithFinding += 1;
      else kinds.openWithFinding += 1;
    };
    const queue = orders.values();
    const judges = Array.from({ length: judgesAtOnce }, async () => {
      for (const order of queue) await judgeOne(order);
    });
    await Promise.all(judges);
    return { wrong, kinds };
  }

  async #placeOne(): Promise<void> {
    if (this.#underWay.size >= maxUnderWay) await Promise.race(this.#underWay);
    const habit = this.#pick(this.habits);
    const body = this.#pick(habit.orders ?? [{}]);
    const cancels = this.random() < 0.2;
    const placing = this.#place(habit, body, cancels).catch((error: Error) => void this.failures.push(error));
    this.#underWay.add(placing);
    void placing.finally(() => this.#underWay.delete(placing));
  }

  async #place(habit: Habit, body: Record<string, unknown>, cancels: boolean): Promise<void> {
    const partner = await this.chain.newPartnerSide();
    this.chain.acceptor.habits.set(partner.partner.account, habit);
    const { id } = await partner.place(body, 90_000);
    this.orders.push({ id, habit, partner });
    this.counts.orders += 1;
    if (!cancels) return;
    this.counts.cancels += 1;
    await partner.cancel(id);
  }

  /** One fault, of everything that can fail. */
  async #disturb(): Promise<void> {
    const { chain, counts } = this;
    const at = this.random();
    if (at < 0.5) {
      counts.cuts += 1;
      chain.acceptor.cut();
    } else if (at < 0.8) {
      counts.otherManners += 1;
      this.#changeManners();
    } else if (at < 0.88) {
      counts.adapterKills += 1;
      await chain.killAdapter();
      await chain.startAdapter();
    } else if (at < 0.96) {
      counts.gatewayKills += 1;
      await chain.killGateway();
      await chain.startGateway();
    } else {
      counts.days += 1;
      await chain.killAdapter();
      chain.acceptor.cut();
      chain.acceptor.endOfDay();
      await chain.startAdapter({ MARINA_FIX_SESSION_START: nextSecondInLagos() });
    }
  }

  #changeManners(): void {
    const { acceptor } = this.chain;
    const asksAll = () =>
      acceptor.send('2', [
        [7, '1'],
        [16, '0'],
      ]);
    acceptor.manners = this.#pick([
      {},
      { isPassedOver: () => true },
      { isPassedOver: () => this.random() < 0.3 },
      { loggedOn: asksAll },
      { write: (bytes, socket) => bytes.forEach((byte) => void socket.write(Buffer.of(byte))) },
    ]);
  }

  #pick<T>(from: readonly T[]): T {
    const picked = from[Math.floor(this.random() * from.length)];
    if (picked === undefined) throw new Error('there is nothing to choose from');
    return picked;
  }
}

/** Random numbers that a seed repeats (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The findings by the names in their texts. If none has a name as a word, any may have it inside of one. */
function namesIn(findings: readonly Finding[]): (...names: (string | undefined)[]) => readonly Finding[] {
  const byWord = new Map<string, Finding[]>();
  for (const finding of findings) {
    for (const word of new Set(finding.text.match(/\w{8,}/g))) {
      const found = byWord.get(word);
      if (found === undefined) byWord.set(word, [finding]);
      else found.push(finding);
    }
  }
  return (...names) => {
    const found = new Set(names.flatMap((name) => (name === undefined ? [] : (byWord.get(name) ?? []))));
    return found.size > 0 ? [...found] : findings;
  };
}
