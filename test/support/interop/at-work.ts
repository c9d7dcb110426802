import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import type { Chain, Finding } from './chain.ts';
import type { Desk } from './desk.ts';
import type { Act, Expected, Habit } from './habit.ts';
import type { PartnerSide, Placed } from './partner.ts';
import { type Facts, isFinal, isTrue, judge } from './rule.ts';

/** How long the partner may see a final state that is untrue before there is a finding. */
const graceMs = 5_000;

/** One habit at work over a chain, with an account of its own. */
export class HabitAtWork {
  readonly placed: Placed[] = [];

  private constructor(
    readonly chain: Chain,
    readonly habit: Habit,
    readonly partner: PartnerSide,
  ) {}

  /** Has the exchange behave so, and checks what the partner sees of it. */
  static async run(chain: Chain, habit: Habit): Promise<HabitAtWork> {
    const work = new HabitAtWork(chain, habit, await chain.newPartnerSide());
    chain.acceptor.habits.set(work.partner.partner.account, habit);
    try {
      for (const order of habit.orders ?? [{}]) await work.#place(order);
      await habit.script?.(work.#act());
      await chain.acceptor.barrier();
      await work.#watch(habit.watchMs ?? 0);
      await eventually(() => work.check(), 25_000);
    } catch (error) {
      const story = await tellStory(
        chain,
        work.partner,
        work.placed.map(({ id }) => id),
      );
      throw new Error([(error as Error).message, ...story].join('\n'), { cause: error });
    }
    return work;
  }

  /** Fails if the rule does not hold now, or if what is expected of this habit has not come. */
  async check(): Promise<void> {
    for (const facts of await this.facts()) {
      const wrong = this.#judge(facts);
      if (wrong !== undefined) throw new Error(wrong);
      assertExpected(this.habit.expect, facts);
    }
    const { acceptor } = this.chain;
    for (const { id } of this.placed) {
      assert.ok((acceptor.newOrders.get(id) ?? 0) <= 1, `the order ${id} was sent ${acceptor.newOrders.get(id)} times`);
    }
    const sent = acceptor.ordersOf(this.partner.partner.account).map(({ terms }) => terms.clOrdId);
    const others = sent.filter((id) => this.placed.every((placed) => placed.id !== id));
    assert.deepEqual(others, [], 'the exchange has orders that nobody placed');
  }

  async facts(): Promise<Facts[]> {
    const { findings, inDoubt } = await this.chain.observe();
    return Promise.all(
      this.placed.map(async ({ id }) => {
        const truth = this.chain.acceptor.orders.get(id);
        const view = await this.partner.view(id);
        return { view, truth, findings: findingsOf(findings, id, truth?.orderId), isDoubtShown: inDoubt > 0 };
      }),
    );
  }

  #judge(facts: Facts): string | undefined {
    return judge(facts, this.habit.excuse !== undefined);
  }

  /** Nothing final and untrue may come up, or stay without a finding. */
  async #watch(forMs: number): Promise<void> {
    let wrongSince: number | undefined;
    for (const until = Date.now() + forMs; Date.now() < until; await delay(500)) {
      const wrong = (await this.facts()).find((facts) => isFinal(facts.view) && this.#judge(facts) !== undefined);
      wrongSince = wrong === undefined ? undefined : (wrongSince ?? Date.now());
      if (wrong !== undefined && Date.now() - (wrongSince ?? 0) > graceMs) throw new Error(this.#judge(wrong));
    }
  }

  async #place(order: Record<string, unknown>): Promise<Placed> {
    const placed = await this.partner.place(order);
    this.placed.push(placed);
    return placed;
  }

  #act(): Act {
    const { chain, partner, placed } = this;
    const { acceptor } = chain;
    const id = (at: number) => placed[at]?.id ?? assert.fail(`there is no order ${at}`);
    const desk = (at = 0): Promise<Desk> =>
      eventually(() => {
        const order = acceptor.orders.get(id(at));
        assert.ok(order !== undefined, `the order ${id(at)} has not come to the exchange`);
        return acceptor.desk(order);
      });
    return {
      ...{ chain, acceptor, partner, placed, desk },
      place: (order = {}) => this.#place(order),
      cancel: (at = 0) => partner.cancel(id(at)),
      sees: (state, filled, at = 0) =>
        eventually(async () => {
          const view = await partner.view(id(at));
          assert.equal(view.state, state);
          if (filled !== undefined) assert.equal(view.filled, BigInt(filled));
        }, 20_000),
      asked: (type, times = 1, at = 0) =>
        eventually(() => {
          const about = acceptor.received(type).filter((each) => each.find(11) === id(at) || each.find(41) === id(at));
          assert.ok(
            about.length >= times,
            `${about.length} and not ${times} messages ${type} about ${id(at)} have come`,
          );
        }, 30_000),
    };
  }
}

/** Tells the history of orders on both sides, for whoever must mend it. */
export async function tellStory(chain: Chain, partner: PartnerSide, ids: readonly string[]): Promise<string[]> {
  const { findings } = await chain.observe().catch(() => ({ findings: [] }));
  const lines: string[] = [];
  for (const id of ids) {
    const truth = chain.acceptor.orders.get(id);
    const about = chain.acceptor.log.filter(({ message }) => message.fields.some(([, value]) => value.startsWith(id)));
    lines.push(`order ${id}; the truth: ${truth ?? 'absent'}`);
    lines.push(...about.slice(-20).map(({ way, at, message }) => `  ${new Date(at).toISOString()} ${way} ${message}`));
    lines.push(...(await partner.history(id).catch(() => ['no history'])).map((step) => `  partner ${step}`));
    lines.push(...findingsOf(findings, id, truth?.orderId).map((finding) => `  finding ${finding.slice(0, 300)}`));
  }
  return lines;
}

function assertExpected(expected: Expected, facts: Facts): void {
  if (expected === 'quiet') assert.deepEqual(facts.findings, [], 'there is a finding about what is usual');
  if (expected === 'quiet' || expected === 'true') {
    const { state, filled, average } = facts.view;
    assert.ok(
      isTrue(facts),
      `the partner sees ${state}, ${filled} shares at ${average}; the truth is ${facts.truth ?? 'absent'}`,
    );
  }
  if (expected === 'finding') assert.ok(facts.findings.length > 0, 'there is no finding');
}

/** The findings that name an order, by either side's id. */
export function findingsOf(findings: readonly Finding[], id: string, orderId: string | undefined): string[] {
  return findings
    .filter(
      (each) => each.orderId === id || [id, orderId].some((name) => name !== undefined && each.text.includes(name)),
    )
    .map(({ what, text }) => `${what} ${text}`);
}
