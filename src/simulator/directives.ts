import { status } from '@grpc/grpc-js';
import { AllocationOutcome } from '../gen/marina/broker/v1/allocations_pb.ts';
import { type DocumentOutcome, DocumentType } from '../gen/marina/broker/v1/applications_pb.ts';
import { ApplicationOutcome, type Call } from '../gen/marina/simulator/v1/controls_pb.ts';
import type { AllocationBehaviour, ApplicationBehaviour } from './back-office/magic.ts';
import type { Behaviour, Fault } from './magic.ts';
import { RpcError } from './rpc.ts';

/** How many directives and how many faults can wait for use. */
const maxWaiting = 1_000;

/** The outcome of the next submissions that match. Empty: any. */
export interface OutcomeDirective {
  readonly account: string;
  readonly symbol: string;
  readonly behaviour: Behaviour;
}

/** The calls for a fault. An empty account or id: any. */
export interface FaultDirective extends Fault {
  readonly call: Call;
  readonly account: string;
  readonly clientId: string;
}

/** The outcome of the next documents that match. Empty or unspecified: any. */
export interface DocumentDirective {
  readonly clientApplicationId: string;
  readonly type: DocumentType;
  readonly outcome: DocumentOutcome;
}

/** The outcome of the next allocations that match. Empty: any. */
export interface AllocationDirective {
  readonly account: string;
  readonly behaviour: AllocationBehaviour;
}

/** The unused directives and faults. They are in memory only, so a restart gives tests a fresh start. */
export class Directives {
  readonly #outcomes = new Waiting<OutcomeDirective>();
  readonly #faults = new Waiting<FaultDirective>();
  readonly #applications = new Waiting<ApplicationBehaviour>();
  readonly #documents = new Waiting<DocumentDirective>();
  readonly #allocations = new Waiting<AllocationDirective>();

  addOutcome(directive: OutcomeDirective, times: number): void {
    this.#outcomes.add(directive, times);
  }

  addFault(fault: FaultDirective, times: number): void {
    this.#faults.add(fault, times);
  }

  addApplication(behaviour: ApplicationBehaviour, times: number): void {
    this.#applications.add(behaviour, times);
  }

  addDocument(directive: DocumentDirective, times: number): void {
    this.#documents.add(directive, times);
  }

  addAllocation(directive: AllocationDirective, times: number): void {
    this.#allocations.add(directive, times);
  }

  clear(): void {
    this.#outcomes.clear();
    this.#faults.clear();
    this.#applications.clear();
    this.#documents.clear();
    this.#allocations.clear();
  }

  /** Uses the first directive that matches a submission. */
  takeOutcome(account: string, symbol: string): Behaviour | undefined {
    return this.#outcomes.take((each) => matches(each.account, account) && matches(each.symbol, symbol))?.behaviour;
  }

  /** Uses the first fault that matches a call. */
  takeFault(call: Call, account: string, clientId: string): Fault | undefined {
    return this.#faults.take(
      (each) => each.call === call && matches(each.account, account) && matches(each.clientId, clientId),
    );
  }

  /** Uses the first directive for an application. Undefined if the names decide the outcome. */
  takeApplication(): ApplicationBehaviour | undefined {
    const behaviour = this.#applications.take(() => true);
    return behaviour === undefined || behaviour.outcome === ApplicationOutcome.UNSPECIFIED ? undefined : behaviour;
  }

  /** Uses the first directive that matches a document. */
  takeDocument(clientApplicationId: string, type: DocumentType): DocumentOutcome | undefined {
    const directive = this.#documents.take(
      (each) =>
        matches(each.clientApplicationId, clientApplicationId) &&
        (each.type === DocumentType.UNSPECIFIED || each.type === type),
    );
    return directive?.outcome || undefined;
  }

  /** Uses the first directive that matches an allocation. Undefined if the amount decides the outcome. */
  takeAllocation(account: string): AllocationBehaviour | undefined {
    const behaviour = this.#allocations.take((each) => matches(each.account, account))?.behaviour;
    return behaviour === undefined || behaviour.outcome === AllocationOutcome.UNSPECIFIED ? undefined : behaviour;
  }

  /** Whether the account of such a call matters, so that it is queried only then. */
  asksForAccount(call: Call): boolean {
    return this.#faults.some((each) => each.call === call && each.account !== '');
  }
}

/** Directives in the order they came, each with the number of uses left. */
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
