import ipaddr from 'ipaddr.js';
import { ApiError } from '../lib/errors.ts';

/** Keys nobody knows that one address may ask for at once, and how many more each second. */
const burst = 100;
const perSecond = 10;
/** Addresses remembered at most; the one that asked longest ago is forgotten first. */
const mostAddresses = 10_000;

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * Slows down those who try keys: each key that is not remembered costs a read from the database. Only keys that turn out to
 * be nobody's count. An IPv6 address counts with all others of its /64, which one customer has whole.
 */
export class UnknownKeys {
  readonly #buckets = new Map<string, Bucket>();

  constructor(private readonly monotonicNow: () => number = () => performance.now()) {}

  /** Counts a key that is not remembered; returns what to call when it is somebody's. Throws `rate_limited`. */
  take(clientAddress: string): () => void {
    const name = networkOf(clientAddress);
    const bucket = this.#bucketOf(name);
    if (bucket.tokens < 1) {
      throw new ApiError('rate_limited', {
        limit: 'unknown_keys',
        message:
          `The limit of ${perSecond} unknown keys per second (bursts up to ${burst}) from one address is used up: ` +
          `0 remain, and ${perSecond} come back each second. Nothing was done; send the same request again in a second.`,
      });
    }
    bucket.tokens -= 1;
    return () => {
      bucket.tokens = Math.min(burst, bucket.tokens + 1);
    };
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  #bucketOf(name: string): Bucket {
    const nowMs = this.monotonicNow();
    const bucket = this.#buckets.get(name) ?? { tokens: burst, filledAtMs: nowMs };
    bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.filledAtMs) * perSecond) / 1_000);
    bucket.filledAtMs = nowMs;
    // The map keeps the order of last use.
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
    if (this.#buckets.size > mostAddresses) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return bucket;
  }
}

/** What an address counts as: itself, or its /64. Those nobody can tell count together. */
function networkOf(clientAddress: string): string {
  if (!ipaddr.isValid(clientAddress)) return '';
  const address = ipaddr.process(clientAddress); // An IPv4 address mapped into IPv6 is the IPv4 address.
  if (address instanceof ipaddr.IPv4) return address.toString();
  return address.parts.slice(0, 4).join(':');
}
