import type { Logger } from '../../lib/log.ts';
import type { Database } from '../database.ts';
import { Plans } from '../plans.ts';
import type { World } from '../world.ts';
import type { Writer } from '../writer.ts';
import type { Application } from './model.ts';
import { decideIfDue } from './operations.ts';

/** How often decisions that did not fit into memory are looked for. */
const lookAgainMs = 1_000;

/** The broker's staff: it decides applications when their times come. */
export class Decisions {
  readonly #plans: Plans;
  #timer: NodeJS.Timeout | undefined;
  #reloading: Promise<void> | undefined;
  #closed = false;

  constructor(
    database: Database,
    world: World,
    writer: Writer,
    private readonly log: Logger,
  ) {
    const columns = { table: 'applications', id: 'client_application_id', at: 'decide_at_ms' };
    this.#plans = new Plans(database, world, columns, (id) =>
      writer.runOn({ applications: [id] }, (unit) => {
        decideIfDue(unit, id);
        return unit.backOffice.application(id)?.decideAtMs ?? null;
      }),
    );
  }

  /** Looks now and then whether memory did not hold all that was planned. */
  start(): void {
    this.#timer = setInterval(() => {
      if (this.#plans.isIncomplete) this.reload();
    }, lookAgainMs);
  }

  /** Follows a committed change of an application. */
  follow(application: Application): void {
    this.#plans.follow(application.clientApplicationId, application.decideAtMs);
  }

  /** Finds all planned decisions in the table again: after a start, and when more were planned than memory holds. */
  reload(): void {
    if (this.#closed) return;
    this.#reloading ??= this.#plans
      .reload()
      .catch((error: unknown) => this.log.warn({ err: error }, 'planned decisions could not be read'))
      .finally(() => {
        this.#reloading = undefined;
      });
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#plans.close();
    await this.#reloading;
  }
}
