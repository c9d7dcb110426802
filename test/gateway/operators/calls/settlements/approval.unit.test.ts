import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { StoredProposal } from '../../../../../src/gateway/operators/calls/proposals/table.ts';
import { writeOutcome } from '../../../../../src/gateway/operators/calls/settlements/outcomes.ts';
import { seenOf } from '../../../../../src/gateway/operators/calls/settlements/seen.ts';
import { settlements } from '../../../../../src/gateway/operators/calls/settlements/service.ts';
import { readRecord } from '../../../../../src/gateway/trading/orders/later-reports/rules.ts';
import { orderHistory, orders, type StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import type { Change } from '../../../../../src/gateway/trading/submission/change.ts';
import {
  SettledAllocationState,
  SettledApplicationState,
  SettledOrderState,
  SettledWithdrawalState,
  SettlementOutcomeSchema,
} from '../../../../../src/gen/marina/admin/v1/settlements_pb.ts';
import { allocationKind, applicationKind, orderKind, withdrawalKind } from '../../../../support/kinds.ts';
import { plainOrder } from '../../../../support/plain-order.ts';

const order: StoredOrder = { ...plainOrder, id: 'ord_a', partnerId: 'par_a', state: 'uncertain' };
const tradedAt = order.createdAt + 1_000;
const proposedAt = tradedAt + 60_000;
const approvedAt = proposedAt + 86_400_000;

const trade = { quantity: 10n, priceKobo: 1_000n, at: timestampFromMs(tradedAt), exchangeTradeId: 'X-1' };
const outcome = create(SettlementOutcomeSchema, { order: { state: SettledOrderState.OPEN, trades: [trade] } });
const proposal = {
  ...{ id: 'prp_a', partnerId: 'par_a', objectId: 'ord_a', state: 'open', proposedAt },
  ...{ request: writeOutcome(outcome), seen: JSON.stringify(seenOf(order)) },
} as StoredProposal;

/** Approves the proposal on a row of its order, as the recorder decides under the partner's lock. Returns the row after it. */
async function approve(row: StoredOrder, mayApply = true): Promise<StoredOrder | undefined> {
  let after: StoredOrder | undefined;
  type Decide = (row: StoredOrder, current: unknown) => Change<StoredOrder> | undefined;
  const change = async (_kind: unknown, _partner: string, _id: string, decide: Decide) => {
    after = decide(row, { proposal, facts: { steps: [], entered: [], namesakes: [] } })?.after;
    return after ?? row;
  };
  const kind = { table: orders, history: orderHistory, absent: { state: 'refused' } };
  const { action } = settlements({
    kinds: { ofId: () => kind },
    recorder: { change },
    clock: { now: () => approvedAt },
  } as never);
  await action.apply({ proposal, call: { operator: 'bola' } as never, mayApply: () => mayApply, record: () => [] });
  return after;
}

describe('the approval of a settlement', () => {
  it('lists the trades of the order up to the instant of the proposal, because its operator knew no later ones', async () => {
    const after = await approve(order);
    assert.equal(after?.state, 'partially_filled');
    assert.equal(readRecord(after?.settlement ?? null).listedUntil, proposedAt);
  });

  it('changes nothing if the proposal was applied before', async () => {
    assert.equal(await approve(order, false), undefined);
  });

  it('is refused if a report, a cancel or an answer has changed the order since the proposal', async () => {
    const changes: Partial<StoredOrder>[] = [
      { state: 'pending' },
      { filledQuantity: 5n, filledValueKobo: 5_000n },
      { exchangeOrderId: 'X-9' },
      { lastReport: 1n },
      { missedReport: 1n },
      { cancelUntil: 7 },
    ];
    for (const more of changes) {
      await assert.rejects(approve({ ...order, ...more }), /changed after this was proposed/, Object.keys(more).join());
    }
  });
});

describe('an object that the broker never had, by an operator', () => {
  const clockSkewMs = 2_000;
  const { notAfter } = order;
  const uncertain = { ...order, reference: null, param: null, brokerReference: null, evidence: 'no answer' };
  const withdrawal = { ...uncertain, id: 'wdr_a', destination: 'wallet', heldUntil: null, releasedAt: null };
  const never = [
    {
      ...{ kind: orderKind, row: order, facts: { steps: [], entered: [], namesakes: [] } },
      outcome: { order: { state: SettledOrderState.REFUSED } },
    },
    {
      ...{ kind: applicationKind, row: { ...uncertain, id: 'app_a', account: null }, facts: undefined },
      outcome: { application: { state: SettledApplicationState.UNPLACED } },
    },
    {
      ...{ kind: allocationKind, row: { ...uncertain, id: 'alc_a' }, facts: [] },
      outcome: { allocation: { state: SettledAllocationState.REFUSED } },
    },
    {
      ...{ kind: withdrawalKind, row: withdrawal, facts: [] },
      outcome: { withdrawal: { state: SettledWithdrawalState.REFUSED } },
    },
  ];

  /** Approves that it was never had, at an instant of real time. Returns its state. */
  async function approveAt(
    realNow: number,
    { kind, row, outcome: had, facts }: (typeof never)[number],
  ): Promise<string> {
    const request = writeOutcome(create(SettlementOutcomeSchema, had as never));
    const approved = { ...proposal, request, objectId: row.id, seen: JSON.stringify(seenOf(row as never)) };
    type Decide = (row: unknown, current: unknown) => Change<StoredOrder> | undefined;
    const change = async (_kind: unknown, _partner: string, _id: string, decide: Decide) =>
      decide(row, { proposal: approved, facts })?.after;
    const { action } = settlements({
      ...{ kinds: { ofId: () => kind }, recorder: { change }, clockSkewMs },
      clock: { now: () => realNow, realNow: () => realNow },
    } as never);
    const call = { operator: 'bola' } as never;
    return (await action.apply({ proposal: approved, call, mayApply: () => true, record: () => [] })).objectState;
  }

  for (const one of never) {
    const { name, absent } = one.kind;
    it(`one ${name} that the broker never had is settled as ${absent.state} once it can no longer be taken`, async () => {
      for (const at of [notAfter - 60_000, notAfter, notAfter + clockSkewMs - 1]) {
        await assert.rejects(approveAt(at, one), /it may still be taken until/, `${at - notAfter} ms`);
      }
      assert.equal(await approveAt(notAfter + clockSkewMs + 1, one), absent.state);
    });
  }
});
