import { lagosDay } from '../../../kit/clock.ts';
import { Wakeup, type Worker } from '../../../kit/worker.ts';
import { type Lease, underLease } from '../../store/lease.ts';
import { nameAt } from '../../trading/broker/broker.ts';
import { dueDays } from './rules.ts';
import { startRun } from './run-store.ts';
import { Runner, type RunnerOptions } from './runner.ts';
import { daysWithRuns, firstPartner, nextRun } from './store.ts';
import { reconciliationRuns } from './table.ts';

interface WorkerOptions extends RunnerOptions {
  readonly holder: string;
  /** The minute of the Lagos day at which it is compared. */
  readonly minute: number;
}

/** How long a run that another process asked for can stay unknown when the notification is lost. */
const pollMs = 1_000;

/** Compares days with the broker's statements, each evening and when an operator asks. One process does it. */
export class ReconciliationWorker {
  readonly worker: Worker;
  readonly #wakeup = new Wakeup();
  readonly #runner: Runner;

  constructor(private readonly options: WorkerOptions) {
    const { broker, database, holder } = options;
    this.#runner = new Runner(options);
    this.worker = underLease(database, nameAt(broker.id, 'reconciliation'), holder, (lease) => this.#work(lease));
  }

  /** An operator asked for a run. */
  wake(): void {
    this.#wakeup.wake();
  }

  async #work(lease: Lease): Promise<void> {
    const { database, clock } = this.options;
    while (!lease.signal.aborted) {
      await this.#startDueDays();
      const [row] = await database.read(nextRun(clock.now()));
      if (row === undefined) await this.#wakeup.wait(pollMs, lease.signal);
      else await this.#runner.run(reconciliationRuns.all.read(row), lease);
    }
  }

  /** Starts a run of each day whose evening has come and that has none. */
  async #startDueDays(): Promise<void> {
    const { database, clock, minute } = this.options;
    const now = clock.now();
    const all = dueDays(now, minute, '');
    const [rows = []] = await database.readAll([daysWithRuns(all)]);
    if (rows.length === all.length) return;
    const [first] = await database.read(firstPartner());
    if (first === undefined) return;
    const known = new Set(rows.map(({ day }) => String(day)));
    for (const day of dueDays(now, minute, lagosDay((first.created_at as Date).getTime()))) {
      if (!known.has(day)) await startRun(database, { day }, { startedBy: null, now: clock.now(), onlyFirst: true });
    }
  }
}
