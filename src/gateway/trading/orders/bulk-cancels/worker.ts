import type { Clock } from '../../../../kit/clock.ts';
import type { Logger } from '../../../../kit/log.ts';
import { Refusal, UnavailableError } from '../../../../kit/refusal.ts';
import { pause, type Worker } from '../../../../kit/worker.ts';
import { asApiError } from '../../../edge/errors.ts';
import type { Database } from '../../../store/database.ts';
import { type Lease, underLease } from '../../../store/lease.ts';
import { type Broker, nameAt } from '../../broker/broker.ts';
import { PartnerRests } from '../../submission/partner-rests.ts';
import type { StuckPartners } from '../../submission/stuck-partners.ts';
import { readUpToDate } from '../../submission/table.ts';
import type { Canceller } from '../cancel.ts';
import type { OrderKind } from '../kind.ts';
import type { StoredOrder } from '../table.ts';
import { type JobParts, NotBegun, orderOfJob, recordStep } from './job.ts';
import { Pace } from './pace.ts';
import { longestMs, nextStep, type Step, waitAfter } from './rules.ts';
import {
  type BulkCancel,
  type BulkCancelOrder,
  bulkCancelOrders,
  bulkCancels,
  endJob,
  findDue,
  findUndone,
  listBulkCancels,
  maxRunning,
  saveWait,
} from './table.ts';

const pollMs = 500;
/** How many orders of a job are begun before those of the next job. */
const dueAtOnce = 16;
/** How long a broker may be without a connection before it counts as away: longer than the pause between two tries. */
const connectMs = 1_500;
/** How long a job leaves an order alone whose partner's rows are damaged. */
const stuckMs = 60_000;

export interface BulkCancelParts extends JobParts {
  readonly broker: Pick<Broker, 'id' | 'orders'>;
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly holder: string;
  readonly canceller: Pick<Canceller, 'cancel' | 'reconcileNow'>;
  readonly kind: OrderKind;
  readonly stuck: StuckPartners;
  readonly clockSkewMs: number;
  /** How many cancels it sends in a second at most. */
  readonly perSecond: number;
}

/** An order to turn to, with its job. */
interface Due {
  readonly job: BulkCancel;
  readonly item: BulkCancelOrder;
}

/**
 * Cancels the orders of the jobs that run, one process at a time. Jobs take turns. Every decision is made under the partner's
 * lock on the rows as they are then, so a process that loses its lease cancels no order a second time.
 */
export class BulkCancelWorker {
  readonly worker: Worker;
  readonly #pace: Pace;
  readonly #rests = new PartnerRests();
  readonly #underWay = new Map<string, Promise<void>>();
  /** The wait of all jobs; null: they do not wait. */
  #waitsFor: string | null = null;

  constructor(private readonly parts: BulkCancelParts) {
    const { broker, database, holder, perSecond } = parts;
    this.#pace = new Pace(perSecond);
    this.worker = underLease(database, nameAt(broker.id, 'bulk-cancels'), holder, (lease) => this.#run(lease));
  }

  async #run({ signal }: Lease): Promise<void> {
    const failures: unknown[] = [];
    try {
      while (!signal.aborted && failures.length === 0) {
        // The queries below may return old rows of orders that are being changed now. These are skipped.
        const before = new Set(this.#underWay.keys());
        const jobs = await this.#readJobs();
        // One whose time is over sends no more, also if it could send nothing for long, and ends below.
        const now = this.parts.clock.realNow();
        const due = await this.#readDue(jobs.filter(({ giveUpAt }) => now < giveUpAt));
        const began = await this.#beginAll(due, before, signal, failures);
        for (const job of jobs) if (due.every((one) => one.job !== job)) await this.#endIfDone(job);
        if (jobs.some(({ waitsFor }) => waitsFor !== this.#waitsFor)) await this.#saveWait();
        if (began === 0) await pause(pollMs, signal);
      }
    } finally {
      await Promise.all(this.#underWay.values());
    }
    if (failures.length > 0) throw failures[0];
  }

  async #readJobs(): Promise<BulkCancel[]> {
    // Jobs that begin at the same moment can be more than may run. None of them is left alone.
    const rows = await this.parts.database.read(listBulkCancels(false, '', 2 * maxRunning));
    return rows.map(bulkCancels.all.read);
  }

  /** The orders that are due, one of each job in turn. */
  async #readDue(jobs: readonly BulkCancel[]): Promise<Due[]> {
    const { database, clock } = this.parts;
    const now = clock.realNow();
    const found = await database.readAll(jobs.map(({ id }) => findDue(id, now, this.#rests.all, dueAtOnce)));
    return found
      .flatMap((rows, at) =>
        rows.map((row, turn) => ({ job: jobs[at] as BulkCancel, item: bulkCancelOrders.all.read(row), turn })),
      )
      .sort((one, other) => one.turn - other.turn);
  }

  async #beginAll(due: readonly Due[], skipped: ReadonlySet<string>, signal: AbortSignal, failures: unknown[]) {
    let began = 0;
    for (const one of due) {
      const { partnerId, orderId } = one.item;
      if (skipped.has(orderId) || this.#underWay.has(orderId) || !this.#rests.mayTry(partnerId)) continue;
      while (this.#underWay.size >= this.#pace.atOnce) await Promise.race(this.#underWay.values());
      await pause(this.#pace.waitMs, signal);
      if (signal.aborted || failures.length > 0 || !(await this.#isBrokerThere(signal))) return began;
      this.#begin(one, signal, failures);
      began += 1;
    }
    return began;
  }

  /** Waits a moment for the connection. If the broker is away, the jobs say so, and rest. */
  async #isBrokerThere(signal: AbortSignal): Promise<boolean> {
    const { orders } = this.parts.broker;
    const end = performance.now() + connectMs;
    while (!orders.connected && performance.now() < end && !signal.aborted) await pause(50, signal);
    const isThere = orders.connected;
    if (!isThere) this.#pace.failed();
    const unclear = this.#pace.isFailing ? 'a clear answer of the broker to a cancel' : null;
    this.#waitsFor = isThere ? unclear : 'a connection to the broker';
    return isThere;
  }

  async #saveWait(): Promise<void> {
    await this.parts.database.write(saveWait(this.#waitsFor));
  }

  #begin({ job, item }: Due, signal: AbortSignal, failures: unknown[]): void {
    const { log } = this.parts;
    const { partnerId, orderId } = item;
    const ended = this.#rests.begin(partnerId);
    const advancing = this.#advance(job, item, signal)
      .catch((error: unknown) => this.#postpone(item, error))
      .then(
        () => ended(false),
        (error: unknown) => {
          ended(true);
          if (!(error instanceof Refusal)) failures.push(error);
          else log.warn({ err: error, partnerId, objectId: orderId }, "a partner's object cannot be changed now");
        },
      );
    this.#underWay.set(
      orderId,
      advancing.finally(() => this.#underWay.delete(orderId)),
    );
  }

  /** A partner's damaged rows must not hold up all others: the job turns to the order again later. */
  async #postpone(item: BulkCancelOrder, error: unknown): Promise<void> {
    const { stuck, clock } = this.parts;
    stuck.note(item.partnerId, [item.orderId], error);
    const until = clock.realNow() + stuckMs;
    await this.#record(item, { do: 'wait', until, detail: 'the order cannot be changed now' });
  }

  async #advance(job: BulkCancel, item: BulkCancelOrder, signal: AbortSignal): Promise<void> {
    const { database, kind } = this.parts;
    const { partnerId, orderId: id } = item;
    const [row] = await readUpToDate(database, kind.table.find({ partnerId, id }));
    const order = row && kind.table.all.read(row);
    const step = this.#stepOf(job, item, order);
    if (step.do === 'send' && order !== undefined) await this.#send(job, item, order, signal);
    else if (step.do === 'ask') await this.#ask(job, item);
    else await this.#record(item, step);
  }

  #stepOf({ giveUpAt }: BulkCancel, item: BulkCancelOrder, order: StoredOrder | undefined): Step {
    const { kind, clock, clockSkewMs } = this.parts;
    const isKnown = order !== undefined && kind.table.isKnown(order);
    return nextStep({
      ...{ item, order, isKnown, clockSkewMs },
      ...{ beganAt: giveUpAt - longestMs, realNow: clock.realNow() },
    });
  }

  /** Sends the cancel of an order. The job's rows are saved together with it, and with its outcome. */
  async #send(job: BulkCancel, item: BulkCancelOrder, order: StoredOrder, signal: AbortSignal): Promise<void> {
    const { canceller, log } = this.parts;
    const { partnerId, orderId } = item;
    await pause(this.#pace.take(), signal);
    if (signal.aborted) return;
    const origin = { partnerId, requestId: job.requestId, traceParent: null };
    // An operator began it: no permission of the partner is needed.
    const permission = { renew: async () => {}, isLatest: () => true };
    try {
      await canceller.cancel(order, { log, origin, permission, job: orderOfJob(this.parts, item) });
      this.#pace.answered();
    } catch (error) {
      if (error instanceof NotBegun) return;
      const code = asApiError(error)?.code;
      if (code === 'order_not_cancelable') this.#pace.answered();
      else if (code === 'cancel_unconfirmed') this.#pace.failed();
      else throw error;
      log.info({ err: error, partnerId, objectId: orderId, bulkCancel: job.id }, 'a job did not cancel an order');
    }
  }

  /** Asks the broker's record what became of a cancel without a clear answer. */
  async #ask(job: BulkCancel, item: BulkCancelOrder): Promise<void> {
    const { canceller, clock, log } = this.parts;
    const { partnerId, orderId } = item;
    const realNow = clock.realNow();
    const later: Step = {
      ...{ do: 'wait', until: realNow + waitAfter(realNow - (item.sentAt ?? realNow)) },
      detail: "the broker's record of the order gives no answer",
    };
    try {
      const { after } = await canceller.reconcileNow(partnerId, orderId);
      this.#pace.answered();
      const step = this.#stepOf(job, item, after);
      await this.#record(item, step.do === 'ask' ? later : step);
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      this.#pace.failed();
      log.warn({ err: error, partnerId, objectId: orderId }, 'a cancel with an unknown outcome could not be looked up');
      await this.#record(item, later);
    }
  }

  #record(item: BulkCancelOrder, step: Step): Promise<void> {
    return recordStep(this.parts, item, step);
  }

  /** Ends a job whose orders all have a result that stays, or whose time is over. */
  async #endIfDone({ id, giveUpAt }: BulkCancel): Promise<void> {
    const { database, clock, log } = this.parts;
    const isLate = clock.realNow() >= giveUpAt;
    if (!isLate && (await readUpToDate(database, findUndone(id))).length > 0) return;
    const reason = isLate ? 'It had run for 24 hours.' : null;
    const changed = await database.write(endJob(id, reason, clock.now()));
    if (changed > 0) log.info({ bulkCancel: id, isLate }, 'a job that cancels orders has ended');
  }
}
