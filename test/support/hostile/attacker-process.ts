/**
 * Attacks a gateway, in a process of its own, so that its memory and its faults are not the test's. It has the lowest
 * priority: where a machine is short of cores, the attacker gives way instead of slowing the gateway by its own work.
 */
import { setPriority } from 'node:os';
import { type Attack, Attacker, type Connections, type Target } from './attacker.ts';

/** An order of the test to this process. */
export interface AttackOrder {
  readonly attack: string;
  readonly options: unknown;
  readonly target: Target;
  readonly forMs: number;
  readonly closedWithinMs: number;
}

/** A message of this process to the test. */
export type AttackNews =
  | { readonly type: 'ready' }
  | { readonly type: 'acted' }
  | { readonly type: 'done'; readonly connections: Connections; readonly result: unknown }
  | { readonly type: 'failed'; readonly message: string };

const [, , path = ''] = process.argv;
setPriority(0, 19);
const attacks = (await import(path)) as Record<string, Attack | undefined>;
process.on('message', (order: AttackOrder) => {
  perform(order).catch((error: unknown) => {
    tell({ type: 'failed', message: error instanceof Error ? String(error.stack) : String(error) });
  });
});
tell({ type: 'ready' });

async function perform({ attack, options, target, forMs, closedWithinMs }: AttackOrder): Promise<void> {
  const run = attacks[attack];
  if (run === undefined) throw new Error(`${path} has no attack ${attack}`);
  const attacker = new Attacker(target, forMs);
  const result = await run(attacker, options);
  tell({ type: 'acted' });
  tell({ type: 'done', connections: await attacker.closed(closedWithinMs), result });
}

function tell(news: AttackNews): void {
  process.send?.(news);
}
