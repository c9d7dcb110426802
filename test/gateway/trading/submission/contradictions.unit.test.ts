import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import {
  acknowledgeContradictions,
  keepContradictions,
  settleContradictions,
} from '../../../../src/gateway/trading/submission/contradictions.ts';
import type { NewStep } from '../../../../src/gateway/trading/submission/table.ts';

const end = { endedAt: 9_000, endedBy: 'bola', endReason: null, proposalId: 'prp_a' };

/** The conditions of a statement, each with its values in its place. */
function conditionsOf({ sql, values }: Statement): string[] {
  const [, where = ''] = sql.split(/\bWHERE\b/);
  const shown = (value: unknown) => (value instanceof Date ? String(value.getTime()) : JSON.stringify(value));
  const first = sql.slice(0, sql.indexOf('WHERE')).split('?').length - 1;
  let at = first;
  return where
    .replace(/\?/g, () => shown(values[at++]))
    .split(' AND ')
    .map((one) => one.replace(/\s+/g, ' ').trim());
}

describe('contradictions that end', () => {
  const ofObject = ['partner_id = "par_a"', 'object_id = "ord_a"', 'ended_at IS NULL'];

  it('a settlement ends the contradictions of until it was proposed, without a trade or with one that counts', () => {
    const settled = settleContradictions('par_a', 'ord_a', end, { proposedAt: 5_000, countedSteps: [3, 4] });
    assert.deepEqual(conditionsOf(settled), [
      ...ofObject,
      'at <= 5000',
      '(quantity IS NULL OR is_counted = 1 OR step IN ([0,3,4]))',
    ]);
    assert.deepEqual(settled.values.slice(0, 4), [new Date(9_000), 'bola', null, 'prp_a']);
  });

  it('an acknowledgement ends the contradictions up to the step that the operator saw', () => {
    const acknowledged = acknowledgeContradictions('par_a', 'ord_a', { ...end, endReason: 'a test' }, 7);
    assert.deepEqual(conditionsOf(acknowledged), [...ofObject, 'step <= 7']);
    assert.equal(acknowledged.values[2], 'a test');
  });
});

describe('contradictions that are kept', () => {
  const step = (more: Partial<NewStep>) =>
    ({ kind: 'report', at: 1, state: 'expired', detail: 'd', ...more }) as NewStep;

  it('contradictions are kept open, each under the number of its step, and other steps are not', () => {
    const object = { partnerId: 'par_a', id: 'ord_a', steps: 9 };
    const added = [step({}), step({ kind: 'contradiction', quantity: 5n, priceKobo: 7n, reportNumber: 3n }), step({})];
    const [insert, ...others] = keepContradictions(object, added);
    assert.deepEqual(others, []);
    const text = JSON.stringify(insert?.values, (_, value) => (typeof value === 'bigint' ? Number(value) : value));
    const [row = []] = JSON.parse(text)[0] as unknown[][];
    const named = Object.fromEntries(
      (/\(([^)]*)\)/.exec(insert?.sql ?? '')?.[1] ?? '').split(',').map((name, at) => [name.trim(), row[at]]),
    );
    const { partner_id, object_id, step: number, quantity, price_kobo, report_number, is_counted, ended_at } = named;
    assert.deepEqual([partner_id, object_id, number, ended_at], ['par_a', 'ord_a', 8, null]);
    assert.deepEqual([quantity, price_kobo, report_number, Number(is_counted)], [5, 7, 3, 0]);
    assert.deepEqual(keepContradictions(object, [step({})]), []);
  });
});
