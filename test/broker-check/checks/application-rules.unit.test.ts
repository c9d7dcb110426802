import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { isSameReport, lifeProblem, reportProblem } from '../../../src/broker-check/checks/application-rules.ts';
import {
  type ApplicationReport,
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';

const { ACCEPTED, REJECTED, OPENED, UNSPECIFIED } = ApplicationReportKind;

function report(changes: Partial<Record<keyof ApplicationReport, unknown>> = {}): ApplicationReport {
  const good = {
    number: 1n,
    clientApplicationId: 'app_1',
    kind: ACCEPTED,
    at: timestampFromMs(1_000),
    reference: 'BRK1',
  };
  return create(ApplicationReportSchema, { ...good, ...changes } as never);
}

describe('the rules of an application’s reports', () => {
  it('a report is right by itself, or is wrong in one way', () => {
    for (const [changes, expected] of [
      [{}, undefined],
      [{ number: 0n }, /number is 0/],
      [{ number: -1n }, /number is -1/],
      [{ clientApplicationId: '' }, /names no application/],
      [{ kind: UNSPECIFIED }, /no kind/],
      [{ at: undefined }, /no time/],
      [{ reference: 'x'.repeat(64) }, undefined],
      [{ reference: 'x'.repeat(65) }, /longer than 64/],
      [{ reference: '' }, /has no reference/],
      [{ kind: REJECTED, reference: '' }, undefined],
      [{ kind: OPENED, account: 'A1' }, undefined],
      [{ kind: OPENED, account: 'X'.repeat(64) }, undefined],
      [{ kind: OPENED, account: 'X'.repeat(65) }, /its account is/],
      [{ kind: OPENED, account: '' }, /its account is ""/],
      [{ kind: OPENED, account: 'a1' }, /its account is "a1"/],
      [{ kind: ACCEPTED, account: 'a1' }, undefined],
      [{ reference: 'B\u0007' }, /its reference is not printable/],
    ] as const) {
      const problem = reportProblem(report(changes));
      const about = Object.keys(changes).join();
      if (expected === undefined) assert.equal(problem, undefined, about);
      else assert.match(problem ?? 'none', expected, about);
    }
  });

  it('an application is accepted first and once, and ends once', () => {
    for (const [kinds, expected] of [
      [[], undefined],
      [[ACCEPTED], undefined],
      [[REJECTED], undefined],
      [[ACCEPTED, OPENED], undefined],
      [[ACCEPTED, REJECTED], undefined],
      [[OPENED], /first report opens/],
      [[OPENED, ACCEPTED], /first report opens/],
      [[ACCEPTED, ACCEPTED], /accepted twice/],
      [[REJECTED, ACCEPTED], /accepted twice/],
      [[REJECTED, OPENED], /rejected, and more came/],
      [[REJECTED, REJECTED], /rejected, and more came/],
      [[ACCEPTED, OPENED, REJECTED], /ended 2 times/],
      [[ACCEPTED, REJECTED, REJECTED, OPENED], /ended 3 times/],
    ] as const) {
      const problem = lifeProblem(kinds.map((kind) => report({ kind })));
      const about = kinds.map((kind) => ApplicationReportKind[kind]).join();
      if (expected === undefined) assert.equal(problem, undefined, about);
      else assert.match(problem ?? 'none', expected, about);
    }
  });

  it('two reports are the same if each of their fields is', () => {
    assert.equal(isSameReport(report(), report()), true);
    for (const changes of [
      { number: 2n },
      { account: 'A1' },
      { param: 'bvn' },
      { at: timestampFromMs(1_001) },
      { reference: 'B' },
    ]) {
      assert.equal(isSameReport(report(), report(changes)), false, Object.keys(changes).join());
    }
  });
});
