/** The meaning of an exchange's rejections to partners, and the operators' view of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { printedRejections } from '../../../src/fix-adapter/operations/printed.ts';
import { applyExecution } from '../../../src/fix-adapter/orders/apply-execution.ts';
import { applyMessages } from '../../../src/fix-adapter/orders/apply-messages.ts';
import {
  parseRejectReasons,
  rejectReasonOf,
  saidIn,
  saidNothing,
} from '../../../src/fix-adapter/orders/reject-reasons.ts';
import type { FixCancel } from '../../../src/fix-adapter/store/table.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { execution, fixMessage, fixOrder, weighing } from '../../support/fix-order.ts';

const file = `# of our broker
103=99|58=*insufficient funds*|reason=insufficient_funds
103=0|58=halt*now|reason=symbol_not_tradable
58=exactly this|reason=market_closed
103=14|reason=settlement_lockout
380=4|reason=market_closed
`;
const rules = parseRejectReasons(file);
const context = { ...weighing, at: 1_000, startedAt: 7, executed: new Map() };

describe("an exchange's reason for a rejection", () => {
  const standard: readonly [ordRejReason: string, reason: string][] = [
    ...['0', '3', '5', '6', '7', '8', '9', '11', '12', '14', '17', '99', 'x', ''].map((value): [string, string] => [
      value,
      'rejected_by_exchange',
    ]),
    ['1', 'unknown_symbol'],
    ['2', 'market_closed'],
    ['4', 'market_closed'],
    ['10', 'account_not_at_broker'],
    ['15', 'account_not_at_broker'],
    ['13', 'quantity_off_lot'],
    ['16', 'price_outside_band'],
    ['18', 'price_off_tick'],
  ];
  it('is shown to partners by the standard values of OrdRejReason unless a file says otherwise', () => {
    for (const [value, reason] of standard) {
      assert.equal(rejectReasonOf(fixMessage({ [tags.OrdRejReason]: value }), []), reason, value);
    }
    assert.equal(rejectReasonOf(fixMessage({}), []), 'rejected_by_exchange');
    assert.equal(rejectReasonOf(fixMessage({ [tags.BusinessRejectReason]: '2' }, 'j'), []), 'unknown_symbol');
  });

  const mapped: readonly [fields: Record<number, string>, reason: string][] = [
    [{ 103: '99', 58: 'Order refused: Insufficient Funds (A12)' }, 'insufficient_funds'],
    [{ 103: '1', 58: 'Insufficient Funds' }, 'unknown_symbol'],
    [{ 103: '0', 58: 'HALTED now' }, 'symbol_not_tradable'],
    [{ 103: '0', 58: 'halted now and then' }, 'rejected_by_exchange'],
    [{ 103: '0', 58: 'halnow' }, 'rejected_by_exchange'],
    [{ 103: '1', 58: 'Exactly this' }, 'market_closed'],
    [{ 103: '14' }, 'settlement_lockout'],
    [{ 380: '4' }, 'market_closed'],
  ];
  it('is shown by the first line of the file whose conditions all hold, and otherwise by the standard values', () => {
    for (const [fields, reason] of mapped) {
      assert.equal(rejectReasonOf(fixMessage(fields), rules), reason, JSON.stringify(fields));
    }
  });

  it('needs no more of a text than each piece of a pattern, in their order and none twice', () => {
    const [rule] = parseRejectReasons('58=ab*bc*bc|reason=market_closed');
    const isClosed = (text: string) => rejectReasonOf(fixMessage({ 58: text }), rule === undefined ? [] : [rule]);
    assert.equal(isClosed('abbcbc'), 'market_closed');
    assert.equal(isClosed('abc bc'), 'rejected_by_exchange');
    assert.equal(isClosed('abbc'), 'rejected_by_exchange');
  });

  const wrong: readonly [what: string, line: string, expected: RegExp][] = [
    [
      'a reason that there is not',
      '103=1|reason=nothing',
      /line 1 must end with \|reason= and one of insufficient_funds/,
    ],
    ['the reason that means none', '103=1|reason=unspecified', /must end with/],
    ['a line without a condition', 'reason=market_closed', /a condition before its reason/],
    ['a condition on another field', '1=NG-1|reason=market_closed', /OrdRejReason 103/],
    ['a condition twice', '103=1|103=2|reason=market_closed', /each once/],
  ];
  for (const [what, line, expected] of wrong) {
    it(`is refused in the file as ${what}`, () => assert.throws(() => parseRejectReasons(line), expected));
  }

  it('is kept with the report of the end for operators, and not with a trade', () => {
    const rejection = { [tags.CumQty]: '0', [tags.OrdRejReason]: '99', [tags.Text]: 'no funds of A. Bello' };
    const [report] = applyExecution(fixOrder(), execution('8', rejection), context).reports;
    assert.deepEqual(
      [report?.kind, report?.rejectReason, report?.exchangeReason, report?.exchangeText],
      ['rejected', 'rejected_by_exchange', 'OrdRejReason=99', 'no funds of A. Bello'],
    );
    const trade = { [tags.LastQty]: '40', [tags.LastPx]: '1.00', [tags.CumQty]: '40', [tags.Text]: 'x' };
    const { reports } = applyExecution(fixOrder({ state: 'open' }), execution('F', trade), context);
    assert.ok(reports.length > 0 && reports.every((each) => each.exchangeText === null));
  });

  it('is printed for operators beside the reason that partners are given, and does not steer the terminal', () => {
    const said = { exchangeReason: 'OrdRejReason=99', exchangeText: 'no \x1b[31mfunds\n' };
    const rejection = {
      number: 7n,
      at: 0,
      orderId: 'ord_a',
      what: 'rejected',
      shownReason: 'insufficient_funds',
      ...said,
    };
    const nothing = { exchangeReason: null, exchangeText: null };
    const cancel = {
      number: undefined,
      at: null,
      orderId: 'ord_a',
      what: 'cancel ord_a.c1 refused',
      shownReason: null,
    };
    const printed = printedRejections([rejection, { ...cancel, ...nothing }]);
    assert.equal(printed.split('\n').length, 4);
    assert.match(printed, /^7 .* ord_a {2}rejected as insufficient_funds\n {4}OrdRejReason=99 {2}no /);
    assert.match(printed, /cancel ord_a\.c1 refused\n {4}no reason {2}no text$/);
    assert.match(printed, /^[ -~\n]*$/);
  });

  it('is kept with a request to cancel that was refused, and with an order that another message rejected', () => {
    const cancel: FixCancel = {
      ...{ id: 'ord_a.c1', orderId: 'ord_a', requestedAt: 0, startedAt: 7, number: 13n, state: 'sending' },
      ...saidNothing,
    };
    const known = { startedAt: 7, orders: [fixOrder({ state: 'open' })], cancels: [cancel], executed: new Map() };
    const times = { timeOf: () => 5, now: 9 };
    const refusal = fixMessage({ 11: 'ord_a.c1', 41: 'ord_a', 102: '0', 58: 'too late' }, '9');
    const [refused] = applyMessages([refusal], known, { ...context, ...times }).changes.cancels;
    assert.deepEqual(
      [refused?.after.state, refused?.after.exchangeReason, refused?.after.exchangeText],
      ['refused', 'CxlRejReason=0', 'too late'],
    );
    const rejection = fixMessage({ 45: '12', 372: 'D', 380: '2', 58: 'no such symbol' }, 'j');
    const sent = { ...known, orders: [fixOrder()], cancels: [] };
    const [report] = applyMessages([rejection], sent, { ...context, ...times }).changes.reports;
    assert.deepEqual(
      [report?.rejectReason, report?.exchangeReason, report?.exchangeText],
      ['unknown_symbol', 'BusinessRejectReason=2', 'no such symbol'],
    );
    assert.deepEqual(saidIn(fixMessage({ 373: '5' }, '3')).exchangeReason, 'SessionRejectReason=5');
  });
});
