import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import {
  countUnderWay,
  documents,
  findDocuments,
  type StoredDocument,
  saveDocument,
} from '../../../../src/gateway/trading/applications/documents/store.ts';
import { lockPartnerRow } from '../../../support/partner-lock.ts';
import { openSettling, type Settling } from '../../../support/settling.ts';

const hourMs = 3_600_000;

describe('a document that waits for its partner', () => {
  let settling: Settling;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());

  it('is sent if the leases of two others end while it waits', async () => {
    const { clock, database, broker, log } = settling;
    const partnerId = await settling.newPartner();
    const { id: applicationId } = await settling.storeApplication({ partnerId, state: 'documents_required' });
    const times = { leaseUntil: clock.realNow() + 1_000, createdAt: clock.now(), updatedAt: clock.now() };
    const sending = { partnerId, applicationId, digest: Buffer.alloc(32, 1), state: 'sending' as const, attempt: 1 };
    for (const type of ['government_id', 'utility_bill'] as const) {
      await database.write(saveDocument({ ...sending, ...times, type }));
    }
    broker.sendDocument = async () => ({ outcome: 'answered', answer: 'delivered' });
    const sender = settling.newDocumentSender();
    const file = {
      partnerId,
      applicationId,
      type: 'photo' as const,
      mediaType: 'image/jpeg',
      content: Buffer.alloc(1),
    };
    const origin = { partnerId, requestId: null, traceParent: null };
    const permission = { renew: async () => {}, isLatest: () => true };
    const lock = await lockPartnerRow(settling.url, partnerId);
    try {
      const sent = sender.send(file, sender.digestOf(file), { log, origin, permission });
      await Promise.all([
        lock.waitedFor().then(() => {
          clock.advance(2_000);
          return lock.release();
        }),
        sent,
      ]);
      assert.equal((await sent).state, 'delivered');
    } finally {
      await lock.release();
    }
  });
});

describe('a document that stays unconfirmed', () => {
  let settling: Settling;
  let document: StoredDocument;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    settling.broker.honoursNotAfter = async () => true;
    const partnerId = await settling.newPartner();
    const { id } = await settling.storeApplication({ partnerId, state: 'documents_required', checkAt: null });
    document = await save({
      partnerId,
      applicationId: id,
      type: 'photo',
      digest: Buffer.alloc(32, 1),
      state: 'unconfirmed',
      attempt: 1,
      leaseUntil: settling.clock.realNow(),
      createdAt: settling.clock.now(),
      updatedAt: settling.clock.now(),
    });
  });

  async function save(stored: StoredDocument): Promise<StoredDocument> {
    await settling.database.write(saveDocument(stored));
    return stored;
  }

  async function stored(): Promise<StoredDocument[]> {
    const { partnerId, applicationId } = document;
    return (await settling.database.read(findDocuments(partnerId, applicationId))).map(documents.all.read);
  }

  async function release(): Promise<string> {
    const { partnerId, applicationId, type } = document;
    const audit = () => statement('DO 1');
    return (await settling.newDocumentSender().release(partnerId, applicationId, type, audit)).outcome;
  }

  const brokerLacksIt = (completeUntil?: number) => {
    settling.broker.lookUpDocument = async () => ({
      found: false,
      completeUntil,
      brokerTime: settling.clock.realNow(),
    });
  };

  it('does not count as on its way if it was sent by a replica that ended while its clock was an hour ahead', async () => {
    const { clock, database } = settling;
    await save({ ...document, state: 'sending', leaseUntil: clock.realNow() + hourMs });
    const [row] = await database.read(countUnderWay(document.partnerId, clock.realNow()));
    assert.equal(Number(row?.under_way), 0);
  });

  it('is not released before its time is over, to the millisecond', async () => {
    brokerLacksIt();
    await save({ ...document, leaseUntil: settling.clock.realNow() + 1 });
    assert.equal(await release(), 'may-still-arrive');
    settling.clock.advance(1);
    assert.equal(await release(), 'unproven', 'its time is over, and not past');
    settling.clock.advance(1);
    assert.equal(await release(), 'released');
    assert.deepEqual(await stored(), []);
  });

  it('is not released without a fence until the record is complete for an hour after its time', async () => {
    settling.broker.honoursNotAfter = async () => false;
    settling.clock.advance(10 * hourMs);
    const aheadMs = settling.clock.now() - settling.clock.realNow();
    const overAt = (document.leaseUntil ?? 0) + aheadMs;
    for (const [completeUntil, outcome] of [
      [undefined, 'unproven'],
      [overAt, 'unproven'],
      [overAt + 1, 'unproven'],
      [overAt + hourMs, 'unproven'],
      [overAt + hourMs + 1, 'released'],
    ] as const) {
      brokerLacksIt(completeUntil);
      const sinceMs = completeUntil === undefined ? 'not known to be complete' : completeUntil - overAt;
      assert.equal(await release(), outcome, `record complete until ${sinceMs} ms after the time of the send`);
    }
  });

  it('is left alone when its partner sends it again while the broker is asked', async () => {
    const again: StoredDocument = {
      ...document,
      state: 'sending',
      attempt: 2,
      leaseUntil: settling.clock.realNow() + 10_000,
    };
    settling.clock.advance(1);
    settling.broker.lookUpDocument = async () => {
      await save(again);
      return { found: false, completeUntil: undefined, brokerTime: settling.clock.realNow() };
    };
    assert.equal(await release(), 'changed-meanwhile');
    assert.deepEqual(await stored(), [again], 'the send that is under way was forgotten');
  });
});
