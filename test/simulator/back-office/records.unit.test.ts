import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AllocationOutcome, AllocationRejectReason } from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import {
  ApplicationRejectReason,
  ApplicationReportKind,
  DocumentType,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalReportKind,
} from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { ApplicationOutcome, Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { BackOfficeRecords } from '../../../src/simulator/back-office/records.ts';
import { WithdrawalRecords, withdrawalReportMessage } from '../../../src/simulator/back-office/withdrawal-records.ts';
import { maxPage } from '../../../src/simulator/store/pages.ts';
import { SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const { ACCEPTED, OPENED, REJECTED } = ApplicationReportKind;
const { PHOTO, SIGNATURE } = DocumentType;
const digestOf = (content: string) => createHash('sha256').update(content).digest();

async function start() {
  const broker = await SimulatedBroker.start();
  const records = new BackOfficeRecords(broker.database.asDatabase, 1_000n);
  const application = (id: string, kinds: readonly ApplicationReportKind[], magicName = '') =>
    broker.change({ applications: [id] }, (unit) => {
      const fields = { clientApplicationId: id, course: ApplicationOutcome.OPEN, decideAfterMs: 0, magicName };
      const found = unit.backOffice.application(id) ?? unit.backOffice.addApplication(fields, true);
      for (const kind of kinds) unit.backOffice.report(found, kind);
    });
  const file = (id: string, type: DocumentType, content: string, delivered: boolean) =>
    broker.change({ applications: [id] }, (unit) => {
      const received = unit.backOffice.receiveFile(id, type, Buffer.from(content));
      if (delivered) unit.backOffice.deliver(received);
      unit.message({
        call: Call.SEND_DOCUMENT,
        clientOrderId: id,
        account: '',
        receivedAtMs: 0,
        taken: true,
        requestId: '',
        traceParent: '',
      });
    });
  const message = (call: Call, clientOrderId: string) =>
    broker.change({}, (unit) => {
      unit.message({ call, clientOrderId, account: '', receivedAtMs: 0, taken: true, requestId: '', traceParent: '' });
    });
  return { broker, records, application, file, message };
}

describe('the back office’s records', () => {
  it('the reports of a look-up are those of its application above the number, and those of a stream are in its range', async () => {
    const { records, application } = await start();
    await application('app_1', [ACCEPTED]);
    await application('app_2', [ACCEPTED]);
    await application('app_1', [OPENED]);
    const numbers = async (id: string, after: number) => {
      const { found, reports } = await records.reportsOf(id, after);
      return [found, reports.map(({ number }) => number)];
    };
    assert.deepEqual(await numbers('app_1', 0), [true, [1, 3]]);
    assert.deepEqual(await numbers('app_1', 1), [true, [3]]);
    assert.deepEqual(await numbers('app_9', 0), [false, []]);
    const streamed = async (after: number, last: number, limit: number) =>
      (await records.reportsAfter(after, last, limit)).map(({ number }) => number);
    assert.deepEqual(
      [await streamed(0, 2, 9), await streamed(1, 3, 9), await streamed(0, 3, 1)],
      [[1, 2], [2, 3], [1]],
    );
  });

  it('a document is known by its application and type, and delivered only once it was taken', async () => {
    const { records, application, file } = await start();
    await application('app_1', [ACCEPTED], 'SIM-HANG-DOCUMENTS');
    await application('app_2', [ACCEPTED]);
    await file('app_1', PHOTO, 'a', false);
    await file('app_1', SIGNATURE, 'a', true);
    assert.deepEqual(await records.documentMagic('app_1', PHOTO), {
      magicName: 'SIM-HANG-DOCUMENTS',
      timesReceived: 1,
    });
    assert.deepEqual(await records.documentMagic('app_2', PHOTO), { magicName: '', timesReceived: 0 });
    assert.deepEqual(await records.documentMagic('app_1', DocumentType.UTILITY_BILL), {
      magicName: 'SIM-HANG-DOCUMENTS',
      timesReceived: 0,
    });
    assert.deepEqual(await records.documentMagic('app_9', PHOTO), { magicName: '', timesReceived: 0 });
    const has = (id: string, type: DocumentType) => records.hasDocument(id, type);
    assert.deepEqual(
      [
        await has('app_1', PHOTO),
        await has('app_1', SIGNATURE),
        await has('app_2', SIGNATURE),
        await has('app_9', PHOTO),
      ],
      [false, true, false, undefined],
    );
  });

  it('applications are in the order in which they came, each with its own files and how often it was submitted', async () => {
    const { broker, records, application, file, message } = await start();
    await application('app_2', [ACCEPTED]);
    await application('app_1', [ACCEPTED]);
    await file('app_2', SIGNATURE, 'b', false);
    await file('app_2', PHOTO, 'a', true);
    await file('app_2', PHOTO, 'a', false);
    await file('app_1', PHOTO, 'c', false);
    for (const call of [Call.SUBMIT_APPLICATION, Call.SUBMIT_APPLICATION, Call.LOOK_UP_APPLICATION])
      await message(call, 'app_2');
    await broker.change({ applications: ['app_2'] }, (unit) => {
      const found = unit.backOffice.application('app_2');
      assert.ok(found);
      Object.assign(found, { account: 'A1', rejectReason: ApplicationRejectReason.DECLINED_BY_BROKER, param: 'bvn' });
      unit.backOffice.report(found, REJECTED);
    });
    const { applications = [], hasMore } = await records.applications(0, '');
    assert.equal(hasMore, false);
    assert.deepEqual(applications[0], {
      ...{ sequence: 1n, clientApplicationId: 'app_2', reference: 'BRK000000000001', state: REJECTED, account: 'A1' },
      ...{ rejectReason: ApplicationRejectReason.DECLINED_BY_BROKER, param: 'bvn', timesReceived: 2 },
      documents: [
        { type: PHOTO, sha256: digestOf('a'), sizeBytes: 1, timesReceived: 2, delivered: true },
        { type: SIGNATURE, sha256: digestOf('b'), sizeBytes: 1, timesReceived: 1, delivered: false },
      ],
    });
    assert.deepEqual(
      applications[1]?.documents?.map(({ sha256 }) => sha256),
      [digestOf('c')],
    );
    const ids = async (after: number, id: string) =>
      (await records.applications(after, id)).applications?.map(({ clientApplicationId }) => clientApplicationId);
    assert.deepEqual([await ids(1, ''), await ids(0, 'app_1'), await ids(2, '')], [['app_1'], ['app_1'], []]);
  });

  it('allocations have their record, and an account is that of the allocation', async () => {
    const { broker, records, message } = await start();
    await broker.change({}, (unit) => {
      const { BOOKED, REJECTED: refused } = AllocationOutcome;
      unit.backOffice.addAllocation({ clientAllocationId: 'alc_2', account: 'A2', amountKobo: 700 }, BOOKED);
      const reason = AllocationRejectReason.ACCOUNT_RESTRICTED;
      unit.backOffice.addAllocation({ clientAllocationId: 'alc_1', account: 'A1', amountKobo: 300 }, refused, reason);
    });
    await message(Call.SUBMIT_ALLOCATION, 'alc_2');
    await message(Call.LOOK_UP_ALLOCATION, 'alc_2');
    const { allocations = [] } = await records.allocations(0, '');
    assert.deepEqual(
      allocations.map((one) => [one.sequence, one.account, one.amountKobo, one.timesReceived, one.record?.outcome]),
      [
        [1n, 'A2', 700n, 1, AllocationOutcome.BOOKED],
        [2n, 'A1', 300n, 0, AllocationOutcome.REJECTED],
      ],
    );
    assert.equal((await records.allocations(0, 'alc_1')).allocations?.length, 1);
    assert.deepEqual([await records.accountOf('alc_2'), await records.accountOf('alc_9')], ['A2', '']);
  });

  it('accounts are by code with their cash and what they began with, 1,000 on a page', async () => {
    const { broker, records } = await start();
    await broker.change({}, (unit) => {
      for (let at = 0; at < maxPage; at += 1) unit.setAccount(`A${String(at).padStart(5, '0')}`, AccountStatus.ACTIVE);
      unit.backOffice.setCash('A00001', 250);
    });
    const whole = await records.accounts('');
    assert.deepEqual([whole.accounts?.length, whole.hasMore], [maxPage, false]);
    assert.deepEqual(whole.accounts?.slice(0, 2), [
      { account: 'A00000', status: AccountStatus.ACTIVE, cashKobo: 1_000n },
      { account: 'A00001', status: AccountStatus.ACTIVE, cashKobo: 1_250n },
    ]);
    await broker.change({}, (unit) => unit.setAccount('B', AccountStatus.SETTLEMENT_LOCKOUT));
    const first = await records.accounts('');
    assert.deepEqual(
      [first.accounts?.length, first.hasMore, first.accounts?.at(-1)?.account],
      [maxPage, true, 'A00999'],
    );
    assert.deepEqual(
      (await records.accounts('A00999')).accounts?.map(({ account }) => account),
      ['B'],
    );
  });
});

describe('the records of withdrawals', () => {
  const { PAID, RETURNED } = WithdrawalReportKind;

  async function withdrawals() {
    const broker = await SimulatedBroker.start();
    const report = (id: string, kinds: readonly WithdrawalReportKind[], returnAtMs: number | null = null) =>
      broker.change({ withdrawals: [id] }, (unit) => {
        const terms = {
          clientWithdrawalId: id,
          account: `of ${id}`,
          amountKobo: 300,
          destination: WithdrawalDestination.WALLET,
        };
        const rest = { course: 0, state: 0, rejectReason: 0, dutyKobo: 50, decideAtMs: null, returnAtMs };
        const found = unit.withdrawals.withdrawal(id) ?? unit.withdrawals.add({ ...terms, ...rest }, true);
        for (const kind of kinds) unit.withdrawals.report(found, kind);
      });
    return { broker, report, records: new WithdrawalRecords(broker.database.asDatabase) };
  }

  it('the reports of a look-up are those of its withdrawal above the number, and those of a stream are in its range', async () => {
    const { records, report } = await withdrawals();
    await report('wdr_1', [PAID]);
    await report('wdr_2', [PAID]);
    await report('wdr_1', [RETURNED]);
    const numbers = async (id: string, after: number) => {
      const { found, reports } = await records.reportsOf(id, after);
      return [found, reports.map(({ number }) => number)];
    };
    assert.deepEqual(
      [await numbers('wdr_1', 0), await numbers('wdr_1', 1), await numbers('wdr_9', 0)],
      [
        [true, [1, 3]],
        [true, [3]],
        [false, []],
      ],
    );
    const streamed = async (after: number, last: number, limit: number) =>
      (await records.reportsAfter(after, last, limit)).map(({ number }) => number);
    assert.deepEqual(
      [await streamed(0, 2, 9), await streamed(1, 3, 9), await streamed(0, 3, 1)],
      [[1, 2], [2, 3], [1]],
    );
    assert.deepEqual([await records.accountOf('wdr_2'), await records.accountOf('wdr_9')], ['of wdr_2', '']);
  });

  it('withdrawals are in the order in which they came, with how often each was submitted and when the bank returns it', async () => {
    const { broker, records, report } = await withdrawals();
    await report('wdr_2', [PAID], wednesday);
    await report('wdr_1', [PAID]);
    await broker.change({}, (unit) => {
      const about = { account: '', receivedAtMs: 0, taken: true, requestId: '', traceParent: '' };
      for (const call of [Call.SUBMIT_WITHDRAWAL, Call.LOOK_UP_WITHDRAWAL])
        unit.message({ call, clientOrderId: 'wdr_2', ...about });
    });
    const { withdrawals: all = [], hasMore } = await records.withdrawals(0, '');
    assert.equal(hasMore, false);
    assert.deepEqual(all[0], {
      ...{
        sequence: 1n,
        clientWithdrawalId: 'wdr_2',
        account: 'of wdr_2',
        amountKobo: 300n,
        dutyKobo: 50n,
        state: PAID,
      },
      ...{ destination: WithdrawalDestination.WALLET, brokerReference: 'WDL000000000001', rejectReason: 0 },
      ...{ timesReceived: 1, returnAt: timestampFromMs(wednesday) },
    });
    assert.deepEqual([all[1]?.returnAt, all[1]?.timesReceived], [undefined, 0]);
    const ids = async (after: number, id: string) =>
      (await records.withdrawals(after, id)).withdrawals?.map(({ clientWithdrawalId }) => clientWithdrawalId);
    assert.deepEqual([await ids(1, ''), await ids(0, 'wdr_1'), await ids(2, '')], [['wdr_1'], ['wdr_1'], []]);
  });

  it('a report’s message has everything of the report', () => {
    const message = withdrawalReportMessage({
      ...{ number: 7, clientWithdrawalId: 'wdr_1', kind: WithdrawalReportKind.REJECTED, atMs: wednesday },
      ...{ brokerReference: 'WDL7', rejectReason: WithdrawalRejectReason.NO_BANK_ACCOUNT },
    });
    const { $typeName: _, ...fields } = message;
    assert.deepEqual(fields, {
      ...{
        number: 7n,
        clientWithdrawalId: 'wdr_1',
        kind: WithdrawalReportKind.REJECTED,
        at: timestampFromMs(wednesday),
      },
      ...{ brokerReference: 'WDL7', rejectReason: WithdrawalRejectReason.NO_BANK_ACCOUNT },
    });
  });
});
