import type { Database } from '../db/database.ts';
import { type Lease, underLease } from '../db/lease.ts';
import { statement, toBigInt } from '../db/statement.ts';
import { crash } from '../lib/crash.ts';
import type { Logger } from '../lib/log.ts';
import { pause, Wakeup, type Worker } from '../lib/worker.ts';
import type { Carried, Carrier } from './carrier.ts';
import { lingerAfter, lingerMs } from './linger.ts';
import type { EventKey } from './sign.ts';

export interface RelayOptions {
  readonly database: Database;
  readonly carrier: Carrier;
  readonly log: Logger;
  readonly holder: string;
  /** Those who take events. While NATS is away they get them from the relay. */
  readonly takers: readonly { take(events: readonly EventKey[]): Promise<void> }[];
}

const mostAtOnce = 500;
const pollMs = 250;
/** How long a row that was published may stay. It is then handed over: NATS may have lost it, or its reader stand still. */
const takenWithinMs = 1_000;

/**
 * Carries events from the outbox to those who take them: by NATS, or from hand to hand while NATS is away, so that an
 * event is in the feed within seconds of its commit either way. Publishing twice does no harm: a taker takes each row
 * once.
 *
 * A row that was published is remembered, not marked: nearly always it is taken and gone within milliseconds, and a mark
 * would be a second write, on rows the takers lock. One that stays is handed over without NATS.
 */
export class Relay {
  readonly worker: Worker;
  readonly #wakeup = new Wakeup();
  /** Whether this process is the one that carries, as far as it knows. */
  #carries = false;
  /** Runs for a moment after the others were told; what comes meanwhile they are told at its end. */
  #quiet: NodeJS.Timeout | undefined;
  #isUntold = false;
  /** When each row that may still be in the outbox was published, on a clock that never goes back. */
  #published = new Map<string, number>();

  constructor(private readonly options: RelayOptions) {
    this.worker = underLease(options.database, 'relay', options.holder, async (lease) => {
      this.#carries = true;
      await this.#run(lease).finally(() => {
        this.#carries = false;
      });
    });
  }

  /** Says that there is something to carry: to the process that carries, if it is not this one, as often as it looks. */
  tell(): void {
    this.wake();
    if (this.#carries) return;
    if (this.#quiet !== undefined) {
      this.#isUntold = true;
      return;
    }
    this.options.carrier.say('relay');
    this.#isUntold = false;
    this.#quiet = setTimeout(() => {
      this.#quiet = undefined;
      if (this.#isUntold) this.tell();
    }, lingerMs);
  }

  /** Looks for what there is to carry, if this process carries. */
  wake(): void {
    this.#wakeup.wake();
  }

  async #run({ signal }: Lease): Promise<void> {
    const { database } = this.options;
    this.#published.clear();
    while (!signal.aborted) {
      const rows = await database.read(findDue);
      const due = rows.map((row) => ({
        partnerId: String(row.partner_id),
        version: toBigInt(row.version),
        id: String(row.id),
        type: String(row.type),
      }));
      const fresh = due.filter(({ id }) => !this.#published.has(id));
      // Rows that wait to be taken and fill the whole batch would keep others from being seen.
      await this.#handOverStuck(due, fresh.length === 0 && due.length === mostAtOnce);
      if (fresh.length > 0) await this.#carry(fresh);
      if (rows.length < mostAtOnce) await this.#wakeup.wait(pollMs, signal);
      await pause(lingerAfter(fresh.length), signal);
    }
  }

  async #carry(events: readonly Carried[]): Promise<void> {
    crash('relay.before-publish');
    const carried = await this.#publish(events);
    crash('relay.published');
    const publishedAt = performance.now();
    for (const { id } of carried) this.#published.set(id, publishedAt);
    const left = events.filter(({ id }) => !this.#published.has(id));
    if (left.length > 0) await this.#handOver(left);
  }

  /** Hands over rows that were published and are still there after a while, or all. Forgets those that were taken. */
  async #handOverStuck(due: readonly Carried[], all: boolean): Promise<void> {
    const before = performance.now() - (all ? 0 : takenWithinMs);
    const stuck = due.filter(({ id }) => (this.#published.get(id) ?? Number.POSITIVE_INFINITY) <= before);
    const stillThere = new Set(due.map(({ id }) => id));
    for (const id of this.#published.keys()) if (!stillThere.has(id)) this.#published.delete(id);
    if (stuck.length > 0) await this.#handOver(stuck);
  }

  async #handOver(events: readonly Carried[]): Promise<void> {
    await Promise.all(this.options.takers.map((taker) => taker.take(events)));
    crash('relay.handed-over');
  }

  async #publish(events: readonly Carried[]): Promise<readonly Carried[]> {
    try {
      return await this.options.carrier.publish(events);
    } catch (error) {
      this.options.log.debug({ err: error, count: events.length }, 'events are handed over without NATS');
      return [];
    }
  }
}

/**
 * Every row is due once it is committed. Its time is by the clock of the replica that wrote it, which may be ahead: who
 * waited for that time would hold back all later events of the partner.
 */
const findDue = statement(
  `SELECT partner_id, version, id, type FROM outbox ORDER BY publish_at, partner_id, version LIMIT ${mostAtOnce}`,
);
