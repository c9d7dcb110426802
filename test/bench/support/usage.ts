import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { cpuMs } from './processes.ts';

/** Processes by name, whose processor time is measured. */
export type Processes = Readonly<Record<string, number>>;

/** The use of some time: milliseconds of processor time of each process, and the database's counters. */
export interface Usage {
  readonly cpuMs: Readonly<Record<string, number>>;
  readonly statements: number;
  readonly rowsRead: number;
}

/** Watches what a group of processes and a database server use. Nobody else uses the server meanwhile. */
export class UsageWatch {
  /** The counts that a query of the counters itself adds. */
  #own: Counters = { statements: 0, rowsRead: 0 };

  private constructor(private readonly connection: Connection) {}

  static async connect(databaseUrl: string): Promise<UsageWatch> {
    const watch = new UsageWatch(await createConnection({ uri: databaseUrl }));
    await watch.#counters();
    const first = await watch.#counters();
    const second = await watch.#counters();
    watch.#own = { statements: second.statements - first.statements, rowsRead: second.rowsRead - first.rowsRead };
    return watch;
  }

  /** Measures the use of some work, with everything it starts and does not wait for. */
  async during<T>(processes: Processes, work: () => Promise<T>): Promise<{ result: T; usage: Usage }> {
    const [counted, used] = [await this.#counters(), cpuOf(processes)];
    const result = await work();
    await untilTheyRest(processes);
    const [countedAfter, usedAfter] = [await this.#counters(), cpuOf(processes)];
    return {
      result,
      usage: {
        cpuMs: Object.fromEntries(usedAfter.map(([name, value], index) => [name, value - (used[index]?.[1] ?? 0)])),
        statements: countedAfter.statements - counted.statements - this.#own.statements,
        rowsRead: countedAfter.rowsRead - counted.rowsRead - this.#own.rowsRead,
      },
    };
  }

  close(): Promise<void> {
    return this.connection.end();
  }

  async #counters(): Promise<Counters> {
    const [rows] = await this.connection.query<RowDataPacket[]>(
      "SHOW GLOBAL STATUS WHERE Variable_name = 'Questions' OR Variable_name LIKE 'Handler_read%' OR Variable_name LIKE 'Handler_icp%'",
    );
    let [statements, rowsRead] = [0, 0];
    for (const { Variable_name: name, Value: value } of rows) {
      if (name === 'Questions') statements = Number(value);
      // Entries of an index that were looked at and passed over are read too.
      else if (name === 'Handler_icp_attempts') rowsRead += Number(value);
      else if (name === 'Handler_icp_match') rowsRead -= Number(value);
      // Of `retry` and `deleted` no row comes.
      else if (!/retry|deleted/.test(name)) rowsRead += Number(value);
    }
    return { statements, rowsRead };
  }
}

type Counters = Pick<Usage, 'statements' | 'rowsRead'>;

function cpuOf(processes: Processes): [string, number][] {
  return Object.entries(processes).map(([name, pid]) => [name, cpuMs(pid)]);
}

/** A fifth of a processor for all of them is what they use without work. */
const restingMs = 20;
const pollIntervalMs = 100;
const longestWaitMs = 2_000;

async function untilTheyRest(processes: Processes): Promise<void> {
  const total = () => cpuOf(processes).reduce((sum, [, value]) => sum + value, 0);
  const endAt = performance.now() + longestWaitMs;
  for (let before = total(); performance.now() < endAt; ) {
    await sleep(pollIntervalMs);
    const now = total();
    if (now - before <= restingMs) return;
    before = now;
  }
}
