import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { inPart } from '../../part.ts';
import { casesOf, nameOf } from './endings.ts';
import type { Armed, Moment } from './inside/watch.ts';
import type { Seen } from './watched-process.ts';

/** A process with all that it needs, whose moments are watched. */
export interface Watched {
  /** Counts moments anew, and chooses the fate of one of them. */
  begin(armed?: Armed): Promise<void>;
  seen(): Promise<Seen>;
  readonly hasDied: boolean;
  /** Thaws a process that is frozen. Returns whether there was one. */
  thaw?(): boolean;
  /** Ends the process. The next one has no memory of what failed. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Work of a process, of which each moment is a place where it may be killed or fail. */
export interface WatchedScenario<World extends Watched, Case> {
  readonly name: string;
  /** The names of the moments that have cases here, if others have theirs in another scenario. */
  readonly only?: RegExp;
  /** Of a label that comes again and again, so many have a case; 2 by default. */
  readonly maxOccurrences?: number;
  /** Whether a second process runs beside the one that is watched, and goes on when that one is killed or frozen. */
  readonly isBeside?: boolean;
  start(): Promise<World>;
  /** Makes what one run works on. Its moments are not watched. If it ends the process, the next one's start is. */
  prepare(watched: World): Promise<Case>;
  /** Works as the process's users do, who go on after any failure. */
  run(watched: World, one: Case): Promise<void>;
  /** Waits until nothing is on its way. */
  rest(watched: World, one: Case): Promise<void>;
  /** Checks the promises when everything is at rest. */
  check(watched: World, one: Case): Promise<void>;
}

/** Counters of limits are written from time to time. */
export const counters = 'counters';
/** How often a case is run at most until its moment comes. */
const maxRuns = 6;

/** Runs a scenario once and records its moments; then once for each of them and each way in which it can end. */
export async function describeMomentsOf<World extends Watched, Case>(
  scenario: WatchedScenario<World, Case>,
): Promise<void> {
  let watched = await scenario.start();
  // A failure without any fate is shown as that of a test.
  const failures: unknown[] = [];
  const moments = await record(watched, scenario).catch((error: unknown) => {
    failures.push(error);
    return [];
  });
  const { name, isBeside = false } = scenario;
  const cases = casesOf(moments, isBeside);
  describe(`${name}, at each moment${isBeside ? ', beside another' : ''}`, () => {
    let isSpoiled = false;
    after(() => watched.stop());

    it('the scenario has moments of which a case is made', (t) => {
      if (failures.length > 0) throw failures[0];
      for (const moment of moments) t.diagnostic(nameOf(moment));
      assert.ok(moments.length > 0);
    });

    for (const { moment, ending } of inPart(cases)) {
      it(`${nameOf(moment)}, ${ending.says}: every promise holds`, async (t) => {
        // A case that failed may have left objects behind, which would fail this one too.
        if (isSpoiled) {
          // That case has failed, and its world may be as broken as it was left.
          await watched
            .stop()
            .catch((error: unknown) => t.diagnostic(`the world of the case before: ${String(error)}`));
          watched = await scenario.start();
        }
        isSpoiled = true;
        const armed = { ...moment, fate: ending.fate, times: ending.times };
        let hasMet = await runCase(watched, scenario, armed);
        for (let runs = 1; !hasMet && moment.occurrence === 1 && runs < maxRuns; runs += 1) {
          // After a failure of the case before, a gateway may still rest: it publishes nothing for two seconds. And some moments
          // come in most runs only, such as the commit of an answer that a report was faster than.
          await watched.restart();
          hasMet = await runCase(watched, scenario, armed);
        }
        isSpoiled = false;
        if (hasMet) return;
        // Batches differ from run to run, so a later moment of a label may fall together with an earlier one.
        // And of two processes the other one may have done it.
        assert.ok(isBeside || moment.occurrence !== 1, 'the moment did not come');
        t.diagnostic('the moment did not come in this run');
      });
    }
  });
}

/** The moments of a run to which nothing happens. A second run shows which of them come each time. */
async function record<World extends Watched, Case>(
  watched: World,
  scenario: WatchedScenario<World, Case>,
): Promise<readonly Moment[]> {
  const runs: (readonly Moment[])[] = [];
  for (let count = 0; count < 2; count += 1) {
    const one = await scenario.prepare(watched);
    await watched.begin();
    await scenario.run(watched, one);
    await scenario.rest(watched, one);
    runs.push((await watched.seen()).moments);
    await scenario.check(watched, one);
  }
  const [first = [], second = []] = runs;
  const again = new Set(second.map(nameOf));
  const { only = /^/, maxOccurrences = 2 } = scenario;
  const hasCase = ({ label, occurrence }: Moment) => occurrence <= (label === counters ? 1 : maxOccurrences);
  return first.filter((moment) => hasCase(moment) && again.has(nameOf(moment)) && only.test(nameOf(moment)));
}

/** Returns whether the moment came. */
async function runCase<World extends Watched, Case>(
  watched: World,
  scenario: WatchedScenario<World, Case>,
  armed: Armed,
): Promise<boolean> {
  const one = await scenario.prepare(watched);
  await watched.begin(armed);
  await scenario.run(watched, one);
  await scenario.rest(watched, one);
  // It changes nothing when it goes on.
  if (watched.thaw?.()) await scenario.rest(watched, one);
  const { met } = await watched.seen();
  const hasMet = watched.hasDied || met > 0;
  await watched.begin();
  // One of two failures in a row may have been left, and it may have come until now.
  if (armed.times > 1) await scenario.rest(watched, one);
  await scenario.check(watched, one);
  return hasMet;
}
