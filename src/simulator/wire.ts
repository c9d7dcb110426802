import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { type Call, WireFault } from '../gen/marina/simulator/v1/controls_pb.ts';
import type { Directives } from './directives.ts';
import type { Front } from './front.ts';
import type { Fault } from './magic.ts';
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

/** How many calls may wait. Further calls get no answer. */
const maxWaiting = 10_000;

/** Applies faults to calls: those that a test injects, and those of magic values. */
export class Wire {
  readonly #stopped: AbortSignal;
  #waiting = 0;

  constructor(
    private readonly directives: Directives,
    private readonly front: Front,
    stopped: AbortSignal,
  ) {
    this.#stopped = stopped;
  }

  /** Carries out a call, with its fault if it has one. */
  async carry<Answer>(call: WireCall, leg: Leg<Answer>): Promise<Answer | typeof unanswered> {
    const account = this.directives.asksForAccount(leg.call) ? await leg.account() : '';
    const fault = this.directives.takeFault(leg.call, account, leg.clientId) ?? leg.magicFault;
    if (fault === undefined) return leg.take(undefined);
    switch (fault.wire) {
      case WireFault.HANG:
        await leg.record();
        return unanswered;
      case WireFault.RESET_BEFORE:
        await leg.record();
        return this.#reset(call);
      case WireFault.UNAVAILABLE_BEFORE:
        await leg.record();
        throw new RpcError(status.UNAVAILABLE, 'An injected fault: not taken.');
      case WireFault.TOO_LATE:
        await (leg.refuse === undefined ? leg.record() : leg.refuse());
        throw new RpcError(status.FAILED_PRECONDITION, 'An injected fault: not_after has passed; not taken.');
      case WireFault.LATE_RECEIPT: {
        const recorded = await leg.record();
        if (!(await this.#waited(fault.delayMs))) return unanswered;
        return leg.take(recorded);
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
        return this.#reset(call);
      case WireFault.UNAVAILABLE_AFTER:
        throw new RpcError(status.UNAVAILABLE, 'An injected fault: taken.');
      case WireFault.LATE_ANSWER:
        return (await this.#waited(fault.delayMs)) && !call.cancelled ? answer : unanswered;
      case WireFault.NONSENSE:
        return leg.nonsense();
      default:
        return answer;
    }
  }

  #reset(call: WireCall): typeof unanswered {
    this.front.reset(call.getPeer());
    return unanswered;
  }

  /** False if too many calls wait, or if the simulator stopped first. */
  async #waited(delayMs: number): Promise<boolean> {
    if (this.#waiting >= maxWaiting) return false;
    this.#waiting += 1;
    try {
      await sleep(delayMs, undefined, { signal: this.#stopped });
      return true;
    } catch {
      return false;
    } finally {
      this.#waiting -= 1;
    }
  }
}
