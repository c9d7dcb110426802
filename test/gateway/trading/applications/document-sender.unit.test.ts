import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { DocumentSender } from '../../../../src/gateway/trading/applications/documents/sender.ts';
import type { StoredDocument } from '../../../../src/gateway/trading/applications/documents/store.ts';
import { ApplicationKind } from '../../../../src/gateway/trading/applications/kind.ts';
import type { StoredApplication } from '../../../../src/gateway/trading/applications/table.ts';
import type { Sent } from '../../../../src/gateway/trading/broker/broker.ts';
import type { Change } from '../../../../src/gateway/trading/submission/change.ts';
import { pausedBeforeSend } from '../../../../src/gateway/trading/submission/environment.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const [submitTimeoutMs, clockSkewMs] = [5_000, 2_000];
const begin = plainOrder.createdAt;
const application: StoredApplication = {
  ...plainOrder,
  ...{
    id: 'app_a',
    partnerId: 'par_a',
    state: 'documents_required',
    reference: 'REF-1',
    checkAt: null,
    lastReport: 1n,
  },
  ...{ account: null, param: null, evidence: 'the broker accepted it' },
};
const file = {
  ...({ partnerId: 'par_a', applicationId: 'app_a', type: 'photo', mediaType: 'image/png' } as const),
  content: Buffer.from('a file'),
};

type Delivered = Sent<'delivered' | 'refused'>;
const delivered: Delivered = { outcome: 'answered', answer: 'delivered' };
const refused: Delivered = { outcome: 'answered', answer: 'refused' };
const neverLeft: Delivered = { outcome: 'never-left', evidence: 'no link' };
const unclear: Delivered = { outcome: 'unclear', evidence: 'no answer' };

/** A sender over an application in memory, whose documents a test gives. Its lock is waited for three seconds. */
function open(documents: readonly StoredDocument[] = []) {
  const state = {
    now: begin,
    documents,
    sends: [] as number[],
    answer: delivered,
    obstacle: undefined as typeof pausedBeforeSend | undefined,
    /** Called when the file is at the broker. */
    meanwhile: () => {},
  };
  const [steps, written, outcomes]: [string[], string[], string[]] = [[], [], []];
  let [changes, row] = [0, application];
  const clock = { now: () => state.now, realNow: () => state.now };
  type Decide = (row: StoredApplication, extra: unknown) => Change<StoredApplication> | undefined;
  const change = async (_kind: unknown, _partner: unknown, _id: unknown, decide: Decide) => {
    state.now += 3_000;
    changes += 1;
    const inForce = { paused: false, stops: [] };
    const facts = { documents: state.documents, leaseEnds: [], inForce };
    const decided = decide(row, changes === 1 ? facts : state.documents);
    if (changes === 1 && decided !== undefined) {
      state.documents = [...state.documents.filter(({ type }) => type !== file.type), made()];
    }
    steps.push(...(decided?.steps ?? []).map(({ detail }) => detail));
    written.push(...(decided?.writes ?? []).map(({ sql }) => sql).filter((sql) => sql.includes('documents')));
    row = decided?.after ?? row;
    return row;
  };
  const sender = new DocumentSender({
    ...{ submitTimeoutMs, clockSkewMs, clock, digestKeys: onlyKey(Buffer.alloc(32, 1)) },
    kind: new ApplicationKind({} as never, {} as never, clock, {} as never),
    recorder: { change } as never,
    broker: {
      sendDocument: async (_: unknown, notAfterMs: number) => {
        state.sends.push(notAfterMs);
        state.meanwhile();
        return state.answer;
      },
    } as never,
    environment: { obstacleTo: () => state.obstacle, stops: [], stopsVersion: 0n },
    onSent: (outcome) => void outcomes.push(outcome),
    log: createLogger({ name: 'test', level: 'silent' }),
    ...({} as { database: never; orders: never; clocks: never }),
  });
  const digest = sender.digestOf(file);
  const made = (fields: Partial<StoredDocument> = {}): StoredDocument => ({
    ...{
      partnerId: 'par_a',
      applicationId: 'app_a',
      type: 'photo',
      digest: digest.current,
      state: 'sending',
      attempt: 1,
    },
    ...{ leaseUntil: begin + 60_000, createdAt: begin, updatedAt: begin },
    ...fields,
  });
  /** The state of the document, or the code of the error. */
  const send = async (permission = { renew: async () => {}, isLatest: () => true }) => {
    const call = { permission, origin: application, log: createLogger({ name: 'test', level: 'silent' }) };
    try {
      return (await sender.send(file, digest, call)).state;
    } catch (error) {
      if (error instanceof ApiError) return error.code;
      throw error;
    }
  };
  return { send, made, state, steps, written, outcomes, application: () => row };
}

const verbs = (written: readonly string[]) => written.map((sql) => sql.split(' ', 1)[0]);

describe('a document that is sent', () => {
  const toBeSent = 'photo: to be sent, attempt 1';
  for (const [name, answer, shown, left, said] of [
    ['is delivered', delivered, 'delivered', 'INSERT', 'photo: delivered'],
    ['is refused, and leaves no trace', refused, 'document_rejected', 'DELETE', 'photo: the broker refused it'],
    [
      'never left, and leaves no trace',
      neverLeft,
      'exchange_unavailable',
      'DELETE',
      'photo: it never left the gateway',
    ],
    [
      'is unconfirmed without an answer',
      unclear,
      'document_unconfirmed',
      'INSERT',
      'photo: the broker did not confirm it',
    ],
  ] as const) {
    it(`a document that is sent ${name}`, async () => {
      const { send, state, steps, written, outcomes } = open();
      state.answer = answer;
      assert.equal(await send(), shown);
      assert.deepEqual(
        [verbs(written), steps],
        [
          ['INSERT', left],
          [toBeSent, said],
        ],
      );
      assert.deepEqual(outcomes, [answer.outcome === 'answered' ? answer.answer : answer.outcome]);
      assert.deepEqual(state.sends, [begin + 3_000 + submitTimeoutMs], 'its time begins when it has the lock');
    });
  }

  it('a document is not sent if trading is paused after it was stored, and is as if it had never been', async () => {
    const { send, state, written, outcomes } = open();
    state.obstacle = pausedBeforeSend;
    assert.equal(await send(), 'trading_paused');
    assert.deepEqual([state.sends, outcomes, verbs(written)], [[], ['never-left'], ['INSERT', 'DELETE']]);
  });

  it('a document is not stored for a key that was revoked while it waited for the lock', async () => {
    const { send, state, written } = open();
    let renewals = 0;
    const renew = async () => {
      renewals += 1;
      if (renewals > 1) throw new ApiError('unauthorized');
    };
    assert.equal(await send({ renew, isLatest: () => false }), 'unauthorized');
    assert.deepEqual([state.sends, written], [[], []]);
  });

  it('a document that another send delivered meanwhile is delivered, whatever became of this send', async () => {
    for (const answer of [refused, unclear, neverLeft]) {
      const { send, made, state, written } = open();
      state.answer = answer;
      state.meanwhile = () => {
        state.documents = [made({ state: 'delivered', attempt: 2, leaseUntil: null })];
      };
      assert.equal(await send(), 'delivered', answer.outcome);
      assert.deepEqual(verbs(written), ['INSERT'], 'nothing is stored of its end');
    }
  });

  it('a document that was delivered is not sent again, and one whose end cannot be stored is unconfirmed', async () => {
    const before = open();
    before.state.documents = [before.made({ state: 'delivered', leaseUntil: null })];
    assert.equal(await before.send(), 'delivered');
    assert.deepEqual([before.state.sends, before.written], [[], []]);
    const { send, state } = open();
    state.meanwhile = () => {
      state.documents = undefined as never;
    };
    assert.equal(await send(), 'document_unconfirmed');
  });

  it('the application is submitted with the fourth document that is delivered, once', async () => {
    for (const [others, isLast] of [
      [['government_id', 'utility_bill', 'signature'], true],
      [['government_id', 'utility_bill'], false],
    ] as const) {
      const { send, made, state, application } = open();
      state.documents = others.map((type) => made({ type, state: 'delivered' }));
      assert.equal(await send(), 'delivered');
      assert.equal(application().state, isLast ? 'submitted' : 'documents_required');
    }
  });
});
