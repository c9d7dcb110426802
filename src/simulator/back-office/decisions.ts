import type { RowDataPacket } from 'mysql2/promise';
import type { Logger } from '../../lib/log.ts';
import type { Database } from '../database.ts';
import { Scheduler } from '../scheduler.ts';
import type { World } from '../world.ts';
import type { Writer } from '../writer.ts';
import type { Application } from './model.ts';
import { decideIfDue } from './office.ts';

/** How many due decisions are read at once, and how often those that did not fit are looked for. */
const maxPerRead = 1_000;
const lookAgainMs = 1_000;
/** When a decision that could not be written is tried again. */
const retryMs = 500;

/** The broker's staff: it decides applications when their times come. */
export class Decisions {
  readonly #scheduler: Scheduler;
  #timer: NodeJS.Timeout | undefined;
  #reloading: Promise<void> | undefined;
  #closed = false;

  constructor(
    private readonly database: Database,
    private readonly world: World,
    private readonly writer: Writer,
    private readonly log: Logger,
  ) {
    this.#scheduler = new Scheduler(
      () => world.clock.realNow(),
      (ids) => {
        for (const id of ids) this.#decide(id);
      },
    );
  }

  /** Looks now and then whether memory did not hold all that was planned. */
  start(): void {
    this.#timer = setInterval(() => {
      if (this.#scheduler.overflowed && this.#scheduler.size === 0) this.reload();
    }, lookAgainMs);
  }

  /** Follows a committed change of an application. */
  follow(application: Application): void {
    this.#scheduler.set(application.clientApplicationId, application.decideAtMs);
  }

  /** Finds all planned decisions in the table again: after a start, and when more were planned than memory holds. */
  reload(): void {
    if (this.#closed) return;
    this.#reloading ??= this.#reload()
      .catch((error: unknown) => this.log.warn({ err: error }, 'planned decisions could not be read'))
      .finally(() => {
        this.#reloading = undefined;
      });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#scheduler.close();
    await this.#reloading;
  }

  async #reload(): Promise<void> {
    let after = 0;
    this.#scheduler.overflowed = false;
    while (!this.#closed && !this.#scheduler.overflowed) {
      const rows = await this.database.read<PlannedRow>(
        'SELECT sequence, client_application_id, decide_at_ms FROM applications ' +
          'WHERE decide_at_ms IS NOT NULL AND sequence > ? ORDER BY sequence LIMIT ?',
        [after, maxPerRead],
      );
      for (const row of rows) this.#scheduler.set(row.client_application_id, row.decide_at_ms);
      const last = rows.at(-1);
      if (last === undefined || rows.length < maxPerRead) return;
      after = last.sequence;
    }
  }

  #decide(id: string): void {
    this.writer
      .runOn({ applications: [id] }, (unit) => {
        decideIfDue(unit, id);
        return unit.office.application(id)?.decideAtMs ?? null;
      })
      .then((decideAtMs) => this.#scheduler.set(id, decideAtMs))
      .catch(() => {
        // The decision stays in the table; it only comes later. One that was written all the same is done already.
        this.#scheduler.set(id, this.world.clock.realNow() + retryMs);
      });
  }
}

interface PlannedRow extends RowDataPacket {
  sequence: number;
  client_application_id: string;
  decide_at_ms: number;
}
