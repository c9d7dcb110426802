import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { inPart } from '../part.ts';
import type { PriceUnit } from './acceptor.ts';
import { HabitAtWork } from './at-work.ts';
import { Chain } from './chain.ts';
import type { Habit } from './habit.ts';
import type { FixVersion } from './wire.ts';

/** `FIX_ROWS` runs only the rows whose name has this text. */

/** How many habits are at work at once on a chain that they share. */
const atOnce = 64;

/**
 * Runs habits that change the session, one after the other: half of them by each version and unit, because each takes seconds.
 * `FIX_ALL=true` runs all of them by both.
 */
export function describeSessionHabits(table: readonly Habit[]): void {
  const isWhole = process.env.FIX_ALL === 'true';
  const half = (of: number) => table.filter((_, at) => isWhole || at % 2 === of);
  describeSession('FIXT.1.1', 'naira', half(0));
  describeSession('FIX.4.4', 'kobo', half(1));
}

function describeSession(version: FixVersion, unit: PriceUnit, table: readonly Habit[]): void {
  const habits = chosen(version, unit, table);
  if (habits.length === 0) return;
  describe(`the session of an exchange that speaks ${version} with prices in ${unit}`, () => {
    let chain: Chain;
    const works: HabitAtWork[] = [];
    before(async () => {
      chain = await Chain.start(version, unit);
    });
    after(() => chain?.stop());

    for (const habit of habits) {
      it(`shows nothing untrue without a finding when ${habit.name}`, async () => {
        works.push(await runAlone(chain, habit));
      });
    }

    it('still shows nothing untrue without a finding when all habits are over', async () => {
      for (const work of works) await work.check();
      assert.deepEqual(chain.acceptor.errors, []);
    });
  });
}

/** Runs a habit that has the session for itself, and leaves a session that is up. */
async function runAlone(chain: Chain, habit: Habit): Promise<HabitAtWork> {
  const { settings } = habit;
  const before = { ...chain.settings };
  try {
    if (settings !== undefined) await chain.restartAdapter(settings);
    chain.acceptor.manners = habit.manners?.(chain.acceptor) ?? {};
    return await HabitAtWork.run(chain, habit);
  } finally {
    chain.acceptor.manners = {};
    chain.acceptor.isOpen = true;
    chain.acceptor.numbers.clockOffMs = 0;
    // Only what the habit set: a session day that has begun stays begun.
    if (settings !== undefined) await chain.restartAdapter(only(before, Object.keys(settings)));
    await chain.up(15_000).catch(() => chain.agreeOnNumbers());
  }
}

/** Settings by their names; those that were not set are empty, which is as good. */
function only(settings: Record<string, string>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, settings[name] ?? '']));
}

function chosen(version: FixVersion, unit: PriceUnit, table: readonly Habit[]): Habit[] {
  const named = process.env.FIX_ROWS ?? '';
  return inPart(table)
    .filter((each) => (each.version ?? version) === version && (each.unit ?? unit) === unit)
    .filter(({ name }) => name.includes(named));
}

/** Runs habits that need no session of their own over one chain, at the same time, each with an account of its own. */
export function describeHabits(
  version: FixVersion,
  unit: PriceUnit,
  table: readonly Habit[],
  settings: Record<string, string> = {},
): void {
  const habits = chosen(version, unit, table);
  describe(`an exchange that speaks ${version} with prices in ${unit}`, () => {
    let chain: Chain;
    const works: HabitAtWork[] = [];
    const running = new Map<Habit, Promise<HabitAtWork>>();

    before(async () => {
      chain = await Chain.start(version, unit, settings);
      const waiting: (() => void)[] = [];
      let free = atOnce;
      for (const habit of habits) {
        const started = new Promise<void>((resolve) => {
          if (free > 0) {
            free -= 1;
            resolve();
          } else waiting.push(resolve);
        });
        const work = started
          .then(() => HabitAtWork.run(chain, habit))
          .finally(() => {
            const next = waiting.shift();
            if (next === undefined) free += 1;
            else next();
          });
        // Its own test tells of a failure.
        work.catch(() => undefined);
        running.set(habit, work);
      }
    });

    after(() => chain?.stop());

    for (const habit of habits) {
      it(`shows nothing untrue without a finding when ${habit.name}`, async () => {
        works.push((await running.get(habit)) ?? assert.fail('the habit was not run'));
      });
    }

    it('still shows nothing untrue without a finding when all habits are over', async () => {
      await chain.acceptor.barrier();
      for (const work of works) await work.check();
      assert.deepEqual(chain.acceptor.errors, []);
    });

    it('has a feed that ends with what the orders say', async () => {
      const [first] = works;
      assert.ok(first !== undefined, 'no habit was run');
      const events = await first.partner.lastEvents();
      for (const work of works) {
        for (const { id } of work.placed) {
          const { state, filled, average } = await work.partner.view(id);
          assert.deepEqual(events.get(id), { id, state, filled, average });
        }
      }
    });
  });
}
