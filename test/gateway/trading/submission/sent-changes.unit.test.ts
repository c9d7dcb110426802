import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { StoredApplication } from '../../../../src/gateway/trading/applications/table.ts';
import type { Sent } from '../../../../src/gateway/trading/broker/broker.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { applySent, Change } from '../../../../src/gateway/trading/submission/change.ts';
import {
  type ApplicationReport,
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { applicationKind, orderKind } from '../../../support/kinds.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const now = Date.UTC(2026, 2, 2, 9, 30);
const realNow = now - 86_400_000;

const order: StoredOrder = { ...plainOrder, createdAt: now - 1, updatedAt: now - 1 };

function report(number: bigint, kind: ReportKind, quantity = 0n): Report {
  return create(ReportSchema, {
    number,
    exchangeOrderId: 'X1',
    kind,
    at: timestampFromMs(now),
    quantity,
    priceKobo: quantity === 0n ? 0n : 1_000n,
  });
}

/** Applies the outcome of a send to an order, and returns the parts that are shown and kept. */
function came(of: StoredOrder, sent: Sent<Report>) {
  const { after, events, steps } = applySent(orderKind, of, sent, now, realNow);
  assert.equal(after.steps, of.steps + steps.length, 'each step is counted');
  return {
    state: after.state,
    firstAnswer: after.firstAnswer,
    checkAt: after.checkAt,
    told: events.map(({ state }) => state),
    steps: steps.map(({ kind }) => kind),
  };
}

describe('what a send of an order came to', () => {
  const accepted: Sent<Report> = { outcome: 'answered', answer: report(1n, ReportKind.ACCEPTED) };
  const rejected: Sent<Report> = { outcome: 'answered', answer: report(1n, ReportKind.REJECTED) };
  const neverLeft: Sent<Report> = { outcome: 'never-left', evidence: 'no link' };
  const unclear: Sent<Report> = { outcome: 'unclear', evidence: 'no answer' };

  it('is the first answer to its partner', () => {
    const steps = ['sent', 'report'];
    assert.deepEqual(came(order, accepted), {
      state: 'pending',
      firstAnswer: 'object',
      checkAt: null,
      told: ['pending'],
      steps,
    });
    assert.deepEqual(came(order, rejected), {
      state: 'rejected',
      firstAnswer: 'rejected',
      checkAt: null,
      told: ['rejected'],
      steps,
    });
    assert.deepEqual(came(order, neverLeft), {
      state: 'refused',
      firstAnswer: 'not_sent',
      checkAt: null,
      told: ['refused'],
      steps: ['sent'],
    });
    assert.deepEqual(came(order, unclear), {
      state: 'uncertain',
      firstAnswer: 'object',
      checkAt: realNow,
      told: ['uncertain'],
      steps: ['sent'],
    });
  });

  it('changes nothing that a report or a look-up found out before it', () => {
    const pending = { ...order, state: 'pending', lastReport: 1n, checkAt: null, exchangeOrderId: 'X1' } as const;
    const seen = { state: 'pending', firstAnswer: 'object', checkAt: null, told: [], steps: ['sent'] };
    assert.deepEqual(came(pending, accepted), seen, 'the report was seen by the stream');
    assert.deepEqual(came(pending, unclear), seen, 'the exchange has it, whatever became of the answer');
    const filled = { ...pending, state: 'filled', filledQuantity: 100n, lastReport: 4n } as const;
    assert.deepEqual(came(filled, unclear), { ...seen, state: 'filled' });
    const gone = { ...order, state: 'rejected', lastReport: 1n, checkAt: null } as const;
    assert.deepEqual(came(gone, unclear), { ...seen, state: 'rejected', firstAnswer: 'rejected' });
    const refused = { ...order, state: 'refused', checkAt: null } as const;
    assert.deepEqual(came(refused, unclear), { ...seen, state: 'refused', firstAnswer: 'not_sent' });
    const contradicted = { ...seen, steps: ['sent', 'contradiction'] };
    assert.deepEqual(came(pending, rejected), contradicted, 'its partner is not told that it was rejected');
    assert.deepEqual(came(filled, rejected), { ...contradicted, state: 'filled' });
    assert.deepEqual(came(gone, rejected), { ...seen, state: 'rejected', firstAnswer: 'rejected' });
    const uncertain = { ...order, state: 'uncertain', checkAt: realNow + 5_000 } as const;
    assert.deepEqual(
      came(uncertain, unclear),
      { ...seen, state: 'uncertain', checkAt: realNow + 5_000 },
      'it is told once that nobody knows, and asked about when it was to be',
    );
    assert.deepEqual(came(uncertain, neverLeft).state, 'refused', 'that it never left is proof');
  });

  it('has each step of its history counted and numbered by the exchange', () => {
    const change = new Change(orderKind, { ...order, steps: 3 }, now).reports([
      report(5n, ReportKind.ACCEPTED),
      report(6n, ReportKind.TRADE, 40n),
      report(6n, ReportKind.TRADE, 40n),
      report(8n, ReportKind.TRADE, 61n),
      report(9n, ReportKind.CANCELLED),
    ]);
    assert.deepEqual(
      change.steps.map(({ kind, reportNumber, quantity }) => [kind, reportNumber, quantity]),
      [
        ['report', 5n, undefined],
        ['report', 6n, 40n],
        ['contradiction', 8n, 61n],
        ['report', 9n, undefined],
      ],
    );
    assert.deepEqual([change.after.steps, change.after.filledQuantity, change.after.lastReport], [7, 40n, 9n]);
    assert.equal(change.inconsistencies.length, 1, 'a person is told of the trade that cannot be');
    assert.deepEqual(
      change.events.map(({ state }) => state),
      ['pending', 'partially_filled', 'cancelled'],
    );
  });

  it('leaves a cancel unclear until the order is final', () => {
    const cancelling = { ...order, state: 'pending', cancelUntil: 7, lastReport: 1n } as const;
    const traded = new Change(orderKind, cancelling, now).reports([report(2n, ReportKind.TRADE, 1n)]);
    assert.equal(traded.after.cancelUntil, 7, 'a trade says nothing of the cancel');
    const filled = new Change(orderKind, cancelling, now).reports([report(2n, ReportKind.TRADE, 100n)]);
    assert.equal(filled.after.cancelUntil, null, 'nothing is unclear of a cancel once the order is final');
  });
});

const application: StoredApplication = {
  ...plainOrder,
  id: 'app_1',
  state: 'sending',
  reference: null,
  account: null,
  param: null,
  evidence: 'stored, before it is sent',
};

describe('what a send of an application came to', () => {
  const said = { number: 1n, at: timestampFromMs(now), reference: 'REF-1' };
  const accepted: Sent<ApplicationReport> = {
    outcome: 'answered',
    answer: create(ApplicationReportSchema, { ...said, kind: ApplicationReportKind.ACCEPTED }),
  };
  const unclear: Sent<ApplicationReport> = { outcome: 'unclear', evidence: 'no answer' };
  const neverLeft: Sent<ApplicationReport> = { outcome: 'never-left', evidence: 'no link' };

  function cameOf(of: StoredApplication, sent: Sent<ApplicationReport>) {
    const { after, events } = applySent(applicationKind, of, sent, now, realNow);
    return [after.state, after.firstAnswer, after.checkAt, events.map(({ state }) => state)];
  }

  it('is the first answer to its partner', () => {
    const wanted = 'documents_required';
    assert.deepEqual(cameOf(application, accepted), [wanted, 'object', null, [wanted]]);
    assert.deepEqual(cameOf(application, neverLeft), ['refused', 'not_sent', null, ['refused']]);
    assert.deepEqual(cameOf(application, unclear), ['uncertain', 'object', realNow, ['uncertain']]);
  });

  it('changes nothing that a report or a look-up found out before it', () => {
    for (const [state, firstAnswer] of [
      ['documents_required', 'object'],
      ['opened', 'object'],
      ['rejected', 'rejected'],
      ['unplaced', 'object'],
    ] as const) {
      const known = { ...application, state, lastReport: 1n, checkAt: null };
      assert.deepEqual(cameOf(known, unclear), [state, firstAnswer, null, []]);
    }
    const settled = { ...application, state: 'opened', evidence: 'the broker opened the account' } as const;
    const late = applySent(applicationKind, settled, unclear, now, realNow).after;
    assert.equal(late.evidence, settled.evidence, 'it is known as before by what the state is known');
    const uncertain = { ...application, state: 'uncertain', checkAt: realNow + 5_000 } as const;
    assert.deepEqual(cameOf(uncertain, unclear), ['uncertain', 'object', realNow + 5_000, []]);
  });
});
