import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type KeptProcess, sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { withoutOurs } from '../../../src/sandbox/processes.ts';
import type { Connections } from './attacker.ts';
import type { AttackNews, AttackOrder } from './attacker-process.ts';

/** An attack under way. */
export interface RunningAttack {
  /** Settles when the hostile acts are over. */
  readonly acted: Promise<void>;
  /** Settles when its connections are closed, or the time for that is over. */
  readonly done: Promise<{ connections: Connections; result: unknown }>;
}

/** How long after its time an attack may still act, and its connections be watched. */
const graceMs = 120_000;

/** The process in which the attacks of one file run. */
export class AttackerLink {
  readonly #listeners = new Set<(news: AttackNews) => void>();

  private constructor(private readonly kept: KeptProcess) {
    kept.onMessage((message) => {
      for (const listener of this.#listeners) listener(message as AttackNews);
    });
    void kept.exited.then(() => {
      for (const listener of this.#listeners) listener({ type: 'failed', message: 'the attacker ended' });
    });
  }

  /** Starts it with the file whose attacks it runs. */
  static async start(attacks: URL, folder: string): Promise<AttackerLink> {
    const kept = await sharedKeeper().start({
      name: 'attacker',
      command: process.execPath,
      args: ['--import', 'tsx', join(import.meta.dirname, 'attacker-process.ts'), fileURLToPath(attacks)],
      env: withoutOurs(process.env),
      logPath: join(folder, 'attacker.log'),
      ipc: true,
    });
    const link = new AttackerLink(kept);
    await link.#news('ready', 30_000);
    return link;
  }

  run(order: AttackOrder): RunningAttack {
    const acted = this.#news('acted', order.forMs + graceMs).then(() => undefined);
    const done = this.#news('done', order.forMs + order.closedWithinMs + graceMs);
    // Both fail together; one of them is looked at first.
    acted.catch(() => undefined);
    done.catch(() => undefined);
    this.kept.send(order);
    return { acted, done };
  }

  async stop(): Promise<void> {
    await this.kept.stop();
  }

  #news<Type extends AttackNews['type']>(type: Type, withinMs: number): Promise<Extract<AttackNews, { type: Type }>> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(new Error(`the attacker is not ${type}`))), withinMs);
      const settle = (how: () => void) => {
        clearTimeout(timer);
        this.#listeners.delete(listener);
        how();
      };
      const listener = (news: AttackNews) => {
        if (news.type === type) settle(() => resolve(news as Extract<AttackNews, { type: Type }>));
        else if (news.type === 'failed') settle(() => reject(new Error(news.message)));
      };
      this.#listeners.add(listener);
    });
  }
}
