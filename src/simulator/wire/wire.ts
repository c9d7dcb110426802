import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { Call, WireFault } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { Fault } from '../magic.ts';
import type { Directives } from './directives.ts';
import type { Front } from './front.ts';
import { RpcError, unanswered, type WireCall } from './rpc.ts';

/** One call to the broker. */
export interface Leg<Answer> {
  readonly call: Call;
  /** The gateway's id of the call's object; empty if it has none. */
  readonly clientId: string;
  /** The account of the call or of its object. Called only if a fault needs it. */
  account(): string | Promise<string>;
  /** The fault of its magic value, used if no fault was injected. */
  readonly magicFault?: Fault | undefined;
  /** Records a call that is not taken, or not yet, and returns the record's number. */
  record(): Promise<number>;
  /** Records a submission that is not taken, and never will be. Absent: no later copy is refused. */
  refuse?(): Promise<void>;
  /** Takes the call. `recorded` is the number of its earlier record, if there is one. */
  take(recorded: number | undefined): Promise<Answer>;
  nonsense(): Answer;
}

/** How many calls may wait to be taken: of one partner, and of all. Further calls are not taken and get no answer. */
const maxWaitingOfPartner = 200;
const maxWaiting = 10_000;

/** The longest delay of a query that a partner asks for. */
const maxQueryDelayMs = 250;

/** Applies faults to calls: those that a test injects, and those of magic values. */
export class Wire {
  readonly #stopped: AbortSignal;
  /** The number of calls that wait to be taken, by partner. */
  readonly #waiting = new Map<string, number>();
  #waitingOfAll = 0;

  constructor(
    private readonly directives: Directives,
    private readonly front: Front,
    stopped: AbortSignal,
  ) {
    this.#stopped = stopped;
    // Each call that waits has one.
    setMaxListeners(0, stopped);
  }

  /** Carries out a call, with its fault if it has one. */
  async carry<Answer>(call: WireCall, leg: Leg<Answer>): Promise<Answer | typeof unanswered> {
    const account = this.directives.asksForAccount(leg.call) ? await leg.account() : '';
    const found = this.directives.takeFault(leg.call, account, leg.clientId) ?? leg.magicFault;
    if (found === undefined) return leg.take(undefined);
    const fault = isLookUp(leg.call) && found.partner !== '' ? withoutWaiting(found) : found;
    switch (fault.wire) {
      case WireFault.HANG:
        await leg.record();
        return unanswered;
      case WireFault.RESET_BEFORE:
        await leg.record();
        return this.#reset(call, fault);
      case WireFault.UNAVAILABLE_BEFORE:
        await leg.record();
        throw new RpcError(status.UNAVAILABLE, 'An injected fault: not taken.');
      case WireFault.TOO_LATE:
        await (leg.refuse === undefined ? leg.record() : leg.refuse());
        throw new RpcError(status.FAILED_PRECONDITION, 'An injected fault: not_after has passed; not taken.');
      case WireFault.LATE_RECEIPT: {
        const recorded = await leg.record();
        return (await this.#waitedToBeTaken(fault)) ? leg.take(recorded) : unanswered;
      }
      case WireFault.UNSPECIFIED:
        return leg.take(undefined);
      default:
        return this.#afterTaking(call, leg, fault);
    }
  }

  async #afterTaking<Answer>(call: WireCall, leg: Leg<Answer>, fault: Fault): Promise<Answer | typeof unanswered> {
    // The answer may be an error. The fault applies to it all the same.
    const answer = leg.take(undefined);
    await answer.catch(() => {});
    switch (fault.wire) {
      case WireFault.LOSE_ANSWER:
        return unanswered;
      case WireFault.RESET_AFTER:
        return this.#reset(call, fault);
      case WireFault.UNAVAILABLE_AFTER:
        throw new RpcError(status.UNAVAILABLE, 'An injected fault: taken.');
      case WireFault.LATE_ANSWER:
        return (await this.#waitedToAnswer(call, fault.delayMs)) ? answer : unanswered;
      case WireFault.NONSENSE:
        return leg.nonsense();
      default:
        return answer;
    }
  }

  /**
   * Resets the call's connection. If a partner asked for it, only this call ends, in the way in which a caller sees a reset: the
   * connection also has the calls of others.
   */
  #reset(call: WireCall, { meetsCallOnly }: Fault): typeof unanswered {
    if (meetsCallOnly) throw new RpcError(status.UNAVAILABLE, 'read ECONNRESET (an injected fault of this call)');
    this.front.reset(call.getPeer());
    return unanswered;
  }

  /** Waits while the caller does, so there are no more of these than calls. False: nobody waits any more. */
  async #waitedToAnswer(call: WireCall, delayMs: number): Promise<boolean> {
    if (call.cancelled) return false;
    const gone = new AbortController();
    call.on('cancelled', () => gone.abort());
    return waited(delayMs, AbortSignal.any([this.#stopped, gone.signal]));
  }

  /** Waits also if the caller has gone. False if too many calls wait, or if the simulator stopped first. */
  async #waitedToBeTaken({ partner, delayMs }: Fault): Promise<boolean> {
    const own = this.#waiting.get(partner) ?? 0;
    const most = partner === '' ? maxWaiting : maxWaitingOfPartner;
    if (own >= most || this.#waitingOfAll >= maxWaiting) return false;
    this.#count(partner, 1);
    try {
      return await waited(delayMs, this.#stopped);
    } finally {
      this.#count(partner, -1);
    }
  }

  #count(partner: string, change: 1 | -1): void {
    const own = (this.#waiting.get(partner) ?? 0) + change;
    if (own > 0) this.#waiting.set(partner, own);
    else this.#waiting.delete(partner);
    this.#waitingOfAll += change;
  }
}

const lookUps: ReadonlySet<Call> = new Set([
  Call.LOOK_UP_ORDER,
  Call.LOOK_UP_ALLOCATION,
  Call.LOOK_UP_APPLICATION,
  Call.LOOK_UP_WITHDRAWAL,
]);

function isLookUp(call: Call): boolean {
  return lookUps.has(call);
}

/**
 * A partner's fault of a query. The gateway makes few queries at once for all partners, so one that hangs would hold up those of
 * the others. It fails at once, which tells the gateway as little.
 */
function withoutWaiting(fault: Fault): Fault {
  if (fault.wire === WireFault.HANG) return { ...fault, wire: WireFault.UNAVAILABLE_BEFORE };
  if (fault.wire === WireFault.LOSE_ANSWER) return { ...fault, wire: WireFault.UNAVAILABLE_AFTER };
  return { ...fault, delayMs: Math.min(fault.delayMs, maxQueryDelayMs) };
}

/** False if it was aborted first. */
async function waited(delayMs: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(delayMs, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
