import { status } from '@grpc/grpc-js';
import { AllocationOutcome } from '../../gen/marina/broker/v1/allocations_pb.ts';
import { type DocumentOutcome, DocumentType } from '../../gen/marina/broker/v1/applications_pb.ts';
import { ApplicationOutcome, type Call, WithdrawalOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { AllocationBehaviour, ApplicationBehaviour } from '../back-office/magic.ts';
import type { WithdrawalBehaviour } from '../back-office/withdrawal-magic.ts';
import type { Behaviour, Fault } from '../magic.ts';
import { RpcError } from './rpc.ts';

/** How many directives can wait for use: of the operator, of each partner, and of all together. */
const maxOfOperator = 1_000;
const maxOfPartner = 200;
const maxOfAll = 20_000;
/** How long a directive waits for what it is about, so that those about nothing do not use up their partner's bound. */
const waitsMs = 24 * 3_600_000;

/** The partner of a directive of the operator. */
const operator = '';

/** The outcome of the next submissions that match. Empty: any. */
export interface OutcomeDirective {
  readonly account: string;
  readonly symbol: string;
  readonly behaviour: Behaviour;
}

/** The calls for a fault. An empty account or id: any. */
export interface FaultDirective extends Omit<Fault, 'partner' | 'meetsCallOnly'> {
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

/** The outcome of the next withdrawals that match. Empty: any. */
export interface WithdrawalDirective {
  readonly account: string;
  readonly behaviour: WithdrawalBehaviour;
}

/**
 * The unused directives and faults, each of a partner or of the operator, who has the empty name. They are in memory only, so a
 * restart gives tests a fresh start.
 */
export class Directives {
  readonly #bound: Bound;
  readonly #outcomes: Waiting<OutcomeDirective>;
  readonly #faults: Waiting<FaultDirective>;
  readonly #applications: Waiting<ApplicationBehaviour>;
  readonly #documents: Waiting<DocumentDirective>;
  readonly #allocations: Waiting<AllocationDirective>;
  readonly #withdrawals: Waiting<WithdrawalDirective>;

  constructor(private readonly realNow: () => number = Date.now) {
    this.#bound = new Bound();
    this.#outcomes = new Waiting(this.#bound, realNow);
    this.#faults = new Waiting(this.#bound, realNow);
    this.#applications = new Waiting(this.#bound, realNow);
    this.#documents = new Waiting(this.#bound, realNow);
    this.#allocations = new Waiting(this.#bound, realNow);
    this.#withdrawals = new Waiting(this.#bound, realNow);
  }

  addOutcome(directive: OutcomeDirective, times: number, partner = operator): void {
    this.#add(this.#outcomes, directive, times, partner);
  }

  addFault(fault: FaultDirective, times: number, partner = operator): void {
    this.#add(this.#faults, fault, times, partner);
  }

  addApplication(behaviour: ApplicationBehaviour, times: number): void {
    this.#add(this.#applications, behaviour, times, operator);
  }

  addDocument(directive: DocumentDirective, times: number, partner = operator): void {
    this.#add(this.#documents, directive, times, partner);
  }

  addAllocation(directive: AllocationDirective, times: number, partner = operator): void {
    this.#add(this.#allocations, directive, times, partner);
  }

  addWithdrawal(directive: WithdrawalDirective, times: number, partner = operator): void {
    this.#add(this.#withdrawals, directive, times, partner);
  }

  /** Removes those of an account, an object, or both; all if neither is named. */
  clear({ account = '', clientId = '' }: { readonly account?: string; readonly clientId?: string } = {}): void {
    for (const list of this.#lists()) {
      list.clear((each: Partial<FaultDirective>) => {
        const isOfAccount = account === '' || each.account === account;
        return isOfAccount && (clientId === '' || each.clientId === clientId);
      });
    }
  }

  /** Uses the first directive that matches a submission. */
  takeOutcome(account: string, symbol: string): Behaviour | undefined {
    const found = this.#outcomes.take((each) => matches(each.account, account) && matches(each.symbol, symbol));
    return found?.directive.behaviour;
  }

  /** Uses the first fault that matches a call. */
  takeFault(call: Call, account: string, clientId: string): Fault | undefined {
    const found = this.#faults.take(
      (each) => each.call === call && matches(each.account, account) && matches(each.clientId, clientId),
    );
    return found && { ...found.directive, partner: found.partner, meetsCallOnly: found.partner !== operator };
  }

  /** Uses the first directive for an application. Undefined if the names decide the outcome. */
  takeApplication(): ApplicationBehaviour | undefined {
    const behaviour = this.#applications.take(() => true)?.directive;
    return behaviour === undefined || behaviour.outcome === ApplicationOutcome.UNSPECIFIED ? undefined : behaviour;
  }

  /** Uses the first directive that matches a document. */
  takeDocument(clientApplicationId: string, type: DocumentType): DocumentOutcome | undefined {
    const found = this.#documents.take(
      (each) =>
        matches(each.clientApplicationId, clientApplicationId) &&
        (each.type === DocumentType.UNSPECIFIED || each.type === type),
    );
    return found?.directive.outcome || undefined;
  }

  /** Uses the first directive that matches an allocation. Undefined if the amount decides the outcome. */
  takeAllocation(account: string): AllocationBehaviour | undefined {
    const behaviour = this.#allocations.take((each) => matches(each.account, account))?.directive.behaviour;
    return behaviour === undefined || behaviour.outcome === AllocationOutcome.UNSPECIFIED ? undefined : behaviour;
  }

  /** Uses the first directive that matches a withdrawal. Undefined if the amount decides the outcome. */
  takeWithdrawal(account: string): WithdrawalBehaviour | undefined {
    const behaviour = this.#withdrawals.take((each) => matches(each.account, account))?.directive.behaviour;
    return behaviour === undefined || behaviour.outcome === WithdrawalOutcome.UNSPECIFIED ? undefined : behaviour;
  }

  /** Whether the account of such a call matters, so that it is queried only then. */
  asksForAccount(call: Call): boolean {
    return this.#faults.some((each) => each.call === call && each.account !== '');
  }

  #lists() {
    return [
      ...[this.#outcomes, this.#faults, this.#applications],
      ...[this.#documents, this.#allocations, this.#withdrawals],
    ];
  }

  #add<T>(list: Waiting<T>, directive: T, times: number, partner: string): void {
    for (const each of this.#lists()) each.dropEnded();
    this.#bound.check(partner);
    list.add({ directive, partner, endsAtMs: this.realNow() + waitsMs, left: Math.max(1, times) });
  }
}

/** How many directives wait, of each partner and in all lists together. */
class Bound {
  readonly #ofPartner = new Map<string, number>();
  #ofAll = 0;

  /** Refuses a further directive of a partner, because too many of its own or of all wait. */
  check(partner: string): void {
    const most = partner === operator ? maxOfOperator : maxOfPartner;
    const refused = (count: number, whose: string) =>
      new RpcError(status.RESOURCE_EXHAUSTED, `${count} directives wait already, as many as may ${whose}.`);
    if ((this.#ofPartner.get(partner) ?? 0) >= most) throw refused(most, 'of one caller');
    if (this.#ofAll >= maxOfAll) throw refused(maxOfAll, 'of all together');
  }

  added(partner: string): void {
    this.#ofPartner.set(partner, (this.#ofPartner.get(partner) ?? 0) + 1);
    this.#ofAll += 1;
  }

  removed(partner: string): void {
    const left = (this.#ofPartner.get(partner) ?? 0) - 1;
    if (left > 0) this.#ofPartner.set(partner, left);
    else this.#ofPartner.delete(partner);
    this.#ofAll -= 1;
  }
}

interface Entry<T> {
  readonly directive: T;
  readonly partner: string;
  readonly endsAtMs: number;
  left: number;
}

/** Directives in the order they came, each with the number of uses left. */
class Waiting<T> {
  #entries: Entry<T>[] = [];

  constructor(
    private readonly bound: Bound,
    private readonly realNow: () => number,
  ) {}

  add(entry: Entry<T>): void {
    this.#entries.push(entry);
    this.bound.added(entry.partner);
  }

  take(matching: (directive: T) => boolean): Entry<T> | undefined {
    this.dropEnded();
    const at = this.#entries.findIndex((entry) => matching(entry.directive));
    const entry = this.#entries[at];
    if (entry === undefined) return undefined;
    entry.left -= 1;
    if (entry.left === 0) {
      this.#entries.splice(at, 1);
      this.bound.removed(entry.partner);
    }
    return entry;
  }

  some(matching: (directive: T) => boolean): boolean {
    this.dropEnded();
    return this.#entries.some((entry) => matching(entry.directive));
  }

  /** Removes those that have waited for their whole time. All wait equally long, so these are the first. */
  dropEnded(): void {
    const now = this.realNow();
    const waiting = this.#entries.findIndex(({ endsAtMs }) => endsAtMs > now);
    this.#drop(waiting === -1 ? this.#entries.length : waiting);
  }

  clear(matching: (directive: T) => boolean): void {
    this.#entries = this.#entries.filter(({ directive, partner }) => {
      const isKept = !matching(directive);
      if (!isKept) this.bound.removed(partner);
      return isKept;
    });
  }

  #drop(count: number): void {
    if (count === 0) return;
    for (const { partner } of this.#entries.splice(0, count)) this.bound.removed(partner);
  }
}

function matches(wanted: string, given: string): boolean {
  return wanted === '' || wanted === given;
}
