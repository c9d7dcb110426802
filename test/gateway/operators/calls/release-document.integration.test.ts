import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { UnsettledKind } from '../../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { ReleaseOutcome } from '../../../../src/gen/marina/admin/v1/documents_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply, fourTypes, overRest, type SendDocument } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { noiseJpeg } from '../../../support/images.ts';

const [file, other] = await Promise.all([noiseJpeg(), noiseJpeg()]);

describe('a document whose file nobody has any more', () => {
  let gateway: TestGateway;
  let partner: TestPartner;
  let admin: ReturnType<typeof adminClient>;
  let send: (id: string, type?: string, content?: Buffer) => ReturnType<SendDocument>;
  before(async () => {
    // Short, so that the time in which a send may still arrive is over soon.
    gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '1000', MARINA_CLOCK_SKEW_MS: '0' });
    partner = await gateway.newPartner();
    admin = adminClient(gateway.app.adminPort);
    const sendDocument = overRest(gateway.app.restPort);
    send = (id, type = 'photo', content = file) => sendDocument({ key: partner.key, id, type, file: content });
  });
  after(async () => {
    admin.close();
    await gateway.stop();
  });

  const newApplication = () => apply(gateway.rest, partner.key, { last_name: 'SIM-WAIT' });

  const release = (applicationId: string, type = 'photo') =>
    admin.documents.releaseDocument({ applicationId, type, reason: 'the customer lost it' }, admin.options);

  /** Releases it as soon as no send of it may arrive any more. On a busy machine clocks cannot be compared at once. */
  const releaseInTime = (id: string, tooEarly = /may still arrive|does not prove|too far apart/) =>
    eventually(async () => {
      const released = await release(id).catch((error: Error) => error);
      if (released instanceof Error && tooEarly.test(released.message)) throw released;
      if (released instanceof Error) return { error: released.message, outcome: undefined, applicationState: '' };
      return { error: undefined, ...released };
    });

  const fault = (call: Call, wireFault: WireFault, clientId: string, more: { delayMs?: number; times?: number } = {}) =>
    gateway.controls.injectFault({ call, fault: wireFault, clientId, times: 1, ...more }, callTimeout);

  /** Sends a document of which the broker gets nothing and says nothing. */
  async function loseRequest(id: string): Promise<void> {
    await fault(Call.SEND_DOCUMENT, WireFault.RESET_BEFORE, id);
    assert.equal((await send(id)).outcome, 'document_unconfirmed');
    assert.equal((await send(id, 'photo', other)).outcome, 'earlier_document_unconfirmed');
  }

  const unsettled = async (id: string) => {
    const filter = { kind: UnsettledKind.DOCUMENT, partnerId: partner.id };
    const { objects } = await admin.diagnostics.listUnsettled(filter, admin.options);
    return objects.filter((object) => object.id === id).map(({ documentType }) => documentType);
  };

  const story = async (id: string) => {
    const { entries } = await admin.diagnostics.getTimeline({ id }, admin.options);
    return entries.map(({ kind, detail, by }) => `${kind} ${detail} ${by}`).join('\n');
  };

  it('a document that the broker does not have is released, and another file of its type is delivered', async () => {
    const id = await newApplication();
    await loseRequest(id);
    assert.deepEqual(await unsettled(id), ['photo']);
    await assert.rejects(release(id), /FAILED_PRECONDITION.*may still arrive until 20/);
    const { outcome, applicationState } = await releaseInTime(id);
    assert.deepEqual([outcome, applicationState], [ReleaseOutcome.RELEASED, 'documents_required']);
    assert.deepEqual(await unsettled(id), []);
    const timeline = await story(id);
    assert.match(timeline, /document photo: released, the broker's record does not have it/);
    assert.match(timeline, /Documents\.ReleaseDocument .*the customer lost it.* tester/);
    await assert.rejects(release(id), /NOT_FOUND/);
    assert.equal((await send(id, 'photo', other)).outcome, 'delivered');
    const again = await release(id);
    assert.deepEqual([again.outcome, again.changed], [ReleaseOutcome.DELIVERED, false]);
  });

  it('a document that the broker has is recorded as delivered, and with the fourth the application is submitted', async () => {
    const id = await newApplication();
    for (const type of fourTypes.slice(1)) assert.equal((await send(id, type)).outcome, 'delivered');
    await fault(Call.SEND_DOCUMENT, WireFault.RESET_AFTER, id);
    assert.equal((await send(id)).outcome, 'document_unconfirmed');
    const { outcome, applicationState } = await releaseInTime(id);
    assert.deepEqual([outcome, applicationState], [ReleaseOutcome.DELIVERED, 'submitted']);
    const { body } = await gateway.rest('GET', `/v1/applications/${id}/documents`, { key: partner.key });
    assert.equal(body.data.length, 4);
    assert.equal((await send(id, 'photo', other)).outcome, 'document_already_delivered');
    assert.match(await story(id), /document photo: the broker's record has it/);
  });

  it('is not released while it is being sent', async () => {
    const id = await newApplication();
    await fault(Call.SEND_DOCUMENT, WireFault.LATE_ANSWER, id, { delayMs: 800 });
    const sending = send(id);
    await eventually(async () => assert.deepEqual(await unsettled(id), ['photo']));
    await assert.rejects(release(id), /FAILED_PRECONDITION/);
    await sending;
    assert.equal((await releaseInTime(id)).outcome, ReleaseOutcome.DELIVERED);
  });

  it('is not taken by the broker once its time is over, so that what was released stays so', async () => {
    const id = await newApplication();
    await fault(Call.SEND_DOCUMENT, WireFault.LATE_RECEIPT, id, { delayMs: 3_000 });
    assert.equal((await send(id)).outcome, 'document_unconfirmed');
    assert.equal((await releaseInTime(id)).outcome, ReleaseOutcome.RELEASED);
    await eventually(async () => {
      const { messages } = await gateway.controls.listMessages({ clientOrderId: id }, callTimeout);
      assert.ok(messages.some(({ call, taken }) => call === Call.SEND_DOCUMENT && !taken));
    });
    assert.equal((await send(id, 'photo', other)).outcome, 'delivered');
    const { applications } = await gateway.controls.listApplications({ clientApplicationId: id }, callTimeout);
    assert.equal(applications[0]?.documents.filter(({ delivered }) => delivered).length, 1);
  });

  for (const [what, wireFault] of [
    ['gives no answer', WireFault.UNAVAILABLE_BEFORE],
    ['gives an answer that makes no sense', WireFault.NONSENSE],
  ] as const) {
    it(`nothing is changed if the broker ${what}`, async () => {
      const id = await newApplication();
      await loseRequest(id);
      await fault(Call.LOOK_UP_DOCUMENT, wireFault, id);
      assert.match((await releaseInTime(id)).error ?? '', /UNAVAILABLE/);
      assert.deepEqual(await unsettled(id), ['photo']);
      assert.equal((await send(id, 'photo', other)).outcome, 'earlier_document_unconfirmed');
    });
  }

  it('nothing is changed if the broker does not have the document, and may get it yet for all it says', async () => {
    const id = await newApplication();
    await loseRequest(id);
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
    try {
      const { error } = await releaseInTime(id, /may still arrive/);
      assert.match(error ?? '', /FAILED_PRECONDITION.*does not prove/);
      assert.deepEqual(await unsettled(id), ['photo']);
    } finally {
      await gateway.controls.setCapabilities({ honoursNotAfter: true }, callTimeout);
    }
    assert.equal((await releaseInTime(id)).outcome, ReleaseOutcome.RELEASED);
  });

  it('an unknown application or type is refused', async () => {
    await assert.rejects(release('app_22222222222222222222'), /NOT_FOUND/);
    await assert.rejects(release('app_1'), /INVALID_ARGUMENT/);
    await assert.rejects(release(await newApplication(), 'passport'), /INVALID_ARGUMENT/);
    await assert.rejects(release(await newApplication()), /NOT_FOUND/);
  });
});
