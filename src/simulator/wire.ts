import { setTimeout as sleep } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { type Call, WireFault } from '../gen/marina/simulator/v1/controls_pb.ts';
import type { Directives } from './directives.ts';
import type { Front } from './front.ts';
import type { Fault } from './magic.ts';
import { RpcError, unanswered, type WireCall } from './rpc.ts';

/** One call to the broker, as the wire sees it. */
export interface Leg<Answer> {
  readonly call: Call;
  /** The id the gateway gave what it is about; empty when it is about no such thing. */
  readonly clientId: string;
  /** The account it names, by itself or by what it is about; asked only when a fault is about an account. */
  account(): string | Promise<string>;
  /** What its magic does on the wire when no fault was injected. */
  readonly magicFault?: Fault | undefined;
  /** Records a call that is not taken, or not yet, and gives the record's number. */
  record(): Promise<number>;
  /** Takes it. It was recorded before under the number, if there is one. */
  take(recorded: number | undefined): Promise<Answer>;
  /** What makes no sense as an answer. */
  nonsense(): Answer;
}

/** How many calls wait at most; more than that are as good as lost. */
const maxWaiting = 10_000;

/** What stands between a call and the broker: the faults a test injects, and those that magic values have. */
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

  /** Brings a call through whatever happens to it. */
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
    // The answer may be an error; what happens on the wire happens to it all the same.
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

  /** Whether the whole time passed before the simulator stopped. */
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
