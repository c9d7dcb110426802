import type { Socket } from 'node:net';
import { networkOf } from '../lib/network.ts';
import { Allowance } from './allowance.ts';

/** How many connections may be open at once at the partners' ports of this process. */
export interface ConnectionBounds {
  /** At all partners' ports together. */
  readonly total: number;
  /** The last part of `total`, which only addresses may use from which a good key came lately. */
  readonly reserve: number;
  /** From one address, or one IPv6 /64. */
  readonly perAddress: number;
}

export const defaultConnectionBounds: ConnectionBounds = { total: 10_000, reserve: 2_000, perAddress: 500 };

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
  readonly #bounds: ConnectionBounds;
  readonly #open = new Map<string, number>();
  readonly #known = new Map<string, number>();
  readonly #rates = new Map<string, Allowance>();
  readonly #strangers = new Map<string, Allowance>();
  #total = 0;

  constructor(
    bounds: Partial<ConnectionBounds> = {},
    /** Whether an address is that of a trusted proxy. */
    readonly isProxy: (address: string) => boolean = () => false,
    /** Called for each connection that is refused. */
    private readonly onRefused: () => void = () => undefined,
  ) {
    this.#bounds = { ...defaultConnectionBounds, ...bounds };
  }

  /** How many connections are open. */
  get total(): number {
    return this.#total;
  }

  /** Counts a new connection until it closes. Returns false when it must be closed at once. */
  admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // The client has left already.
    if (remoteAddress === undefined) return false;
    const network = networkOf(remoteAddress);
    const own = this.#open.get(network) ?? 0;
    if (!this.#hasRoom(network, remoteAddress, own) || !this.#isSlow(network, remoteAddress)) {
      this.onRefused();
      return false;
    }
    this.#total += 1;
    this.#open.set(network, own + 1);
    socket.once('close', () => {
      this.#total -= 1;
      const left = (this.#open.get(network) ?? 1) - 1;
      if (left === 0) this.#open.delete(network);
      else this.#open.set(network, left);
    });
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
    const make = () => new Allowance(mostOfStranger, ofStrangerPerSecond);
    return recent(this.#strangers, networkOf(address), make).take(cost);
  }

  /** Notes that a good key came from an address. */
  note(clientAddress: string): void {
    const network = networkOf(clientAddress);
    const now = performance.now();
    const noted = this.#known.get(network);
    if (noted !== undefined && now - noted < noteAgainMs) return;
    // The map keeps the order of the last note.
    this.#known.delete(network);
    this.#known.set(network, now);
    if (this.#known.size > mostKnown) {
      const [oldest = ''] = this.#known.keys();
      this.#known.delete(oldest);
    }
  }

  /** Whether a good key came from an address lately. */
  isKnown(clientAddress: string): boolean {
    return this.#isKnown(networkOf(clientAddress));
  }

  #hasRoom(network: string, address: string, own: number): boolean {
    const { total, reserve, perAddress } = this.#bounds;
    if (this.#total >= total) return false;
    if (this.isProxy(address)) return true;
    if (this.#isKnown(network)) return own < perAddress * knownFactor;
    return own < perAddress && this.#total < total - reserve;
  }

  #isKnown(network: string): boolean {
    const noted = this.#known.get(network);
    return noted !== undefined && performance.now() - noted < knownMs;
  }

  /** Whether an address opens connections no faster than it may. To accept one and to refuse it costs as much. */
  #isSlow(network: string, address: string): boolean {
    if (this.isProxy(address)) return true;
    const factor = this.#isKnown(network) ? knownFactor : 1;
    const rate = recent(this.#rates, network, () => new Allowance(mostNew * knownFactor, newPerSecond * knownFactor));
    return rate.take(knownFactor / factor);
  }
}

/** The allowance of an address, made when it is first asked for. The map keeps the order of the last use. */
function recent(allowances: Map<string, Allowance>, network: string, make: () => Allowance): Allowance {
  const allowance = allowances.get(network) ?? make();
  allowances.delete(network);
  allowances.set(network, allowance);
  if (allowances.size > mostKnown) {
    const [oldest = ''] = allowances.keys();
    allowances.delete(oldest);
  }
  return allowance;
}
