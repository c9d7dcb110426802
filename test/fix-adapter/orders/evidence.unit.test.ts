/** The rule of evidence, over everything that an exchange can say of an order. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyExecution, type Effect } from '../../../src/fix-adapter/orders/apply-execution.ts';
import { type AbsenceFacts, evidence, provesAbsence, statusesOfEnd } from '../../../src/fix-adapter/orders/evidence.ts';
import { countOf } from '../../../src/fix-adapter/orders/weigh.ts';
import type { FixEnd, FixOrder, FixOrderState } from '../../../src/fix-adapter/store/table.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { execution, fixOrder, weighing } from '../../support/fix-order.ts';
import { fc } from '../../support/properties.ts';

const context = { ...weighing, at: 1_000, startedAt: 7, executed: new Map() };
const execTypes = [...'0123456789ABCDEFGHIJKLZ', ''];
const ordStatuses = [...'0123456789ABCDEZ', ''];
const states: readonly FixOrderState[] = ['unsent', 'sending', 'open', 'final'];
const ends: readonly string[] = ['cancelled', 'expired', 'rejected'];

interface Said {
  readonly order: FixOrder;
  readonly execType: string;
  readonly ordStatus: string;
  readonly cumQty: string | undefined;
  readonly leavesQty: string | undefined;
  readonly isAnswer: boolean;
  readonly effect: Effect;
}

function* everyReport(): Generator<Said> {
  const counts = [undefined, '0', '40', '60', '140'];
  const answers: readonly Record<number, string>[] = [{}, { [tags.OrdStatusReqID]: 'q' }];
  for (const execType of execTypes)
    for (const ordStatus of ordStatuses)
      for (const cumQty of counts)
        for (const leavesQty of [undefined, '0', '60'])
          for (const state of states)
            for (const filled of state === 'unsent' || state === 'sending' ? [0n] : [0n, 40n])
              for (const asked of execType === '8' ? [false, true] : [false])
                for (const answer of answers) {
                  const order = fixOrder({ state, filled, asked });
                  const fields: Record<number, string> = { ...answer };
                  fields[tags.OrdStatus] = ordStatus;
                  const isUnknown = ordStatus === '8' && (execType === 'I' || execType === '8');
                  if (isUnknown) fields[tags.OrderID] = 'NONE';
                  else {
                    fields[tags.LastQty] = '40';
                    fields[tags.LastPx] = '1.00';
                  }
                  if (cumQty !== undefined) fields[tags.CumQty] = cumQty;
                  if (leavesQty !== undefined) fields[tags.LeavesQty] = leavesQty;
                  const message = execution(execType, fields);
                  const isAnswer = execType === 'I' || Object.keys(answer).length > 0;
                  yield {
                    order,
                    execType,
                    ordStatus,
                    cumQty,
                    leavesQty,
                    isAnswer,
                    effect: applyExecution(order, message, context),
                  };
                }
}

/** Everything that an ExecutionReport of 40 shares can say, with each count and of each state, with its effect. */
const everything = [...everyReport()];

describe('the rule of evidence', () => {
  it('ends an order only with counts and a status that agree, and rejects none by an answer', () => {
    for (const { order, execType, ordStatus, cumQty, isAnswer, effect } of everything) {
      const said = JSON.stringify({ execType, ordStatus, cumQty, isAnswer, state: order.state, asked: order.asked });
      const end = effect.reports.find(({ kind }) => ends.includes(kind))?.kind as FixEnd | undefined;
      if (end !== undefined) {
        assert.ok(statusesOfEnd[end].includes(ordStatus), said);
        assert.equal(BigInt(cumQty ?? -1), countOf(effect.order), said);
        if (end === 'rejected') assert.ok(!isAnswer && !order.asked, said);
      }
      const isFull = countOf(effect.order) >= order.quantity;
      const isEnded = effect.order.state === 'final' && order.state !== 'final';
      assert.equal(isEnded, end !== undefined || (isFull && order.state !== 'final'), said);
      assert.ok(effect.order.state !== 'unsent' || order.state === 'unsent', said);
      assert.ok(effect.order.state !== 'sending' || order.state === 'sending', said);
    }
  });

  it('finds every count of trades that is not what was reported, and books a trade once', () => {
    for (const { order, execType, ordStatus, cumQty, isAnswer, effect } of everything) {
      const said = JSON.stringify({ execType, ordStatus, cumQty, isAnswer, state: order.state });
      const trades = effect.reports.filter(({ kind }) => kind === 'trade');
      const isTrade = !isAnswer && ['F', '1', '2'].includes(execType);
      assert.equal(trades.length, isTrade ? 1 : 0, said);
      const isMore = cumQty !== undefined && BigInt(cumQty) > countOf(effect.order);
      const isAbsent = effect.isUnknown === true;
      if (isMore && !isAbsent) assert.ok(effect.findings.length > 0, said);
      if (isTrade && cumQty !== undefined && BigInt(cumQty) !== countOf(effect.order)) {
        assert.ok(effect.findings.length > 0, said);
      }
    }
  });

  it('leaves nothing unsaid: what the exchange says is over is over, or found', () => {
    const over = ['2', '4', 'C', '8', '3'];
    for (const { order, execType, ordStatus, cumQty, isAnswer, effect } of everything) {
      if (!isAnswer || !over.includes(ordStatus)) continue;
      const said = JSON.stringify({ execType, ordStatus, cumQty, state: order.state });
      const isOver = effect.order.state === 'final' || effect.order.state === 'unsent';
      assert.ok(isOver || effect.isUnknown || effect.findings.length > 0 || effect.order.noted !== '', said);
    }
  });

  it('takes an answer for "unknown order" only if nothing in it speaks of an order, of an order that may be unknown', () => {
    let unknown = 0;
    for (const { order, execType, ordStatus, cumQty, leavesQty, isAnswer, effect } of everything) {
      if (effect.isUnknown !== true) continue;
      unknown += 1;
      const said = JSON.stringify({ execType, ordStatus, cumQty, leavesQty, isAnswer, state: order.state });
      assert.ok(isAnswer && ordStatus === '8' && ['I', '8'].includes(execType), said);
      assert.ok((cumQty ?? '0') === '0' && (leavesQty ?? '0') === '0', said);
      assert.ok(!effect.order.acknowledged && ['sending', 'open'].includes(order.state), said);
    }
    assert.ok(unknown > 0);
  });

  it('finds every end with the OrdStatus of a living order, of an order that had ended', () => {
    for (const { order, execType, ordStatus, cumQty, effect } of everything) {
      const hadEnded = order.state === 'final' && countOf(order) < order.quantity;
      const isLiving = ordStatus !== '' && !Object.values(statusesOfEnd).flat().includes(ordStatus);
      if (!hadEnded || !isLiving || !['4', 'C', '8'].includes(execType)) continue;
      assert.ok(effect.findings.length > 0, JSON.stringify({ execType, ordStatus, cumQty }));
    }
  });

  it('has a row for each statement and state', () => {
    for (const [says, row] of Object.entries(evidence)) {
      for (const state of states) assert.notEqual(row[state], undefined, `${says} of an order that is ${state}`);
    }
  });
});

describe('the absence of an order', () => {
  const proven: AbsenceFacts = {
    certifiedAfterMs: 10_000,
    isRestored: false,
    isInDoubt: true,
    isSameNumbering: true,
    isAcknowledged: false,
    isPassedOver: false,
    isOneConnection: true,
    writtenForMs: 10_000,
    isNeverRead: false,
  };
  const cases: readonly [string, Partial<AbsenceFacts>, boolean][] = [
    ['proven when all of it holds, exactly at the certified time', {}, true],
    ['not proven one millisecond before', { writtenForMs: 9_999 }, false],
    ['proven at once if the exchange had not read it', { writtenForMs: 0, isNeverRead: true }, true],
    ['never proven unless the counterparty certifies it', { certifiedAfterMs: 0, isNeverRead: true }, false],
    ['not proven in another numbering', { isSameNumbering: false }, false],
    ['not proven after an acknowledgement', { isAcknowledged: true, isNeverRead: true }, false],
    ['not proven after a message was passed over', { isPassedOver: true, isNeverRead: true }, false],
    ['not proven if the connection broke between question and answer', { isOneConnection: false }, false],
    ['not proven by a record that was restored', { isRestored: true }, false],
    ['not proven of an order that is known', { isInDoubt: false }, false],
  ];
  for (const [name, facts, expected] of cases) {
    it(`is ${name}`, () => assert.equal(provesAbsence({ ...proven, ...facts }), expected));
  }

  it('is never proven by less than all of it', () => {
    const flags = fc.record({
      certifiedAfterMs: fc.integer({ min: 0, max: 20 }),
      isRestored: fc.boolean(),
      isInDoubt: fc.boolean(),
      isSameNumbering: fc.boolean(),
      isAcknowledged: fc.boolean(),
      isPassedOver: fc.boolean(),
      isOneConnection: fc.boolean(),
      writtenForMs: fc.integer({ min: 0, max: 20 }),
      isNeverRead: fc.boolean(),
    });
    fc.assert(
      fc.property(flags, (facts) => {
        if (!provesAbsence(facts)) return;
        assert.ok(facts.certifiedAfterMs > 0 && facts.isInDoubt && facts.isSameNumbering && facts.isOneConnection);
        assert.ok(!facts.isRestored && !facts.isAcknowledged && !facts.isPassedOver);
        assert.ok(facts.isNeverRead || facts.writtenForMs >= facts.certifiedAfterMs);
      }),
    );
  });
});
