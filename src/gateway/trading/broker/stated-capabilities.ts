import type { GetCapabilitiesResponse } from '../../../gen/marina/broker/v1/orders_pb.ts';
import type { BrokerOrders } from './broker.ts';
import type { ReadTime } from './records.ts';

/** How long a capability that the broker stated is relied on, in milliseconds. */
const usableMs = 5_000;

type Offers = (stated: GetCapabilitiesResponse) => boolean;

/**
 * Whether the broker offers something, without a question for each request. A capability is relied on for some seconds. One that
 * is missing is asked for each time, so that it is used as soon as the broker has it.
 */
export class StatedCapabilities {
  #stated: GetCapabilitiesResponse | undefined;
  #usableUntil = 0;

  constructor(private readonly orders: Pick<BrokerOrders, 'capabilities'>) {}

  /** Whether the broker stated lately that it offers this. */
  isKnown(offers: Offers): boolean {
    return this.#stated !== undefined && performance.now() < this.#usableUntil && offers(this.#stated);
  }

  /** Whether the broker offers this; asks it unless it said so lately. */
  async has(offers: Offers, time: Partial<ReadTime>): Promise<boolean> {
    if (this.isKnown(offers)) return true;
    const askedAt = performance.now();
    this.#stated = await this.orders.capabilities(time);
    this.#usableUntil = askedAt + usableMs;
    return offers(this.#stated);
  }
}
