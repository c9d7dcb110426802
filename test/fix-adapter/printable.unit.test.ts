import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tradesIn } from '../../src/fix-adapter/drop-copy/trades.ts';
import { applyMessages } from '../../src/fix-adapter/orders/apply-messages.ts';
import { cancelName } from '../../src/fix-adapter/orders/names.ts';
import { plain } from '../../src/fix-adapter/wire/plain.ts';
import { tags } from '../../src/fix-adapter/wire/tags.ts';
import { execution, fixOrder, weighing } from '../support/fix-order.ts';

/** Values that the other side may state: each byte is a character. */
const never = ['\x1b[2J', 'a\x00', 'a\n', '\x7f', '\x9b2J', 'caf\xe9'];

const ids = [tags.OrderID, tags.ExecID, tags.ExecRefID, tags.ClOrdID, tags.OrigClOrdID, tags.OrdStatusReqID];
const texts = [tags.Text, tags.Symbol, tags.Side, tags.Account, tags.OrdRejReason, tags.BusinessRejectReason];
const others = [tags.TradeReportID, tags.TradeReportRefID, tags.BusinessRejectRefID, tags.RefMsgType, tags.OrdStatus];
const all = [...ids, ...texts, ...others, tags.CxlRejReason, tags.TransactTime, tags.ExecType];

const counts = { [tags.LastQty]: '40', [tags.LastPx]: '1.00', [tags.CumQty]: '40', [tags.LeavesQty]: '60' };
const reports = ['0', 'F', '4', '8', 'C', 'H', 'G', 'D', 'I'].map((type) => execution(type, counts));
const messages = [
  ...reports,
  ...['9', 'j', '3', 'AE', 'UX'].map((type) => ({ ...execution('0', counts), type })),
] as const;

/** A message with one field changed, among its fields too. */
function changed(message: (typeof messages)[number], tag: number, value: string) {
  const get = (each: number) => (each === tag ? value : message.get(each));
  const fields = all.flatMap((each): [number, string][] => {
    const own = get(each);
    return own === undefined ? [] : [[each, own]];
  });
  return { type: message.type, get, fields };
}

/** Every text of something that is stored or shown, also in JSON inside it. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return value.startsWith('{') ? textsIn(JSON.parse(value)) : [value];
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return [];
  return Object.values(value).flatMap(textsIn);
}

describe('a value of the other side that is not printable', () => {
  it('is neither in an order nor in a report, a cancel or a finding, whichever field has it', () => {
    const cancel = {
      ...{ id: cancelName('ord_a', 1, 70) ?? '', orderId: 'ord_a', startedAt: 7, number: 13n, state: 'sent' },
      ...{ requestedAt: 0, exchangeReason: null, exchangeText: null, sendingTime: null, refusedAt: null },
    };
    for (const state of ['sending', 'open', 'final'] as const) {
      for (const tag of all) {
        for (const value of never) {
          const changedMessages = messages.map((message) => changed(message, tag, value));
          for (const message of changedMessages) {
            const known = {
              startedAt: 7,
              orders: [fixOrder({ state })],
              cancels: [cancel as never],
              executed: new Map(),
            };
            const { changes } = applyMessages([message], known, { ...weighing, timeOf: () => 5, now: 9 });
            const { unsupported, unmatched: _, misnamed: __, ...stored } = changes;
            const found = textsIn([stored, unsupported?.map(({ finding }) => finding)]);
            const wrong = found.filter((text) => !/^[ -~]*$/.test(text));
            assert.deepEqual(wrong, [], `${message.type} with tag ${tag} ${JSON.stringify(value)}`);
          }
        }
      }
    }
  });

  it('is no id of a trade in the drop copy', () => {
    for (const message of [execution('F', counts), execution('H', { ...counts, [tags.ExecRefID]: 'e0' })]) {
      for (const type of ['8', 'AE']) {
        for (const tag of all) {
          for (const value of never) {
            const { get, fields } = changed({ ...message, type }, tag, value);
            const read = tradesIn({ type, get, fields: [...fields, [tags.LastQty, '40']] }, weighing.toKobo);
            for (const text of textsIn(read)) assert.match(text, /^[ -~]*$/, `tag ${tag} of ${type}`);
          }
        }
      }
    }
  });

  it('names an execution by its digest, so that a trade is booked once and another one is another', () => {
    const booked = (execId: string) => {
      const known = { startedAt: 7, orders: [fixOrder({ state: 'open' })], cancels: [], executed: new Map() };
      const message = execution('F', { ...counts, [tags.ExecID]: execId });
      const { changes } = applyMessages([message], known, { ...weighing, timeOf: () => 5, now: 9 });
      return changes.reports.find(({ kind }) => kind === 'trade')?.execId;
    };
    const [one, again, other] = [booked('\x1be1'), booked('\x1be1'), booked('\x1be2')];
    assert.match(one ?? '', /^[0-9a-f]{64}$/);
    assert.equal(one, again);
    assert.notEqual(one, other);
    assert.equal(booked('e1'), 'e1');
  });

  it('is shown with its number', () => {
    assert.equal(plain('a\x1b[2J\xe9~'), 'a\\x1b[2J\\xe9~');
  });
});
