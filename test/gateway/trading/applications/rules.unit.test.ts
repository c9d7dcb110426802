import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type ApplicationFacts,
  type ApplicationStateName,
  applicationStates,
  applyReport,
} from '../../../../src/gateway/trading/applications/rules.ts';
import {
  ApplicationFieldsSchema,
  ApplicationRejectReason,
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { ApplicationStateSchema } from '../../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { enumNames } from '../../../../src/kit/enums.ts';
import { fc } from '../../../support/properties.ts';

const now = Date.UTC(2026, 0, 5, 12);
const states = Object.keys(applicationStates.transitions) as ApplicationStateName[];
const { ACCEPTED, OPENED, REJECTED, UNSPECIFIED } = ApplicationReportKind;

function facts(state: ApplicationStateName, fields: Partial<ApplicationFacts> = {}): ApplicationFacts {
  return {
    state,
    reference: null,
    account: null,
    reason: null,
    rejectReason: null,
    param: null,
    lastReport: 0n,
    updatedAt: now,
    ...fields,
  };
}

function report(
  number: number,
  kind: ApplicationReportKind,
  fields: MessageInitShape<typeof ApplicationReportSchema> = {},
) {
  return create(ApplicationReportSchema, {
    number: BigInt(number),
    clientApplicationId: 'app_x',
    kind,
    at: timestampFromMs(now),
    reference: 'REF-1',
    account: kind === OPENED ? 'C1' : '',
    ...fields,
  });
}

describe('what becomes of an application', () => {
  it('they know the states partners are shown, and no other', () => {
    assert.deepEqual([...states].sort(), [...enumNames(ApplicationStateSchema).values()].sort());
  });

  it('one the broker accepts wants documents and has its reference', () => {
    for (const state of ['sending', 'uncertain'] as const) {
      const applied = applyReport(facts(state), report(1, ACCEPTED), now);
      assert.equal(applied?.row.state, 'documents_required');
      assert.equal(applied.row.reference, 'REF-1');
      assert.equal(applied.changed, true);
    }
  });

  it('an acceptance that comes when the documents are there, or the account is open, tells nothing new', () => {
    for (const state of ['documents_required', 'submitted', 'opened'] as const) {
      const applied = applyReport(facts(state), report(1, ACCEPTED), now);
      assert.deepEqual([applied?.changed, applied?.inconsistent, applied?.row.state], [false, false, state]);
    }
  });

  it('one the broker opens has its account, whether or not its acceptance or its documents were heard of', () => {
    for (const state of ['sending', 'uncertain', 'documents_required', 'submitted'] as const) {
      const applied = applyReport(facts(state), report(2, OPENED), now);
      assert.deepEqual([applied?.row.state, applied?.row.account], ['opened', 'C1']);
    }
  });

  it('an account that cannot be one, and a second account, are contradictions that change nothing', () => {
    for (const account of ['', 'c1', 'C-1', 'C'.repeat(65)]) {
      const applied = applyReport(facts('submitted'), report(2, OPENED, { account }), now);
      assert.deepEqual([applied?.inconsistent, applied?.row.state], [true, 'submitted'], account);
    }
    const opened = facts('opened', { account: 'C1' });
    const second = applyReport(opened, report(3, OPENED, { account: 'C2' }), now);
    assert.deepEqual([second?.inconsistent, second?.row.account], [true, 'C1']);
    assert.equal(applyReport(opened, report(3, OPENED), now)?.inconsistent, false);
  });

  it('an application that never was at the broker and is accepted, opened or rejected is a contradiction a person must see', () => {
    for (const state of ['refused', 'unplaced'] as const) {
      for (const kind of [ACCEPTED, OPENED, REJECTED]) {
        const applied = applyReport(facts(state), report(1, kind), now);
        assert.deepEqual([applied?.inconsistent, applied?.row.state], [true, state]);
        assert.equal(applied?.changed, true, 'the partner hears of it');
        assert.match(applied?.row.reason ?? '', /That was wrong\. The broker/);
      }
    }
  });

  it('a rejection carries a reason and a field from our own lists, whatever the broker says', () => {
    const reject = (rejectReason: ApplicationRejectReason, param = '') =>
      applyReport(facts('sending'), report(1, REJECTED, { rejectReason, param, reference: '' }), now)?.row;
    assert.equal(reject(ApplicationRejectReason.INVALID_FIELD)?.rejectReason, 'invalid_field');
    assert.equal(reject(ApplicationRejectReason.ALREADY_AT_BROKER)?.rejectReason, 'already_at_broker');
    assert.equal(reject(ApplicationRejectReason.DECLINED_BY_BROKER)?.rejectReason, 'declined_by_broker');
    assert.equal(reject(99 as ApplicationRejectReason)?.rejectReason, 'rejected_by_broker');
    for (const { name } of ApplicationFieldsSchema.fields) {
      assert.equal(reject(ApplicationRejectReason.INVALID_FIELD, name)?.param, name);
    }
    for (const value of ['', '22222222222', 'Adaeze', 'firstName', 'first_name ', 'BVN', '__proto__']) {
      assert.equal(reject(ApplicationRejectReason.INVALID_FIELD, value)?.param, null, value);
    }
  });

  it('a report that lacks what its kind needs is a contradiction', () => {
    const refused = [
      report(1, ACCEPTED, { at: undefined }),
      report(1, ACCEPTED, { reference: '' }),
      report(1, ACCEPTED, { reference: 'R'.repeat(65) }),
      report(1, OPENED, { account: '' }),
      report(1, OPENED, { account: 'c3' }),
      report(1, OPENED, { account: 'C'.repeat(65) }),
      report(1, UNSPECIFIED),
    ];
    for (const each of refused) {
      const applied = applyReport(facts('sending'), each, now);
      assert.deepEqual([applied?.inconsistent, applied?.row.state], [true, 'sending']);
      assert.match(applied?.detail ?? '', /lacks what its kind needs/);
    }
    const longest = applyReport(facts('sending'), report(1, ACCEPTED, { reference: 'R'.repeat(64) }), now);
    assert.equal(longest?.row.reference, 'R'.repeat(64));
  });

  it('an application that is opened already stays so when it is accepted, and opens with no other account', () => {
    const opened = facts('opened', { account: 'C1' });
    const after = (kind: ApplicationReportKind, account: string) =>
      applyReport(opened, report(1, kind, { account }), now);
    assert.deepEqual(
      [after(ACCEPTED, ''), after(OPENED, 'C1'), after(OPENED, 'C2')].map((applied) => [
        applied?.changed,
        applied?.inconsistent,
        applied?.row.account,
      ]),
      [
        [false, false, 'C1'],
        [false, false, 'C1'],
        [false, true, 'C1'],
      ],
    );
    const again = applyReport(facts('rejected'), report(1, REJECTED, { reference: '' }), now);
    assert.deepEqual([again?.changed, again?.inconsistent], [false, false]);
  });

  it('a report seen before changes nothing', () => {
    const seen = facts('documents_required', { lastReport: 2n });
    assert.equal(applyReport(seen, report(2, REJECTED), now), undefined);
    assert.equal(applyReport(seen, report(1, OPENED), now), undefined);
  });

  it('final states are those nothing leads out of', () => {
    assert.deepEqual([...applicationStates.final].sort(), ['opened', 'refused', 'rejected', 'unplaced']);
    for (const state of states) {
      for (const to of states) {
        if (applicationStates.transitions[state].includes(to))
          assert.equal(applicationStates.move(facts(state), to, null, now).state, to);
        else assert.throws(() => applicationStates.move(facts(state), to, null, now), /cannot go from/);
      }
    }
  });

  it('whatever the broker reports, a final state stays, time never goes back, and no value of ours is made up', () => {
    const reports = fc.array(
      fc.record({
        kind: fc.constantFrom(UNSPECIFIED, ACCEPTED, OPENED, REJECTED, 99 as ApplicationReportKind),
        number: fc.integer({ min: 1, max: 8 }),
        account: fc.constantFrom('', 'C1', 'C2', 'c3', 'C'.repeat(65)),
        reference: fc.constantFrom('', 'R1', 'R2', 'R'.repeat(65)),
        rejectReason: fc.integer({ min: 0, max: 9 }),
        param: fc.oneof(fc.constantFrom('bvn', 'email', 'Adaeze'), fc.string()),
        at: fc.integer({ min: -5_000, max: 5_000 }),
      }),
      { maxLength: 12 },
    );
    const words = ['invalid_field', 'already_at_broker', 'rejected_by_broker', 'declined_by_broker'];
    const names = new Set<string | null>([null, ...ApplicationFieldsSchema.fields.map(({ name }) => name)]);
    fc.assert(
      fc.property(fc.constantFrom(...states), reports, (start, list) => {
        let application = facts(start, { account: start === 'opened' ? 'C1' : null });
        for (const { kind, number, at, ...fields } of list) {
          const before = application;
          const applied = applyReport(application, report(number, kind, fields), now + at);
          if (applied === undefined) {
            assert.ok(BigInt(number) <= before.lastReport);
            continue;
          }
          application = applied.row;
          assert.ok(application.updatedAt >= before.updatedAt);
          assert.ok(application.lastReport > before.lastReport);
          // Of one that was called lost every report is told, though it stays so.
          const wasLost = ['refused', 'unplaced'].includes(before.state) && applied.changed;
          assert.equal(applied.changed, wasLost || application.state !== before.state);
          assert.ok(
            !applied.changed || wasLost || applicationStates.transitions[before.state].includes(application.state),
          );
          assert.ok(!applied.inconsistent || application.state === before.state);
          if (applicationStates.isFinal(before.state)) assert.equal(application.state, before.state);
          if (before.reference !== null) assert.equal(application.reference, before.reference);
          if (application.state === 'opened') assert.match(application.account ?? '', /^[A-Z0-9]{1,64}$/);
          if (application.state === 'rejected' && applied.changed)
            assert.ok(words.includes(application.rejectReason ?? ''));
          assert.ok(names.has(application.param));
          assert.ok((application.reference ?? '').length <= 64);
        }
      }),
    );
  });
});
