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

/**
 * Runs sequences, and shrinks one that fails. `MODEL_SEED` and `MODEL_PATH`, which a failure prints, run one of them again.
 * `MODEL_SEQUENCES` runs more.
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
  const each = Math.ceil(runs / atOnce);
  describe(name, { timeout: 120_000 + each * 60_000, concurrency: atOnce }, () => {
    for (let number = 0; number < atOnce; number += 1) {
      const seed = first + number;
      it(`every answer, order, limit, wallet and event is what a few sums say (seed ${seed})`, async () => {
        const replicas = await start();
        let count = 0;
        try {
          await fc.assert(
            fc.asyncProperty(sequencesOf(further), async (sequence) => {
              count += 1;
              try {
                await runSequence(sequence, () => replicas.newWhole());
              } catch (error) {
                // To shrink it may take long, and so it is shown at once.
                process.stderr.write(`\nSequence ${count} of seed ${seed} failed: ${sequence}\n${error}\n`);
                throw error;
              }
            }),
            { numRuns: each, seed, path, verbose: 1, interruptAfterTimeLimit: 60_000 + each * 45_000 },
          );
        } finally {
          await replicas.stop();
        }
      });
    }
  });
}
