import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { lifeProblem, reportProblem } from '../../src/broker-check/checks/withdrawal-rules.ts';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';

const { ACCEPTED, PAID, REJECTED, RETURNED, UNSPECIFIED } = WithdrawalReportKind;
const { WALLET, BANK_ACCOUNT } = WithdrawalDestination;

function report(kind: WithdrawalReportKind, more: object = {}) {
  const at = timestampFromMs(0);
  const usual = { number: 1n, clientWithdrawalId: 'wdr_1', kind, at, brokerReference: 'R1' };
  return create(WithdrawalReportSchema, { ...usual, ...more });
}

const lives = (...kinds: WithdrawalReportKind[]) =>
  lifeProblem(
    kinds.map((kind) => report(kind)),
    BANK_ACCOUNT,
  );

describe('the reports about one withdrawal', () => {
  it('may accept, pay, reject and return it in an order that a broker can have', () => {
    for (const kinds of [
      [],
      [ACCEPTED],
      [PAID],
      [REJECTED],
      [ACCEPTED, PAID],
      [ACCEPTED, REJECTED],
      [PAID, RETURNED],
      [ACCEPTED, PAID, RETURNED],
    ]) {
      assert.equal(lives(...kinds), undefined, String(kinds));
    }
  });

  it('are wrong if they begin with a return, come after an end, or come twice', () => {
    assert.equal(lives(RETURNED), 'a report RETURNED comes first');
    assert.equal(lives(ACCEPTED, RETURNED), 'a report RETURNED comes after ACCEPTED');
    assert.equal(lives(ACCEPTED, ACCEPTED), 'a report ACCEPTED comes after ACCEPTED');
    assert.equal(lives(PAID, REJECTED), 'a report REJECTED comes after PAID');
    assert.equal(lives(REJECTED, PAID), 'a report PAID comes after REJECTED');
    assert.equal(lives(PAID, RETURNED, RETURNED), 'a report RETURNED comes after RETURNED');
  });

  it('are wrong if the wallet returns it, or if its reference changes', () => {
    assert.equal(lifeProblem([report(PAID), report(RETURNED)], WALLET), 'the wallet returned it');
    const other = report(PAID, { brokerReference: 'R2' });
    assert.equal(lifeProblem([report(ACCEPTED), other], BANK_ACCOUNT), 'its reference changed');
  });

  it('are whole, each by itself, or their problem is named', () => {
    assert.equal(reportProblem(report(PAID)), undefined);
    assert.equal(reportProblem(report(REJECTED, { brokerReference: '' })), undefined);
    assert.equal(reportProblem(report(PAID, { number: 0n })), 'its number is 0');
    assert.equal(reportProblem(report(PAID, { clientWithdrawalId: '' })), 'it names no withdrawal');
    assert.equal(reportProblem(report(UNSPECIFIED)), 'it has no kind');
    assert.equal(reportProblem(report(PAID, { at: undefined })), 'it has no time');
    assert.equal(reportProblem(report(PAID, { brokerReference: 'R'.repeat(64) })), undefined);
    assert.equal(reportProblem(report(PAID, { brokerReference: 'R'.repeat(65) })), 'its reference is longer than 64');
    assert.equal(reportProblem(report(RETURNED, { brokerReference: '' })), 'it is no rejection, and has no reference');
    const reason = { rejectReason: WithdrawalRejectReason.REJECTED_BY_BROKER };
    assert.equal(reportProblem(report(PAID, reason)), 'it is no rejection, and has a reason to reject it');
  });
});
