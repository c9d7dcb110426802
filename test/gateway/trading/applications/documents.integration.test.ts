import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { DocumentOutcome } from '../../../../src/gen/marina/broker/v1/applications_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply, fourTypes, overGrpc, overRest, type SendDocument } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { noiseJpeg, noisePng, plain } from '../../../support/images.ts';
import { scrape } from '../../../support/metrics.ts';

const [file, other] = await Promise.all([noiseJpeg(), noiseJpeg()]);

describe('documents', () => {
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    gateway = await startGateway();
    partner = await gateway.newPartner();
  });
  // An application is given another state here without an event.
  after(() => gateway.stop(['objects']));

  const newApplication = (firstName = 'Adaeze', lastName = 'Okafor', owner = partner) =>
    apply(gateway.rest, owner.key, { first_name: firstName, last_name: lastName });

  /** How often the broker received each file of an application's document. */
  async function received(id: string) {
    const { applications } = await gateway.controls.listApplications({ clientApplicationId: id }, callTimeout);
    return applications[0]?.documents.map(({ timesReceived, delivered }) => ({ timesReceived, delivered })) ?? [];
  }

  async function get(path: string) {
    return (await gateway.rest('GET', path, { key: partner.key })).body;
  }

  async function eventsOf(id: string): Promise<string[]> {
    const types: string[] = [];
    for (let cursor = ''; ; ) {
      const page = await get(`/v1/events?limit=100${cursor}`);
      types.push(
        ...page.data
          .filter((event: { data: { id: string } }) => event.data.id === id)
          .map(({ type }: { type: string }) => type),
      );
      if (!page.has_more) return types;
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
  }

  async function withPause(work: () => Promise<void>): Promise<void> {
    const admin = adminClient(gateway.app.adminPort);
    try {
      await admin.trading.pauseTrading({ reason: 'test' }, admin.options);
      await work();
    } finally {
      await admin.trading.resumeTrading({ reason: 'test' }, admin.options);
      admin.close();
    }
  }

  const protocols: Record<string, () => SendDocument> = {
    REST: () => overRest(gateway.app.restPort),
    gRPC: () => overGrpc(gateway.app.grpcPort),
  };
  for (const [protocol, open] of Object.entries(protocols)) {
    describe(`over ${protocol}`, () => {
      let send: (id: string, type?: string, content?: Buffer, contentType?: string) => ReturnType<SendDocument>;
      before(() => {
        const sendDocument = open();
        send = (id, type = 'photo', content = file, contentType) =>
          sendDocument({ key: partner.key, id, type, file: content, ...(contentType && { contentType }) });
      });

      it('the fourth makes the application submitted, and the partner hears of it once', async () => {
        const id = await newApplication('Adaeze', 'SIM-WAIT');
        for (const [count, type] of fourTypes.entries()) {
          assert.equal((await get(`/v1/applications/${id}`)).state, 'documents_required');
          assert.equal((await get(`/v1/applications/${id}/documents`)).data.length, count);
          const { outcome, document } = await send(id, type);
          assert.equal(outcome, 'delivered');
          assert.equal(document?.application, id);
          assert.equal(document?.type, type);
        }
        assert.equal((await get(`/v1/applications/${id}`)).state, 'submitted');
        const list = await get(`/v1/applications/${id}/documents`);
        assert.equal(list.object, 'list');
        assert.equal(list.has_more, false);
        assert.equal(list.next_cursor, null);
        const [first] = list.data;
        assert.deepEqual(Object.keys(first).sort(), [
          'application',
          'created_at',
          'object',
          'state',
          'type',
          'updated_at',
        ]);
        assert.deepEqual(list.data.map(({ type }: { type: string }) => type).sort(), [...fourTypes].sort());
        assert.deepEqual(await received(id), new Array(4).fill({ timesReceived: 1, delivered: true }));
        // A file sent again changes nothing, a different one is refused.
        assert.equal((await send(id)).outcome, 'delivered');
        assert.equal((await send(id, 'photo', other)).outcome, 'document_already_delivered');
        assert.equal((await get(`/v1/applications/${id}`)).state, 'submitted');
        await eventually(async () =>
          assert.deepEqual(await eventsOf(id), ['application.documents_required', 'application.submitted']),
        );
      });

      it('the broker opens the account when it has the four, and then takes no more', async () => {
        const id = await newApplication();
        for (const type of fourTypes) assert.equal((await send(id, type)).outcome, 'delivered');
        await eventually(async () => assert.equal((await get(`/v1/applications/${id}`)).state, 'opened'));
        assert.equal((await send(id)).outcome, 'application_not_accepting_documents');
        assert.deepEqual(await received(id), new Array(4).fill({ timesReceived: 1, delivered: true }));
      });

      it('the same file is sent once, also while trading is paused; a different one is refused', async () => {
        const id = await newApplication();
        assert.equal((await send(id)).outcome, 'delivered');
        assert.equal((await send(id)).outcome, 'delivered');
        await withPause(async () => {
          assert.equal((await send(id)).outcome, 'delivered');
          assert.equal((await send(id, 'photo', other)).outcome, 'document_already_delivered');
          const paused = await send(id, 'signature');
          assert.equal(paused.outcome, 'trading_paused');
        });
        assert.equal((await send(id, 'photo', other)).outcome, 'document_already_delivered');
        assert.deepEqual(await received(id), [{ timesReceived: 1, delivered: true }]);
        assert.equal((await send(id, 'signature')).outcome, 'delivered');
      });

      it('a file that the broker did not confirm is sent again, and only that file', async () => {
        for (const [firstName, before] of [
          ['SIM-LOSE-DOCUMENTS', true],
          ['SIM-HANG-DOCUMENTS', false],
        ] as const) {
          const id = await newApplication(firstName);
          assert.equal((await send(id)).outcome, 'document_unconfirmed', firstName);
          assert.equal((await get(`/v1/applications/${id}/documents`)).data.length, 0);
          assert.equal((await received(id))[0]?.delivered ?? false, before);
          assert.equal((await send(id, 'photo', other)).outcome, 'earlier_document_unconfirmed');
          await withPause(async () => {
            assert.equal((await send(id, 'photo', other)).outcome, 'earlier_document_unconfirmed');
            assert.equal((await send(id)).outcome, 'trading_paused');
          });
          assert.equal((await send(id)).outcome, 'delivered');
          assert.equal((await send(id)).outcome, 'delivered');
          assert.deepEqual(await received(id), [{ timesReceived: 2, delivered: true }]);
        }
      });

      it('an answer that makes no sense, a reset and a status leave a document unconfirmed', async () => {
        for (const fault of [
          WireFault.NONSENSE,
          WireFault.RESET_AFTER,
          WireFault.RESET_BEFORE,
          WireFault.UNAVAILABLE_AFTER,
          WireFault.UNAVAILABLE_BEFORE,
        ]) {
          const id = await newApplication();
          await gateway.controls.injectFault({ call: Call.SEND_DOCUMENT, fault, times: 1 }, callTimeout);
          assert.equal((await send(id)).outcome, 'document_unconfirmed', WireFault[fault]);
          assert.equal((await send(id)).outcome, 'delivered', WireFault[fault]);
        }
      });

      it('a file that the broker refuses is not delivered, and another one may follow', async () => {
        const id = await newApplication();
        const refuse = { clientApplicationId: id, times: 1, outcome: DocumentOutcome.REFUSED };
        await gateway.controls.forceDocument(refuse, callTimeout);
        assert.equal((await send(id)).outcome, 'document_rejected');
        assert.equal((await get(`/v1/applications/${id}/documents`)).data.length, 0);
        assert.equal((await send(id, 'photo', other)).outcome, 'delivered');
        assert.equal((await send(id, 'photo', file)).outcome, 'document_already_delivered');
      });

      it('an application in any other state takes none', async () => {
        const id = await newApplication();
        for (const state of ['sending', 'opened', 'uncertain', 'rejected', 'refused', 'unplaced']) {
          await gateway.database.write(
            statement('UPDATE applications SET state = ? WHERE partner_id = ? AND id = ?', state, partner.id, id),
          );
          assert.equal((await send(id)).outcome, 'application_not_accepting_documents', state);
          // The file itself is checked later.
          assert.equal(
            (await send(id, 'photo', Buffer.alloc(0), 'text/plain')).outcome,
            'application_not_accepting_documents',
          );
        }
        assert.deepEqual(await received(id), []);
      });

      it('a request is refused for what comes first in the order of checks', async () => {
        const id = await newApplication();
        const nobodys = 'app_aaaaaaaaaaaaaaaaaaaa';
        const large = Buffer.alloc(1_000_000);
        const text = Buffer.from('not an image');
        const cases: [string, string, Buffer, string, string][] = [
          [id, 'passport', file, 'image/jpeg', 'invalid_request'],
          ['nonsense', 'passport', file, 'image/jpeg', 'invalid_request'],
          ['nonsense', 'photo', file, 'image/jpeg', 'application_not_found'],
          [nobodys, 'photo', text, 'text/plain', 'application_not_found'],
          [id, 'photo', large, 'text/plain', 'unsupported_media_type'],
          [id, 'photo', large, 'image/png', 'document_too_large'],
          [id, 'photo', Buffer.alloc(0), 'image/png', 'invalid_request'],
          [id, 'photo', text, 'image/png', 'invalid_document'],
          [id, 'photo', file, 'image/png', 'invalid_document'],
          [id, 'photo', Buffer.concat([file, text]), 'image/jpeg', 'invalid_document'],
          [id, 'photo', file.subarray(0, -300), 'image/jpeg', 'invalid_document'],
          [id, 'photo', await plain(8_001, 8).jpeg().toBuffer(), 'image/jpeg', 'invalid_document'],
        ];
        for (const [application, type, content, contentType, outcome] of cases) {
          assert.equal((await send(application, type, content, contentType)).outcome, outcome, `${type} ${outcome}`);
        }
        await withPause(async () => {
          assert.equal((await send(id, 'photo', text, 'image/png')).outcome, 'invalid_document');
        });
        assert.deepEqual(await received(id), []);
        const rows = await gateway.database.read(statement('SELECT 1 FROM documents WHERE application_id = ?', id));
        assert.equal(rows.length, 0, 'nothing was stored');
      });

      it('a partner has at most two on their way at once', async () => {
        const [first, second] = [await newApplication('SIM-HANG-DOCUMENTS'), await newApplication()];
        const underWay = [send(first, 'photo'), send(first, 'signature')];
        await eventually(async () => {
          const sending = "SELECT 1 FROM documents WHERE application_id = ? AND state = 'sending'";
          assert.equal((await gateway.database.read(statement(sending, first))).length, 2);
        });
        const third = await send(second);
        assert.equal(third.outcome, 'document_in_flight');
        assert.equal((await send(first, 'photo')).outcome, 'document_in_flight');
        assert.equal((await send(first, 'photo', other)).outcome, 'document_in_flight');
        if (third.status !== undefined) {
          assert.equal(third.status, 409);
          assert.equal(third.retryAfter, '1');
        }
        const stranger = await gateway.newPartner();
        const theirs = await newApplication('Adaeze', 'Okafor', stranger);
        const another = { key: stranger.key, id: theirs, type: 'photo', file };
        assert.equal((await open()(another)).outcome, 'delivered', 'other partners do not wait');
        for (const sent of underWay) assert.equal((await sent).outcome, 'document_unconfirmed');
        assert.equal((await send(second)).outcome, 'delivered');
      });

      it('four uploads at once, each sent again until it is delivered, reach the broker once each', async () => {
        const id = await newApplication('Adaeze', 'SIM-WAIT');
        await Promise.all(
          fourTypes.map(async (type) => {
            for (let outcome: string | undefined = 'document_in_flight'; outcome === 'document_in_flight'; ) {
              ({ outcome } = await send(id, type));
              assert.ok(outcome === 'delivered' || outcome === 'document_in_flight', outcome);
            }
          }),
        );
        assert.deepEqual(await received(id), new Array(4).fill({ timesReceived: 1, delivered: true }));
        await eventually(async () =>
          assert.deepEqual(await eventsOf(id), ['application.documents_required', 'application.submitted']),
        );
      });

      it('the same file many times at once reaches the broker once', async () => {
        const id = await newApplication();
        const outcomes = (await Promise.all(Array.from({ length: 10 }, () => send(id)))).map(({ outcome }) => outcome);
        const strange = outcomes.filter((each) => each !== 'delivered' && each !== 'document_in_flight');
        assert.deepEqual(strange, []);
        assert.ok(outcomes.includes('delivered'));
        assert.deepEqual(await received(id), [{ timesReceived: 1, delivered: true }]);
      });

      it('another partner’s application is as little there as one that does not exist', async () => {
        const id = await newApplication();
        const stranger = await gateway.newPartner();
        const theirs = { key: stranger.key, id, type: 'photo', file };
        assert.equal((await open()(theirs)).outcome, 'application_not_found');
        const list = await gateway.rest('GET', `/v1/applications/${id}/documents`, { key: stranger.key });
        assert.equal(list.body.error.code, 'application_not_found');
      });

      it('a partner without the feature sends nothing', async () => {
        const owner = await gateway.newPartner({ features: [] });
        const wanted = { key: owner.key, id: 'app_aaaaaaaaaaaaaaaaaaaa', type: 'photo', file };
        assert.equal((await open()(wanted)).outcome, 'feature_not_enabled');
      });

      it('a key without the scope sends nothing', async () => {
        const id = await newApplication();
        const reader = await gateway.newPartner({ scopes: [Scope.READ, Scope.TRADE] });
        assert.equal((await open()({ key: reader.key, id, type: 'photo', file })).outcome, 'insufficient_scope');
        assert.equal((await open()({ key: 'nonsense', id, type: 'photo', file })).outcome, 'unauthorized');
      });
    });
  }

  it('a partner has at most two on their way, though four applications ask in the same moment', async () => {
    const owner = await gateway.newPartner();
    const ids: string[] = [];
    for (let count = 0; count < 4; count += 1) {
      ids.push(await newApplication('SIM-HANG-DOCUMENTS', 'Okafor', owner));
    }
    const holder = await createConnection(gateway.databaseUrl);
    const send = overRest(gateway.app.restPort);
    let sending: ReturnType<SendDocument>[];
    try {
      // While the partner's row is locked nothing can begin: one waits for the lock, and the others wait behind it.
      await holder.query('START TRANSACTION');
      await holder.query('SELECT id FROM partners WHERE id = ? FOR UPDATE', [owner.id]);
      sending = ids.map((id) => send({ key: owner.key, id, type: 'photo', file }));
      await eventually(async () => {
        const waiting = (await scrape(gateway.app.opsPort)).value('marina_partner_queue_waiting');
        assert.equal(waiting, 3, `${waiting} uploads wait behind the first`);
      });
    } finally {
      await holder.end();
    }
    const outcomes = (await Promise.all(sending)).map(({ outcome }) => outcome).sort();
    const reached = (await Promise.all(ids.map(received))).filter(([first]) => first !== undefined).length;
    assert.deepEqual(
      { outcomes, reached },
      {
        outcomes: ['document_in_flight', 'document_in_flight', 'document_unconfirmed', 'document_unconfirmed'],
        reached: 2,
      },
      `four uploads at once were answered ${outcomes.join(', ')}, and ${reached} reached the broker`,
    );
  });

  it('counts as under way for as long as its send may take, and longer than clocks may differ', async () => {
    const id = await newApplication('SIM-HANG-DOCUMENTS');
    const send = overRest(gateway.app.restPort);
    const { MARINA_SUBMIT_TIMEOUT_MS: timeout, MARINA_CLOCK_SKEW_MS: skew } = gateway.variables;
    const askedAt = Date.now();
    const sending = send({ key: partner.key, id, type: 'photo', file });
    const leaseUntil = await eventually(async () => {
      const lease = "SELECT lease_until FROM documents WHERE application_id = ? AND state = 'sending'";
      const [row] = await gateway.database.read(statement(lease, id));
      assert.ok(row !== undefined, 'the document is being sent');
      return (row.lease_until as Date).getTime();
    });
    const [leaseMs, sendMs] = [leaseUntil - askedAt, Number(timeout) + Number(skew)];
    assert.ok(leaseMs > sendMs, `it counts as under way for ${leaseMs} ms; its send may take ${sendMs} ms`);
    assert.equal((await sending).outcome, 'document_unconfirmed');
    const endedAt = Date.now();
    assert.ok(leaseUntil > endedAt, `it counted as ended ${endedAt - leaseUntil} ms before its send was`);
  });

  it('a PNG is taken as a JPEG is, up to the last byte there may be', async () => {
    const id = await newApplication();
    const send = overRest(gateway.app.restPort);
    // Stored without compression, noise is as large as its pixels.
    const large = await noisePng(576, 577);
    assert.ok(large.length < 1_000_000 && large.length > 990_000, `${large.length} bytes`);
    assert.equal((await send({ key: partner.key, id, type: 'photo', file: large })).outcome, 'delivered');
  });

  it('the status over REST is the one of the catalogue', async () => {
    const id = await newApplication('SIM-LOSE-DOCUMENTS');
    const send = overRest(gateway.app.restPort);
    const { key } = partner;
    const lost = await send({ key, id, type: 'photo', file });
    assert.deepEqual([lost.status, lost.retryAfter], [503, '5']);
    assert.equal((await send({ key, id, type: 'photo', file: other })).status, 409);
    assert.equal((await send({ key, id, type: 'passport', file })).status, 400);
    assert.equal((await send({ key, id, type: 'photo', file: Buffer.from('no') })).status, 422);
    assert.equal((await send({ key, id, type: 'photo', file, contentType: 'image/gif' })).status, 415);
  });
});

describe('documents while the broker is away', () => {
  it('are not sent, and leave no trace', async () => {
    const gateway = await startGateway();
    const proxy = await FaultProxy.start(`127.0.0.1:${gateway.simulatorPort}`);
    const behind = await startGateway({
      MARINA_BROKER_ADDRESS: proxy.address,
      MARINA_SIMULATOR_ADDRESS: proxy.address,
    });
    try {
      const partner = await behind.newPartner();
      const id = await apply(behind.rest, partner.key);
      const send = overRest(behind.app.restPort);
      await proxy.refuse();
      proxy.reset();
      const away = await send({ key: partner.key, id, type: 'photo', file });
      assert.deepEqual([away.outcome, away.status], ['exchange_unavailable', 503]);
      const rows = await behind.database.read(statement('SELECT 1 FROM documents'));
      assert.equal(rows.length, 0);
      await proxy.accept();
      // Nothing holds the other file back.
      await eventually(async () =>
        assert.equal((await send({ key: partner.key, id, type: 'photo', file: other })).outcome, 'delivered'),
      );
    } finally {
      await behind.stop();
      await proxy.close();
      await gateway.stop();
    }
  });
});
