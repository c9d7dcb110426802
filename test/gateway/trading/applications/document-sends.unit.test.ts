import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusalOf } from '../../../../src/gateway/edge/errors.ts';
import {
  areAllDelivered,
  checkNotInFlight,
  type DocumentFacts,
  documentTypes,
  endSend,
  isSameSend,
  maxUnderWay,
  mayStillArrive,
} from '../../../../src/gateway/trading/applications/documents/rules.ts';

const file = Buffer.alloc(32, 1);
const other = Buffer.alloc(32, 2);

function facts(change: Partial<DocumentFacts> = {}): DocumentFacts {
  return { digest: file, state: 'unconfirmed', attempt: 1, leaseUntil: 1_000, createdAt: 0, updatedAt: 0, ...change };
}

describe('what was found out about an unconfirmed document', () => {
  it('is not asked before the time of its last send is over', () => {
    const arrives = [999, 1_000].map((realNow) => mayStillArrive(facts(), realNow));
    assert.deepEqual(arrives, [true, false], '999 and 1,000 ms of a lease until 1,000 ms');
    assert.equal(mayStillArrive(facts({ leaseUntil: null }), 0), false);
  });

  it('holds only while nothing came to the document', () => {
    assert.equal(isSameSend(facts(), facts({ updatedAt: 9 })), true);
    for (const change of [{ digest: other }, { attempt: 2 }, { state: 'sending' }, { state: 'delivered' }] as const) {
      assert.equal(isSameSend(facts(change), facts()), false, `another ${Object.keys(change)}`);
    }
  });
});

describe('a look without the lock', () => {
  const look = (document: DocumentFacts | undefined, digest: Buffer, underWay: number, realNow = 0) => {
    const check = () => checkNotInFlight(document, digest, underWay, realNow);
    return { passes: () => assert.doesNotThrow(check), refusal: () => refusalOf(check) };
  };

  it('refuses what is being sent, and what would be one more than two under way', () => {
    look(undefined, file, maxUnderWay - 1).passes();
    const { code, limit, message } = look(undefined, file, maxUnderWay).refusal();
    assert.deepEqual([code, limit], ['document_in_flight', 'documents_under_way']);
    assert.match(message, /2 of at most 2 documents/);
    const sending = facts({ state: 'sending' });
    for (const digest of [file, other]) {
      const refusal = look(sending, digest, 0, 999).refusal();
      assert.deepEqual([refusal.code, refusal.limit], ['document_in_flight', undefined]);
      assert.match(refusal.message, /This document is being sent/);
    }
    look(sending, file, 0, 1_000).passes();
  });

  it('leaves another file than the broker has, or may have, to what says so under the lock', () => {
    for (const document of [
      facts({ state: 'delivered' }),
      facts({ state: 'unconfirmed' }),
      facts({ state: 'sending', attempt: 2 }),
    ]) {
      look(document, other, maxUnderWay, 0).passes();
      assert.equal(look(document, file, maxUnderWay, 0).refusal().code, 'document_in_flight', document.state);
    }
  });
});

describe('what a document is after its send', () => {
  it('is delivered for good: no later outcome changes it, and its time does not go back', () => {
    const delivered = facts({ state: 'delivered', leaseUntil: null, updatedAt: 5 });
    for (const outcome of ['delivered', 'refused', 'never-left', 'unclear'] as const) {
      assert.equal(endSend(delivered, facts(), outcome, 9), delivered, outcome);
    }
    assert.equal(endSend(facts({ updatedAt: 7 }), facts(), 'delivered', 3)?.updatedAt, 7);
    assert.equal(endSend(facts({ updatedAt: 7 }), facts(), 'delivered', 9)?.updatedAt, 9);
  });
});

describe('an application has all its documents', () => {
  it('when the four are delivered, and not before', () => {
    const four = documentTypes.map((type) => ({ type, state: 'delivered' as const }));
    assert.equal(areAllDelivered(four), true);
    for (const [at, type] of documentTypes.entries()) {
      assert.equal(areAllDelivered(four.toSpliced(at, 1)), false, `without ${type}`);
      assert.equal(
        areAllDelivered(four.with(at, { type, state: 'unconfirmed' as never })),
        false,
        `${type} unconfirmed`,
      );
    }
  });
});
