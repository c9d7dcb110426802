import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type FindingSchema,
  type KnownOrderSchema,
  type LoggedMessageSchema,
  MessageDirection,
  MessageOutcome,
  MessageSession,
  type NumbersSchema,
  type SessionSchema,
  SessionState,
} from '../../gen/marina/fix/v1/operations_pb.ts';
import { typeName } from '../messages/names.ts';
import type { StoredMessage } from '../messages/table.ts';
import type { FixNumbers, FixOrder } from '../store/table.ts';
import type { StoredFinding } from './findings.ts';
import type { Overview } from './overview.ts';

const outcomes: Readonly<Record<string, MessageOutcome>> = {
  written: MessageOutcome.WRITTEN,
  not_written: MessageOutcome.NOT_WRITTEN,
  applied: MessageOutcome.APPLIED,
  not_applied: MessageOutcome.NOT_APPLIED,
  gap: MessageOutcome.GAP,
  duplicate: MessageOutcome.DUPLICATE,
  unreadable: MessageOutcome.UNREADABLE,
  refused: MessageOutcome.REFUSED,
};

const states: Readonly<Record<string, SessionState>> = {
  none: SessionState.NO_PROCESS,
  logged_out: SessionState.LOGGED_OUT,
  outside_hours: SessionState.OUTSIDE_HOURS,
  stopped: SessionState.STOPPED,
  waiting: SessionState.WAITING,
  connecting: SessionState.CONNECTING,
  logging_on: SessionState.LOGGING_ON,
  receiving: SessionState.RECEIVING,
  testing: SessionState.TESTING,
  up: SessionState.UP,
  logging_out: SessionState.LOGGING_OUT,
};

export function shownMessage(row: StoredMessage): MessageInitShape<typeof LoggedMessageSchema> {
  const { id, at, session, startedAt, direction, number, type, orderId, clOrdId, outcome, text } = row;
  return {
    ...{ id, number, type, orderId, clOrdId, text },
    at: timestampFromMs(at),
    numberingStartedAt: timestampFromMs(startedAt),
    direction: direction === 'in' ? MessageDirection.IN : MessageDirection.OUT,
    session: session === 'order' ? MessageSession.ORDER : MessageSession.DROP_COPY,
    typeName: typeName(type),
    outcome: outcomes[outcome] ?? MessageOutcome.UNSPECIFIED,
  };
}

export function shownFinding(row: StoredFinding): MessageInitShape<typeof FindingSchema> {
  const { id, at, what, orderId, execId, detail, facts, settlement, messages } = row;
  return {
    ...{ id, what, orderId, execId, detail, messages },
    at: timestampFromMs(at),
    facts: facts ?? '',
    settlement: settlement && {
      at: timestampFromMs(settlement.at),
      operator: settlement.operator,
      note: settlement.note,
    },
  };
}

export function shownNumbers(row: FixNumbers): MessageInitShape<typeof NumbersSchema> {
  const { nextOut, nextIn, startedAt } = row;
  return { nextOut, nextIn, startedAt: timestampFromMs(startedAt) };
}

export function shownOrder(row: FixOrder): MessageInitShape<typeof KnownOrderSchema> {
  const { id, state, exchangeOrderId, account, symbol, side, quantity, filled, receivedAt } = row;
  return {
    ...{ id, state, exchangeOrderId, account, symbol, side, quantity, filled },
    receivedAt: timestampFromMs(receivedAt),
  };
}

export function shownSession(overview: Overview): MessageInitShape<typeof SessionSchema> {
  const { state, reason, since, process, session, numbers, open, inDoubt, oldestInDoubtAt, lastChange } = overview;
  return {
    ...{ reason, process, findings: overview.findings, restored: numbers.restored },
    state: states[state] ?? SessionState.UNSPECIFIED,
    since: optionalTime(since),
    numbers: shownNumbers(numbers),
    ordersOpen: BigInt(open),
    ordersInDoubt: BigInt(inDoubt),
    oldestInDoubtAt: optionalTime(oldestInDoubtAt),
    loggedOut: session.wish === 'out',
    lastChange: lastChange && {
      at: timestampFromMs(lastChange.at),
      operator: lastChange.operator,
      action: lastChange.action,
      reason: lastChange.reason,
    },
  };
}

function optionalTime(ms: number | undefined) {
  return ms === undefined ? undefined : timestampFromMs(ms);
}
