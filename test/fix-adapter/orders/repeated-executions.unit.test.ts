/** Reports that come again, trades that come late, and trades that the exchange takes back or corrects. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { applyMessages } from '../../../src/fix-adapter/orders/apply-messages.ts';
import type { ExchangeMessage } from '../../../src/fix-adapter/orders/execution.ts';
import type { Executed } from '../../../src/fix-adapter/store/store.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { fixOrder as order, execution as report } from '../../support/fix-order.ts';
import { about, counted, ended, found, known, last, status } from '../../support/fix-reports.ts';

describe('a report that the record has, or that changes what it has', () => {
  it('a trade is counted once if it comes again, and one that reuses its ExecID is counted if the exchange counts it', () => {
    const executions = fc.array(
      fc.record({
        id: fc.integer({ min: 1, max: 5 }),
        quantity: fc.integer({ min: 1, max: 9 }),
        times: fc.integer({ min: 1, max: 3 }),
      }),
      { maxLength: 10 },
    );
    fc.assert(
      fc.property(executions, (all) => {
        let count = 0;
        const received = all.flatMap(({ id, quantity, times }) => {
          count += quantity;
          const one = last(String(quantity), { [tags.ExecID]: `e${id}`, [tags.CumQty]: String(count) });
          return Array<ExchangeMessage>(times).fill(one);
        });
        const known = { startedAt: 7, orders: [order({ state: 'open', quantity: 1_000n })], cancels: [] };
        const { changes } = applyMessages(received, { ...known, executed: new Map() }, about);
        assert.deepEqual(
          changes.reports.map(({ quantity }) => quantity),
          all.map(({ quantity }) => BigInt(quantity)),
        );
        assert.equal(changes.orders[0]?.after.filled ?? 0n, BigInt(count));
        const ids = changes.reports.map(({ execId }) => execId);
        assert.equal(new Set(ids).size, ids.length);
        const reused = all.filter(({ id }, at) => all.findIndex((one) => one.id === id) < at).length;
        assert.equal(changes.findings.filter(({ what }) => what === 'exec_id_reused').length, reused);
      }),
    );
  });

  it('a report that the order lives ends the wait for trades of an end', () => {
    const live = status('1', '40', { [tags.OrdStatusReqID]: 'q' });
    const { changes } = found(order({ state: 'open', filled: 40n }), ended('4', '60'), live);
    assert.equal(changes.orders[0]?.after.endedAs, null);
    assert.ok(changes.findings.some(({ what }) => what === 'end_contradicted'));
  });

  it('a report with a known ExecID is found if what it says differs, of whatever kind it is', () => {
    const open = order({ state: 'open', filled: 30n });
    const first = { kind: 'trade', quantity: 30n, priceKobo: 100n, counted: 30n, execRefId: null } as const;
    const executed = new Map([
      [
        'ord_a',
        new Map<string, Executed>([
          ['t1', first],
          ['t2', first],
        ]),
      ],
    ]);
    const run = (...received: readonly ExchangeMessage[]) =>
      applyMessages(received, { ...known(open), executed }, about).changes.findings.map(({ what }) => what);
    const bust = (ref: string) => report('H', { [tags.ExecID]: 'b', [tags.ExecRefID]: ref });
    assert.deepEqual(run(bust('t1'), bust('t1')), ['trade_cancelled']);
    assert.ok(run(bust('t1'), bust('t2')).includes('exec_id_reused'));
    const fix = (quantity: string) =>
      report('G', { [tags.ExecID]: 'g', [tags.ExecRefID]: 't1', [tags.LastQty]: quantity, [tags.LastPx]: '1.00' });
    assert.deepEqual(run(fix('20'), fix('20')), ['trade_corrected']);
    assert.ok(run(fix('20'), fix('3')).includes('exec_id_reused'));
  });

  it('a report that comes again without its CumQty is a repetition, and of a trade one that is found once', () => {
    const plain = { quantity: null, priceKobo: null, execRefId: null };
    const executed = new Map([
      [
        'ord_a',
        new Map<string, Executed>([
          ['n1', { kind: 'accepted', counted: 0n, ...plain }],
          ['t1', { kind: 'trade', counted: 40n, ...plain, quantity: 40n, priceKobo: 100n }],
          ['b1', { kind: 'trade_cancelled', counted: 0n, ...plain, quantity: 0n, execRefId: 't1' }],
        ]),
      ],
    ]);
    const row = order({ state: 'open', filled: 40n, adjusted: -40n });
    const run = (received: ExchangeMessage) => {
      const { changes } = applyMessages([received, received], { ...known(row), executed }, about);
      return [changes.reports.length, changes.tradeChanges.length, ...changes.findings.map(({ what }) => what)];
    };
    assert.deepEqual(run(report('0', { [tags.ExecID]: 'n1' })), [0, 0]);
    assert.deepEqual(run(report('H', { [tags.ExecID]: 'b1', [tags.ExecRefID]: 't1' })), [0, 0]);
    assert.deepEqual(run(last('40', { [tags.ExecID]: 't1' })), [0, 0, 'exec_id_reused']);
  });

  it('a report with an ExecID of the version before is a new trade if the count has risen', () => {
    const first = { kind: 'trade', quantity: 40n, priceKobo: 100n, counted: null, execRefId: null } as const;
    const executed = new Map([['ord_a', new Map<string, Executed>([['e1', first]])]]);
    const run = (cumQty: string) =>
      applyMessages([counted('40', cumQty)], { ...known(order({ state: 'open', filled: 40n })), executed }, about)
        .changes;
    assert.equal(run('40').reports.length, 0);
    assert.equal(run('80').reports.length, 1);
  });

  it('a report that takes back a trade which was corrected twice takes back what was left of it', () => {
    const first = last('30', { [tags.ExecID]: 'e1', [tags.CumQty]: '30' });
    const change = (type: string, execId: string, ref: string, quantity: string, count: string) =>
      report(type, {
        ...{ [tags.ExecID]: execId, [tags.ExecRefID]: ref, [tags.LastQty]: quantity, [tags.LastPx]: '1.00' },
        ...{ [tags.CumQty]: count, [tags.OrdStatus]: '0' },
      });
    const all = [
      change('G', 'e2', 'e1', '20', '20'),
      change('G', 'e3', 'e2', '25', '25'),
      change('H', 'e4', 'e3', '25', '0'),
    ];
    const { changes } = found(order({ state: 'open' }), first, ...all, ended('4', '0', { [tags.ExecID]: 'e5' }));
    assert.equal(changes.orders[0]?.after.adjusted, -30n);
    assert.equal(changes.orders[0]?.after.state, 'final');
    assert.deepEqual(
      changes.tradeChanges.map(({ kind }) => kind),
      ['corrected', 'corrected', 'cancelled'],
    );
  });

  it('a report with a known ExecID and other shares is found and not counted if the exchange does not count it', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open', filled: 40n })], cancels: [] };
    const trades = { quantity: 40n, priceKobo: 100n, counted: 40n, execRefId: null };
    const executed = new Map([['ord_a', new Map<string, Executed>([['e1', { kind: 'trade', ...trades }]])]]);
    const { changes } = applyMessages([counted('30', '40')], { ...known, executed }, about);
    assert.deepEqual([changes.reports, changes.findings.map(({ what }) => what)], [[], ['exec_id_reused']]);
  });

  it('a report that shows a missing trade as large as an earlier one, which came late, is found again', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const late = last('10', { [tags.ExecID]: 'e1', [tags.CumQty]: '10' });
    const agreed = applyMessages([status('1', '10'), late], known, about).changes;
    const second = applyMessages(
      [status('1', '20'), status('1', '20')],
      { ...known, orders: agreed.orders.map(({ after }) => after) },
      about,
    );
    const kinds = [...agreed.findings, ...second.changes.findings].map(({ what }) => what);
    assert.deepEqual(kinds, ['trades_missing', 'trades_missing'], 'once for each trade');
  });

  it('a report that ends an order with trades that did not come ends it when they come', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open', filled: 40n })], cancels: [], executed: new Map() };
    const late = last('20', { [tags.ExecID]: 'e2', [tags.CumQty]: '60' });
    const { changes } = applyMessages([ended('4', '60'), late], known, about);
    assert.deepEqual(
      changes.reports.map(({ kind }) => kind),
      ['trade', 'cancelled'],
    );
    assert.equal(changes.orders[0]?.after.state, 'final');
  });

  it('a report that takes a trade back is a fact with which later counts agree', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const first = last('30', { [tags.ExecID]: 'e1', [tags.CumQty]: '30' });
    const bust = report('H', {
      [tags.ExecID]: 'e2',
      [tags.ExecRefID]: 'e1',
      [tags.CumQty]: '0',
      [tags.OrdStatus]: '0',
    });
    const all = last('100', { [tags.ExecID]: 'e3', [tags.CumQty]: '100' });
    const { changes } = applyMessages([first, bust, bust, all], known, about);
    assert.deepEqual(
      changes.findings.map(({ what }) => what),
      ['trade_cancelled'],
    );
    const after = changes.orders[0]?.after;
    assert.deepEqual([after?.filled, after?.adjusted, after?.state], [130n, -30n, 'final']);
    assert.equal(changes.tradeChanges.length, 1);
  });

  it('a report that corrects a trade twice counts its last shares', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const first = last('30', { [tags.ExecID]: 'e1', [tags.CumQty]: '30' });
    const correction = (execId: string, execRefId: string, quantity: string) =>
      report('G', {
        ...{ [tags.ExecID]: execId, [tags.ExecRefID]: execRefId, [tags.LastQty]: quantity },
        ...{ [tags.LastPx]: '1.00', [tags.CumQty]: quantity },
      });
    const { changes } = applyMessages(
      [first, correction('e2', 'e1', '20'), correction('e3', 'e2', '25')],
      known,
      about,
    );
    assert.equal(changes.orders[0]?.after.adjusted, -5n);
  });

  it('a trade is known again by an ExecID that is longer than the record keeps', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const received = (end: string) =>
      report('F', { [tags.LastQty]: '10', [tags.LastPx]: '1.00', [tags.ExecID]: `${'e'.repeat(200)}${end}` });
    const { changes } = applyMessages([received('a'), received('a'), received('b')], known, about);
    assert.equal(changes.reports.length, 2);
    for (const { execId } of changes.reports) assert.ok((execId ?? '').length <= 64);
  });
});
