/** The orders that a message is about, and what it proves of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyMessages, subjectsOf } from '../../../src/fix-adapter/orders/apply-messages.ts';
import type { ExchangeMessage } from '../../../src/fix-adapter/orders/execution.ts';
import { cancelName } from '../../../src/fix-adapter/orders/names.ts';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { fixMessage as message, fixOrder as order, execution as report } from '../../support/fix-order.ts';
import { about, ended, found, known, status, trade } from '../../support/fix-reports.ts';

/** The name of the nth request to cancel the order. */
const cancelIdOf = (nth: number) => cancelName('ord_a', nth, 70) ?? '';

describe('a message of the exchange that is applied', () => {
  it('a report that says a decisive field twice is found, and not applied', () => {
    const one = trade('40', '1.00');
    const fields = [[tags.LastQty, '40'] as const, [tags.LastQty, '4'] as const];
    const { changes } = found(order({ state: 'open' }), { ...one, fields });
    assert.deepEqual([changes.reports, changes.findings.map(({ what }) => what)], [[], ['not_understood']]);
  });

  it('a report that names an order in any form makes it one that the exchange has seen, and an unknown order does not', () => {
    const acknowledged = (message: ExchangeMessage) =>
      found(order(), message).changes.orders[0]?.after.acknowledged ?? false;
    assert.ok(acknowledged(report('A')));
    assert.ok(acknowledged(report('6')));
    assert.ok(!acknowledged(status('8', '0', { [tags.OrdRejReason]: '5' })));
    assert.ok(!acknowledged(status('8', '0', { [tags.OrdRejReason]: '99' })));
  });

  const acknowledgedBy = (message: ExchangeMessage) =>
    found(order(), message).changes.orders[0]?.after.acknowledged ?? false;

  it('a report that contradicts an unknown order shows that the exchange has seen it', () => {
    for (const [tag, value] of [
      ...([[tags.Side, '2'] as const, [tags.LeavesQty, '100'] as const, [tags.OrderID, 'X1'] as const] as const),
      ...([[tags.OrderQty, '70'] as const, [tags.CumQty, '40'] as const] as const),
    ]) {
      assert.ok(acknowledgedBy(status('8', '0', { [tag]: value })), `${tag}=${value}`);
    }
  });

  it('a report of a cancel that is refused shows that the exchange has the order, unless it does not know it', () => {
    const refusal = (more: Record<number, string>) =>
      message({ [tags.ClOrdID]: 'ord_a.c1', [tags.OrigClOrdID]: 'ord_a', ...more }, '9');
    const unknown = { [tags.OrderID]: 'NONE', [tags.OrdStatus]: '8', [tags.CxlRejReason]: '1' };
    assert.ok(!acknowledgedBy(refusal(unknown)));
    assert.ok(acknowledgedBy(refusal({ ...unknown, [tags.CxlRejReason]: '2' })));
    assert.ok(acknowledgedBy(refusal({ ...unknown, [tags.OrdStatus]: '0' })));
    assert.ok(acknowledgedBy(refusal({ ...unknown, [tags.OrderID]: 'X1' })));
    assert.deepEqual(
      found(order(), refusal(unknown)).changes.findings.map(({ what }) => what),
      ['not_understood'],
    );
  });

  it('a message of a type that is not supported shows that the exchange has each order that it names, in any of its groups', () => {
    const grouped = (...fields: (readonly [number, string])[]): ExchangeMessage => ({
      ...{ type: 'AE', fields },
      get: (tag) => fields.find(([each]) => each === tag)?.[1],
    });
    const capture = grouped([tags.Side, '1'], [tags.ClOrdID, 'theirs'], [tags.Side, '2'], [tags.ClOrdID, 'ord_a']);
    assert.ok(subjectsOf([capture]).orderIds.includes('ord_a'));
    assert.ok(acknowledgedBy(capture));
    const revived = found(order({ state: 'unsent' }), capture, capture).changes;
    assert.deepEqual(
      revived.findings.map(({ what }) => what),
      ['revived'],
    );
  });

  it('a report that names no order of ours may be about those in doubt, if it can be about an order at all', () => {
    const unmatched = (received: ExchangeMessage) => found(order(), received).changes.unmatched ?? [];
    const cut = (more = {}) => report('0', { [tags.ClOrdID]: 'ord_', ...more });
    assert.deepEqual(unmatched(cut()), [{}]);
    assert.deepEqual(unmatched(report('0', { [tags.ClOrdID]: undefined, [tags.OrderID]: undefined })), [{}]);
    assert.deepEqual(unmatched(message({ [tags.ClOrdID]: 'ORD_A.c1', [tags.CxlRejReason]: '2' }, '9')), [{}]);
    assert.deepEqual(unmatched(message({ [tags.ExecID]: 't1', [tags.Side]: '1' }, 'AE')), [{}]);
    assert.deepEqual(unmatched(message({ [tags.Text]: 'news' }, 'B')), []);
    assert.deepEqual(unmatched(report('0')), []);
    const terms = { [tags.Account]: 'NG-1', [tags.Side]: '1', [tags.OrderQty]: '100', [tags.Price]: '1.00' };
    assert.deepEqual(unmatched(cut({ [tags.MassStatusReqID]: 'm', ...terms })), [{ account: 'NG-1', side: 'buy' }]);
    const none = { [tags.ExecType]: 'I', [tags.OrdStatus]: '8' };
    assert.deepEqual(unmatched(cut({ ...none, [tags.MassStatusReqID]: 'm' })), []);
  });

  it('a report that names an order of ours and is about another one has those of its account and side asked about', () => {
    const misnamed = (received: ExchangeMessage) => found(order({ state: 'open' }), received).changes.misnamed ?? [];
    const trade = { [tags.LastQty]: '40', [tags.CumQty]: '40', [tags.LeavesQty]: '60', [tags.OrdStatus]: '1' };
    assert.deepEqual(misnamed(report('F', { ...trade, [tags.Side]: '2', [tags.Account]: 'NG-1' })), [
      { account: 'NG-1', side: 'sell' },
    ]);
    assert.deepEqual(misnamed(report('F', { ...trade, [tags.Side]: '2', [tags.Account]: undefined })), [
      { side: 'sell' },
    ]);
    assert.deepEqual(misnamed(report('0')), []);
  });

  it('a report that answers a question about another order, or names two orders, is applied to none', () => {
    const known = { startedAt: 7, orders: [order(), order({ id: 'ord_b' })], cancels: [], executed: new Map() };
    const asking = { ...about, askedAbout: (id: string) => (id === 'q' ? 'ord_b' : undefined) };
    const finds = (received: ExchangeMessage) => {
      const { changes, result } = applyMessages([received], known, asking);
      const answers = result.statuses.map(({ answer }) => answer);
      return [...changes.findings.map(({ what }) => what), ...changes.reports.map(({ kind }) => kind), ...answers];
    };
    const unknown = (more: Record<number, string>) => status('8', '0', { [tags.OrdRejReason]: '5', ...more });
    assert.deepEqual(finds(unknown({ [tags.OrdStatusReqID]: 'q' })), ['identity_differs', 'unclear']);
    assert.deepEqual(finds(status('0', '0', { [tags.OrdStatusReqID]: 'q' })), ['identity_differs', 'unclear']);
    assert.deepEqual(finds(unknown({ [tags.OrdStatusReqID]: 'other' })), ['unknown']);
    assert.deepEqual(finds(report('0', { [tags.OrigClOrdID]: 'ord_b' })), ['identity_differs']);
  });

  it('a message answers a question if it is clear, unless it is a mass status', () => {
    const asked = order({ state: 'open', asked: true, mustAsk: true });
    const marks = (message: ExchangeMessage) => {
      const after = found(asked, message).changes.orders[0]?.after ?? asked;
      return [after.asked, after.mustAsk];
    };
    assert.deepEqual(marks(status('0', '0', { [tags.OrdStatusReqID]: 'q' })), [false, false]);
    assert.deepEqual(marks(status('0', '0', { [tags.MassStatusReqID]: 'm' })), [true, true]);
    assert.deepEqual(marks(status('8', '0', { [tags.OrdRejReason]: '99' })), [false, true]);
    assert.deepEqual(marks(trade('10', '1.00')), [true, true]);
    assert.deepEqual(marks(trade('100', '1.00')), [false, false]);
  });

  it('an answer that proves nothing is unclear each time, and found once', () => {
    const unclear = status('8', '0', { [tags.OrdRejReason]: '99' });
    const { changes, result } = found(order({ state: 'open' }), unclear, unclear);
    assert.deepEqual(
      result.statuses.map(({ answer }) => answer),
      ['unclear', 'unclear'],
    );
    assert.equal(changes.findings.length, 1);
    const other = (tag: number, value: string) => status('0', '0', { [tag]: value });
    const others = found(order({ state: 'open' }), other(tags.Side, '2'), other(tags.Symbol, 'GTCO'));
    assert.equal(others.changes.findings.length, 2);
  });

  it('a report states when it happened unless it is an answer', () => {
    const times = (...received: readonly ExchangeMessage[]) =>
      found(order(), ...received).changes.reports.map(({ at }) => at);
    assert.deepEqual(times(report('0'), ended('4', '0', { [tags.ExecID]: 'e2' })), [5, 5]);
    assert.deepEqual(times(status('4')), [null, null]);
  });

  it("an order has the exchange's id of it, and NONE is none", () => {
    const ids = (id: string) =>
      found(order(), report('0', { [tags.OrderID]: id })).changes.orders[0]?.after.exchangeOrderId;
    assert.deepEqual([ids('X9'), ids('NONE')], ['X9', '']);
  });

  it('a rejection has a reason for each OrdRejReason that we know', () => {
    const reason = (code: string) =>
      found(order(), ended('8', '0', { [tags.OrdRejReason]: code })).changes.reports[0]?.rejectReason;
    assert.deepEqual(['1', '2', '15', '99'].map(reason), [
      'unknown_symbol',
      'market_closed',
      'account_not_at_broker',
      'rejected_by_exchange',
    ]);
  });

  it('a report that rejects an order proves nothing while a request to cancel it may be what is answered', () => {
    const row = { ...{ id: 'ord_a.c1', orderId: 'ord_a', requestedAt: 1, startedAt: 7, number: 13n }, ...saidNothing };
    const run = (state: 'sending' | 'lost' | 'done' | 'refused' | 'unsent') =>
      applyMessages([ended('8')], { ...known(order({ state: 'open' })), cancels: [{ ...row, state }] }, about).changes;
    for (const state of ['sending', 'lost'] as const) {
      assert.deepEqual(
        run(state).findings.map(({ what }) => what),
        ['rejection_unproven'],
        state,
      );
    }
    for (const state of ['done', 'refused', 'unsent'] as const) {
      assert.deepEqual(
        run(state).reports.map(({ kind }) => kind),
        ['rejected'],
        state,
      );
    }
  });

  it('a report of a cancel that is refused is matched by its name, by OrigClOrdID with the last one, and never undoes one that is done', () => {
    const row = (nth: number, state: 'sending' | 'done') =>
      ({
        orderId: 'ord_a',
        requestedAt: nth,
        startedAt: 7,
        number: 13n,
        id: `ord_a.c${nth}`,
        state,
        exchangeReason: null,
        exchangeText: null,
      }) as const;
    const refused = (cancels: readonly ReturnType<typeof row>[], fields: Record<number, string>) =>
      applyMessages([message(fields, '9')], { ...known(order({ state: 'open' })), cancels }, about).changes;
    const two = [row(1, 'sending'), row(2, 'sending')];
    assert.equal(refused(two, { [tags.ClOrdID]: 'ord_a.c1' }).cancels[0]?.after.id, 'ord_a.c1');
    assert.equal(refused(two, { [tags.OrigClOrdID]: 'ord_a' }).cancels[0]?.after.id, 'ord_a.c2');
    assert.deepEqual(refused([row(1, 'done')], { [tags.ClOrdID]: 'ord_a.c1' }).cancels, []);
    const reason = (code: string) => refused(two, { [tags.ClOrdID]: 'ord_a.c1', [tags.CxlRejReason]: code });
    assert.equal(reason('0').orders[0]?.after.acknowledged, true);
    assert.deepEqual(
      reason('1').findings.map(({ what }) => what),
      ['order_forgotten'],
    );
  });

  it('a report that rejects an order that was acknowledged rejects nothing, and is found', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.RefMsgType]: 'D' }, '3');
    const { changes } = found(order({ acknowledged: true }), received);
    assert.deepEqual([changes.reports, changes.findings.map(({ what }) => what)], [[], ['not_understood']]);
  });

  it('a report that rejects an order while another question about it is open is found and rejects nothing', () => {
    const open = order({ state: 'open', asked: true });
    const rejection = ended('8', '0', { [tags.OrdRejReason]: '99', [tags.ExecID]: 'e2' });
    const after = (answer: ExchangeMessage, leavesNone: boolean) => {
      const known = { startedAt: 7, orders: [open], cancels: [], executed: new Map() };
      const { changes } = applyMessages([answer, rejection], known, { ...about, leavesNone: () => leavesNone });
      return [changes.reports.map(({ kind }) => kind).join(), changes.findings.map(({ what }) => what).join()];
    };
    const answer = status('0', '0', { [tags.OrdStatusReqID]: 'q1' });
    assert.deepEqual(after(answer, false), ['', 'rejection_unproven']);
    assert.deepEqual(after(answer, true), ['rejected', '']);
    const again = status('0', '0', { [tags.PossDupFlag]: 'Y' });
    assert.deepEqual(after(again, true), ['', 'rejection_unproven'], 'an answer of an earlier connection');
  });

  it('a report that does not know an order of this day is found, also if a numbering has begun since it was sent', () => {
    const known = {
      startedAt: 2_000,
      orders: [order({ state: 'open', receivedAt: 1_000 })],
      cancels: [],
      executed: new Map(),
    };
    const foundOn = (dayStartedAt: number) =>
      applyMessages([status('8')], known, { ...about, dayStartedAt }).changes.findings.map(({ what }) => what);
    assert.deepEqual(foundOn(500), ['order_forgotten']);
    assert.deepEqual(foundOn(1_500), [], 'its day is over, and it is asked about until its end is known');
  });

  it('a report of which a part cannot be read is found with its bytes', () => {
    const received = { ...report('F'), isWhole: false, bytes: Buffer.from('8=FIX.4.4|…') };
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const { changes } = applyMessages([received], known, about);
    assert.deepEqual(
      changes.findings.map(({ what, orderId, bytes }) => [what, orderId, bytes]),
      [['unreadable', 'ord_a', received.bytes]],
    );
    assert.ok(changes.passedOver);
  });

  it('a report finds its order where it names the request to cancel, and ends that request', () => {
    const cancel = {
      id: cancelIdOf(1),
      orderId: 'ord_a',
      requestedAt: 0,
      startedAt: 7,
      number: 13n,
      state: 'sending',
      ...saidNothing,
    } as const;
    const received = ended('4', '0', { [tags.ClOrdID]: cancel.id, [tags.OrigClOrdID]: 'ord_a' });
    const { changes } = applyMessages(
      [received],
      { startedAt: 7, orders: [order({ state: 'open' })], cancels: [cancel], executed: new Map() },
      about,
    );
    assert.equal(changes.orders[0]?.after.state, 'final');
    assert.equal(changes.cancels[0]?.after.state, 'done');
  });

  it('a report finds its order by our own mark, whatever the exchange writes beside it', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const received = ended('4', '0', { [tags.ClOrdID]: cancelIdOf(2), [tags.OrigClOrdID]: 'NONE' });
    assert.equal(applyMessages([received], known, about).changes.orders[0]?.after.state, 'final');
  });

  it('a report that rejects a request to cancel rejects no order', () => {
    const row = { orderId: 'ord_a', requestedAt: 0, startedAt: 7, number: 13n, ...saidNothing } as const;
    const cancel = { ...row, id: cancelIdOf(1), state: 'sending' } as const;
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [cancel], executed: new Map() };
    const received = report('8', { [tags.ClOrdID]: cancel.id });
    const { changes, result } = applyMessages([received], known, about);
    assert.deepEqual([changes.orders, changes.reports], [[], []]);
    assert.equal(changes.cancels[0]?.after.state, 'refused');
    assert.equal(result.refusedCancels.length, 1);
    assert.equal(changes.findings[0]?.what, 'not_understood');
  });

  it('a report about an order that is not ours is shown to an operator, unless a mass status names all of the firm', () => {
    const known = { startedAt: 7, orders: [], cancels: [], executed: new Map() };
    assert.equal(applyMessages([report('0')], known, about).changes.findings[0]?.what, 'unknown_order');
    assert.deepEqual(applyMessages([report('I', { [tags.MassStatusReqID]: 'm' })], known, about).changes.findings, []);
  });

  it('a reject of our message rejects the order with that number, of this numbering alone', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.RefMsgType]: 'D', [tags.Text]: 'no' }, '3');
    const of = (startedAt: number) =>
      applyMessages([received], { startedAt, orders: [order()], cancels: [], executed: new Map() }, about).changes
        .reports;
    assert.deepEqual(
      of(7).map(({ kind }) => kind),
      ['rejected'],
    );
    assert.deepEqual(of(8), []);
  });

  it('a BusinessMessageReject rejects the order that it names, if it has no number', () => {
    const received = message({ [tags.BusinessRejectRefID]: 'ord_a', [tags.RefMsgType]: 'D', [tags.Text]: 'no' }, 'j');
    const known = { startedAt: 7, orders: [order()], cancels: [], executed: new Map() };
    const { reports } = applyMessages([received], known, about).changes;
    assert.deepEqual(
      reports.map(({ kind }) => kind),
      ['rejected'],
    );
  });

  for (const [of, type] of [
    ['H', 'j'],
    ['AF', 'j'],
    ['H', '3'],
    [undefined, 'j'],
  ] as const) {
    it(`a ${type} of a ${of ?? 'message whose type it does not name'} leaves the order as it is`, () => {
      const named = { [tags.BusinessRejectRefID]: 'ord_a', [tags.Text]: 'no' };
      const refused: Record<number, string> = type === 'j' ? named : { [tags.RefSeqNum]: '12' };
      if (of !== undefined) refused[tags.RefMsgType] = of;
      const known = { startedAt: 7, orders: [order()], cancels: [], executed: new Map() };
      const { changes, result } = applyMessages([message(refused, type)], known, about);
      assert.deepEqual([changes.orders, changes.reports], [[], []]);
      assert.equal(result.isQuestionRefused, of !== undefined);
    });
  }

  it('a reject speaks of the later of two orders, if an operator has set our numbers back between them', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.RefMsgType]: 'D', [tags.Text]: 'no' }, '3');
    const orders = [order({ id: 'ord_b', receivedAt: 2 }), order({ id: 'ord_a', receivedAt: 1 })];
    const known = { startedAt: 7, orders, cancels: [], executed: new Map() };
    const { reports } = applyMessages([received], known, about).changes;
    assert.deepEqual(
      reports.map(({ orderId }) => orderId),
      ['ord_b'],
    );
  });
});
