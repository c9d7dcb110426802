import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type ApplicationSettlement,
  applyReport,
  type SettledApplicationFacts,
  settleApplication,
} from '../../../../src/gateway/trading/applications/settlement/rules.ts';
import {
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../../../src/gen/marina/broker/v1/applications_pb.ts';

const now = Date.UTC(2026, 0, 5, 12);
const uncertain: SettledApplicationFacts = {
  ...{ state: 'uncertain', reference: null, account: null, reason: null, rejectReason: null, param: null },
  ...{ lastReport: 3n, updatedAt: now, settlement: null },
};
const none = { reference: undefined, account: undefined, rejectReason: undefined };

/** Settlements that end an application, and the reports that say the same. */
const ends: readonly (readonly [settlement: ApplicationSettlement, same: readonly string[]])[] = [
  [{ ...none, state: 'opened', account: 'C1' }, ['ACCEPTED', 'OPENED C1']],
  [{ ...none, state: 'rejected', rejectReason: 'declined_by_broker' }, ['REJECTED']],
  [{ ...none, state: 'unplaced' }, []],
];
const reports = ['ACCEPTED', 'OPENED C1', 'OPENED C2', 'REJECTED', 'UNSPECIFIED'];

function reportOf(text: string, number: bigint) {
  const [kind, account = ''] = text.split(' ');
  return create(ApplicationReportSchema, {
    ...{ number, clientApplicationId: 'app_x', account, reference: 'R1', at: timestampFromMs(now) },
    kind: ApplicationReportKind[kind as keyof typeof ApplicationReportKind],
  });
}

describe('an application that an operator ended, and of which the broker reports more', () => {
  for (const [settlement, same] of ends) {
    const settling = settleApplication(uncertain, settlement, now);
    assert.ok('changes' in settling);
    const settled = { ...uncertain, ...settling.changes[0]?.fields };

    for (const text of reports) {
      const isSame = same.includes(text);
      it(`an application stays ${settlement.state}, and ${isSame ? 'is confirmed by' : 'contradicts'} the report ${text}, which is seen once`, () => {
        const applied = applyReport(settled, reportOf(text, 4n), now + 1_000);
        assert.ok(applied !== undefined);
        assert.equal(applied.row.state, settled.state);
        assert.equal(applied.row.account, settled.account);
        assert.equal(applied.inconsistent ?? false, !isSame);
        assert.equal(applied.row.lastReport, 4n);
        const isCorrected = settlement.state === 'unplaced' && text !== 'UNSPECIFIED';
        const reason = isCorrected ? /That was wrong\. The broker/ : settled.reason;
        if (reason instanceof RegExp) assert.match(applied.row.reason ?? '', reason);
        else assert.equal(applied.row.reason, reason);
        assert.equal(applyReport(applied.row, reportOf(text, 4n), now + 2_000), undefined);
      });
    }
  }
});
