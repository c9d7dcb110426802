import type { DescMethodUnary, MessageShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import type { Clock } from '../../../kit/clock.ts';
import type { TypedService } from '../../../kit/grpc-service.ts';
import type { Operator, OperatorRole } from '../../../kit/operator-tokens.ts';
import type { IdMaker } from '../../edge/ids.ts';
import type { Database } from '../../store/database.ts';
import type { Fact } from '../../store/facts.ts';
import { type Statement, statement } from '../../store/statement.ts';
import type { AnswerOf } from './answer.ts';
import { AdminError } from './errors.ts';

/** A call, as its handler and the audit see it. */
export interface AdminCall {
  readonly operator: Operator;
  /** Service and method, as in `Trading.PauseTrading`. */
  readonly action: string;
  /** The roles of the operator's token. */
  readonly roles: readonly OperatorRole[];
  /** When the token ends, in real time; undefined: never. */
  readonly tokenEndsAt: number | undefined;
  /** As in the answer's `x-request-id`. */
  readonly requestId: string;
  /** As log lines show it; undefined: they show none. */
  readonly clientAddress: string | undefined;
  /** Throws PERMISSION_DENIED unless the operator may make another call, by its service and method. `what` needs that. */
  requireRoleFor(action: string, what: string): void;
}

export interface AdminParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
}

/** Handlers by a service's descriptor: request in, answer out. The signal ends a stream. */
export type AdminCalls<S extends TypedService> = {
  readonly [K in keyof S['method']]: S['method'][K] extends DescMethodUnary
    ? (
        request: MessageShape<S['method'][K]['input']>,
        call: AdminCall,
      ) => Promise<AnswerOf<MessageShape<S['method'][K]['output']>>>
    : (
        request: MessageShape<S['method'][K]['input']>,
        call: AdminCall,
        signal: AbortSignal,
      ) => AsyncIterable<AnswerOf<MessageShape<S['method'][K]['output']>>>;
};

/** A service of the operators' port, with its handlers. */
export interface AdminService {
  readonly service: TypedService;
  readonly calls: Readonly<Record<string, unknown>>;
}

/** Joins a service with its handlers. It does not compile if one is missing. */
export function adminService<S extends TypedService>(service: S, calls: AdminCalls<S>): AdminService {
  return { service, calls };
}

/** Throws NOT_FOUND if there is no such partner. */
export async function requirePartner(database: Database, partnerId: string): Promise<void> {
  const [row] = await database.read(statement('SELECT id FROM partners WHERE id = ?', partnerId));
  if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such partner');
}

/** Makes a change under the partner's lock; false if there was none. `ended` is called also if the outcome is unknown. */
export async function changeOwned<Value>(
  database: Database,
  partnerId: string,
  touches: string,
  fact: Fact<Value>,
  decide: (value: Value) => readonly Statement[],
  ended?: () => void,
): Promise<boolean> {
  await requirePartner(database, partnerId);
  try {
    return await database.inPartnerTransaction(partnerId, {
      touches: [touches],
      fact,
      decide: (value) => {
        const writes = decide(value);
        return { writes, result: writes.length > 0 };
      },
    });
  } finally {
    ended?.();
  }
}

/** Does costly work for one call of this replica at a time. Others end with RESOURCE_EXHAUSTED, and `busy` as their message. */
export function oneAtATime(busy: string): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let isBusy = false;
  return async (work) => {
    if (isBusy) throw new AdminError(status.RESOURCE_EXHAUSTED, `${busy}: call again`);
    isBusy = true;
    try {
      return await work();
    } finally {
      isBusy = false;
    }
  };
}

/** How long a stream that others wait for may take, in real time, however slowly its client reads. */
export const longestStreamMs = 1_800_000;

/** The same for work whose answer is a stream: others end with RESOURCE_EXHAUSTED until it is read to its end, or left. */
export function oneStreamAtATime(busy: string): <Part>(parts: () => AsyncIterable<Part>) => AsyncGenerator<Part> {
  let isBusy = false;
  return async function* (parts) {
    if (isBusy) throw new AdminError(status.RESOURCE_EXHAUSTED, `${busy}: call again`);
    isBusy = true;
    try {
      yield* parts();
    } finally {
      isBusy = false;
    }
  };
}

/** Operators together count as one more partner in the queue of reads of the broker. */
export const operatorsReader = 'operators';

/** The length of a list without a given limit. */
export const usuallyListed = 25;

/** A page of a list. `limit` 0 means the usual length. `read` reads at most so many. */
export async function listed<Row>(limit: number, read: (most: number) => Promise<Row[]>, usual = usuallyListed) {
  const most = limit || usual;
  const rows = await read(most + 1);
  return { rows: rows.slice(0, most), hasMore: rows.length > most, most };
}
