import type { Caller, CallLimits } from '../auth/call.ts';
import { ApiError } from '../lib/errors.ts';
import type { LocalLimits } from './local.ts';
import type { SharedBuckets } from './shared-buckets.ts';
import type { Slots } from './slots.ts';

/** Holds callers to their limits across replicas: their rate, and what is in progress. The rest each process counts. */
export class SharedLimits implements CallLimits {
  constructor(
    private readonly local: LocalLimits,
    private readonly slots: Slots,
    private readonly buckets: Pick<SharedBuckets, 'take'>,
  ) {}

  takeRequest(caller: Caller): Promise<void> | undefined {
    const { requestsPerSecond, requestsBurst } = caller.limits;
    const taken = this.buckets.take(`rate.${caller.partnerId}`, { perSecond: requestsPerSecond, burst: requestsBurst });
    if (taken === true) return;
    if (taken === false) throw tooFast(caller);
    return taken.then((isTaken) => {
      if (!isTaken) throw tooFast(caller);
    });
  }

  async takePlace(caller: Caller): Promise<() => void> {
    const { requestsUnderWay } = caller.limits;
    const slot = requestsUnderWay > 0 ? await this.slots.acquire(placesOf(caller), requestsUnderWay) : undefined;
    if (slot === undefined) {
      throw new ApiError('rate_limited', {
        limit: 'requests_under_way',
        message: `The limit of ${requestsUnderWay} requests in progress is used up: ${requestsUnderWay} are in progress, 0 remain, and one more can start whenever one ends. Nothing was done; send the same request again in a second.`,
      });
    }
    return () => slot.release();
  }

  takeStream(caller: Caller): () => void {
    return this.local.takeStream(caller);
  }

  takeFile(caller: Caller): () => void {
    return this.local.takeFile(caller);
  }

  /** How many of the partner's requests are in progress, on all replicas that can be asked. */
  underWay(caller: Caller): Promise<number> {
    return this.slots.taken(placesOf(caller));
  }
}

function placesOf({ partnerId }: Caller): string {
  return `requests.${partnerId}`;
}

function tooFast({ limits: { requestsPerSecond, requestsBurst } }: Caller): ApiError {
  return new ApiError('rate_limited', {
    limit: 'requests_per_second',
    message: `The limit of ${requestsPerSecond} requests per second (bursts up to ${requestsBurst}) is used up: ${requestsBurst} of ${requestsBurst} are used, 0 remain, and ${requestsPerSecond} come back each second. Nothing was done; send the same request again in a second.`,
  });
}
