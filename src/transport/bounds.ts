import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { clientAddressBehind, isRegistered } from '../auth/addresses.ts';
import { Counts } from '../lib/counts.ts';
import { ApiError } from '../lib/errors.ts';
import { networkOf } from '../lib/network.ts';

/** How many connections may be open at once at the partners' ports of this process. */
const defaultBounds = {
  /** At all partners' ports together. */
  total: 10_000,
  /** The last part of `total`, which only addresses may use from which a good key came lately. */
  reserve: 2_000,
  /** From one address, or one IPv6 /64. */
  perAddress: 500,
};

/** How fast one address may open connections: so many at once, and so many more each second. */
const mostNew = 1_000;
const newPerSecond = 200;
/** Requests without a good key that an address may make: at once, and how many more each second. */
const mostOfStranger = 2_500;
const ofStrangerPerSecond = 1_000;
/** How many new connections an address loses for one that was ended because of what its client did. */
const lostByAbuse = 25;
/** An address from which good keys come may open this many times as many: a partner may be behind one address. */
const knownFactor = 4;
/** Addresses that are remembered; the one seen longest ago is forgotten first. */
const mostKnown = 10_000;
const knownMs = 24 * 3_600_000;
/** An address is noted again only after this time, so that it costs a request nothing. */
const noteAgainMs = 60_000;

/**
 * Bounds connections per address, and keeps room for partners. A connection of a trusted proxy carries many clients, so
 * only the total bounds those; the requests on them are counted by the client that the proxy names.
 */
export class ConnectionLimits {
  /** Whose address a request counts for, from the connection's other end and the X-Forwarded-For it brought. */
  readonly clientOf: (peer: string, forwardedFor: string | undefined) => string;
  readonly #bounds: typeof defaultBounds;
  readonly #open = new Counts();
  /** When a good key was last noted, by address. */
  readonly #known = new Map<string, number>();
  readonly #rates = new Map<string, Allowance>();
  readonly #strangers = new Map<string, Allowance>();

  constructor(
    bounds: Partial<typeof defaultBounds> = {},
    /** The addresses and ranges of trusted proxies. */
    private readonly proxies: readonly string[] = [],
    private readonly metrics?: { readonly connectionsRefused: { inc(): void } },
  ) {
    this.clientOf = clientAddressBehind(proxies);
    this.#bounds = { ...defaultBounds, ...bounds };
  }

  /** How many connections are open. */
  get total(): number {
    return this.#open.total;
  }

  /** Whether an address is that of a trusted proxy. */
  isProxy(address: string): boolean {
    return this.proxies.length > 0 && isRegistered(address, this.proxies);
  }

  /** Lets a server see only the connections that are admitted. It must listen for them already. */
  guard(server: EventEmitter, onAdmitted?: (socket: Socket) => void, onRefused?: () => void): void {
    const serve = takeOver(server, 'connection');
    server.on('connection', (socket: Socket) => {
      if (this.admit(socket)) {
        serve(socket);
        onAdmitted?.(socket);
      } else {
        socket.destroy();
        onRefused?.();
      }
    });
  }

  /** Counts a new connection until it closes. Returns false when it must be closed at once. */
  admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // The client has left already.
    if (remoteAddress === undefined) return false;
    const network = networkOf(remoteAddress);
    if (!this.#hasRoom(network, remoteAddress) || !this.#isSlow(network, remoteAddress)) {
      this.metrics?.connectionsRefused.inc();
      return false;
    }
    socket.once('close', this.#open.add(network));
    return true;
  }

  /** Notes that a connection from an address was ended because of what its client did: new ones come slower. */
  blame(address: string): void {
    if (!this.isProxy(address)) this.#rates.get(networkOf(address))?.lose(lostByAbuse * knownFactor);
  }

  /**
   * Counts a request without a good key. Returns false when an address made more than it may on the connections it has:
   * the request is answered all the same, and the connection ends, so that the rate of new ones bounds them. A request
   * counts for `cost`, because many that come at once on one connection keep others waiting for longer.
   */
  takeStranger(address: string, cost = 1): boolean {
    if (this.isProxy(address)) return true;
    const network = networkOf(address);
    const allowance = this.#strangers.get(network) ?? new Allowance(mostOfStranger, ofStrangerPerSecond);
    remember(this.#strangers, network, allowance);
    return allowance.take(cost);
  }

  /** Notes that a good key came from an address. */
  note(clientAddress: string): void {
    const network = networkOf(clientAddress);
    const now = performance.now();
    const noted = this.#known.get(network);
    if (noted === undefined || now - noted >= noteAgainMs) remember(this.#known, network, now);
  }

  /** Whether a good key came from an address lately. */
  isKnown(clientAddress: string): boolean {
    return this.#isKnown(networkOf(clientAddress));
  }

  #hasRoom(network: string, address: string): boolean {
    const { total, reserve, perAddress } = this.#bounds;
    const own = this.#open.of(network);
    if (this.total >= total) return false;
    if (this.isProxy(address)) return true;
    if (this.#isKnown(network)) return own < perAddress * knownFactor;
    return own < perAddress && this.total < total - reserve;
  }

  #isKnown(network: string): boolean {
    const noted = this.#known.get(network);
    return noted !== undefined && performance.now() - noted < knownMs;
  }

  /** Whether an address opens connections no faster than it may. To accept one and to refuse it costs as much. */
  #isSlow(network: string, address: string): boolean {
    if (this.isProxy(address)) return true;
    const factor = this.#isKnown(network) ? knownFactor : 1;
    const rate = this.#rates.get(network) ?? new Allowance(mostNew * knownFactor, newPerSecond * knownFactor);
    remember(this.#rates, network, rate);
    return rate.take(knownFactor / factor);
  }
}

/** Sets what is known of an address, and forgets the address seen longest ago if they are too many. */
function remember<T>(byNetwork: Map<string, T>, network: string, value: T): void {
  byNetwork.delete(network);
  byNetwork.set(network, value);
  if (byNetwork.size <= mostKnown) return;
  const [oldest = ''] = byNetwork.keys();
  byNetwork.delete(oldest);
}

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

/** How much of something is allowed: some at once, and some more each second. Times are in milliseconds, never going back. */
export class Allowance {
  #left: number;

  constructor(
    private readonly most: number,
    private readonly perSecond: number,
    private filledAt = performance.now(),
  ) {
    this.#left = most;
  }

  /** Takes some. Returns false when there is not so much; then nothing is taken. */
  take(amount: number, now = performance.now()): boolean {
    if (!this.has(amount, now)) return false;
    this.#left -= amount;
    return true;
  }

  /** Whether there is so much. Nothing is taken. */
  has(amount: number, now = performance.now()): boolean {
    this.#fill(now);
    return this.#left >= amount;
  }

  /** Takes some, or all that is left. */
  lose(amount: number, now = performance.now()): void {
    this.#fill(now);
    this.#left = Math.max(0, this.#left - amount);
  }

  /** Allows some more, also more than the most: it stays until it is used. */
  give(amount: number): void {
    this.#left += amount;
  }

  #fill(now: number): void {
    const filled = this.#left + ((now - this.filledAt) * this.perSecond) / 1_000;
    this.#left = Math.max(this.#left, Math.min(this.most, filled));
    this.filledAt = now;
  }
}

/** Takes the listeners of an event away, and returns what calls them: to decide first which events they see. */
export function takeOver(emitter: EventEmitter, event: string): (...args: unknown[]) => void {
  const listeners = emitter.listeners(event) as ((...args: unknown[]) => void)[];
  if (listeners.length === 0) throw new Error(`nobody listens for ${event}`);
  emitter.removeAllListeners(event);
  return (...args) => {
    for (const listener of listeners) listener.apply(emitter, args);
  };
}
