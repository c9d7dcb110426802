import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  type ApplicationFields,
  ApplicationReportKind,
  DocumentOutcome,
  DocumentPresence,
  DocumentType,
  LookUpApplicationRequestSchema,
  LookUpDocumentRequestSchema,
  type SendDocumentRequest,
  SendDocumentRequestSchema,
  SubmitApplicationRequestSchema,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { ApplicationOutcome, Call, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { applicationsService } from '../../../src/simulator/back-office/applications-service.ts';
import { decide } from '../../../src/simulator/back-office/operations.ts';
import { unanswered } from '../../../src/simulator/wire/rpc.ts';
import { SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';
import { answered, refusalOf, simulatedServices, wireCall } from '../../support/simulated-services.ts';

const { PHOTO, SIGNATURE } = DocumentType;

async function start() {
  const broker = await SimulatedBroker.start();
  const parts = simulatedServices(broker);
  const service = applicationsService({ ...parts, records: parts.backOffice, nonsense: parts.backOfficeNonsense });
  const apply = (fields: Partial<ApplicationFields> = {}, more: object = {}) => {
    // A directive has the broker take whatever the fields are.
    if (Object.keys(fields).every((name) => name !== 'lastName')) {
      parts.directives.addApplication({ outcome: ApplicationOutcome.OPEN }, 1);
    }
    const request = { clientApplicationId: 'app_1', fields, note: Buffer.from('note'), ...more };
    return service.submitApplication(create(SubmitApplicationRequestSchema, request as never), wireCall());
  };
  const send = async (changes: Partial<Record<keyof SendDocumentRequest, unknown>> = {}) => {
    const request = {
      clientApplicationId: 'app_1',
      type: PHOTO,
      contentType: 'image/jpeg',
      content: Buffer.from('a'),
      ...changes,
    };
    const answer = await service.sendDocument(create(SendDocumentRequestSchema, request as never), wireCall());
    return answer === unanswered ? answer : answer.outcome;
  };
  const lookUp = (id = 'app_1', afterNumber = 0n) =>
    answered(
      service.lookUpApplication(
        create(LookUpApplicationRequestSchema, { clientApplicationId: id, afterNumber }),
        wireCall(),
      ),
    );
  const lookUpDocument = async (type: DocumentType = PHOTO, id = 'app_1') => {
    const answer = await service.lookUpDocument(
      create(LookUpDocumentRequestSchema, { clientApplicationId: id, type }),
      wireCall(),
    );
    assert.ok(answer !== unanswered);
    return answer;
  };
  const messages = () =>
    broker.database.rows('received_messages').map((row) => `${Call[Number(row.call_kind)]} ${row.taken}`);
  /** The times that each stored file was received, and whether it was delivered. */
  const files = () => broker.database.rows('documents').map((row) => [row.times_received, row.delivered]);
  const inject = (call: Call, wire: WireFault) =>
    parts.directives.addFault({ call, account: '', clientId: 'app_1', wire, delayMs: 0 }, 1);
  return { broker, ...parts, service, apply, send, lookUp, lookUpDocument, messages, files, inject };
}

describe('the application service of the simulated broker', () => {
  it('an application is answered with its first report, and a copy is refused', async () => {
    const { apply, messages, broker } = await start();
    const answer = await apply();
    assert.ok(answer !== unanswered);
    assert.deepEqual(
      [answer.report?.kind, answer.report?.clientApplicationId],
      [ApplicationReportKind.ACCEPTED, 'app_1'],
    );
    assert.equal((await refusalOf(() => apply()))?.code, status.ALREADY_EXISTS);
    assert.deepEqual(messages(), ['SUBMIT_APPLICATION 1', 'SUBMIT_APPLICATION 0']);
    assert.deepEqual(broker.database.rows('submissions'), [
      { number: 1, client_id: 'app_1', note: Buffer.from('note') },
    ]);
  });

  it('an application that is too late is refused for good', async () => {
    const { apply } = await start();
    const late = { notAfter: timestampFromMs(wednesday - 1) };
    assert.equal((await refusalOf(() => apply({}, late)))?.code, status.FAILED_PRECONDITION);
    assert.equal((await refusalOf(() => apply()))?.code, status.ALREADY_EXISTS);
    assert.equal(
      await refusalOf(() => apply({}, { clientApplicationId: 'app_2', notAfter: timestampFromMs(wednesday) })),
      undefined,
    );
  });

  it('an application has fields of 200 bytes at most, and a note and an id that fit', async () => {
    const { apply } = await start();
    const cases: [object, object, RegExp | undefined][] = [
      [{ city: 'x'.repeat(200) }, {}, undefined],
      [{ city: 'x'.repeat(201) }, {}, /city/],
      [{ firstName: 'ä'.repeat(101) }, {}, /first_name/],
      [{}, { fields: undefined }, /fields/],
      [{}, { note: Buffer.alloc(2_049) }, /note/],
      [{}, { clientApplicationId: 'x'.repeat(65) }, /client_application_id/],
    ];
    for (const [at, [fields, more, expected]] of cases.entries()) {
      const refused = await refusalOf(() => apply(fields, { clientApplicationId: `app_${at}`, ...more }));
      if (expected === undefined) assert.equal(refused, undefined);
      else assert.match(refused?.message ?? 'taken', expected);
    }
  });

  it('a magic last name has its fault', async () => {
    const { apply, broker } = await start();
    assert.equal(await apply({ lastName: 'SIM-HANG' }), unanswered);
    assert.equal(broker.database.rows('applications').length, 0);
    assert.equal(await apply({ lastName: 'SIM-LOST' }, { clientApplicationId: 'app_2' }), unanswered);
    assert.equal(broker.database.rows('applications').length, 1);
  });

  it('a look-up has the reports behind a number, and the time until which the record is complete', async () => {
    const { apply, lookUp, broker, messages } = await start();
    await apply();
    await broker.change({ applications: ['app_1'] }, (unit) => decide(unit, 'app_1', 'decline'));
    const [all, rest, unknown] = [await lookUp(), await lookUp('app_1', 1n), await lookUp('app_9')];
    assert.deepEqual([all.found, all.reports?.length, rest.reports?.map(({ number }) => number)], [true, 2, [2n]]);
    assert.deepEqual(
      [unknown.found, unknown.reports, all.completeUntil],
      [false, [], timestampFromMs(Date.UTC(2026, 5, 30, 23))],
    );
    assert.equal((await refusalOf(() => lookUp('app_1', -1n)))?.code, status.INVALID_ARGUMENT);
    assert.deepEqual(messages().slice(1), [
      ...Array.from({ length: 3 }, () => 'LOOK_UP_APPLICATION 1'),
      'LOOK_UP_APPLICATION 0',
    ]);
  });
});

describe('the documents that the simulated broker receives', () => {
  it('a document is counted each time that it comes, and another file of its type is refused', async () => {
    const { apply, send, files, messages } = await start();
    await apply();
    assert.deepEqual(
      [await send(), await send(), await send({ content: Buffer.from('b') })],
      [...[DocumentOutcome.DELIVERED, DocumentOutcome.DELIVERED, DocumentOutcome.REFUSED]],
    );
    assert.deepEqual(files(), [
      [2, 1],
      [1, 0],
    ]);
    assert.deepEqual(messages().slice(1), ['SEND_DOCUMENT 1', 'SEND_DOCUMENT 1', 'SEND_DOCUMENT 1']);
  });

  it('a document that makes no sense is recorded and not counted', async () => {
    const { apply, send, files, messages } = await start();
    await apply();
    for (const [changes, expected] of [
      [{ type: DocumentType.UNSPECIFIED }, /type/],
      [{ type: 99 }, /type/],
      [{ contentType: 'image/gif' }, /content_type/],
      [{ content: Buffer.alloc(0) }, /content/],
      [{ content: Buffer.alloc(1_000_000) }, /content/],
      [{ clientApplicationId: 'x'.repeat(65) }, /client_application_id/],
    ] as const) {
      assert.match((await refusalOf(() => send(changes)))?.message ?? 'taken', expected);
    }
    assert.deepEqual([files(), messages().slice(1)], [[], Array.from({ length: 6 }, () => 'SEND_DOCUMENT 0')]);
    assert.equal(await send({ content: Buffer.alloc(999_999), contentType: 'image/png' }), DocumentOutcome.DELIVERED);
  });

  it('a document is refused by what is wrong with its application', async () => {
    const { apply, send, files, broker, messages } = await start();
    assert.equal((await refusalOf(() => send()))?.code, status.NOT_FOUND);
    assert.deepEqual([files(), messages()], [[], ['SEND_DOCUMENT 0']]);
    await apply();
    const late = await refusalOf(() => send({ notAfter: timestampFromMs(wednesday - 1) }));
    assert.deepEqual([late?.code, late?.message.startsWith('not_after')], [status.FAILED_PRECONDITION, true]);
    await broker.change({ applications: ['app_1'] }, (unit) => decide(unit, 'app_1', 'decline'));
    const closed = await refusalOf(() => send());
    assert.deepEqual([closed?.code, closed?.message.includes('decided')], [status.FAILED_PRECONDITION, true]);
    // Each of them was counted, because the broker has the application.
    assert.deepEqual(files(), [[2, 0]]);
    assert.deepEqual(messages().slice(2), ['SEND_DOCUMENT 0', 'SEND_DOCUMENT 0']);
  });

  it('a file that came late is counted once', async () => {
    const { apply, send, files, inject, messages } = await start();
    await apply();
    inject(Call.SEND_DOCUMENT, WireFault.LATE_RECEIPT);
    assert.equal(await send(), DocumentOutcome.DELIVERED);
    assert.deepEqual([files(), messages().slice(1)], [[[1, 1]], ['SEND_DOCUMENT 1']]);
  });

  it('a file that hangs is counted and not delivered', async () => {
    const { apply, send, files, inject, messages } = await start();
    await apply();
    inject(Call.SEND_DOCUMENT, WireFault.HANG);
    assert.equal(await send(), unanswered);
    assert.deepEqual([files(), messages().at(-1)], [[[1, 0]], 'SEND_DOCUMENT 0']);
    inject(Call.SEND_DOCUMENT, WireFault.HANG);
    assert.equal(await send({ content: Buffer.alloc(0) }), unanswered);
    assert.deepEqual(files(), [[1, 0]]);
  });

  it('more than 100 different files of a type are not remembered', async () => {
    const { apply, send, files, broker } = await start();
    await apply();
    await broker.change({ applications: ['app_1'] }, (unit) => {
      for (let at = 0; at < 99; at += 1) unit.backOffice.receiveFile('app_1', PHOTO, Buffer.from(`file ${at}`));
    });
    assert.equal(await refusalOf(() => send()), undefined);
    assert.equal((await refusalOf(() => send({ content: Buffer.from('b') })))?.code, status.NOT_FOUND);
    assert.equal(files().length, 100);
    assert.equal(await send({ type: SIGNATURE }), DocumentOutcome.DELIVERED);
  });

  it('a magic first name has its fault for the first send of each type alone', async () => {
    const { apply, send, files } = await start();
    await apply({ firstName: 'SIM-HANG-DOCUMENTS' });
    for (const type of [PHOTO, SIGNATURE]) {
      assert.deepEqual([await send({ type }), await send({ type })], [unanswered, DocumentOutcome.DELIVERED]);
    }
    assert.deepEqual(files(), [
      [2, 1],
      [2, 1],
    ]);
  });

  it('a look-up says whether the broker has a document of a type', async () => {
    const { apply, send, lookUpDocument, messages } = await start();
    assert.equal((await refusalOf(() => lookUpDocument()))?.code, status.NOT_FOUND);
    await apply();
    assert.equal((await lookUpDocument()).presence, DocumentPresence.MISSING);
    await send();
    const { presence, completeUntil } = await lookUpDocument();
    assert.deepEqual(
      [presence, completeUntil],
      [DocumentPresence.DELIVERED, timestampFromMs(Date.UTC(2026, 5, 30, 23))],
    );
    assert.equal((await lookUpDocument(SIGNATURE)).presence, DocumentPresence.MISSING);
    assert.equal((await refusalOf(() => lookUpDocument(DocumentType.UNSPECIFIED)))?.code, status.INVALID_ARGUMENT);
    assert.equal(messages().filter((each) => each === 'LOOK_UP_DOCUMENT 1').length, 4);
  });
});
