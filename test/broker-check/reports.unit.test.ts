import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { reportProblem } from '../../src/broker-check/checks/rules.ts';
import { ReportKind, ReportSchema } from '../../src/gen/marina/broker/v1/orders_pb.ts';

describe("the kit's look at a report", () => {
  const problem = (kind: ReportKind, at?: number) =>
    reportProblem(
      create(ReportSchema, {
        ...{ number: 1n, clientOrderId: 'ord_1', kind },
        at: at === undefined ? undefined : timestampFromMs(at),
      }),
    );
  const { ACCEPTED, REJECTED, CANCELLED, EXPIRED, TRADE } = ReportKind;

  it('finds nothing wrong if an acceptance, a rejection, a cancel or an expiry has no time', () => {
    for (const kind of [ACCEPTED, REJECTED, CANCELLED, EXPIRED]) assert.equal(problem(kind), undefined);
  });

  it('finds a trade without a time', () => {
    assert.equal(problem(TRADE), 'it is a trade and has no time');
    assert.equal(problem(TRADE, Date.now()), undefined);
  });
});
