import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { findObject, readProposal } from '../../../src/gateway/operators/calls/proposals/service.ts';
import { proposals } from '../../../src/gateway/operators/calls/proposals/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { ApplicationKind } from '../../../src/gateway/trading/applications/kind.ts';
import { type BrokerApplications, firstBroker } from '../../../src/gateway/trading/broker/broker.ts';
import { type CreatedKind, Kinds, preparedAs } from '../../../src/gateway/trading/submission/kind.ts';
import { Notes } from '../../../src/gateway/trading/submission/notes.ts';
import { Recovery } from '../../../src/gateway/trading/submission/recovery.ts';
import { StartGate } from '../../../src/gateway/trading/submission/start-gate.ts';
import { Submitter } from '../../../src/gateway/trading/submission/submit.ts';
import { ApplicationReportKind, ApplicationReportSchema } from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { KeyedDigest, onlyKey, Seal } from '../../../src/kit/key-ring.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { openTestDatabase } from '../../support/database.ts';
import { plainOrder } from '../../support/plain-order.ts';
import { clockSkewMs, nothingStopped, openSettling, type Settling, submitTimeoutMs } from '../../support/settling.ts';

describe('a gateway whose reads go to a replica that lags', () => {
  let settling: Settling;
  let lagging: Awaited<ReturnType<typeof openTestDatabase>>;
  /** As through a proxy that splits reads and writes. */
  let split: Database;
  before(async () => {
    settling = await openSettling();
    lagging = await openTestDatabase();
    const { database } = settling;
    split = new Proxy(database, {
      get(_, name) {
        const there = name === 'read' || name === 'readAll' ? lagging.database : database;
        const member: unknown = Reflect.get(there, name, there);
        return typeof member === 'function' ? member.bind(there) : member;
      },
    });
  });
  after(async () => {
    await settling.close();
    await lagging.close();
  });

  const notes = new Notes(new Seal(onlyKey(Buffer.alloc(32, 1))));

  function newRecovery(taken: { number: bigint; clientId: string; note: Uint8Array }[], logged: string[]) {
    const { order, application, allocation, clock } = settling;
    return new Recovery({
      ...{ database: split, clock, notes, gate: new StartGate(), isShared: false },
      broker: {
        id: firstBroker,
        submissions: { submissionsAfter: async (after) => taken.filter(({ number }) => number > after) },
      },
      kinds: new Kinds([order, application, allocation]),
      lackedKeys: async () => [],
      log: createLogger({ name: 'test', level: 'warn', destination: { write: (line) => void logged.push(line) } }),
    });
  }

  it('does not take a stored order for a lost one at its start, and skips no version of its partner', async () => {
    const partnerId = await settling.newPartner();
    const row = await settling.storeOrder({ partnerId });
    const logged: string[] = [];
    await newRecovery([{ number: 1n, clientId: row.id, note: notes.write(settling.order, row) }], logged).findLost();
    const [partner] = await settling.database.read(statement('SELECT version FROM partners WHERE id = ?', partnerId));
    assert.equal(Number(partner?.version), 0, 'the database was declared restored');
    assert.deepEqual(logged, []);
  });

  it('restores an order of a partner that the replica does not have yet', async () => {
    const partnerId = await settling.newPartner();
    const lost = { ...(await settling.storeOrder({ partnerId })), idempotencyKey: 'lost' };
    await settling.database.write(statement('DELETE FROM orders WHERE id = ?', lost.id));
    const logged: string[] = [];
    await newRecovery([{ number: 2n, clientId: lost.id, note: notes.write(settling.order, lost) }], logged).findLost();
    assert.equal((await settling.readOrder(lost)).state, 'uncertain', logged.join('\n'));
  });

  it('answers a repeated request by the order that the replica does not have yet', async () => {
    const partnerId = await settling.newPartner();
    const { idempotencyKey } = await settling.storeOrder({ partnerId, idempotencyKey: 'repeated' });
    const gate = new StartGate();
    gate.open();
    const { recorder, clock, ids, log } = settling;
    const order: object = settling.order;
    const submitter = new Submitter({
      ...{ database: split, recorder, clock, ids, notes, submitTimeoutMs, clockSkewMs, gate },
      environment: nothingStopped,
    });
    const { account, symbol, side, type, timeInForce, quantity, priceKobo, countedDay, countedPriceKobo } = plainOrder;
    const draft = { account, symbol, side, type, timeInForce, quantity, priceKobo, countedDay, countedPriceKobo };
    const prepared = preparedAs({ ...settling.order.blank, ...draft, clientReference: null } as never);
    Object.assign(order, { prepare: () => prepared });
    const submitting = submitter.submit(order as CreatedKind<never, never, object>, {
      origin: { partnerId, requestId: null, traceParent: null },
      keyId: 'key_1',
      idempotencyKey: String(idempotencyKey),
      digest: new KeyedDigest(onlyKey(Buffer.alloc(32)), (hmac) => hmac),
      request: {},
      permission: { renew: async () => {}, isLatest: () => true },
      log: () => log,
    });
    await assert.rejects(submitting, { code: 'duplicate_order' }, 'the order that the key has was compared');
    Reflect.deleteProperty(order, 'prepare');
  });

  it('finds the object of a proposal, and the proposal, which the replica does not have yet', async () => {
    const { order, application, allocation, clock, ids } = settling;
    const partnerId = await settling.newPartner();
    const { id: objectId } = await settling.storeOrder({ partnerId });
    const kinds = new Kinds([order, application, allocation]);
    assert.deepEqual(await findObject(split, kinds, objectId), { partnerId, objectId });
    const id = ids.object('prp');
    const [proposedAt, expiresAt] = [clock.now(), clock.now() + 1_000];
    await settling.database.write(
      proposals.insert({
        ...{
          partnerId,
          id,
          objectId,
          action: 'Settlements.ProposeSettlement',
          about: null,
          state: 'applied',
          proposedAt,
          expiresAt,
        },
        ...{ request: '{}', seen: '{}', evidence: 'seen', reference: 'desk', proposedBy: 'ada' },
        ...{ decidedBy: 'bola', decidedAt: proposedAt, decisionReason: null },
      }),
    );
    assert.equal((await readProposal(split, id)).state, 'applied');
  });

  it("finds that an account is another partner's", async () => {
    const [owner, partnerId] = [await settling.newPartner(), await settling.newPartner()];
    const { id } = await settling.storeApplication({ partnerId });
    const account = 'FOREIGN1';
    await settling.database.write(
      statement('INSERT INTO accounts (partner_id, account, created_at) VALUES (?, ?, NOW(3))', owner, account),
    );
    const report = create(ApplicationReportSchema, {
      ...{ number: 1n, clientApplicationId: id, kind: ApplicationReportKind.OPENED, account },
    });
    const answers: Partial<BrokerApplications> = { lookUpApplication: async () => ({ found: true, answer: [report] }) };
    const { clock, log } = settling;
    const kind = new ApplicationKind(answers as BrokerApplications, split, clock, log);
    const looked = await kind.lookUp(await settling.readApplication({ partnerId, id }));
    assert.ok(looked.found);
    assert.equal(looked.answer[0]?.account, '', "the report's account counts");
  });
});
