import type { SystemClock } from '../../../kit/clock.ts';
import type { Logger } from '../../../kit/log.ts';
import { pause, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { statement } from '../../store/statement.ts';
import { type Broker, nameAt } from '../broker/broker.ts';
import type { ClockAgreement } from '../broker/clock.ts';

/** The broker's clock, and a quick call whose answer states the time. */
export type WatchedBroker = Pick<Broker, 'id' | 'clock'> & {
  readonly orders: Pick<Broker['orders'], 'honoursNotAfter'>;
};

const watchEveryMs = 1_000;
/** The broker is asked for its time after this long without an answer. */
const silentForMs = 6_000;
/** How often new evidence is stored. */
const writeEveryMs = 2_000;
/** How often each process reads the stored evidence. */
const readEveryMs = 5_000;
/** How long evidence in reports counts. Nothing else measures the clock of reports, and the next one may come late. */
const evidenceKeptMs = 600_000;
/** A broker may cut off the time of a report to the second. */
const reportCutOffMs = 1_000;
/** The position with the time of the last evidence of all replicas, by the database's clock. */
const evidenceName = 'broker-clock-apart';

/**
 * Whether a report shows that the broker's clock is behind: it happened before its object was stored. An object that was
 * stored at a time which is yet to come shows that the clock of the replica that stored it was ahead, and nothing about the
 * broker's: otherwise each further report about its orders would keep all outcomes unknown after its clock is right again.
 */
export function isAgainstBroker(afterMs: number, storedAheadMs: number, skewMs: number): boolean {
  return afterMs < -(skewMs + reportCutOffMs) && storedAheadMs <= skewMs;
}

/**
 * Watches whether the broker's clock and ours agree. Every process measures the times that the
 * broker states. Only one process sees the times in reports, so their evidence is stored for all.
 */
export class ClockWatch {
  readonly worker: Worker = { name: 'broker-clock', run: (signal) => this.#run(signal) };
  #writtenAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;
  /** The last stored evidence that was read. */
  #evidenceRead: unknown;
  /** By the monotonic clock. */
  #evidenceUntil = Number.NEGATIVE_INFINITY;
  #logged: ClockAgreement = 'in_step';
  #isSilenceLogged = false;

  constructor(
    private readonly broker: WatchedBroker,
    private readonly database: Database,
    private readonly clock: Pick<SystemClock, 'offsetMs'>,
    private readonly log: Logger,
  ) {}

  /** Whether the clocks agree, as far as this process knows. */
  get known(): ClockAgreement {
    return performance.now() < this.#evidenceUntil ? 'apart' : this.broker.clock.agreement;
  }

  /** Whether the clocks agree, as far as any replica knows. Throws if the database does not answer. */
  async agreement(): Promise<ClockAgreement> {
    await this.#read();
    return this.known;
  }

  /**
   * Takes the time from the storing of an object to a report about it, by the broker's clock, and how far the time of the
   * storing is ahead of this process's clock.
   */
  reported(afterMs: number, storedAheadMs = 0): void {
    const { clock, log } = this;
    const { clock: brokerClock } = this.broker;
    if (!isAgainstBroker(afterMs, storedAheadMs, brokerClock.skewMs)) return;
    // When operators move a sandbox's clock, the broker's follows a moment later.
    if (clock.offsetMs > 0) return;
    // The times in answers show it too, and count for as long as the clock is wrong.
    if (brokerClock.agreement === 'apart') return;
    this.#evidenceUntil = performance.now() + evidenceKeptMs;
    if (performance.now() - this.#writtenAt < writeEveryMs) return;
    this.#writtenAt = performance.now();
    log.error({ afterMs }, 'the broker reports what happened before it was asked for: a clock is wrong');
    this.#write().catch((error: unknown) => {
      log.error({ err: error }, 'the other replicas could not be notified that a clock is wrong');
    });
  }

  async #read(): Promise<void> {
    this.#readAt = performance.now();
    const [row] = await this.database.read(
      statement(
        `SELECT position, CAST(position AS SIGNED) + ? - UNIX_TIMESTAMP(NOW(3)) * 1000 AS left_ms FROM positions
          WHERE name = ?`,
        evidenceKeptMs,
        nameAt(this.broker.id, evidenceName),
      ),
    );
    // Evidence read before counts from then, because the database's clock may have been set back since.
    if (row === undefined || row.position === this.#evidenceRead) return;
    this.#evidenceRead = row.position;
    const until = performance.now() + Math.min(Number(row.left_ms), evidenceKeptMs);
    this.#evidenceUntil = Math.max(this.#evidenceUntil, until);
  }

  async #write(): Promise<void> {
    await this.database.write(
      statement(
        `INSERT INTO positions (name, position) VALUES (?, CAST(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) AS CHAR))
          ON DUPLICATE KEY UPDATE position = VALUES(position)`,
        nameAt(this.broker.id, evidenceName),
      ),
    );
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock: brokerClock, orders } = this.broker;
    while (!signal.aborted) {
      if ((brokerClock.silentMs ?? Number.POSITIVE_INFINITY) > silentForMs) {
        // Another alert reports that it cannot be reached.
        const answered = await orders.honoursNotAfter().then(
          () => true,
          () => false,
        );
        this.#logIfSilent(answered && brokerClock.silentMs === undefined);
        // A broker that states no time need not be asked every second.
        if (brokerClock.silentMs === undefined) await pause(silentForMs, signal);
      }
      if (performance.now() - this.#readAt > readEveryMs) await this.#read().catch(() => undefined);
      this.#logAgreement();
      await pause(watchEveryMs, signal);
    }
  }

  #logAgreement(): void {
    const { broker, log } = this;
    const { skewMs, estimateMs } = broker.clock;
    const agreement = this.known;
    if (agreement === 'unknown' || agreement === this.#logged) return;
    this.#logged = agreement;
    const facts = { aheadMs: estimateMs === undefined ? undefined : Math.round(estimateMs), skewMs };
    if (agreement === 'apart') {
      log.error(facts, "the broker's clock and ours are too far apart: what the broker does not have stays unclear");
    } else {
      log.info(facts, "the broker's clock and ours agree again");
    }
  }

  #logIfSilent(isSilent: boolean): void {
    if (!isSilent || this.#isSilenceLogged) return;
    this.#isSilenceLogged = true;
    this.log.warn('the broker does not state its time: what it does not have stays unclear until a day is complete');
  }
}
