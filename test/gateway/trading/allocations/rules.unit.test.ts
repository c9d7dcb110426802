import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import {
  type AllocationStateName,
  allocationStates,
  countedKobo,
  rejectReasonOf,
  settlementOf,
} from '../../../../src/gateway/trading/allocations/rules.ts';
import type { StoredAllocation } from '../../../../src/gateway/trading/allocations/table.ts';
import type { Sent } from '../../../../src/gateway/trading/broker/broker.ts';
import { applySent, Change } from '../../../../src/gateway/trading/submission/change.ts';
import { isUnsettled } from '../../../../src/gateway/trading/submission/rules.ts';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRecordSchema,
  AllocationRejectReason,
} from '../../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { AllocationStateSchema } from '../../../../src/gen/marina/gateway/v1/allocations_pb.ts';
import { enumNames } from '../../../../src/kit/enums.ts';
import { allocationKind } from '../../../support/kinds.ts';
import { fc } from '../../../support/properties.ts';

const now = Date.UTC(2026, 2, 2, 9);
const { isFinal, move, transitions, final } = allocationStates;
const states = Object.keys(transitions) as AllocationStateName[];

const sending: StoredAllocation = {
  id: 'alc_1',
  partnerId: 'par_1',
  requestId: null,
  traceParent: null,
  keyId: null,
  state: 'sending',
  account: 'C1',
  amountKobo: 1_000n,
  clientReference: null,
  brokerReference: null,
  reason: null,
  rejectReason: null,
  createdAt: now,
  updatedAt: now,
  countedDay: '2026-03-02',
  idempotencyKey: 'k',
  requestDigest: Buffer.alloc(32),
  firstAnswer: null,
  evidence: '',
  notAfter: now + 10_000,
  checkAt: now + 12_000,
  checks: 0,
  settlement: null,
  missingSince: null,
  steps: 1,
};

const booked = create(AllocationRecordSchema, { outcome: AllocationOutcome.BOOKED, brokerReference: 'B1' });
const rejected = create(AllocationRecordSchema, {
  outcome: AllocationOutcome.REJECTED,
  rejectReason: AllocationRejectReason.ACCOUNT_RESTRICTED,
});

describe('the states of an allocation', () => {
  it('they know the states partners are shown, and no other', () => {
    assert.deepEqual([...states].sort(), [...enumNames(AllocationStateSchema).values()].sort());
  });

  it('are left as the tables say, and the final ones never', () => {
    for (const from of states) {
      assert.equal(isFinal(from), transitions[from].length === 0);
      assert.equal(final.includes(from), isFinal(from));
      assert.notEqual(isFinal(from), isUnsettled(from), 'nothing is in between');
      for (const to of states) {
        const go = () => move({ ...sending, state: from }, to, null, now);
        if (transitions[from].includes(to)) assert.equal(go().state, to);
        else assert.throws(go, /cannot go/);
      }
    }
  });

  it('move money once: a post when booked, a return when refused or rejected, nothing before', () => {
    for (const from of states) {
      for (const to of transitions[from]) {
        const expected = to === 'uncertain' ? undefined : to === 'booked' ? 'post' : 'return';
        assert.equal(settlementOf(from, to), expected, `${from} to ${to}`);
      }
      assert.equal(settlementOf(from, from), undefined);
    }
  });

  it('count against the day unless refused or rejected', () => {
    const counted = states.map((state) => [state, countedKobo({ state, amountKobo: 7n })]);
    assert.deepEqual(
      counted.filter(([, kobo]) => kobo === 0n).map(([state]) => state),
      ['rejected', 'refused'],
    );
  });

  it('never go back in time', () => {
    assert.equal(move(sending, 'booked', null, now - 5_000).updatedAt, now);
  });

  it('give every reason of the broker a word, an unknown one the general word', () => {
    assert.equal(rejectReasonOf(AllocationRejectReason.AMOUNT_NOT_ACCEPTED).word, 'amount_not_accepted');
    assert.equal(rejectReasonOf(99 as AllocationRejectReason).word, 'rejected_by_broker');
  });
});

function recorded(row: StoredAllocation, record: AllocationRecord) {
  return new Change(allocationKind, row, now).reports([record]);
}

describe('what becomes of an allocation', () => {
  const cases: readonly [string, Sent<AllocationRecord>, AllocationStateName, StoredAllocation['firstAnswer']][] = [
    ['booked', { outcome: 'answered', answer: booked }, 'booked', 'object'],
    ['rejected', { outcome: 'answered', answer: rejected }, 'rejected', 'rejected'],
    ['never sent', { outcome: 'never-left', evidence: 'no link' }, 'refused', 'not_sent'],
    ['unclear', { outcome: 'unclear', evidence: 'no answer' }, 'uncertain', 'object'],
  ];
  for (const [name, sent, state, firstAnswer] of cases) {
    it(`an allocation that is ${name} is ${state}, and the partner hears of it once`, () => {
      const { after, events } = applySent(allocationKind, sending, sent, now, now);
      assert.deepEqual([after.state, after.firstAnswer], [state, firstAnswer]);
      assert.deepEqual(
        events.map((row) => row.state),
        [state],
      );
      assert.equal(after.checkAt, state === 'uncertain' ? now : null);
    });
  }

  it('whatever comes in whatever order, its money is settled once at most, by what the broker has', () => {
    const step = fc.constantFrom<(row: StoredAllocation) => ReturnType<typeof recorded>>(
      ...cases.map(
        ([, sent]) =>
          (row: StoredAllocation) =>
            applySent(allocationKind, row, sent, now, now),
      ),
      (row) => recorded(row, booked),
      (row) => recorded(row, rejected),
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        let row = sending;
        const settlements: string[] = [];
        const emitted: string[] = [];
        for (const next of steps) {
          const change = next(row);
          const settlement = settlementOf(row.state, change.after.state);
          if (settlement !== undefined) settlements.push(settlement);
          emitted.push(...change.events.map(({ state }) => state));
          if (isFinal(row.state)) assert.equal(change.after.state, row.state, 'a final state stays');
          row = change.after;
        }
        assert.equal(settlements.length, isFinal(row.state) ? 1 : 0);
        if (settlements.length > 0) assert.equal(settlements[0], row.state === 'booked' ? 'post' : 'return');
        const twice = row.reason?.includes('That was wrong') ? 1 : 0;
        assert.equal(
          emitted.length - new Set(emitted).size,
          twice,
          'no state makes two events, unless a refusal was wrong',
        );
        assert.equal(row.brokerReference !== null, row.state === 'booked');
        assert.equal(row.rejectReason !== null, row.state === 'rejected');
      }),
    );
  });

  it('a record that contradicts what the partner was told for good is alarmed, and no money moves', () => {
    const refused = { ...sending, state: 'refused' as const };
    const change = recorded(refused, booked);
    assert.match(change.inconsistencies.join(), /says booked.*is refused/);
    assert.equal(change.after.state, 'refused');
    assert.match(change.after.reason ?? '', /That was wrong: the broker has booked it/);
    assert.equal(change.events.length, 1, 'the partner hears of it');
    assert.equal(recorded(refused, rejected).inconsistencies.length, 0, 'the money is back');
    assert.ok(recorded({ ...sending, state: 'booked' }, rejected).inconsistencies.length > 0);
    assert.ok(recorded({ ...sending, state: 'rejected' }, booked).inconsistencies.length > 0);
  });
});
