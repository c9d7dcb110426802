import assert from 'node:assert/strict';
import { callTimeout, type RestAnswer, type TestGateway, type TestPartner } from '../gateway.ts';
import type { fc } from '../properties.ts';
import type { TwoOperators } from '../two-operators.ts';
import type { PartnerModel } from './partner-model.ts';

/** A gateway of one or more replicas, and the partner of one sequence. */
export interface Whole {
  readonly gateway: TestGateway;
  /** One for each replica. */
  readonly replicas: readonly TestGateway['rest'][];
  /** Withdrawals leave from the second of its accounts, which has the money that was allocated to it. */
  readonly partner: TestPartner;
  readonly operators: TwoOperators;
  /** Pauses trading for everybody, or ends the pause. */
  readonly pause: (isPaused: boolean) => Promise<void>;
  /** Moves business time past the next midnight in Lagos, for all replicas. */
  readonly passMidnight: () => Promise<void>;
  /** Ends the second replica, and starts another one in its place. */
  readonly restart: () => Promise<void>;
  /** Changes the partner's limit of orders a day. */
  readonly limitOrders: (kobo: number) => Promise<void>;
}

/** Numbers that choose: an order, a replica, and one thing more. */
export type Choice = readonly number[];

/** Asks one replica or another. */
export function ask({ replicas, partner }: Whole, replica: number, method: string, path: string, more: object = {}) {
  const rest = replicas[replica % replicas.length] as TestGateway['rest'];
  return rest(method, path, { key: partner.key, ...more });
}

export function assertAnswer({ status, body, text }: RestAnswer, expected: { status: number; code?: string }): void {
  assert.deepEqual([status, body?.error?.code], [expected.status, expected.code], text);
}

/** The id of what was stored, also where the answer is an error. */
export function idOf({ body, headers }: RestAnswer): string {
  const location = headers.get('location') ?? '';
  return body.id ?? location.slice(location.lastIndexOf('/') + 1);
}

export type Command = fc.AsyncCommand<PartnerModel, Whole>;

/** Pauses trading, or ends the pause. */
export function pause(isPaused: boolean): Command {
  return {
    toString: () => (isPaused ? 'pause' : 'resume'),
    check: (model) => model.isPaused !== isPaused,
    run: async (model, whole) => {
      await whole.pause(isPaused);
      model.isPaused = isPaused;
    },
  };
}

/** Lets a midnight pass: the limits are fresh, and all that is open stays so. */
export function passMidnight(): Command {
  return {
    toString: () => 'pass midnight',
    // More than a month would remove events from the feed.
    check: ({ day }) => day < 3,
    run: async (model, whole) => {
      await whole.passMidnight();
      model.day += 1;
    },
  };
}

/** Changes the limit of orders a day, also to less than is used. */
export function limitOrders(kobo: number): Command {
  return {
    toString: () => `limit orders to ${kobo}`,
    check: () => true,
    run: async (model, whole) => {
      await whole.limitOrders(kobo);
      model.ordersLimitKobo = kobo;
    },
  };
}

/** Ends one replica and starts another one. */
export function restart(): Command {
  return { toString: () => 'restart a replica', check: () => true, run: (_, whole) => whole.restart() };
}

/** Repeats, swaps and leaves out reports, or breaks their stream: partners see nothing of it. */
export function disturb(
  withdrawals: boolean,
  repeat: number,
  swap: number,
  omit: number,
  breakStreams: boolean,
): Command {
  const whose = withdrawals ? 'withdrawals' : 'orders';
  return {
    toString: () => `disturb reports of ${whose} (${repeat}, ${swap}, ${omit}, ${breakStreams})`,
    check: () => true,
    run: async (_, { gateway }) => {
      await gateway.controls.disturbReports({ withdrawals, repeat, swap, omit, breakStreams }, callTimeout);
    },
  };
}
