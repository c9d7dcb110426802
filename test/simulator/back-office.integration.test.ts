import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { AllocationOutcome } from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import {
  type ApplicationFieldsSchema,
  ApplicationRejectReason,
  type ApplicationReport,
  ApplicationReportKind,
  DocumentOutcome,
  DocumentType,
} from '../../src/gen/marina/broker/v1/applications_pb.ts';
import { AccountStatus } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { Reference } from '../../src/gen/marina/broker/v1/reference_pb.ts';
import { ApplicationOutcome, Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { eventually } from '../support/eventually.ts';
import {
  account,
  cashOf,
  customer,
  deadlineFor,
  fails,
  messagesOf,
  newAllocation,
  soon,
  startTestSimulator,
} from './fixture.ts';

const simulator = await startTestSimulator();
const { applications, allocations, controls, orders } = simulator;
const brief = { timeoutMs: 300 };
const documentTypes = [
  DocumentType.PHOTO,
  DocumentType.GOVERNMENT_ID,
  DocumentType.UTILITY_BILL,
  DocumentType.SIGNATURE,
] as const;
const { ACCEPTED, OPENED, REJECTED } = ApplicationReportKind;

let made = 0;

/** An application to submit. */
function newApplication(fields: MessageInitShape<typeof ApplicationFieldsSchema> = {}) {
  made += 1;
  return { clientApplicationId: `app_${made}`, fields: { ...customer, ...fields } };
}

/** A document of an application; another file for another text. */
function documentOf(clientApplicationId: string, type: DocumentType, file = 'file') {
  return { clientApplicationId, type, contentType: 'image/png', content: Buffer.from(`Canary-${file}-${type}`) };
}

/** Sends an application's documents, all of them unless said otherwise. */
async function sendDocuments(id: string, types: readonly DocumentType[] = documentTypes) {
  for (const type of types) {
    const { outcome } = await applications.sendDocument(documentOf(id, type), soon);
    assert.equal(outcome, DocumentOutcome.DELIVERED);
  }
}

/** Everything the broker's record says of an application. */
async function reportsOf(clientApplicationId: string): Promise<ApplicationReport[]> {
  return (await applications.lookUpApplication({ clientApplicationId }, soon)).reports;
}

/** Waits until an application's reports are of these kinds, in this order. */
function untilReports(id: string, kinds: readonly ApplicationReportKind[]) {
  return eventually(async () => {
    const reports = await reportsOf(id);
    assert.deepEqual(
      reports.map(({ kind }) => kind),
      kinds,
    );
    return reports;
  });
}

/** The broker's view of an application. */
async function held(clientApplicationId: string) {
  return (await controls.listApplications({ clientApplicationId }, soon)).applications[0];
}

describe('an application', () => {
  it('is accepted, and opened with an account that can trade once the four documents are there', async () => {
    const application = newApplication();
    const { clientApplicationId: id } = application;
    const { report } = await applications.submitApplication(application, soon);
    assert.equal(report?.kind, ACCEPTED);
    assert.match(report.reference, /^BRK\d{12}$/);
    assert.ok(report.at);
    await sendDocuments(id, documentTypes.slice(0, 3));
    await untilReports(id, [ACCEPTED]);
    await sendDocuments(id, documentTypes.slice(3));
    const [, opened] = await untilReports(id, [ACCEPTED, OPENED]);
    assert.match(opened?.account ?? '', /^[A-Z0-9]{1,64}$/);
    assert.equal(opened?.reference, report.reference);
    const context = await orders.getTradingContext({ account: opened?.account ?? '', symbol: 'UBA' }, soon);
    assert.equal(context.accountStatus, AccountStatus.ACTIVE);
    const record = await held(id);
    assert.equal(record?.state, OPENED);
    assert.equal(record?.account, opened?.account);
  });

  it('behaves as its magic last name says', async () => {
    const invalid = await applications.submitApplication(newApplication({ lastName: 'SIM-REJECT-INVALID' }), soon);
    assert.equal(invalid.report?.rejectReason, ApplicationRejectReason.INVALID_FIELD);
    assert.equal(invalid.report?.param, 'bvn');
    assert.equal(invalid.report?.reference, '');
    const already = await applications.submitApplication(newApplication({ lastName: 'SIM-ALREADY' }), soon);
    assert.equal(already.report?.rejectReason, ApplicationRejectReason.ALREADY_AT_BROKER);
    const rejected = await applications.submitApplication(newApplication({ lastName: 'SIM-REJECT' }), soon);
    assert.equal(rejected.report?.rejectReason, ApplicationRejectReason.REJECTED_BY_BROKER);

    const declined = newApplication({ lastName: 'SIM-DECLINE' });
    const waiting = newApplication({ lastName: 'SIM-WAIT' });
    for (const each of [declined, waiting]) {
      await applications.submitApplication(each, soon);
      await sendDocuments(each.clientApplicationId);
    }
    const [, report] = await untilReports(declined.clientApplicationId, [ACCEPTED, REJECTED]);
    assert.equal(report?.rejectReason, ApplicationRejectReason.DECLINED_BY_BROKER);
    await untilReports(waiting.clientApplicationId, [ACCEPTED]);
  });

  it('is rejected for a field that is empty or a place the broker does not know, and told which', async () => {
    for (const [fields, param] of [
      [{ city: '' }, 'city'],
      [{ state: 'ATLANTIS' }, 'state'],
      [{ stateOfOrigin: 'ATLANTIS' }, 'state_of_origin'],
      [{ lgaOfOrigin: 'LAGOS-IKEJA' }, 'lga_of_origin'],
    ] as const) {
      const { report } = await applications.submitApplication(newApplication(fields), soon);
      assert.equal(report?.kind, REJECTED);
      assert.equal(report.rejectReason, ApplicationRejectReason.INVALID_FIELD);
      assert.equal(report.param, param);
    }
    const lower = await applications.submitApplication(newApplication({ state: 'lagos' }), soon);
    assert.equal(lower.report?.kind, ACCEPTED);
  });

  it('is rejected for a number that cannot be one, and told which', async () => {
    for (const [fields, param] of [
      [{ bvn: '2222222222' }, 'bvn'],
      [{ bvn: '222222222222' }, 'bvn'],
      [{ bvn: '+22222222222' }, 'bvn'],
      [{ nin: '1' }, 'nin'],
      [{ phone: '8030000000' }, 'phone'],
      [{ phone: '+234 0803 000 0000' }, 'phone'],
      [{ phone: '2348030000000' }, 'phone'],
      [{ phone: '+', bvn: '1' }, 'phone'],
      [{ nextOfKinPhone: '0803000000' }, 'next_of_kin_phone'],
      [{ bankCode: '58' }, 'bank_code'],
      [{ bankAccountNumber: '012345678' }, 'bank_account_number'],
    ] as const) {
      const { report } = await applications.submitApplication(newApplication(fields), soon);
      assert.deepEqual(
        [report?.kind, report?.rejectReason, report?.param],
        [REJECTED, ApplicationRejectReason.INVALID_FIELD, param],
        JSON.stringify(fields),
      );
    }
  });

  it('is accepted with numbers as people write them, and with placeholders', async () => {
    for (const fields of [
      { bvn: '222 2222 2222', phone: '0803 000 0000', nextOfKinPhone: '+234 (803) 000-0001' },
      { nin: '12345678901', bankCode: '058', bankAccountNumber: '0123456789', phone: '+447400123456' },
      { bankCode: '000013' },
      { bvn: 'BVN-of-Ada', phone: 'none' },
    ]) {
      const { report } = await applications.submitApplication(newApplication(fields), soon);
      assert.equal(report?.kind, ACCEPTED, JSON.stringify(fields));
    }
  });

  it('is taken once, however many submissions with its id come together', async () => {
    const application = newApplication();
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => applications.submitApplication(application, soon)),
    );
    assert.equal(results.filter(({ status: each }) => each === 'fulfilled').length, 1);
    for (const result of results) if (result.status === 'rejected') fails(status.ALREADY_EXISTS)(result.reason);
    const record = await held(application.clientApplicationId);
    assert.equal(record?.timesReceived, 8);
    assert.equal((await reportsOf(application.clientApplicationId)).length, 1);
  });

  it('is not taken after its time, unless the broker does not honour that', async () => {
    const late = { ...newApplication(), notAfter: timestampFromMs(Date.now() - 1_000) };
    await assert.rejects(applications.submitApplication(late, soon), fails(status.FAILED_PRECONDITION));
    const lookUp = await applications.lookUpApplication(late, soon);
    assert.equal(lookUp.found, false);
    assert.ok(lookUp.completeUntil);
    await controls.setCapabilities({ honoursNotAfter: false }, soon);
    const other = { ...newApplication(), notAfter: late.notAfter };
    assert.equal((await applications.submitApplication(other, soon)).report?.kind, ACCEPTED);
    await controls.setCapabilities({ honoursNotAfter: true }, soon);
  });

  it('becomes what was forced, and is decided when it is told to be', async () => {
    await controls.forceApplication(
      { outcome: ApplicationOutcome.REJECT, rejectReason: ApplicationRejectReason.INVALID_FIELD, param: 'nin' },
      soon,
    );
    await controls.forceApplication({ outcome: ApplicationOutcome.WAIT, times: 2 }, soon);
    const { report } = await applications.submitApplication(newApplication(), soon);
    assert.equal(report?.param, 'nin');
    const [opened, declined] = [newApplication(), newApplication()];
    for (const each of [opened, declined]) await applications.submitApplication(each, soon);
    const decide = (id: string, outcome: ApplicationOutcome, code = '') =>
      controls.decideApplication({ clientApplicationId: id, outcome, account: code }, soon);
    await decide(opened.clientApplicationId, ApplicationOutcome.OPEN, 'CHOSEN1');
    await decide(declined.clientApplicationId, ApplicationOutcome.DECLINE);
    const [, open] = await untilReports(opened.clientApplicationId, [ACCEPTED, OPENED]);
    assert.equal(open?.account, 'CHOSEN1');
    await untilReports(declined.clientApplicationId, [ACCEPTED, REJECTED]);
    const again = decide(opened.clientApplicationId, ApplicationOutcome.DECLINE);
    await assert.rejects(again, fails(status.FAILED_PRECONDITION));
    await assert.rejects(decide('nobody', ApplicationOutcome.OPEN), fails(status.NOT_FOUND));
    await assert.rejects(decide('nobody', ApplicationOutcome.WAIT), fails(status.INVALID_ARGUMENT));
  });

  it('meets the faults of the wire: magic names and injected ones', async () => {
    const cases: readonly (readonly [WireFault, string, status, taken: boolean])[] = [
      [WireFault.HANG, 'SIM-HANG', status.DEADLINE_EXCEEDED, false],
      [WireFault.LOSE_ANSWER, 'SIM-LOST', status.DEADLINE_EXCEEDED, true],
      [WireFault.RESET_BEFORE, 'SIM-RESET', status.UNAVAILABLE, false],
      [WireFault.RESET_AFTER, 'SIM-RESETAFTER', status.UNAVAILABLE, true],
      [WireFault.LATE_ANSWER, 'SIM-LATE', status.DEADLINE_EXCEEDED, true],
    ];
    for (const [fault, lastName, code, taken] of cases) {
      const [magic, injected] = [newApplication({ lastName }), newApplication()];
      await assert.rejects(applications.submitApplication(magic, deadlineFor(code)), fails(code));
      const { clientApplicationId: clientId } = injected;
      await controls.injectFault({ call: Call.SUBMIT_APPLICATION, fault, clientId, delayMs: 60_000 }, soon);
      await assert.rejects(applications.submitApplication(injected, deadlineFor(code)), fails(code));
      for (const { clientApplicationId: id } of [magic, injected]) {
        assert.deepEqual(
          (await messagesOf(simulator, id)).map((message) => [message.call, message.taken]),
          [[Call.SUBMIT_APPLICATION, taken]],
          WireFault[fault],
        );
        assert.equal((await held(id)) !== undefined, taken);
      }
    }
    const lost = newApplication({ lastName: 'SIM-LOSTREJECT' });
    await assert.rejects(applications.submitApplication(lost, brief), fails(status.DEADLINE_EXCEEDED));
    await untilReports(lost.clientApplicationId, [REJECTED]);
    await controls.injectFault({ call: Call.SUBMIT_APPLICATION, fault: WireFault.NONSENSE }, soon);
    const { report } = await applications.submitApplication(newApplication(), soon);
    assert.equal(report?.clientApplicationId, 'nobody-sent-this');
  });

  it('leaves nothing of the customer or the files in the simulator', async () => {
    const application = newApplication({ lastName: 'Canary-Last' });
    await applications.submitApplication(application, soon);
    await sendDocuments(application.clientApplicationId);
    const connection = await createConnection(simulator.databaseUrl);
    const [tables] = await connection.query<RowDataPacket[]>('SHOW TABLES');
    for (const table of tables.map((row) => String(Object.values(row)[0]))) {
      const [rows] = await connection.query<RowDataPacket[]>(`SELECT * FROM ${table}`);
      assert.doesNotMatch(JSON.stringify(rows), /canary|2220000000|\+23480/i, table);
    }
    await connection.end();
  });
});

describe('a document', () => {
  it('is delivered once and answered as delivered again; another file of its type is refused', async () => {
    const application = newApplication();
    const { clientApplicationId: id } = application;
    await applications.submitApplication(application, soon);
    const photo = documentOf(id, DocumentType.PHOTO);
    const other = documentOf(id, DocumentType.PHOTO, 'other');
    assert.equal((await applications.sendDocument(photo, soon)).outcome, DocumentOutcome.DELIVERED);
    assert.equal((await applications.sendDocument(photo, soon)).outcome, DocumentOutcome.DELIVERED);
    assert.equal((await applications.sendDocument(other, soon)).outcome, DocumentOutcome.REFUSED);
    const received = (await held(id))?.documents.map((document) => ({
      sha256: Buffer.from(document.sha256).toString('hex'),
      size: document.sizeBytes,
      times: document.timesReceived,
      delivered: document.delivered,
    }));
    const digest = (file: Buffer) => createHash('sha256').update(file).digest('hex');
    assert.deepEqual(received, [
      { sha256: digest(photo.content), size: photo.content.length, times: 2, delivered: true },
      { sha256: digest(other.content), size: other.content.length, times: 1, delivered: false },
    ]);
  });

  it('is refused as the magic first name says, or as was forced, and can be sent again', async () => {
    const application = newApplication({ firstName: 'SIM-REFUSE-PHOTO' });
    const { clientApplicationId: id } = application;
    await applications.submitApplication(application, soon);
    const send = async (type: DocumentType) => (await applications.sendDocument(documentOf(id, type), soon)).outcome;
    assert.equal(await send(DocumentType.PHOTO), DocumentOutcome.REFUSED);
    assert.equal(await send(DocumentType.SIGNATURE), DocumentOutcome.DELIVERED);
    const { DELIVERED, REFUSED } = DocumentOutcome;
    await controls.forceDocument({ clientApplicationId: id, type: DocumentType.PHOTO, outcome: DELIVERED }, soon);
    await controls.forceDocument({ type: DocumentType.UTILITY_BILL, outcome: REFUSED }, soon);
    assert.equal(await send(DocumentType.UTILITY_BILL), REFUSED);
    assert.equal(await send(DocumentType.UTILITY_BILL), DELIVERED);
    assert.equal(await send(DocumentType.PHOTO), DELIVERED);
  });

  it('is lost or hangs the first time as the magic first name says, and its receipts are counted', async () => {
    for (const [firstName, taken] of [
      ['SIM-HANG-DOCUMENTS', false],
      ['SIM-LOSE-DOCUMENTS', true],
    ] as const) {
      const application = newApplication({ firstName });
      const { clientApplicationId: id } = application;
      await applications.submitApplication(application, soon);
      const photo = documentOf(id, DocumentType.PHOTO);
      await assert.rejects(applications.sendDocument(photo, brief), fails(status.DEADLINE_EXCEEDED));
      const [first] = (await held(id))?.documents ?? [];
      assert.deepEqual([first?.timesReceived, first?.delivered], [1, taken]);
      assert.equal((await applications.sendDocument(photo, soon)).outcome, DocumentOutcome.DELIVERED);
      assert.equal((await held(id))?.documents[0]?.timesReceived, 2);
    }
  });

  it('meets injected faults, and counts once when it is looked at late', async () => {
    const application = newApplication();
    const { clientApplicationId: id } = application;
    await applications.submitApplication(application, soon);
    const inject = (fault: WireFault) =>
      controls.injectFault({ call: Call.SEND_DOCUMENT, fault, clientId: id, delayMs: 100 }, soon);
    await inject(WireFault.LATE_RECEIPT);
    const photo = documentOf(id, DocumentType.PHOTO);
    assert.equal((await applications.sendDocument(photo, soon)).outcome, DocumentOutcome.DELIVERED);
    assert.equal((await held(id))?.documents[0]?.timesReceived, 1);
    await inject(WireFault.UNAVAILABLE_BEFORE);
    await assert.rejects(applications.sendDocument(photo, soon), fails(status.UNAVAILABLE));
    await inject(WireFault.NONSENSE);
    assert.equal((await applications.sendDocument(photo, soon)).outcome, DocumentOutcome.UNSPECIFIED);
    assert.equal((await held(id))?.documents[0]?.timesReceived, 3);
  });

  it('is taken only of an application that waits for it', async () => {
    const none = documentOf('app_nobody', DocumentType.PHOTO);
    await assert.rejects(applications.sendDocument(none, soon), fails(status.NOT_FOUND));
    const rejected = newApplication({ lastName: 'SIM-REJECT' });
    await applications.submitApplication(rejected, soon);
    const late = documentOf(rejected.clientApplicationId, DocumentType.PHOTO);
    await assert.rejects(applications.sendDocument(late, soon), fails(status.NOT_FOUND));
    const opened = newApplication();
    await applications.submitApplication(opened, soon);
    await controls.decideApplication({ ...opened, outcome: ApplicationOutcome.OPEN }, soon);
    const after = documentOf(opened.clientApplicationId, DocumentType.PHOTO);
    await assert.rejects(applications.sendDocument(after, soon), fails(status.FAILED_PRECONDITION));
    const huge = { ...after, content: Buffer.alloc(1_000_000) };
    await assert.rejects(applications.sendDocument(huge, soon), fails(status.INVALID_ARGUMENT));
  });
});

describe('the stream of reports about applications', () => {
  it('has every report in number order without a gap, live too, and shows that it lives', async () => {
    const stopped = new AbortController();
    const numbers: number[] = [];
    let heartbeat = false;
    const reading = (async () => {
      for await (const { reports, lastNumber } of applications.streamApplicationReports(
        {},
        { signal: stopped.signal },
      )) {
        numbers.push(...reports.map((report) => Number(report.number)));
        heartbeat ||= reports.length === 0 && Number(lastNumber) === numbers.length;
      }
    })().catch(() => undefined);
    const { report } = await applications.submitApplication(newApplication(), soon);
    await eventually(() => assert.equal(heartbeat && numbers.includes(Number(report?.number)), true));
    stopped.abort();
    await reading;
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
  });

  it('misbehaves apart from that of orders when told to', async () => {
    await controls.disturbReports({ applications: true, omit: 1, breakStreams: true }, soon);
    const { report: first } = await applications.submitApplication(newApplication(), soon);
    const { report: second } = await applications.submitApplication(newApplication(), soon);
    const seen: (bigint | undefined)[] = [];
    for await (const { reports } of applications.streamApplicationReports({
      afterNumber: (first?.number ?? 0n) - 1n,
    })) {
      seen.push(...reports.map(({ number }) => number));
      if (seen.length > 0) break;
    }
    assert.deepEqual(seen, [second?.number]);
  });
});

describe('the lists of places', () => {
  const reference = createGrpcClient(Reference, `127.0.0.1:${simulator.port}`);

  it('are the 37 states and 774 local government areas, each code once', async () => {
    const { states } = await reference.listStates({}, soon);
    assert.equal(states.length, 37);
    const codes = new Set<string>();
    for (const state of states) {
      assert.match(state.code, /^[A-Z0-9-]{1,32}$/);
      for (const lga of (await reference.listLgas({ state: state.code }, soon)).lgas) {
        assert.match(lga.code, /^[A-Z0-9-]{1,64}$/);
        assert.notEqual(lga.name, '');
        codes.add(lga.code);
      }
    }
    assert.equal(codes.size, 774);
    await assert.rejects(reference.listLgas({ state: 'ATLANTIS' }, soon), fails(status.NOT_FOUND));
    await controls.injectFault({ call: Call.LIST_STATES, fault: WireFault.UNAVAILABLE_BEFORE }, soon);
    await assert.rejects(reference.listStates({}, soon), fails(status.UNAVAILABLE));
    reference.close();
  });
});

describe('what the back office has', () => {
  it('is there after a restart, numbers go on, and what was planned happens', async () => {
    const [planned, before] = [newApplication(), newAllocation(11n)];
    await controls.forceApplication({ outcome: ApplicationOutcome.OPEN, delayMs: 400 }, soon);
    const { report } = await applications.submitApplication(planned, soon);
    await sendDocuments(planned.clientApplicationId);
    await allocations.submitAllocation(before, soon);
    const cash = await cashOf(simulator, account);
    const again = await simulator.restart();
    const { record } = await again.allocations.lookUpAllocation(before, soon);
    assert.equal(record?.outcome, AllocationOutcome.BOOKED);
    const { accounts } = await again.controls.listAccounts({}, soon);
    assert.equal(accounts.find((each) => each.account === account)?.cashKobo, cash);
    await eventually(async () => {
      const { reports } = await again.applications.lookUpApplication(planned, soon);
      assert.deepEqual(
        reports.map(({ kind }) => kind),
        [ACCEPTED, OPENED],
      );
      assert.ok((reports[1]?.number ?? 0n) > (report?.number ?? 0n));
    });
    await assert.rejects(again.allocations.submitAllocation(before, soon), fails(status.ALREADY_EXISTS));
  });
});
