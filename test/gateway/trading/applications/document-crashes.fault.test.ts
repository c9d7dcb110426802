import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { CrashPoint } from '../../../../src/gateway/store/crash.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { apply, fourTypes, overGrpc, overRest } from '../../../support/documents.ts';
import { crashPoints } from '../../../support/fault/crash-points.ts';
import { noiseJpeg } from '../../../support/images.ts';

/** Where a process is killed while it sends a document, and how often the broker then receives it in all. */
const points: readonly { point: CrashPoint; receipts: number; isUnconfirmed: boolean }[] = [
  { point: 'document.before-store', receipts: 1, isUnconfirmed: false },
  { point: 'document.stored', receipts: 1, isUnconfirmed: true },
  { point: 'document.sent', receipts: 2, isUnconfirmed: true },
  { point: 'document.recorded', receipts: 1, isUnconfirmed: false },
];
const protocols = {
  REST: ({ restPort }: GatewayProcess) => overRest(restPort),
  gRPC: ({ grpcPort }: GatewayProcess) => overGrpc(grpcPort),
};

describe('a gateway killed while it sends a document', () => {
  let cluster: Cluster;
  let partner: Partner;
  before(async () => {
    cluster = await Cluster.start();
    partner = await cluster.newPartner();
  });
  after(() => cluster.stop());

  async function receiptsOf(id: string): Promise<number[]> {
    const { applications } = await cluster.controls.listApplications({ clientApplicationId: id }, callTimeout);
    return applications[0]?.documents.map(({ timesReceived }) => timesReceived) ?? [];
  }

  it('no crash point of documents is without a test', () => {
    const ofDocuments = crashPoints.filter((point) => point.startsWith('document.'));
    assert.deepEqual(points.map(({ point }) => point).sort(), ofDocuments.sort());
  });

  for (const { point, receipts, isUnconfirmed } of points) {
    for (const [protocol, open] of Object.entries(protocols)) {
      it(`killed at ${point} over ${protocol}, the same file goes through, and again to the broker only if it was unconfirmed`, async () => {
        const [file, other] = await Promise.all([noiseJpeg(), noiseJpeg()]);
        const dying = await cluster.startGateway({ MARINA_CRASH_POINT: point });
        const id = await apply(dying.request, partner.key, { last_name: 'SIM-WAIT' });
        const wanted = { key: partner.key, id, type: 'photo', file };
        assert.equal((await open(dying)(wanted)).outcome, undefined, 'the process died before it answered');
        assert.ok(await Promise.race([dying.exited.then(() => true), delay(20_000, false)]), 'it died');

        const gateway = await cluster.startGateway();
        const send = open(gateway);
        if (isUnconfirmed) {
          // The killed process's file may still be on its way, until its lease is over.
          const first = await send({ ...wanted, file: other });
          assert.ok(['document_in_flight', 'earlier_document_unconfirmed'].includes(first.outcome ?? ''));
        }
        for (let tries = 0; ; tries += 1) {
          const { outcome } = await send(wanted);
          if (outcome === 'delivered') break;
          assert.equal(outcome, 'document_in_flight');
          assert.ok(tries < 200, 'it goes through in the end');
          await delay(50);
        }
        assert.deepEqual(await receiptsOf(id), [receipts]);
        for (const type of fourTypes) assert.equal((await send({ ...wanted, type })).outcome, 'delivered');
        assert.deepEqual((await receiptsOf(id)).sort(), [1, 1, 1, receipts]);
        const { body } = await gateway.request('GET', `/v1/applications/${id}`, { key: partner.key });
        assert.equal(body.state, 'submitted');
        await gateway.stop();
      });
    }
  }

  it('killed at the last of four documents on their way, the application still becomes submitted, once', async () => {
    const file = await noiseJpeg();
    const before = await cluster.startGateway();
    const id = await apply(before.request, partner.key, { last_name: 'SIM-WAIT' });
    const wanted = { key: partner.key, id, file };
    for (const type of fourTypes.slice(0, 3)) {
      assert.equal((await overRest(before.restPort)({ ...wanted, type })).outcome, 'delivered');
    }
    await before.stop();
    const dying = await cluster.startGateway({ MARINA_CRASH_POINT: 'document.recorded' });
    assert.equal((await overRest(dying.restPort)({ ...wanted, type: 'signature' })).outcome, undefined);
    await dying.exited;
    const gateway = await cluster.startGateway();
    assert.equal((await overRest(gateway.restPort)({ ...wanted, type: 'signature' })).outcome, 'delivered');
    assert.deepEqual(await receiptsOf(id), [1, 1, 1, 1]);
    const { body } = await gateway.request('GET', `/v1/applications/${id}`, { key: partner.key });
    assert.equal(body.state, 'submitted');
    await gateway.stop();
  });
});
