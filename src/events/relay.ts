import type { Database } from '../db/database.ts';
import { type Lease, underLease } from '../db/lease.ts';
import { type Statement, statement, toBigInt } from '../db/statement.ts';
import type { Clock } from '../lib/clock.ts';
import { crash } from '../lib/crash.ts';
import type { Logger } from '../lib/log.ts';
import { Wakeup, type Worker } from '../lib/worker.ts';
import type { Carried, Carrier } from './carrier.ts';
import type { EventKey } from './feed.ts';

export interface RelayOptions {
  readonly database: Database;
  readonly carrier: Carrier;
  readonly clock: Clock;
  readonly log: Logger;
  readonly holder: string;
  /** Those who take events. While NATS is away they get them from the relay. */
  readonly takers: readonly { take(events: readonly EventKey[]): Promise<void> }[];
}

const mostAtOnce = 500;
const pollMs = 250;
/** When a row that was published and not yet taken is published again. */
const republishAfterMs = 30_000;

/**
 * Carries events from the outbox to those who take them: by NATS, or from hand to hand while NATS is away, so that an
 * event is in the feed within seconds of its commit either way. Publishing twice does no harm: a taker signs each row
 * once.
 */
export class Relay {
  readonly wakeup = new Wakeup();
  readonly worker: Worker;

  constructor(private readonly options: RelayOptions) {
    this.worker = underLease(options.database, 'relay', options.holder, (lease) => this.#run(lease));
  }

  async #run({ signal }: Lease): Promise<void> {
    const { database, clock } = this.options;
    while (!signal.aborted) {
      const rows = await database.read(findDue(clock.realNow()));
      if (rows.length > 0) {
        await this.#carry(
          rows.map((row) => ({
            partnerId: String(row.partner_id),
            version: toBigInt(row.version),
            id: String(row.id),
            type: String(row.type),
          })),
        );
      }
      if (rows.length < mostAtOnce) await this.wakeup.wait(pollMs, signal);
    }
  }

  async #carry(events: readonly Carried[]): Promise<void> {
    const { database, clock } = this.options;
    crash('relay.before-publish');
    const carried = await this.#publish(events);
    crash('relay.published');
    if (carried.length > 0) await database.write(publishAgainAt(carried, clock.realNow() + republishAfterMs));
    crash('relay.marked');
    const left = events.filter((event) => !carried.includes(event));
    if (left.length > 0) await Promise.all(this.options.takers.map((taker) => taker.take(left)));
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

function findDue(realNow: number): Statement {
  return statement(
    `SELECT partner_id, version, id, type FROM outbox WHERE publish_at <= ?
      ORDER BY publish_at, partner_id, version LIMIT ${mostAtOnce}`,
    new Date(realNow),
  );
}

function publishAgainAt(events: readonly Carried[], realTime: number): Statement {
  return statement(
    `UPDATE outbox SET publish_at = ? WHERE (partner_id, version) IN (${events.map(() => '(?, ?)').join(', ')})`,
    new Date(realTime),
    ...events.flatMap(({ partnerId, version }) => [partnerId, version]),
  );
}
