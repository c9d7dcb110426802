import { status } from '@grpc/grpc-js';
import { type Controls, StatementLie } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { isDate, lagosDay } from '../../kit/clock.ts';
import { check } from '../validation.ts';
import { RpcError, type SimulatorHandlers } from '../wire/rpc.ts';
import type { World } from '../world.ts';

/** One lie, as it was asked for. */
export interface Lie {
  readonly lie: StatementLie;
  readonly day: string;
  readonly clientId: string;
  readonly account: string;
  readonly symbol: string;
}

const maxLies = 50;
const longestText = 64;

/** The lies in force. In memory only, so that a restart gives tests a fresh start. */
export class Lies {
  #lies: Lie[] = [];

  add(lie: Lie): void {
    if (this.#lies.length >= maxLies) {
      throw new RpcError(status.RESOURCE_EXHAUSTED, `${maxLies} lies are in force; clear them first.`);
    }
    this.#lies.push(lie);
  }

  clear(): void {
    this.#lies = [];
  }

  /** Those of a day, of some kinds. */
  of(day: string, ...kinds: readonly StatementLie[]): readonly Lie[] {
    return this.#lies.filter((each) => each.day === day && kinds.includes(each.lie));
  }

  /** Those of days until a day, of some kinds: what follows from them is wrong on each later day. */
  until(day: string, ...kinds: readonly StatementLie[]): readonly Lie[] {
    return this.#lies.filter((each) => each.day <= day && kinds.includes(each.lie));
  }

  /** Whether an object's record of a day lies so. */
  has(day: string, lie: StatementLie, clientId: string): boolean {
    return this.of(day, lie).some((each) => each.clientId === clientId);
  }
}

/** The control that makes statements lie. */
export function lieControls(world: World, lies: Lies): Pick<SimulatorHandlers<typeof Controls>, 'lieInStatements'> {
  return {
    lieInStatements: async ({ lie, day, clientId, account, symbol }) => {
      check(lie !== StatementLie.UNSPECIFIED && lie in StatementLie, 'lie');
      check(day === '' || isDate(day), 'day');
      for (const [name, value] of Object.entries({ client_id: clientId, account, symbol })) {
        check(value.length <= longestText, name);
      }
      lies.add({ lie, day: day || lagosDay(world.clock.now()), clientId, account, symbol });
      return {};
    },
  };
}
