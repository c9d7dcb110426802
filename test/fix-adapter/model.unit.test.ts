/**
 * The adapter's view of an order, against an exchange that trades, ends and takes trades back, over a line that loses
 * messages.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyMessages } from '../../src/fix-adapter/orders/apply-messages.ts';
import type { ExchangeMessage } from '../../src/fix-adapter/orders/execution.ts';
import { countOf } from '../../src/fix-adapter/orders/weigh.ts';
import type { Executed, Known } from '../../src/fix-adapter/store/store.ts';
import type { Finding, FixOrder, FixReport } from '../../src/fix-adapter/store/table.ts';
import { tags } from '../../src/fix-adapter/wire/tags.ts';
import { execution, fixOrder, weighing } from '../support/fix-order.ts';
import { fc } from '../support/properties.ts';

const shares = 100;

/** An exchange that says the truth about one order of 100 shares at 1.00. */
class Truth {
  status: '' | '0' | '1' | '2' | '4' | 'C' | '8' = '';
  trades: { readonly execId: string; readonly quantity: number; isBusted: boolean }[] = [];
  #executions = 0;

  get count(): number {
    return this.trades.reduce((sum, { quantity, isBusted }) => sum + (isBusted ? 0 : quantity), 0);
  }

  get isLive(): boolean {
    return this.status === '0' || this.status === '1';
  }

  message(execType: string, more: Record<number, string> = {}): ExchangeMessage {
    this.#executions += 1;
    return execution(execType, {
      ...{ [tags.ExecID]: `e${this.#executions}`, [tags.OrdStatus]: this.status, [tags.CumQty]: String(this.count) },
      [tags.LeavesQty]: String(this.isLive ? shares - this.count : 0),
      ...more,
    });
  }

  /** Carries out an action and returns its report. None if it cannot be done. */
  act(action: Action): ExchangeMessage | undefined {
    if (action.kind === 'accept' && this.status === '') return this.#become('0');
    if (action.kind === 'reject' && this.status === '') return this.#become('8');
    if (!this.isLive && action.kind !== 'bust') return undefined;
    if (action.kind === 'trade') return this.#trade(Math.min(action.quantity, shares - this.count));
    if (action.kind === 'bust') return this.#bust();
    if (action.kind === 'cancel') return this.#become('4');
    return action.kind === 'expire' ? this.#become('C') : undefined;
  }

  answer(): ExchangeMessage {
    const question: Record<number, string> = { [tags.OrdStatusReqID]: 'q' };
    const unknown: Record<number, string> = {
      ...question,
      [tags.OrdStatus]: '8',
      [tags.OrdRejReason]: '5',
      [tags.OrderID]: 'NONE',
    };
    return this.message('I', this.status === '' ? unknown : question);
  }

  #become(status: '0' | '4' | 'C' | '8'): ExchangeMessage {
    this.status = status;
    return this.message(status);
  }

  #trade(quantity: number): ExchangeMessage {
    const trade = { execId: `t${this.trades.length}`, quantity, isBusted: false };
    this.trades.push(trade);
    this.status = this.count === shares ? '2' : '1';
    return this.message('F', {
      ...{ [tags.ExecID]: trade.execId, [tags.LastQty]: String(quantity), [tags.LastPx]: '1.00' },
    });
  }

  #bust(): ExchangeMessage | undefined {
    const trade = this.trades.findLast(({ isBusted }) => !isBusted);
    if (trade === undefined || this.status === '4' || this.status === 'C') return undefined;
    trade.isBusted = true;
    this.status = this.count === 0 ? '0' : '1';
    return this.message('H', { [tags.ExecRefID]: trade.execId, [tags.LastQty]: String(trade.quantity) });
  }
}

/** The adapter's record of the order. */
class AdapterRecord {
  order: FixOrder = fixOrder();
  readonly reports: Omit<FixReport, 'number'>[] = [];
  readonly findings: Finding[] = [];
  readonly #executed = new Map<string, Executed>();

  receive(...messages: readonly ExchangeMessage[]): void {
    const executed = new Map([[this.order.id, this.#executed]]);
    const known: Known = { startedAt: 7, orders: [this.order], cancels: [], executed };
    const { changes } = applyMessages(messages, known, { ...weighing, timeOf: () => 5, now: 9 });
    this.order = changes.orders[0]?.after ?? this.order;
    this.reports.push(...changes.reports);
    this.findings.push(...changes.findings);
    for (const { execId, kind, quantity, priceKobo, counted } of changes.reports) {
      if (execId !== null) this.#executed.set(execId, { kind, quantity, priceKobo, counted, execRefId: null });
    }
    for (const { execId, kind, quantity, priceKobo, counted, execRefId } of changes.tradeChanges) {
      const change = { kind: `trade_${kind}`, quantity, priceKobo, counted, execRefId } as const;
      if (execId !== null) this.#executed.set(execId, change);
    }
  }
}

interface Action {
  readonly kind: 'accept' | 'reject' | 'trade' | 'bust' | 'cancel' | 'expire' | 'ask';
  readonly quantity: number;
  /** How often the report comes. */
  readonly times: number;
}

const actions = (times: fc.Arbitrary<number>) =>
  fc.array(
    fc.record({
      kind: fc.constantFrom('accept', 'trade', 'trade', 'trade', 'reject', 'bust', 'cancel', 'expire', 'ask'),
      quantity: fc.integer({ min: 1, max: 60 }),
      times,
    }) as fc.Arbitrary<Action>,
    { maxLength: 14 },
  );

const finals: Readonly<{ [status: string]: string }> = {
  '2': 'filled',
  '4': 'cancelled',
  C: 'expired',
  '8': 'rejected',
};

/** Runs actions, and returns the truth and what the adapter made of it. */
function run(all: readonly Action[]): { truth: Truth; record: AdapterRecord } {
  const [truth, record] = [new Truth(), new AdapterRecord()];
  for (const action of all) {
    const message = action.kind === 'ask' ? truth.answer() : truth.act(action);
    if (message !== undefined) record.receive(...Array<ExchangeMessage>(action.times).fill(message));
  }
  return { truth, record };
}

/** The end that the adapter has reported; empty if none. */
function endOf({ order, reports }: AdapterRecord): string {
  const end = reports.findLast(({ kind }) => ['cancelled', 'expired', 'rejected'].includes(kind))?.kind;
  return end ?? (countOf(order) >= order.quantity ? 'filled' : '');
}

describe('an order at the adapter', () => {
  it('is what the exchange says, without a finding but for trades taken back, while no message is lost', () => {
    fc.assert(
      fc.property(actions(fc.integer({ min: 1, max: 3 })), (all) => {
        const { truth, record } = run(all);
        assert.equal(countOf(record.order), BigInt(truth.count));
        assert.equal(endOf(record), finals[truth.status] ?? '');
        assert.equal(record.order.state === 'final', finals[truth.status] !== undefined);
        const busts = truth.trades.filter(({ isBusted }) => isBusted).length;
        assert.deepEqual(
          record.findings.map(({ what }) => what),
          Array<string>(busts).fill('trade_cancelled'),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it('is never said to be what it is not, without a finding, whatever is lost before the exchange is asked', () => {
    fc.assert(
      fc.property(actions(fc.integer({ min: 0, max: 2 })), (all) => {
        const { truth, record } = run(all);
        record.receive(truth.answer());
        const isAgreed =
          countOf(record.order) === BigInt(truth.count) && endOf(record) === (finals[truth.status] ?? '');
        const isInDoubt = record.order.state === 'sending';
        assert.ok(isAgreed || isInDoubt || record.findings.length > 0, JSON.stringify({ truth, order: endOf(record) }));
        if (isInDoubt) assert.deepEqual(record.reports, []);
      }),
      { numRuns: 2_000 },
    );
  });

  it('never counts a trade twice, nor one that the exchange did not report', () => {
    fc.assert(
      fc.property(actions(fc.integer({ min: 0, max: 3 })), (all) => {
        const { truth, record } = run(all);
        const booked = record.reports.filter(({ kind }) => kind === 'trade').map(({ execId }) => execId);
        assert.equal(new Set(booked).size, booked.length);
        for (const execId of booked) assert.ok(truth.trades.some((trade) => trade.execId === execId));
      }),
      { numRuns: 2_000 },
    );
  });
});
