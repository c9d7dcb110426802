import type { BrokerClock, ClockAgreement } from '../broker/clock.ts';
import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import type { SystemClock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import { pause, type Worker } from '../lib/worker.ts';

export interface ClockWatchParts {
  readonly brokerClock: BrokerClock;
  readonly database: Database;
  readonly clock: Pick<SystemClock, 'offsetMs'>;
  readonly log: Logger;
  /** Any quick call to the broker: its answer states the time. */
  readonly askBroker: () => Promise<unknown>;
}

const watchEveryMs = 1_000;
/** After how long without an answer the broker is asked for its time. */
const silentForMs = 6_000;
/** How often evidence is written down while there is more of it. */
const writeEveryMs = 2_000;
/** How often each process reads what others wrote down. */
const readEveryMs = 5_000;
/** How long evidence in reports counts: nothing measures their clock, and there may be no other report for a while. */
const evidenceKeptMs = 600_000;
/** The time of a report may be cut off to the second. */
const reportCutOffMs = 1_000;
/** Where the last evidence of all replicas stands, by the database's clock. */
const evidenceName = 'broker-clock-apart';

/**
 * Watches whether the broker's clock and ours agree, for what is concluded from it. Every process measures the times that the
 * broker states. Times of reports reach only the process that records them, so evidence in them is written down for all.
 */
export class ClockWatch {
  readonly worker: Worker = { name: 'broker-clock', run: (signal) => this.#run(signal) };
  #writtenAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;
  /** The last evidence of any replica that was read, as it is stored. */
  #evidenceRead: unknown;
  /** By the monotonic clock. */
  #evidenceUntil = Number.NEGATIVE_INFINITY;
  #said: ClockAgreement = 'in_step';
  #saidSilent = false;

  constructor(private readonly parts: ClockWatchParts) {}

  /** Whether the clocks agree, by what this process knows now. */
  get known(): ClockAgreement {
    return performance.now() < this.#evidenceUntil ? 'apart' : this.parts.brokerClock.agreement;
  }

  /** Whether the clocks agree, by what any replica knows. Throws when the database does not answer. */
  async agreement(): Promise<ClockAgreement> {
    await this.#read();
    return this.known;
  }

  /** A change recorded a report of what happened so long after its object was stored, by the broker's clock. */
  reported(afterMs: number): void {
    const { brokerClock, clock, log } = this.parts;
    if (afterMs >= -(brokerClock.skewMs + reportCutOffMs)) return;
    // While operators move a sandbox's clock, the broker's follows a moment later.
    if (clock.offsetMs > 0) return;
    // A wrong clock that answers state too is measured, and counts for as long as it is wrong.
    if (brokerClock.agreement === 'apart') return;
    this.#evidenceUntil = performance.now() + evidenceKeptMs;
    if (performance.now() - this.#writtenAt < writeEveryMs) return;
    this.#writtenAt = performance.now();
    log.error({ afterMs }, 'the broker reports what happened before it was asked for: a clock is wrong');
    this.#write().catch((error: unknown) => {
      log.error({ err: error }, 'other replicas could not be told that a clock is wrong');
    });
  }

  async #read(): Promise<void> {
    this.#readAt = performance.now();
    const [row] = await this.parts.database.read(
      statement(
        `SELECT position, CAST(position AS SIGNED) + ? - UNIX_TIMESTAMP(NOW(3)) * 1000 AS left_ms FROM positions
          WHERE name = ?`,
        evidenceKeptMs,
        evidenceName,
      ),
    );
    // What was read before counts from then: the database's clock may have been set back since.
    if (row === undefined || row.position === this.#evidenceRead) return;
    this.#evidenceRead = row.position;
    const until = performance.now() + Math.min(Number(row.left_ms), evidenceKeptMs);
    this.#evidenceUntil = Math.max(this.#evidenceUntil, until);
  }

  async #write(): Promise<void> {
    await this.parts.database.write(
      statement(
        `INSERT INTO positions (name, position) VALUES (?, CAST(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) AS CHAR))
          ON DUPLICATE KEY UPDATE position = VALUES(position)`,
        evidenceName,
      ),
    );
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { brokerClock, askBroker } = this.parts;
    while (!signal.aborted) {
      if ((brokerClock.silentMs ?? Number.POSITIVE_INFINITY) > silentForMs) {
        // That it cannot be reached is said elsewhere.
        const answered = await askBroker().then(
          () => true,
          () => false,
        );
        this.#sayIfSilent(answered && brokerClock.silentMs === undefined);
        // A broker that states no time need not be asked every second.
        if (brokerClock.silentMs === undefined) await pause(silentForMs, signal);
      }
      if (performance.now() - this.#readAt > readEveryMs) await this.#read().catch(() => undefined);
      this.#say();
      await pause(watchEveryMs, signal);
    }
  }

  #say(): void {
    const { brokerClock, log } = this.parts;
    const { skewMs, estimateMs } = brokerClock;
    const agreement = this.known;
    if (agreement === 'unknown' || agreement === this.#said) return;
    this.#said = agreement;
    const facts = { aheadMs: estimateMs === undefined ? undefined : Math.round(estimateMs), skewMs };
    if (agreement === 'apart') {
      log.error(facts, "the broker's clock and ours are too far apart: what the broker does not have stays unclear");
    } else {
      log.info(facts, "the broker's clock and ours agree again");
    }
  }

  #sayIfSilent(isSilent: boolean): void {
    if (!isSilent || this.#saidSilent) return;
    this.#saidSilent = true;
    this.parts.log.warn(
      'the broker does not state its time: what it does not have stays unclear until a day is complete',
    );
  }
}
