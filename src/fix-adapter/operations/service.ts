import { timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { type AdminCall, adminService } from '../../gateway/operators/calls/call.ts';
import { AdminError, invalidField } from '../../gateway/operators/calls/errors.ts';
import type { Database } from '../../gateway/store/database.ts';
import {
  FixOperations,
  type ListMessagesRequest,
  MessageDirection,
  MessageSession,
  OrderAnswer,
} from '../../gen/marina/fix/v1/operations_pb.ts';
import { findMessages, type MessageFilter, maxNumbers, newestId } from '../messages/find.ts';
import { RpcError } from '../service/rpc.ts';
import { FindingNotOpen, settleFinding } from '../store/operator-writes.ts';
import { type FixOrder, fixNumbers, fixOrders } from '../store/table.ts';
import { setNumbersLoggedOut, wishSession } from './changes.ts';
import { listFindings } from './findings.ts';
import { type Overview, readOverview } from './overview.ts';
import { shownFinding, shownMessage, shownNumbers, shownOrder, shownSession } from './shown.ts';

const usualLimit = 50;
/** How long a change of the session is waited for, and how often it is looked at. */
const changeMs = { longest: 5_000, every: 100 };
/** How long the log may take to have the answer about an order. */
const logMs = 2_000;
/** Messages about an order that are answered at most. */
const maxAnswers = 20;

/** The operations that only the process with the session can carry out. */
export interface ActiveSession {
  /** Asks the exchange about an order. Throws an `RpcError` if that shows nothing. */
  ask(orderId: string): Promise<'found' | 'absent'>;
  /** Resolves when the message log has all messages up to now, at most after the given time. */
  logged(timeoutMs: number): Promise<void>;
}

export interface OperationsParts {
  readonly database: Database;
  /** Undefined while another process has the session. */
  readonly active: () => ActiveSession | undefined;
  /** Real time, in milliseconds. */
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
}

/** The operators' calls of the FIX adapter. */
export function operationsService(parts: OperationsParts) {
  const { database, active, now } = parts;
  const changeCall = (call: AdminCall, reason: string) => ({ ...call, reason, at: now() });
  return adminService(FixOperations, {
    async getSession() {
      return { session: shownSession(await readOverview(database)) };
    },

    async listMessages(request) {
      const { messages, hasMore } = await findMessages(database, filterOf(request), request.limit || usualLimit);
      return { messages: messages.map(shownMessage), hasMore };
    },

    async listFindings({ orderId, beforeId, openOnly, limit }) {
      const filter = { orderId: orderId || undefined, beforeId: beforeId === 0n ? undefined : beforeId, openOnly };
      const { findings, hasMore } = await listFindings(database, filter, limit || usualLimit);
      return { findings: findings.map(shownFinding), hasMore };
    },

    async settleFinding({ id, note }, { operator }) {
      try {
        await settleFinding(database, { findingId: id, at: now(), operator, note });
      } catch (error) {
        if (!(error instanceof FindingNotOpen)) throw error;
        if (error.why === 'missing') throw new AdminError(status.NOT_FOUND, 'there is no such finding');
        throw new AdminError(status.FAILED_PRECONDITION, 'the finding is settled');
      }
      return {};
    },

    async askOrder({ orderId }) {
      const session = active();
      if (session === undefined) {
        throw new AdminError(status.FAILED_PRECONDITION, 'another process has the session: call that one');
      }
      if ((await readOrder(database, orderId)) === undefined) {
        throw new AdminError(status.NOT_FOUND, 'no such order was given a number');
      }
      await session.logged(logMs);
      const afterId = await newestId(database);
      const answer = await ask(session, orderId);
      await session.logged(logMs);
      const { messages } = await findMessages(database, { orderId, afterId, session: 'order' }, maxAnswers);
      const order = await readOrder(database, orderId);
      return {
        ...answer,
        order: order && shownOrder(order),
        messages: [...messages].reverse().map(shownMessage),
      };
    },

    async logOut({ reason }, call) {
      const { changed, request } = await wishSession(database, 'out', changeCall(call, reason));
      const after = await afterChange(parts, ({ session, state }) => {
        return session.obeyed >= request && state === 'logged_out';
      });
      return { changed, session: shownSession(after) };
    },

    async logOn({ reason }, call) {
      const { changed, request } = await wishSession(database, 'on', changeCall(call, reason));
      const after = await afterChange(parts, ({ session, state }) => session.obeyed >= request && state === 'up');
      return { changed, session: shownSession(after) };
    },

    async getNumbers() {
      const [row] = await database.read(fixNumbers.find({ id: 1n }));
      return { numbers: row && shownNumbers(fixNumbers.all.read(row)) };
    },

    async setNumbers({ nextOut, nextIn, reason }, call) {
      const { before, after } = await setNumbersLoggedOut(database, { nextOut, nextIn }, changeCall(call, reason));
      return { before: shownNumbers(before), after: shownNumbers(after) };
    },
  });
}

function filterOf(request: ListMessagesRequest): MessageFilter {
  const { orderId, clOrdId, number, toNumber, direction, type, session, beforeId } = request;
  const since = request.since && timestampMs(request.since);
  const until = request.until && timestampMs(request.until);
  if (since !== undefined && until !== undefined && until <= since) {
    throw invalidField('until', 'must be after `since`.');
  }
  const to = toNumber === 0n ? number : toNumber;
  if (toNumber !== 0n && (number === 0n || to < number || to - number >= maxNumbers)) {
    throw invalidField('to_number', `must be \`number\` or more, for at most ${maxNumbers} numbers.`);
  }
  const directions = { [MessageDirection.IN]: 'in', [MessageDirection.OUT]: 'out' } as const;
  const sessions = { [MessageSession.ORDER]: 'order', [MessageSession.DROP_COPY]: 'drop_copy' } as const;
  return {
    ...{ since, until },
    orderId: orderId || undefined,
    clOrdId: clOrdId || undefined,
    numbers: number === 0n ? undefined : { from: number, to },
    direction: direction === MessageDirection.UNSPECIFIED ? undefined : directions[direction],
    type: type || undefined,
    session: session === MessageSession.UNSPECIFIED ? undefined : sessions[session],
    beforeId: beforeId === 0n ? undefined : beforeId,
  };
}

async function readOrder(database: Database, id: string): Promise<FixOrder | undefined> {
  const [row] = await database.read(fixOrders.find({ id }));
  return row === undefined ? undefined : fixOrders.all.read(row);
}

async function ask(session: ActiveSession, orderId: string): Promise<{ answer: OrderAnswer; detail: string }> {
  try {
    const found = await session.ask(orderId);
    return { answer: found === 'found' ? OrderAnswer.FOUND : OrderAnswer.ABSENT, detail: '' };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return { answer: OrderAnswer.UNKNOWN, detail: error.message };
  }
}

/** The session when a change of it is done, or after the longest wait. */
async function afterChange({ database, pause }: OperationsParts, isDone: (overview: Overview) => boolean) {
  const end = performance.now() + changeMs.longest;
  for (;;) {
    const overview = await readOverview(database);
    if (isDone(overview) || performance.now() > end) return overview;
    await pause(changeMs.every);
  }
}
