import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { badJpegs, badPngs } from '../../../support/bad-images.ts';
import { apply, fourTypes, overGrpc, overRest, type SendDocument } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { goodJpegs, goodPngs, largePng } from '../../../support/good-images.ts';
import { noiseJpeg, noisePng } from '../../../support/images.ts';

/** Files of the corpus under 1,000,000 bytes that are quickly decoded. */
function selection(files: Record<string, () => Promise<Buffer> | Buffer>) {
  return Object.entries(files).filter(([name]) => !/8,000|memory|flood|large|gigabyte|thousand/.test(name));
}

describe('files of documents', () => {
  let gateway: TestGateway;
  let partner: TestPartner;
  let send: SendDocument;
  before(async () => {
    gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '5000' });
    partner = await gateway.newPartner();
    send = overRest(gateway.app.restPort);
  });
  after(() => gateway.stop());

  const newApplication = (owner = partner, firstName = 'Adaeze') =>
    apply(gateway.rest, owner.key, { first_name: firstName, last_name: 'SIM-WAIT' });

  it('files as cameras, phones and scanners write them reach the broker byte by byte', async () => {
    let application = '';
    const sent: Buffer[] = [];
    for (const [name, make] of [...selection(goodJpegs), ...selection(goodPngs)]) {
      const type = fourTypes[sent.length % fourTypes.length] ?? 'photo';
      if (type === fourTypes[0]) application = await newApplication();
      const file = await make();
      const { outcome } = await send({ key: partner.key, id: application, type, file });
      assert.equal(outcome, 'delivered', name);
      sent.push(file);
    }
    const { applications } = await gateway.controls.listApplications({}, callTimeout);
    const received = applications.flatMap(({ documents }) => documents).map(({ sha256 }) => Buffer.from(sha256));
    const digests = sent.map((file) => createHash('sha256').update(file).digest());
    assert.deepEqual(received.map(hex).toSorted(), digests.map(hex).toSorted());
    assert.ok(sent.length >= 75, `${sent.length} files were sent`);
  });

  it('files that are no whole image, or have something behind it, are refused, and the broker gets none of them', async () => {
    const application = await newApplication();
    for (const [mediaType, files] of [
      ['image/jpeg', badJpegs],
      ['image/png', badPngs],
    ] as const) {
      for (const [name, make] of selection(files)) {
        const wanted = { key: partner.key, id: application, type: 'photo', file: await make(), contentType: mediaType };
        const { outcome, status } = await send(wanted);
        assert.deepEqual([outcome, status], ['invalid_document', 422], `${name} (${mediaType})`);
      }
    }
    const listed = await gateway.controls.listApplications({ clientApplicationId: application }, callTimeout);
    assert.deepEqual(listed.applications[0]?.documents, []);
  });

  it('are taken over gRPC too, with what is behind their end', async () => {
    const application = await newApplication();
    const file = await goodJpegs['a photograph of a Samsung phone, with a gain map and its trailer']?.();
    const wanted = { key: partner.key, id: application, type: 'photo', file: file ?? Buffer.alloc(0) };
    assert.equal((await overGrpc(gateway.app.grpcPort)(wanted)).outcome, 'delivered');
  });

  it('files of a partner with two on their way are refused before they are decoded', async () => {
    const owner = await gateway.newPartner();
    const [hanging, other] = [await newApplication(owner, 'SIM-HANG-DOCUMENTS'), await newApplication(owner)];
    const file = await noiseJpeg();
    const underWay = ['photo', 'signature'].map((type) => send({ key: owner.key, id: hanging, type, file }));
    await eventually(async () => {
      const rows = "SELECT 1 FROM documents WHERE application_id = ? AND state = 'sending'";
      assert.equal((await gateway.database.read(statement(rows, hanging))).length, 2);
    });
    // Its headers are those of a PNG, and its pixels are not: who decoded it would say so.
    const broken = await badPngs['a PNG with a wrong sum of its compressed pixels']?.();
    const wanted = { key: owner.key, id: other, type: 'photo', file: broken ?? Buffer.alloc(0) };
    assert.equal((await send(wanted)).outcome, 'document_in_flight');
    // Headers come first, as the order of checks says.
    assert.equal(
      (await send({ ...wanted, file: Buffer.from('no'), contentType: 'image/png' })).outcome,
      'invalid_document',
    );
    for (const each of underWay) assert.equal((await each).outcome, 'document_unconfirmed');
    assert.equal((await send(wanted)).outcome, 'invalid_document');
  });

  it('files that take long to decode do not stop the uploads of another partner', async () => {
    const [greedy, modest] = await Promise.all([gateway.newPartner(), gateway.newPartner()]);
    const theirs = await Promise.all(Array.from({ length: 10 }, () => newApplication(greedy)));
    const own = await Promise.all(Array.from({ length: 3 }, () => newApplication(modest)));
    const file = largePng();
    assert.ok(file.length < 500_000);
    let areUnderWay = true;
    let decoded = 0;
    const sendLarge = async (id: string, type: string) => {
      const sent = await send({ key: greedy.key, id, type, file });
      decoded += sent.outcome === 'delivered' ? 1 : 0;
      return sent;
    };
    const attack = Promise.all(theirs.flatMap((id) => fourTypes.map((type) => sendLarge(id, type)))).finally(() => {
      areUnderWay = false;
    });
    await eventually(async () => {
      const metrics = await fetch(`http://127.0.0.1:${gateway.app.opsPort}/metrics`);
      assert.match(await metrics.text(), /marina_images\{state="waiting"\} \d*[1-9]/);
    });
    let whileTheyWaited = 0;
    for (const id of own) {
      for (const type of fourTypes) {
        whileTheyWaited += areUnderWay ? 1 : 0;
        const before = decoded;
        const { outcome } = await send({ key: modest.key, id, type, file: await noisePng(80, 80) });
        assert.equal(outcome, 'delivered');
        // Those in the decoders while it came, while it was decoded next, and while it was sent; not all that waited.
        assert.ok(decoded - before <= 6, `${decoded - before} of the others were decoded first`);
      }
    }
    assert.ok(whileTheyWaited >= 3, `only ${whileTheyWaited} were sent while the others waited`);
    const outcomes = new Map<string | undefined, number>();
    for (const { outcome, status, retryAfter } of await attack) {
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      if (outcome === 'rate_limited') assert.deepEqual([status, retryAfter], [429, '1']);
    }
    const known = ['delivered', 'document_in_flight', 'rate_limited'];
    assert.deepEqual(
      [...outcomes.keys()].filter((outcome) => outcome === undefined || !known.includes(outcome)),
      [],
    );
    assert.ok((outcomes.get('rate_limited') ?? 0) >= 10, 'a partner has a bound on what waits');
    assert.ok((outcomes.get('delivered') ?? 0) >= 2);
  });

  it('are not received while as many of their partner wait to be decoded as may', async () => {
    const greedy = await gateway.newPartner();
    const applications = await Promise.all(Array.from({ length: 5 }, () => newApplication(greedy)));
    const file = largePng();
    const waiting = applications.flatMap((id) => fourTypes.map((type) => send({ key: greedy.key, id, type, file })));
    await eventually(async () => {
      const metrics = await fetch(`http://127.0.0.1:${gateway.app.opsPort}/metrics`);
      assert.match(await metrics.text(), /marina_images\{state="waiting"\} 16$/m);
    });
    // One of those that wait may be taken just before.
    await eventually(async () => assert.equal(await offer(gateway, greedy.key, applications[0] ?? ''), '429'));
    await Promise.all(waiting);
  });
});

function hex(bytes: Buffer): string {
  return bytes.toString('hex');
}

/** Offers a file, which is sent only when the gateway asks for it. Resolves with what the gateway says first. */
function offer({ app }: TestGateway, key: string, application: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const path = `/v1/applications/${application}/documents/photo`;
    const file = { 'content-type': 'image/png', 'content-length': 100_000, expect: '100-continue' };
    const headers = { authorization: `Bearer ${key}`, ...file };
    const offered = request({ port: app.restPort, method: 'PUT', path, headers });
    offered.on('error', reject);
    const say = (what: string) => {
      resolve(what);
      offered.destroy();
    };
    offered.on('continue', () => say('the file was asked for'));
    offered.on('response', ({ statusCode }) => say(String(statusCode)));
    offered.flushHeaders();
  });
}
