import type { Logger } from './log.ts';
import { networkOf } from './network.ts';

/** How much is written in a minute. */
const perAddress = 20;
const perProcess = 300;
/** Addresses that are counted by themselves; further ones are counted together. */
const mostAddresses = 1_000;
const others = 'others';
const windowMs = 60_000;
/** How many addresses the summary names: those with the most lines. */
const mostNamed = 5;

interface Count {
  written: number;
  leftOut: number;
}

/**
 * Bounds the log lines that clients without a good key can cause. In each minute an address (an IPv6 /64) has its first
 * lines written, and all addresses together a bounded number. The rest is counted, and one line at the minute's end says
 * how many were left out and from where.
 */
export class LineSampler {
  #counts = new Map<string, Count>();
  #written = 0;

  constructor(
    private readonly log: Logger,
    /** Names the lines in the summary: their message. */
    private readonly lines: string,
    /** How an address is written; undefined: not at all. */
    private readonly shown: (address: string) => string | undefined,
  ) {}

  /** Whether a line that a client at this address causes is written. */
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
    const name = this.#counts.has(network) || this.#counts.size < mostAddresses ? network : others;
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
    const most = counted.sort(([, one], [, other]) => other.leftOut - one.leftOut).slice(0, mostNamed);
    const mostFrom = most.map(([network, count]) => ({
      clientAddress: network === others ? others : this.shown(network),
      leftOut: count.leftOut,
    }));
    this.log.warn({ lines: this.lines, leftOut, addresses: counted.length, mostFrom }, 'log lines were left out');
  }
}
