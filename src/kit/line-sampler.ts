import { networkOf } from './addresses.ts';
import type { Logger } from './log.ts';

/** Lines in a minute. */
const perAddress = 20;
const perProcess = 300;
/** Addresses with their own count. All others share one. */
const maxAddresses = 1_000;
const others = 'others';
const windowMs = 60_000;
/** How many addresses the summary names: those with the most lines. */
const maxNamed = 5;

interface Count {
  written: number;
  leftOut: number;
}

/**
 * Bounds the log lines that clients without a valid key can cause. Each minute, the first lines of an address (for IPv6,
 * of a /64) are written, up to a bound for all addresses. A line at the end of the minute summarizes the rest.
 */
export class LineSampler {
  #counts = new Map<string, Count>();
  #written = 0;

  constructor(
    private readonly log: Logger,
    /** The message of the lines, for the summary. */
    private readonly lines: string,
    /** How to show an address; undefined: not at all. */
    private readonly shown: (address: string) => string | undefined,
  ) {}

  /** Returns whether to write a line that a client at this address causes. */
  take(address: string): boolean {
    if (this.#counts.size === 0) setTimeout(() => this.#summarize(), windowMs).unref();
    const count = this.#countOf(networkOf(address));
    const isWritten = count.written < perAddress && this.#written < perProcess;
    if (isWritten) {
      count.written += 1;
      this.#written += 1;
    } else count.leftOut += 1;
    return isWritten;
  }

  #countOf(network: string): Count {
    const name = this.#counts.has(network) || this.#counts.size < maxAddresses ? network : others;
    let count = this.#counts.get(name);
    if (count === undefined) {
      count = { written: 0, leftOut: 0 };
      this.#counts.set(name, count);
    }
    return count;
  }

  #summarize(): void {
    const counted = [...this.#counts].filter(([, { leftOut }]) => leftOut > 0);
    this.#counts = new Map();
    this.#written = 0;
    if (counted.length === 0) return;
    const leftOut = counted.reduce((sum, [, count]) => sum + count.leftOut, 0);
    const most = counted.sort(([, one], [, other]) => other.leftOut - one.leftOut).slice(0, maxNamed);
    const maxFrom = most.map(([network, count]) => ({
      clientAddress: network === others ? others : this.shown(network),
      leftOut: count.leftOut,
    }));
    this.log.warn(
      { lines: this.lines, leftOut, addresses: counted.length, mostFrom: maxFrom },
      'log lines were left out',
    );
  }
}
