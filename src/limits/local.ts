import type { Caller, CallLimits } from '../auth/call.ts';
import { ApiError } from '../lib/errors.ts';
import { once } from '../lib/once.ts';

/** Partners whose counts are remembered at most; one that was idle longest is forgotten first, and loses nothing by it. */
const mostPartners = 10_000;

/** Streams that may be open at once: a partner's, and all partners' together. */
const mostStreams = { ofPartner: 10, ofAll: 500 };

/** Files of just under 1,000,000 bytes that may be in memory at once: a partner's, and all partners' together. */
const mostFiles = { ofPartner: 40, ofAll: 160 };

interface Counts {
  streams: number;
  files: number;
}

/** Counts streams and files per partner within this process. */
export class LocalLimits implements Pick<CallLimits, 'takeStream' | 'takeFile'> {
  readonly #counts = new Map<string, Counts>();
  #streams = 0;
  #files = 0;

  /** How many streams are open. */
  get streams(): number {
    return this.#streams;
  }

  /** How many files are in memory. */
  get files(): number {
    return this.#files;
  }

  takeStream(caller: Caller): () => void {
    const counts = this.#of(caller);
    if (counts.streams >= mostStreams.ofPartner) {
      throw new ApiError('rate_limited', {
        limit: 'open_streams',
        message: `The limit of ${mostStreams.ofPartner} open streams is used up: ${counts.streams} are open, 0 remain. Close one, then open this one again.`,
      });
    }
    if (this.#streams >= mostStreams.ofAll) {
      throw new ApiError('rate_limited', {
        limit: 'open_streams',
        message: 'Too many streams are open. Open this one again later.',
      });
    }
    counts.streams += 1;
    this.#streams += 1;
    return once(() => {
      counts.streams -= 1;
      this.#streams -= 1;
    });
  }

  /** A partner may have at most as many files as there is room left for others, so nobody fills all of it. */
  takeFile(caller: Caller): () => void {
    const counts = this.#of(caller);
    const most = Math.min(mostFiles.ofPartner, mostFiles.ofAll - this.#files);
    if (counts.files >= most) {
      throw new ApiError('rate_limited', {
        limit: 'files',
        message: `The limit of ${Math.max(most, 0)} files at once is used up: ${counts.files} are being received. Nothing was done; send this one again in a second.`,
      });
    }
    counts.files += 1;
    this.#files += 1;
    return once(() => {
      counts.files -= 1;
      this.#files -= 1;
    });
  }

  #of(caller: Caller): Counts {
    const found = this.#counts.get(caller.partnerId);
    const counts = found ?? {
      streams: 0,
      files: 0,
    };
    // The map keeps the order of last use.
    if (found !== undefined) this.#counts.delete(caller.partnerId);
    this.#counts.set(caller.partnerId, counts);
    if (this.#counts.size > mostPartners) this.#forgetIdle();
    return counts;
  }

  #forgetIdle(): void {
    for (const [partnerId, counts] of this.#counts) {
      if (counts.streams > 0 || counts.files > 0) continue;
      this.#counts.delete(partnerId);
      return;
    }
  }
}
