import { status } from '@grpc/grpc-js';
import type { Call, WireFault } from '../gen/marina/simulator/v1/controls_pb.ts';
import type { Behaviour } from './magic.ts';
import { RpcError } from './rpc.ts';

/** How many directives and how many faults can wait to be used. */
const maxWaiting = 1_000;

/** What becomes of the next submissions that match. Empty: any. */
export interface OutcomeDirective {
  readonly account: string;
  readonly symbol: string;
  readonly behaviour: Behaviour;
}

/** What happens to a call on the wire. */
export interface Fault {
  readonly wire: WireFault;
  readonly delayMs: number;
}

/** Which calls a fault meets. An empty account: any. */
export interface FaultDirective extends Fault {
  readonly call: Call;
  readonly account: string;
}

/** The directives and faults given and not yet used. They live in memory: a restart is a fresh start for tests. */
export class Directives {
  readonly #outcomes = new Waiting<OutcomeDirective>();
  readonly #faults = new Waiting<FaultDirective>();

  addOutcome(directive: OutcomeDirective, times: number): void {
    this.#outcomes.add(directive, times);
  }

  addFault(fault: FaultDirective, times: number): void {
    this.#faults.add(fault, times);
  }

  clear(): void {
    this.#outcomes.clear();
    this.#faults.clear();
  }

  /** Uses the first directive that matches a submission. */
  takeOutcome(account: string, symbol: string): Behaviour | undefined {
    return this.#outcomes.take((each) => matches(each.account, account) && matches(each.symbol, symbol))?.behaviour;
  }

  /** Uses the first fault that matches a call. */
  takeFault(call: Call, account: string): Fault | undefined {
    return this.#faults.take((each) => each.call === call && matches(each.account, account));
  }

  /** Whether the account of such a call matters, so that it is looked up only then. */
  asksForAccount(call: Call): boolean {
    return this.#faults.some((each) => each.call === call && each.account !== '');
  }
}

/** Directives in the order they were given, each with how often it is still to be used. */
class Waiting<T> {
  #entries: { readonly directive: T; left: number }[] = [];

  add(directive: T, times: number): void {
    if (this.#entries.length >= maxWaiting) {
      throw new RpcError(status.RESOURCE_EXHAUSTED, `${maxWaiting} directives wait already; clear them first.`);
    }
    this.#entries.push({ directive, left: Math.max(1, times) });
  }

  take(matching: (directive: T) => boolean): T | undefined {
    const at = this.#entries.findIndex((entry) => matching(entry.directive));
    const entry = this.#entries[at];
    if (entry === undefined) return undefined;
    entry.left -= 1;
    if (entry.left === 0) this.#entries.splice(at, 1);
    return entry.directive;
  }

  some(matching: (directive: T) => boolean): boolean {
    return this.#entries.some((entry) => matching(entry.directive));
  }

  clear(): void {
    this.#entries = [];
  }
}

function matches(wanted: string, given: string): boolean {
  return wanted === '' || wanted === given;
}
