import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../../src/gateway/store/statement.ts';
import type { Cluster } from '../cluster.ts';
import { ready } from '../eventually.ts';
import { type RestartableServer, startTestMariaDb, startTestNats } from '../servers.ts';
import { listStock } from './sells.ts';
import type { Whole } from './surroundings.ts';

/** The servers that a gateway needs. */
export const serverNames = ['database', 'nats', 'broker'] as const;
export type ServerName = (typeof serverNames)[number];

/** The death of a server. */
export interface ServerDeath {
  readonly server: ServerName;
  /** How long it is away at least, in milliseconds. */
  readonly forMs: number;
  /** Whether it has lost all that it stored. Only NATS can. */
  readonly isEmpty: boolean;
}

const longestMs = 60_000;

/** A database and a NATS of the sequence's own, and the broker: processes that die and come back. */
export class MortalServers {
  /** Settles when the server is back; absent: it runs. */
  readonly #starting = new Map<ServerName, Promise<void>>();

  private constructor(
    readonly database: RestartableServer,
    readonly nats: RestartableServer,
  ) {}

  static async start(): Promise<MortalServers> {
    const [database, nats] = await Promise.all([startTestMariaDb(), startTestNats()]);
    return new MortalServers(database, nats);
  }

  /** Settles when the server runs. */
  async running(name: ServerName): Promise<void> {
    await this.#starting.get(name);
  }

  /** Ends a server as a crash does. Returns when it is back, or undefined if it is away already. */
  kill(cluster: Cluster, { server, forMs, isEmpty }: ServerDeath): Promise<void> | undefined {
    if (this.#starting.has(server)) return undefined;
    const starting = this.#restart(cluster, server, forMs, isEmpty).finally(() => this.#starting.delete(server));
    this.#starting.set(server, starting);
    return starting;
  }

  async #restart(cluster: Cluster, name: ServerName, forMs: number, isEmpty: boolean): Promise<void> {
    if (name === 'broker') {
      await cluster.restartSimulator(forMs);
      // Its clients wait before they connect again.
      await ready(() => listStock(cluster.controls), longestMs);
      return;
    }
    const server = name === 'nats' ? this.nats : this.database;
    await server.kill();
    await delay(forMs);
    await server.restart({ empty: isEmpty && name === 'nats' });
    if (name === 'database') await ready(() => untilConnected(cluster), longestMs);
  }

  async stop(): Promise<void> {
    await Promise.all([this.database.stop(), this.nats.stop()]);
  }
}

/** The connections to the database that was killed are all gone, one after the other. */
async function untilConnected({ database }: Cluster): Promise<void> {
  await Promise.all(Array.from({ length: 8 }, () => database.read(statement('SELECT 1'))));
}

/** The controls of a broker that may be away: a call waits for it. */
export function patientControls(controls: Whole['controls'], before: () => Promise<void>): Whole['controls'] {
  return new Proxy(controls, {
    get(target, name) {
      const call: unknown = Reflect.get(target, name);
      if (typeof call !== 'function') return call;
      return async (...request: unknown[]) => {
        await before();
        return Reflect.apply(call, target, request);
      };
    },
  });
}
