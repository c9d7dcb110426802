import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { documents, findDocuments } from '../../../../src/gateway/trading/applications/documents/store.ts';
import type { BrokerDocuments } from '../../../../src/gateway/trading/broker/broker.ts';
import { type Keys, onlyKey } from '../../../../src/kit/key-ring.ts';
import { clockSkewMs, openSettling, type Settling, submitTimeoutMs } from '../../../support/settling.ts';

/** Longer than the lease of a send. */
const leaseOverMs = submitTimeoutMs + clockSkewMs + 60_000;

describe('a file that is sent before and after the secret key changed', () => {
  const former: Keys = onlyKey(Buffer.alloc(32, 1));
  const second: Keys = { all: [...onlyKey(Buffer.alloc(32, 2)).all, ...former.all] };
  const third: Keys = { all: [...onlyKey(Buffer.alloc(32, 3)).all, ...second.all] };
  const unclear: BrokerDocuments['sendDocument'] = async () => ({ outcome: 'unclear', evidence: 'no answer' });
  const delivered: BrokerDocuments['sendDocument'] = async () => ({ outcome: 'answered', answer: 'delivered' });
  let settling: Settling;
  let partnerId: string;
  let applicationId: string;
  before(async () => {
    settling = await openSettling();
  });
  beforeEach(async () => {
    partnerId = await settling.newPartner();
    const { id } = await settling.storeApplication({ partnerId, state: 'documents_required', checkAt: null });
    applicationId = id;
  });
  after(() => settling.close());

  /** Sends a file by a replica whose current key is the first of these. */
  function send(keys: Keys, content = 'a file') {
    const sender = settling.newDocumentSender(keys);
    const file = {
      ...{ partnerId, applicationId, type: 'photo' as const },
      ...{ mediaType: 'image/png', content: Buffer.from(content) },
    };
    const origin = { partnerId, requestId: null, traceParent: null };
    const permission = { renew: async () => {}, isLatest: () => true };
    return sender.send(file, sender.digestOf(file), { log: settling.log, origin, permission });
  }

  async function stored() {
    const rows = await settling.database.read(findDocuments(partnerId, applicationId));
    return rows.map(documents.all.read).map(({ state, attempt }) => ({ state, attempt }));
  }

  it('is delivered by the answer to the first send, also if it comes after the second send began', async () => {
    const { broker, clock } = settling;
    let answer = () => {};
    const reached = new Promise<void>((resolve) => {
      broker.sendDocument = () => {
        resolve();
        return new Promise((settle) => {
          answer = () => settle({ outcome: 'answered', answer: 'delivered' });
        });
      };
    });
    const first = send(former);
    await reached;
    clock.advance(leaseOverMs);
    broker.sendDocument = unclear;
    await assert.rejects(send(second), { code: 'document_unconfirmed' });
    answer();
    assert.equal((await first).state, 'delivered');
    assert.deepEqual(await stored(), [{ state: 'delivered', attempt: 2 }]);
  });

  it('counts as the same file under every later key, and another file does not', async () => {
    const { broker } = settling;
    broker.sendDocument = unclear;
    await assert.rejects(send(former), { code: 'document_unconfirmed' });
    await assert.rejects(send(second), { code: 'document_unconfirmed' });
    await assert.rejects(send(third, 'another file'), { code: 'earlier_document_unconfirmed' });
    broker.sendDocument = delivered;
    assert.equal((await send(third)).state, 'delivered');
    broker.sendDocument = () => assert.fail('a delivered file is not sent again');
    for (const keys of [former, second, third]) assert.equal((await send(keys)).state, 'delivered');
    assert.deepEqual(await stored(), [{ state: 'delivered', attempt: 3 }]);
  });
});
