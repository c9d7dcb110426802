import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { type ServiceError, status } from '@grpc/grpc-js';
import type { RecordedCall } from './exchange.ts';

/** A message of a stream of reports. */
export interface Batch<Report> {
  readonly reports: readonly Report[];
  readonly lastNumber: bigint;
  readonly brokerTime?: Timestamp | undefined;
}

export interface NumberedReport {
  readonly number: bigint;
}

/** Opens a stream of the reports above a number. */
export type Open<Report> = (afterNumber: bigint, signal: AbortSignal) => AsyncIterable<Batch<Report>>;

/** One message as it came. */
interface Arrival {
  /** On the monotonic clock. */
  readonly at: number;
  readonly count: number;
  readonly lastNumber: bigint;
  readonly brokerTimeMs: number | undefined;
}

const reopenMs = 50;
const longestReopenMs = 1_000;
/** The most reports that are kept: a check of a record with more is no check of this run any more. */
const maxKept = 200_000;

/** Follows a stream of reports over all of its breaks, as a gateway does, and keeps everything that came. */
export class Follower<Report extends NumberedReport> {
  /** In the order in which they came. */
  readonly reports: Report[] = [];
  /** The first report that came under each number. */
  readonly byNumber = new Map<bigint, Report>();
  /** Sentences about reports that came after a gap, out of order, or again. */
  readonly gaps: string[] = [];
  /** The messages of the stream that is open now, and of those before it. */
  readonly arrivals: Arrival[][] = [];
  /** The last report that came without a gap. */
  last: bigint;
  /** How the last stream ended. */
  ended: string | undefined;
  readonly #leaving = new AbortController();
  readonly #waiting = new Set<() => void>();
  readonly #running: Promise<void>;

  constructor(
    private readonly name: string,
    private readonly open: Open<Report>,
    readonly from: bigint,
  ) {
    this.last = from;
    this.#running = this.#run();
  }

  /** Waits until something holds, at most so long. Returns whether it does. It is tried after every message. */
  async until(holds: () => boolean, boundMs: number): Promise<boolean> {
    const deadline = performance.now() + boundMs;
    while (!holds()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0 || this.#leaving.signal.aborted) return false;
      await this.#message(leftMs);
    }
    return true;
  }

  /** Shows the request and the reports that came, for a breach. */
  shown(reports: readonly unknown[]): RecordedCall {
    const request = { afterNumber: String(this.from) };
    return { call: this.name, request, answer: { reports }, status: this.ended ?? 'OK', tookMs: 0 };
  }

  async close(): Promise<void> {
    this.#leaving.abort();
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    let waitMs = reopenMs;
    while (!this.#leaving.signal.aborted) {
      const arrivals: Arrival[] = [];
      this.arrivals.push(arrivals);
      try {
        for await (const batch of this.open(this.last, this.#leaving.signal)) {
          waitMs = reopenMs;
          this.#take(batch, arrivals);
          this.#wake();
        }
        this.ended = 'OK';
      } catch (error) {
        this.ended = status[(error as Partial<ServiceError>).code ?? status.UNKNOWN];
      }
      if (this.#leaving.signal.aborted) return;
      await this.#message(waitMs);
      waitMs = Math.min(waitMs * 2, longestReopenMs);
    }
  }

  #take({ reports, lastNumber, brokerTime }: Batch<Report>, arrivals: Arrival[]): void {
    const brokerTimeMs = brokerTime && timestampMs(brokerTime);
    for (const report of reports) {
      const { number } = report;
      if (number > this.last) {
        if (number !== this.last + 1n) this.gaps.push(`after report ${this.last} came report ${number}`);
        this.last = number;
      } else {
        this.gaps.push(`after report ${this.last} came report ${number} again`);
      }
      if (this.byNumber.has(number) || this.reports.length >= maxKept) continue;
      this.byNumber.set(number, report);
      this.reports.push(report);
    }
    arrivals.push({ at: performance.now(), count: reports.length, lastNumber, brokerTimeMs });
  }

  #message(boundMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, boundMs);
      this.#waiting.add(done);
    });
  }

  #wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}

/** Reads a stream from a number until enough came, it was quiet for a moment, or it ended. Never throws. */
export async function readStream<Report extends NumberedReport>(
  open: Open<Report>,
  afterNumber: bigint,
  { enough, boundMs }: { enough: (batches: readonly Batch<Report>[]) => boolean; boundMs: number },
): Promise<{ batches: Batch<Report>[]; reports: Report[]; ended: string | undefined }> {
  const batches: Batch<Report>[] = [];
  let ended: string | undefined;
  try {
    for await (const batch of open(afterNumber, AbortSignal.timeout(boundMs))) {
      batches.push(batch);
      if (enough(batches)) break;
    }
    ended = batches.length > 0 && enough(batches) ? undefined : 'OK';
  } catch (error) {
    ended = status[(error as Partial<ServiceError>).code ?? status.UNKNOWN] ?? 'UNKNOWN';
  }
  return { batches, reports: batches.flatMap(({ reports }) => reports), ended };
}
