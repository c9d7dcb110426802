import { availableParallelism } from 'node:os';
import { describe, it } from 'node:test';
import { fc } from '../properties.ts';
import type { Command, Whole } from './surroundings.ts';
import { runSequence, sequencesOf } from './whole.ts';

/** Replicas with a database, a broker and streams of their own. */
export interface Replicas {
  newWhole(): Promise<Whole>;
  stop(): Promise<void>;
}

export interface SequencesOptions {
  /** How many sequences are run unless `MODEL_SEQUENCES` says otherwise. */
  readonly usually: number;
  /** How many run at once at most. */
  readonly maxAtOnce?: number;
  readonly start: () => Promise<Replicas>;
  /** Commands besides those of all models. */
  readonly further?: readonly fc.Arbitrary<Command>[];
}

/** A sequence mostly waits, so several run at once, each with replicas of its own. */
const usuallyAtOnce = 4;
/** Fewer are not worth the start of further replicas. */
const fewest = 25;
/** After so many, others get replicas with an empty database: the comparison of a day is of all partners that there are. */
const most = 200;
/** How long a sequence that failed is shrunk. */
const maxShrinkMs = 300_000;

/**
 * Runs sequences, and shrinks one that fails. `MODEL_SEED`, `MODEL_PATH` and `MODEL_REPLAY_PATH`, which a failure prints, run one
 * of them again. `MODEL_SEQUENCES` runs more.
 */
export function describeSequences(
  name: string,
  { usually, maxAtOnce = usuallyAtOnce, start, further }: SequencesOptions,
): void {
  const runs = Number(process.env.MODEL_SEQUENCES ?? usually);
  const first = process.env.MODEL_SEED === undefined ? Date.now() % 2 ** 31 : Number(process.env.MODEL_SEED);
  const path = process.env.MODEL_PATH;
  const usual = Math.min(maxAtOnce, 2 * availableParallelism(), Math.ceil(runs / fewest));
  const atOnce = path === undefined ? Number(process.env.MODEL_AT_ONCE ?? usual) : 1;
  const each = Math.min(Math.ceil(runs / atOnce), most);
  const parts = path === undefined ? Math.ceil(runs / each) : 1;
  describe(name, { timeout: 120_000 + Math.ceil(runs / atOnce) * 60_000, concurrency: atOnce }, () => {
    for (let number = 0; number < parts; number += 1) {
      const seed = first + number;
      it(`every answer, order, limit, wallet and event is what a few sums say (seed ${seed})`, async () => {
        const replicas = await start();
        const failure = await failureOf(replicas, { runs: each, seed, path, further }).catch((error: unknown) => error);
        try {
          await replicas.stop();
        } catch (error) {
          // After a sequence that failed its world is in disorder too.
          if (failure === undefined) throw error;
        }
        if (failure !== undefined) throw failure;
      });
    }
  });
}

interface Run extends Pick<SequencesOptions, 'further'> {
  readonly runs: number;
  readonly seed: number;
  readonly path: string | undefined;
}

/** Runs sequences, and returns what is wrong with the shortest one that failed. */
async function failureOf(replicas: Replicas, { runs, seed, path, further }: Run): Promise<Error | undefined> {
  let count = 0;
  let shrunkUntil = Number.POSITIVE_INFINITY;
  const all = fc.asyncProperty(sequencesOf(further, process.env.MODEL_REPLAY_PATH), async (sequence) => {
    // Shrinking ends with the shortest one so far.
    if (performance.now() > shrunkUntil) return;
    count += 1;
    try {
      await runSequence(sequence, () => replicas.newWhole());
    } catch (error) {
      // To shrink it takes minutes, and so it is shown at once.
      process.stderr.write(`\nSequence ${count} of seed ${seed} failed: ${sequence}\n${error}\n`);
      shrunkUntil = Math.min(shrunkUntil, performance.now() + maxShrinkMs);
      throw error;
    }
  });
  const longestMs = 60_000 + runs * 45_000;
  const details = await fc.check(all, { numRuns: runs, seed, path, verbose: 1, interruptAfterTimeLimit: longestMs });
  if (!details.failed) return undefined;
  return new Error(`${againWith(details)}\n${fc.defaultReportMessage(details)}`);
}

/** How a sequence that failed is run again. */
function againWith({ seed, counterexamplePath, counterexample }: fc.RunDetails<[Iterable<Command>]>): string {
  const [, replayPath = ''] = /replayPath="([^"]*)"/.exec(`${counterexample?.[0]}`) ?? [];
  return `Run it again with MODEL_SEED=${seed} MODEL_PATH=${counterexamplePath} MODEL_REPLAY_PATH=${replayPath}`;
}
