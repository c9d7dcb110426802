import type { Database } from '../db/database.ts';
import { type Lease, underLease } from '../db/lease.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { Tracer } from '../lib/trace.ts';
import type { Worker } from '../lib/worker.ts';
import { Dispatch } from './dispatch.ts';
import type { SigningKey } from './signature.ts';
import type { KeysOf } from './signing-keys.ts';

/** What became of one attempt. */
export interface Attempt {
  readonly outcome: 'delivered' | 'endpoint-failed' | 'event-failed';
  readonly status: number | null;
  readonly errorClass: string | null;
  readonly durationMs: number;
}

/**
 * Makes one attempt; never rejects, and ends within the time an attempt may take. Calls `onAhead` when what is sent
 * from now on arrives after it; not always.
 */
export type Send = (
  delivery: {
    readonly endpointId: string;
    readonly url: string;
    readonly id: string;
    readonly body: Buffer;
    readonly keys: readonly SigningKey[];
  },
  onAhead: () => void,
) => Promise<Attempt>;

/** What is counted of attempts, in seconds where it is a time. */
export interface DeliveryMeters {
  /** An attempt ended. */
  attempted(outcome: Attempt['outcome'], errorClass: string | null, seconds: number): void;
  /** An attempt began so long after the event was due. */
  waited(seconds: number): void;
  /** An event was delivered for the first time so long after its commit. */
  arrived(seconds: number): void;
}

export interface DispatcherOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly holder: string;
  /** This process's own name among the leases; at most 40 characters. */
  readonly leaseName: string;
  readonly send: Send;
  readonly keysOf: KeysOf;
  readonly meters: DeliveryMeters;
  /** How often work that an earlier version left unmarked is looked for; a minute, unless a test cannot wait for it. */
  readonly markEveryMs?: number;
  /** Makes a span of each attempt. */
  readonly tracer: Tracer;
}

/**
 * Sends what waits in the queues of endpoints. Each endpoint is served by one process at a time, whichever found work for
 * it first, so that its order, its places and its pauses are decided in one place; the processes share the endpoints. A
 * process shows that it lives by one lease of its own, which all its endpoints name: when it dies, they are free within
 * the lease's length.
 */
export class Dispatcher {
  readonly worker: Worker;
  #dispatch: Dispatch | undefined;

  constructor(private readonly options: DispatcherOptions) {
    const { database, leaseName, holder } = options;
    this.worker = { ...underLease(database, leaseName, holder, (lease) => this.#run(lease)), name: 'dispatcher' };
  }

  /** Says that endpoints have something to be sent. Answers with those this process does not serve so far. */
  wake(partnerIds: readonly string[]): readonly string[] {
    return this.#dispatch?.wake(partnerIds) ?? partnerIds;
  }

  /** Says that an endpoint was changed. */
  changed(): void {
    this.#dispatch?.lookAgain();
  }

  /** How long the oldest event in memory could have been sent, in business milliseconds; 0 when none waits. */
  get lagMs(): number {
    return this.#dispatch?.lagMs ?? 0;
  }

  async #run(lease: Lease): Promise<void> {
    const dispatch = new Dispatch(this.options, lease);
    this.#dispatch = dispatch;
    try {
      await dispatch.run();
    } finally {
      this.#dispatch = undefined;
    }
  }
}
