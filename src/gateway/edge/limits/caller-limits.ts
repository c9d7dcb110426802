import { Counts } from '../../../kit/counts.ts';
import type { Caller } from '../auth/caller.ts';
import { ApiError, type Limit } from '../errors.ts';
import type { SharedBuckets } from './shared-buckets.ts';
import type { SharedSlots } from './shared-slots.ts';

/** Streams open at once in this process. */
const maxStreams = { ofPartner: 10, ofAll: 500 };

/** Files of just under 1,000,000 bytes in this process's memory at once. */
const maxFiles = { ofPartner: 40, ofAll: 160 };

/**
 * Enforces callers' limits: rate and requests in progress across replicas, streams and files in this process. Each
 * method throws `rate_limited`.
 */
export class CallerLimits {
  readonly #streams = new Counts();
  readonly #files = new Counts();

  constructor(
    private readonly slots: Pick<SharedSlots, 'acquire' | 'used'>,
    private readonly buckets: Pick<SharedBuckets, 'take'>,
  ) {}

  get streams(): number {
    return this.#streams.total;
  }

  get files(): number {
    return this.#files.total;
  }

  /** Takes a token of the partner's rate. A request that is refused with 401 takes none. */
  takeRequest(caller: Caller): Promise<void> | undefined {
    const { requestsPerSecond, requestsBurst } = caller.limits;
    const taken = this.buckets.take(`rate.${caller.partnerId}`, { perSecond: requestsPerSecond, burst: requestsBurst });
    if (taken === true) return;
    if (taken === false) throw tooFast(caller);
    return taken.then((isTaken) => {
      if (!isTaken) throw tooFast(caller);
    });
  }

  /** Acquires a slot for a request in progress. Call the result to release it. */
  async acquireSlot(caller: Caller): Promise<() => void> {
    const { requestsUnderWay } = caller.limits;
    const slot = requestsUnderWay > 0 ? await this.slots.acquire(slotsOf(caller), requestsUnderWay) : undefined;
    if (slot !== undefined) return () => slot.release();
    throw limited(
      'requests_under_way',
      `The limit of ${requestsUnderWay} requests in progress is used up: ${requestsUnderWay} are in progress, 0 remain, and one more can start whenever one ends. Nothing was done; send the same request again in a second.`,
    );
  }

  /** Counts an open stream. Call the result when it ends. */
  takeStream({ partnerId }: Caller): () => void {
    const open = this.#streams.of(partnerId);
    if (open >= maxStreams.ofPartner) {
      throw limited(
        'open_streams',
        `The limit of ${maxStreams.ofPartner} open streams is used up: ${open} are open, 0 remain. Close one, then open this one again.`,
      );
    }
    if (this.streams >= maxStreams.ofAll) {
      throw limited('open_streams', 'Too many streams are open. Open this one again later.');
    }
    return this.#streams.add(partnerId);
  }

  /**
   * Counts a file in memory. Call the result when it is freed. A partner may hold at most as many files as are still
   * free for others, so that no partner fills all of it.
   */
  takeFile({ partnerId }: Caller): () => void {
    const held = this.#files.of(partnerId);
    const most = Math.max(0, Math.min(maxFiles.ofPartner, maxFiles.ofAll - this.files));
    if (held < most) return this.#files.add(partnerId);
    throw limited(
      'files',
      `The limit of ${most} files at once is used up: ${held} are being received. Nothing was done; send this one again in a second.`,
    );
  }

  /** The partner's requests in progress, on all replicas that can be asked. */
  underWay(caller: Caller): Promise<number> {
    return this.slots.used(slotsOf(caller));
  }
}

function slotsOf({ partnerId }: Caller): string {
  return `requests.${partnerId}`;
}

function tooFast({ limits: { requestsPerSecond, requestsBurst } }: Caller): ApiError {
  return limited(
    'requests_per_second',
    `The limit of ${requestsPerSecond} requests per second (bursts up to ${requestsBurst}) is used up: ${requestsBurst} of ${requestsBurst} are used, 0 remain, and ${requestsPerSecond} come back each second. Nothing was done; send the same request again in a second.`,
  );
}

function limited(limit: Limit, message: string): ApiError {
  return new ApiError('rate_limited', { limit, message });
}
