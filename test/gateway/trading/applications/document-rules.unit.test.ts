import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError, refusalOf } from '../../../../src/gateway/edge/errors.ts';
import {
  beginSend,
  checkTakesDocuments,
  type DocumentFacts,
  type DocumentOutcome,
  endSend,
  maxUnderWay,
} from '../../../../src/gateway/trading/applications/documents/rules.ts';
import { fc } from '../../../support/properties.ts';

const leaseMs = 1_000;
const digest = (file: string) => Buffer.from(file.padEnd(32));
const paused = new ApiError('trading_paused');
const around = { underWay: 0, refusal: undefined, now: 5_000, realNow: 50_000, leaseMs };
const delivered: DocumentFacts = {
  digest: digest('a'),
  state: 'delivered',
  attempt: 1,
  leaseUntil: null,
  createdAt: 1_000,
  updatedAt: 2_000,
};
const unconfirmed: DocumentFacts = { ...delivered, state: 'unconfirmed' };
const sending: DocumentFacts = { ...delivered, state: 'sending', leaseUntil: 50_001 };
const cutOff: DocumentFacts = { ...sending, leaseUntil: 50_000 };
/** Begun by a replica whose clock was an hour ahead. */
const farAhead: DocumentFacts = { ...sending, leaseUntil: 3_650_000 };

describe('a file that comes', () => {
  const refusal = (document: DocumentFacts | undefined, file: string, surroundings = {}) =>
    refusalOf(() => beginSend(document, digest(file), { ...around, ...surroundings })).code;

  it('is sent when there is none of its type', () => {
    const begun = beginSend(undefined, digest('a'), around);
    assert.deepEqual(begun, {
      digest: digest('a'),
      state: 'sending',
      attempt: 1,
      leaseUntil: 51_000,
      createdAt: 5_000,
      updatedAt: 5_000,
    });
  });

  it('is not sent when the broker has it, paused or not, however many are under way', () => {
    assert.equal(beginSend(delivered, digest('a'), { ...around, refusal: paused, underWay: 2 }), delivered);
  });

  it('is refused when the broker has another', () => {
    assert.equal(refusal(delivered, 'b', { refusal: paused, underWay: 2 }), 'document_already_delivered');
  });

  it('is sent again when its delivery is unconfirmed, or was cut off, and keeps the time it was first sent', () => {
    for (const document of [unconfirmed, cutOff, farAhead]) {
      const { state, attempt, createdAt } = beginSend(document, digest('a'), around);
      assert.deepEqual({ state, attempt, createdAt }, { state: 'sending', attempt: 2, createdAt: 1_000 });
    }
  });

  it('is refused when the delivery of another is unconfirmed, or was cut off', () => {
    for (const document of [unconfirmed, cutOff]) {
      assert.equal(refusal(document, 'b', { refusal: paused, underWay: 2 }), 'earlier_document_unconfirmed');
    }
  });

  it('waits for the one of its type that is on its way, the same or another', () => {
    assert.equal(refusal(sending, 'a', { refusal: paused }), 'document_in_flight');
    assert.equal(refusal(sending, 'b', { refusal: paused }), 'document_in_flight');
  });

  it('is refused while another that was unconfirmed is sent again, which the same file waits for', () => {
    const again: DocumentFacts = { ...sending, attempt: 2 };
    assert.equal(refusal(again, 'b'), 'earlier_document_unconfirmed');
    assert.equal(refusal(again, 'a'), 'document_in_flight');
  });

  it('waits while two are on their way, and is refused while trading is paused', () => {
    assert.equal(refusal(undefined, 'a', { underWay: maxUnderWay, refusal: paused }), 'document_in_flight');
    assert.equal(refusal(unconfirmed, 'a', { underWay: maxUnderWay }), 'document_in_flight');
    assert.equal(beginSend(undefined, digest('a'), { ...around, underWay: 1 }).state, 'sending');
    assert.equal(refusal(undefined, 'a', { refusal: paused }), 'trading_paused');
    assert.equal(refusal(unconfirmed, 'a', { refusal: paused }), 'trading_paused');
  });

  it('is taken by an application that requires documents, or has them, and by no other', () => {
    for (const state of ['documents_required', 'submitted'] as const) checkTakesDocuments(state);
    for (const state of ['sending', 'opened', 'uncertain', 'rejected', 'refused', 'unplaced'] as const) {
      assert.equal(refusalOf(() => checkTakesDocuments(state)).code, 'application_not_accepting_documents');
    }
  });
});

/** The contract's rule for one document, as a model of the results of its sends. */
class Model {
  delivered: string | undefined;
  unconfirmed: string | undefined;
  underWay: { file: string; until: number } | undefined;

  expected(file: string, realNow: number): string {
    const { underWay } = this;
    if (underWay !== undefined && underWay.until <= realNow) {
      this.unconfirmed = underWay.file;
      this.underWay = undefined;
    }
    if (this.delivered !== undefined) return this.delivered === file ? 'delivered' : 'document_already_delivered';
    if (this.unconfirmed !== undefined && this.unconfirmed !== file) return 'earlier_document_unconfirmed';
    if (this.underWay !== undefined) return 'document_in_flight';
    return 'sent';
  }
}

describe('a document', () => {
  it('keeps the rules over whatever files, answers and crashes come in whatever order', () => {
    const step = fc.record({
      file: fc.constantFrom('a', 'b', 'c'),
      outcome: fc.constantFrom<DocumentOutcome | 'crash' | 'still under way'>(
        'delivered',
        'refused',
        'never-left',
        'unclear',
        'crash',
        'still under way',
      ),
      waitMs: fc.nat(1_500),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const model = new Model();
        let document: DocumentFacts | undefined;
        let late: { sent: DocumentFacts; file: string } | undefined;
        let realNow = 0;
        for (const { file, outcome, waitMs } of steps) {
          realNow += waitMs;
          const expected = model.expected(file, realNow);
          const surroundings = { ...around, realNow, now: realNow };
          if (expected !== 'sent' && expected !== 'delivered') {
            assert.equal(refusalOf(() => beginSend(document, digest(file), surroundings)).code, expected);
            continue;
          }
          const begun = beginSend(document, digest(file), surroundings);
          assert.equal(begun.state, expected === 'sent' ? 'sending' : 'delivered');
          if (expected === 'delivered') continue;
          const before = model.unconfirmed;
          document = begun;
          if (outcome === 'crash' || outcome === 'still under way') {
            model.underWay = { file, until: realNow + leaseMs };
            if (outcome === 'still under way') late = { sent: begun, file };
            continue;
          }
          // An answer to an earlier send comes only now: it must not undo what was begun since.
          if (late !== undefined && late.sent !== begun) {
            const ended = endSend(document, late.sent, 'unclear', realNow);
            assert.equal(ended, document);
            late = undefined;
          }
          document = endSend(document, begun, outcome, realNow);
          if (outcome === 'delivered') model.delivered = file;
          if (outcome === 'refused') model.unconfirmed = undefined;
          if (outcome === 'unclear') model.unconfirmed = file;
          if (outcome === 'never-left') model.unconfirmed = before;
          assert.equal(document?.state, model.delivered ? 'delivered' : model.unconfirmed && 'unconfirmed');
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('is delivered when the broker says so of the same file, however late', () => {
    const first = beginSend(undefined, digest('a'), around);
    const second = beginSend(first, digest('a'), { ...around, realNow: 99_000 });
    assert.equal(endSend(second, first, 'delivered', 7_000)?.state, 'delivered');
    assert.equal(endSend(second, first, 'refused', 7_000), second);
    assert.equal(endSend(undefined, first, 'delivered', 7_000), undefined);
  });
});
