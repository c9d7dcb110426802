import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { answerMessage } from '../../../../src/gateway/operators/calls/answer.ts';
import { GetTimelineResponseSchema } from '../../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import {
  ListProposalsResponseSchema,
  type Proposal,
  ProposalState,
} from '../../../../src/gen/marina/admin/v1/proposals_pb.ts';
import { ReconciliationSchema, ReconciliationState } from '../../../../src/gen/marina/admin/v1/reconciliation_pb.ts';
import { OrderSchema } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';

describe("the message of an operator's answer", () => {
  it('takes instants, names and small numbers as rows have them, and leaves out nothing and what it does not know', () => {
    const row = { day: '2026-03-02', state: 'complete', startedAt: 1_500, endedAt: null, breaks: 3, tookMs: 5n };
    assert.deepEqual(
      answerMessage(ReconciliationSchema, row),
      create(ReconciliationSchema, {
        ...{ day: '2026-03-02', state: ReconciliationState.COMPLETE, startedAt: timestampFromMs(1_500), breaks: 3n },
      }),
    );
  });

  it('makes the messages of a list, and shows a name of another version as unspecified', () => {
    const answer = {
      proposals: [{ id: 'prp_1', state: 'open' }, { state: 'of another version' }],
      nextCursor: undefined,
    };
    const { proposals } = answerMessage(ListProposalsResponseSchema, answer) as unknown as { proposals: Proposal[] };
    const states = proposals.map(({ state }) => state);
    assert.deepEqual(states, [ProposalState.OPEN, ProposalState.UNSPECIFIED]);
  });

  it('an answer keeps a message that a handler gives whole, also one of a oneof', () => {
    const order = create(OrderSchema, { id: 'ord_1' });
    const answer = { id: 'ord_1', object: { case: 'order' as const, value: order } };
    assert.deepEqual(answerMessage(GetTimelineResponseSchema, answer), create(GetTimelineResponseSchema, answer));
    assert.equal(answerMessage(OrderSchema, order), order);
  });
});
