import { Counts } from '../lib/counts.ts';
import { ApiError } from '../lib/errors.ts';
import { networkOf } from '../lib/network.ts';

/** How many requests may be under way at once in this process. */
export const defaultRequestBounds = {
  /** All partners together. */
  total: 2_000,
  perPartner: 500,
  /** The last part of `total`, which only partners with fewer than `smallPartner` requests may use. */
  reserve: 500,
  smallPartner: 50,
  /** Requests whose key is being looked up: all together, and those of one client address. */
  identifying: 1_000,
  identifyingPerAddress: 200,
};

/**
 * Counts the requests under way: each from the moment its key is known until its answer has left, so one whose body
 * never arrives counts, and so does one whose answer nobody reads. A partner that holds many cannot keep another out,
 * because each has a bound of its own and the last part is kept for partners that hold few.
 *
 * A request without a good key is not counted: it is answered 401 at once, and the number of connections bounds it.
 */
export class RequestsUnderWay {
  readonly #byPartner = new Counts();
  readonly #identifying = new Counts();

  constructor(private readonly bounds: Readonly<typeof defaultRequestBounds> = defaultRequestBounds) {}

  /** How many requests of partners are under way. */
  get total(): number {
    return this.#byPartner.total;
  }

  /** Counts a request while its key is looked up. Call what it returns when the key is known. Throws `service_unavailable`. */
  identify(clientAddress: string): () => void {
    const { identifying, identifyingPerAddress } = this.bounds;
    const network = networkOf(clientAddress);
    const isFull = this.#identifying.total >= identifying || this.#identifying.of(network) >= identifyingPerAddress;
    if (isFull) throw new ApiError('service_unavailable', { limit: 'all_requests' });
    return this.#identifying.add(network);
  }

  /**
   * Counts a request of a partner. Call what it returns when the answer has left. Throws `rate_limited` when the partner
   * has too many, and `service_unavailable` when all partners together have.
   */
  take(partnerId: string): () => void {
    const { total, perPartner, reserve, smallPartner } = this.bounds;
    const own = this.#byPartner.of(partnerId);
    const bound = own < perPartner && this.total >= total - reserve ? smallPartner : perPartner;
    if (own >= bound) {
      throw new ApiError('rate_limited', {
        limit: 'partner_requests',
        message: `The limit of ${bound} requests under way at once is used up: ${own} are under way, 0 remain, and one more can start whenever one ends. Nothing was done; send the same request again in a second.`,
      });
    }
    if (this.total >= total) throw new ApiError('service_unavailable', { limit: 'all_requests' });
    return this.#byPartner.add(partnerId);
  }
}
