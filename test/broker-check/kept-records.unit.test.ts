/** The checks of what an adapter answers later about what it has answered or refused, with an adapter that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Breach, NotRun } from '../../src/broker-check/check.ts';
import { recordsKept } from '../../src/broker-check/checks/sent-allocations.ts';
import { answersKept, refusalsHold } from '../../src/broker-check/checks/settling.ts';
import type { CheckSession } from '../../src/broker-check/session.ts';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRecordSchema,
  AllocationRejectReason,
} from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import { type Report, ReportKind, ReportSchema } from '../../src/gen/marina/broker/v1/orders_pb.ts';

const exchange = { call: 'a call', request: {}, status: 'OK', tookMs: 1 };
const report = (more: MessageInitShape<typeof ReportSchema> = {}): Report =>
  create(ReportSchema, {
    ...{ number: 5n, clientOrderId: 'ord_1', exchangeOrderId: 'X1', kind: ReportKind.ACCEPTED },
    ...{ at: timestampFromMs(1_000) },
    ...(more as object),
  });

describe('an order that was refused for good', () => {
  /** Checks it by its place in the record and in the stream, beside orders that were taken. */
  function held(code: status, isFound: boolean, streamed: readonly string[]): Promise<void> {
    const reports = streamed.map((clientOrderId) => report({ clientOrderId }));
    const session = {
      recorded: async (id: string) => ({
        ...{ found: id === 'ord_2' || isFound, reports: [], exchanges: [exchange] },
      }),
      streamed: (id: string) => reports.filter(({ clientOrderId }) => clientOrderId === id),
      follower: { shown: () => exchange },
    };
    const sent = [
      { id: 'ord_2', outcome: { code: status.OK, exchange } },
      { id: 'ord_1', outcome: { code, exchange } },
    ];
    return refusalsHold(session as unknown as CheckSession, sent as never);
  }

  for (const code of [status.FAILED_PRECONDITION, status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.OK]) {
    for (const isFound of [false, true]) {
      for (const streamed of [[], ['ord_2'], ['ord_1'], ['ord_2', 'ord_1']]) {
        const where = [...(isFound ? ['the record'] : []), ...(streamed.includes('ord_1') ? ['the stream'] : [])];
        const isBreach = code === status.FAILED_PRECONDITION && where.length > 0;
        const answered = `${status[code]}, ${streamed.length} streamed`;
        it(`an order that was refused for good is ${isBreach ? 'a breach' : 'no breach'} if ${where.join(' and ') || 'nothing'} has it after ${answered}`, async () => {
          const checked = held(code, isFound, streamed);
          await (isBreach ? assert.rejects(checked, Breach) : checked);
        });
      }
    }
  }
});

describe('a record that was answered', () => {
  const booked = create(AllocationRecordSchema, {
    ...{ clientAllocationId: 'alc_1', outcome: AllocationOutcome.BOOKED, brokerReference: 'BKG1' },
    at: timestampFromMs(1_000),
  });
  /** Checks allocations by the answer and the look-up of the last of them. */
  function kept(answered: AllocationRecord | undefined, lookedUp: object | undefined): Promise<void> {
    const first = create(AllocationRecordSchema, { ...booked, clientAllocationId: 'alc_0' });
    const session = {
      allocations: [
        { id: 'alc_0', outcome: { answer: { record: first }, exchange } },
        { id: 'alc_1', outcome: { answer: answered && { record: answered }, exchange } },
      ],
      call: async (_service: string, _method: string, { clientAllocationId }: { clientAllocationId: string }) => ({
        ...{ code: status.OK, exchange, answer: clientAllocationId === 'alc_0' ? { record: first } : lookedUp },
      }),
    };
    return recordsKept(session as unknown as CheckSession);
  }

  it('a record is kept if the look-up has it, and is not looked for if there was no answer', async () => {
    await kept(booked, { record: create(AllocationRecordSchema, booked) });
    await kept(undefined, {});
  });

  for (const [what, more] of [
    ['another outcome', { outcome: AllocationOutcome.REJECTED }],
    ['another reference', { brokerReference: 'BKG2' }],
    ['a reason to reject it', { rejectReason: AllocationRejectReason.REJECTED_BY_BROKER }],
    ['another time', { at: timestampFromMs(1_001) }],
    ['no time', { at: undefined }],
    ['another id', { clientAllocationId: 'alc_2' }],
  ] as const) {
    it(`a record is broken if the look-up has ${what}`, async () => {
      const record = create(AllocationRecordSchema, { ...booked, ...more } as never);
      await assert.rejects(kept(booked, { record }), Breach);
    });
  }

  it('a record is broken if the look-up has none, and not seen if the look-up has no answer', async () => {
    await assert.rejects(kept(booked, {}), Breach);
    await assert.rejects(kept(booked, undefined), NotRun);
  });

  for (const [what, reports, isKept] of [
    ['has it alone', [report()], true],
    ['has it after others', [report({ number: 4n }), report()], true],
    ['lacks it', [report({ number: 4n })], false],
    ['has another kind', [report({ kind: ReportKind.REJECTED })], false],
    ['has another number of the exchange', [report({ exchangeOrderId: 'X2' })], false],
    ['has another time', [report({ at: timestampFromMs(1_001) })], false],
  ] as const) {
    it(`a record is ${isKept ? 'kept' : 'broken'} if the record of an order ${what}`, async () => {
      const session = { recorded: async () => ({ found: true, reports, exchanges: [] }) };
      const sent = [{ id: 'ord_1', outcome: { answer: { report: report() }, exchange } }];
      const checked = answersKept(session as never, sent as never);
      await (isKept ? checked : assert.rejects(checked, Breach));
    });
  }
});
