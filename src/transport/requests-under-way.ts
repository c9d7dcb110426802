import { ApiError } from '../lib/errors.ts';
import { networkOf } from '../lib/network.ts';
import { once } from '../lib/once.ts';

/** How many requests may be under way at once in this process. */
export interface RequestBounds {
  /** All partners together. */
  readonly total: number;
  /** One partner. */
  readonly perPartner: number;
  /** The last part of `total`, which only partners with fewer than `smallPartner` requests may use. */
  readonly reserve: number;
  readonly smallPartner: number;
  /** Requests whose key is being looked up: all together, and those of one client address. */
  readonly identifying: number;
  readonly identifyingPerAddress: number;
}

export const defaultRequestBounds: RequestBounds = {
  total: 2_000,
  perPartner: 500,
  reserve: 500,
  smallPartner: 50,
  identifying: 1_000,
  identifyingPerAddress: 200,
};

/**
 * Counts the requests under way: each from the moment its key is known until its answer has left, so one whose body
 * never arrives counts, and so does one whose answer nobody reads. A partner that holds many cannot keep another out,
 * because each has a bound of its own and the last places are kept for partners that hold few.
 *
 * A request without a good key takes no place: it is answered 401 at once, and the number of connections bounds it.
 */
export class RequestsUnderWay {
  readonly #bounds: RequestBounds;
  readonly #partners = new Map<string, number>();
  readonly #addresses = new Map<string, number>();
  #total = 0;
  #identifying = 0;

  constructor(bounds: RequestBounds = defaultRequestBounds) {
    this.#bounds = bounds;
  }

  /** How many requests of partners are under way. */
  get total(): number {
    return this.#total;
  }

  /** Counts a request while its key is looked up. Call what it returns when the key is known. Throws `service_unavailable`. */
  identify(clientAddress: string): () => void {
    const { identifying, identifyingPerAddress } = this.#bounds;
    const network = networkOf(clientAddress);
    const fromThere = this.#addresses.get(network) ?? 0;
    if (this.#identifying >= identifying || fromThere >= identifyingPerAddress) {
      throw new ApiError('service_unavailable', { limit: 'all_requests' });
    }
    this.#identifying += 1;
    this.#addresses.set(network, fromThere + 1);
    return once(() => {
      this.#identifying -= 1;
      decrease(this.#addresses, network);
    });
  }

  /**
   * Counts a request of a partner. Call what it returns when the answer has left. Throws `rate_limited` when the partner
   * has too many, and `service_unavailable` when all partners together have.
   */
  take(partnerId: string): () => void {
    const { total, perPartner, reserve, smallPartner } = this.#bounds;
    const own = this.#partners.get(partnerId) ?? 0;
    const isReserveLeft = this.#total >= total - reserve;
    if (own >= perPartner || (isReserveLeft && own >= smallPartner)) {
      throw new ApiError('rate_limited', {
        limit: 'partner_requests',
        message: `The limit of ${own >= perPartner ? perPartner : smallPartner} requests under way at once is used up: ${own} are under way, 0 remain, and one more can start whenever one ends. Nothing was done; send the same request again in a second.`,
      });
    }
    if (this.#total >= total) throw new ApiError('service_unavailable', { limit: 'all_requests' });
    this.#total += 1;
    this.#partners.set(partnerId, own + 1);
    return once(() => {
      this.#total -= 1;
      decrease(this.#partners, partnerId);
    });
  }
}

function decrease(counts: Map<string, number>, name: string): void {
  const left = (counts.get(name) ?? 1) - 1;
  if (left === 0) counts.delete(name);
  else counts.set(name, left);
}
