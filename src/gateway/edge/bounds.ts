import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { clientAddressBehind, isRegistered, networkOf } from '../../kit/addresses.ts';
import { Counts } from '../../kit/counts.ts';
import { remember } from '../../kit/remember.ts';
import { ApiError } from './errors.ts';

/** How many connections may be open at the partners' ports of this process. */
const defaultBounds = {
  total: 10_000,
  /** The last part of `total`, kept for addresses with a recent valid key. */
  reserve: 2_000,
  /** From one address, or one IPv6 /64. */
  perAddress: 500,
  /** Requests without a valid key of one client behind a trusted proxy: the burst, then the rate. */
  guesses: 2_500,
  guessesPerSecond: 1_000,
  /** The same of all such clients together. */
  allGuesses: 10_000,
  allGuessesPerSecond: 4_000,
};

/** New connections from one address: the burst, then the rate. */
const maxNew = 1_000;
const newPerSecond = 200;
/** Requests without a valid key from one address: the burst, then the rate. */
const maxOfStranger = 2_500;
const ofStrangerPerSecond = 1_000;
/** How many new connections an address loses when one is ended for abuse. */
const lostByAbuse = 25;
/** Factor for addresses with a valid key, because a whole partner may be behind one address. */
const knownFactor = 4;
/** How many addresses are remembered. The least recent one is dropped first. */
const maxKnown = 10_000;
const knownMs = 24 * 3_600_000;
/** An address is noted again only after this time, so that it costs a request nothing. */
const noteAgainMs = 60_000;

/**
 * Limits connections per address, and keeps room for partners. Only the total limits connections of a trusted proxy,
 * because they carry many clients. Requests on them count for the client that the proxy names.
 */
export class ConnectionLimits {
  /** The client's address, from the connection's peer and the request's X-Forwarded-For. */
  readonly clientOf: (peer: string, forwardedFor: string | undefined) => string;
  readonly #bounds: typeof defaultBounds;
  readonly #open = new Counts();
  /** When a valid key was last noted, by address. */
  readonly #known = new Map<string, number>();
  readonly #rates = new Map<string, Allowance>();
  readonly #strangers = new Map<string, Allowance>();
  readonly #guesses = new Map<string, Allowance>();
  readonly #allGuesses: Allowance;

  constructor(
    bounds: Partial<typeof defaultBounds> = {},
    private readonly proxies: readonly string[] = [],
    private readonly metrics?: { readonly connectionsRefused: { inc(): void } },
  ) {
    this.clientOf = clientAddressBehind(proxies);
    this.#bounds = { ...defaultBounds, ...bounds };
    this.#allGuesses = new Allowance(this.#bounds.allGuesses, this.#bounds.allGuessesPerSecond);
  }

  get total(): number {
    return this.#open.total;
  }

  isProxy(address: string): boolean {
    return this.proxies.length > 0 && isRegistered(address, this.proxies);
  }

  /** Passes only admitted connections on to a server, which must listen for them already. */
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

  /** Counts a new connection until it closes. Returns false if it must be closed at once. */
  admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) return false;
    const network = networkOf(remoteAddress);
    if (!this.#hasRoom(network, remoteAddress) || !this.#isWithinRate(network, remoteAddress)) {
      this.metrics?.connectionsRefused.inc();
      return false;
    }
    socket.once('close', this.#open.add(network));
    return true;
  }

  /** Notes that a connection of an address was ended for abuse: new ones are limited more. */
  blame(address: string): void {
    if (!this.isProxy(address)) this.#rates.get(networkOf(address))?.lose(lostByAbuse * knownFactor);
  }

  /**
   * Counts a request without a valid key. Returns false if the address made too many. Then the request is answered and
   * its connection ends, so that the rate of new connections limits them. `cost` is more than 1 if many can come at
   * once on one connection and delay others.
   */
  takeStranger(address: string, cost = 1): boolean {
    if (this.isProxy(address)) return true;
    const network = networkOf(address);
    const allowance = this.#strangers.get(network) ?? new Allowance(maxOfStranger, ofStrangerPerSecond);
    remember(this.#strangers, network, allowance, maxKnown);
    return allowance.take(cost);
  }

  /**
   * Whether the key of a request that came through a trusted proxy is looked at. It is not if its client, or all such clients, sent too
   * many without a valid one: the connection cannot be ended for that, because it carries other clients' requests. An address with a
   * recent valid key may send more, and what all others send does not count for it.
   */
  mayGuess(clientAddress: string): boolean {
    const network = networkOf(clientAddress);
    const isKnown = this.#isKnown(network);
    const isWithin = this.#guesses.get(network)?.has(isKnown ? 1 : knownFactor) ?? true;
    return isWithin && (isKnown || this.#allGuesses.has(1));
  }

  /** Counts a request that came through a trusted proxy without a valid key. `cost` as in `takeStranger`. */
  guessed(clientAddress: string, cost = 1): void {
    const { guesses, guessesPerSecond } = this.#bounds;
    const network = networkOf(clientAddress);
    const own = this.#guesses.get(network) ?? new Allowance(guesses * knownFactor, guessesPerSecond * knownFactor);
    remember(this.#guesses, network, own, maxKnown);
    own.lose(this.#isKnown(network) ? cost : cost * knownFactor);
    this.#allGuesses.lose(cost);
  }

  /** Notes that a valid key came from an address. */
  note(clientAddress: string): void {
    const network = networkOf(clientAddress);
    const now = performance.now();
    const noted = this.#known.get(network);
    if (noted === undefined || now - noted >= noteAgainMs) remember(this.#known, network, now, maxKnown);
  }

  /** Whether a valid key came from an address lately. */
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

  /** Whether an address stays within its rate of new connections. Refusing one costs as much as accepting it. */
  #isWithinRate(network: string, address: string): boolean {
    if (this.isProxy(address)) return true;
    const factor = this.#isKnown(network) ? knownFactor : 1;
    const rate = this.#rates.get(network) ?? new Allowance(maxNew * knownFactor, newPerSecond * knownFactor);
    remember(this.#rates, network, rate, maxKnown);
    return rate.take(knownFactor / factor);
  }
}

/** How many requests may be in progress in this process. */
export const defaultRequestBounds = {
  total: 2_000,
  perPartner: 500,
  /** The last part of `total`, only for partners with fewer than `smallPartner` requests. */
  reserve: 500,
  smallPartner: 50,
  /** Requests whose key is being read: all together, and per client address. */
  identifying: 1_000,
  identifyingPerAddress: 200,
};

/**
 * Counts requests in progress, from when the key is known until the answer has left. So a request whose body never
 * arrives counts, and one whose answer nobody reads. A large partner cannot keep others out, because each partner has
 * its own limit and the last part is kept for small ones. A request without a valid key is not counted, because it gets
 * 401 at once and the number of connections limits it.
 */
export class RequestsUnderWay {
  readonly #byPartner = new Counts();
  readonly #identifying = new Counts();

  constructor(private readonly bounds: Readonly<typeof defaultRequestBounds> = defaultRequestBounds) {}

  get total(): number {
    return this.#byPartner.total;
  }

  /** Counts a request while its key is read. Call the result once the key is known. Throws `service_unavailable`. */
  identify(clientAddress: string): () => void {
    const { identifying, identifyingPerAddress } = this.bounds;
    const network = networkOf(clientAddress);
    const isFull = this.#identifying.total >= identifying || this.#identifying.of(network) >= identifyingPerAddress;
    if (isFull) throw new ApiError('service_unavailable', { limit: 'all_requests' });
    return this.#identifying.add(network);
  }

  /**
   * Counts a partner's request. Call the result when the answer has left. Throws `rate_limited` if the partner has too
   * many, and `service_unavailable` if all partners together do.
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

/** A token bucket. Times are in milliseconds of a monotonic clock. */
export class Allowance {
  #left: number;

  constructor(
    private readonly most: number,
    private readonly perSecond: number,
    private filledAt = performance.now(),
  ) {
    this.#left = most;
  }

  /** Takes an amount, or nothing and returns false if there is too little. */
  take(amount: number, now = performance.now()): boolean {
    if (!this.has(amount, now)) return false;
    this.#left -= amount;
    return true;
  }

  /** Whether `take` would succeed. */
  has(amount: number, now = performance.now()): boolean {
    this.#fill(now);
    return this.#left >= amount;
  }

  /** Takes an amount, or the rest if there is less. */
  lose(amount: number, now = performance.now()): void {
    this.#fill(now);
    this.#left = Math.max(0, this.#left - amount);
  }

  /** Adds an amount, also beyond the maximum. It stays until it is used. */
  give(amount: number): void {
    this.#left += amount;
  }

  #fill(now: number): void {
    const filled = this.#left + ((now - this.filledAt) * this.perSecond) / 1_000;
    this.#left = Math.max(this.#left, Math.min(this.most, filled));
    this.filledAt = now;
  }
}

/** Removes an event's listeners and returns a function that calls them, to decide which events they get. */
export function takeOver(emitter: EventEmitter, event: string): (...args: unknown[]) => void {
  const listeners = emitter.listeners(event) as ((...args: unknown[]) => void)[];
  if (listeners.length === 0) throw new Error(`nobody listens for ${event}`);
  emitter.removeAllListeners(event);
  return (...args) => {
    for (const listener of listeners) listener.apply(emitter, args);
  };
}
