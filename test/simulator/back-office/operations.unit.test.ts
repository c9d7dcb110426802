import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
} from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AllocationOutcome, AllocationRejectReason } from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import {
  type ApplicationFields,
  ApplicationFieldsSchema,
  ApplicationRejectReason,
  ApplicationReportKind,
  DocumentOutcome,
  DocumentType,
  SendDocumentRequestSchema,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { ApplicationOutcome } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import type { AllocationSubmission } from '../../../src/simulator/back-office/model.ts';
import {
  decide,
  decideIfDue,
  hasRoomForFile,
  submitAllocation,
  submitApplication,
  takeDocument,
} from '../../../src/simulator/back-office/operations.ts';
import { maxAccounts } from '../../../src/simulator/world.ts';
import { dayMs, SimulatedBroker, wednesday } from '../../support/simulated-broker.ts';

const good: Partial<ApplicationFields> = {
  ...{ firstName: 'Adaeze', lastName: 'Okafor', dateOfBirth: '1990-12-31', gender: 'female', email: 'a@example.com' },
  ...{ phone: '+2348030000000', address: '1 Marina', city: 'Lagos', state: 'LAGOS', stateOfOrigin: 'AKWA-IBOM' },
  ...{ lgaOfOrigin: 'AKWA-IBOM-UYO', bvn: '22222222222', nextOfKinName: 'Emeka Okafor' },
  ...{ nextOfKinPhone: '+2348030000001', nextOfKinRelationship: 'brother' },
};
const types = [DocumentType.PHOTO, DocumentType.GOVERNMENT_ID, DocumentType.UTILITY_BILL, DocumentType.SIGNATURE];
const reasons = ApplicationRejectReason;
const decisionDelay = { min: 1_000, max: 2_000 };

class Office {
  constructor(readonly broker: SimulatedBroker) {}

  static async start(): Promise<Office> {
    return new Office(await SimulatedBroker.start());
  }

  get #settings() {
    return { decisionDelay, directives: this.broker.directives };
  }

  apply(changes: Partial<ApplicationFields> = {}, notAfterMs?: number, id = 'app_1') {
    const fields = create(ApplicationFieldsSchema, { ...good, ...changes } as never);
    return this.broker.change({ applications: [id] }, (unit) =>
      submitApplication(unit, id, fields, notAfterMs, this.#settings),
    );
  }

  /** Sends a document, whose receipt is counted. */
  send(type: DocumentType, content = 'a', { id = 'app_1', notAfterMs }: { id?: string; notAfterMs?: number } = {}) {
    const notAfter = notAfterMs === undefined ? {} : { notAfter: timestampFromMs(notAfterMs) };
    const request = create(SendDocumentRequestSchema, { clientApplicationId: id, type, ...notAfter });
    return this.broker.change({ applications: [id] }, (unit) => {
      const file = unit.backOffice.receiveFile(id, type, Buffer.from(content));
      return takeDocument(unit, request, file, this.#settings).outcome;
    });
  }

  async sendAll(id = 'app_1'): Promise<void> {
    for (const type of types) assert.equal(await this.send(type, 'a', { id }), DocumentOutcome.DELIVERED);
  }

  decide(decision: 'open' | 'decline', account?: string, id = 'app_1') {
    return this.broker.change({ applications: [id] }, (unit) => decide(unit, id, decision, account));
  }

  decideIfDue(id = 'app_1') {
    return this.broker.change({ applications: [id] }, (unit) => decideIfDue(unit, id));
  }

  allocate(changes: Partial<AllocationSubmission> = {}, notAfterMs?: number) {
    const submission = { clientAllocationId: 'alc_1', account: 'A1', amountKobo: 500, ...changes };
    return this.broker.change({ allocations: [submission.clientAllocationId] }, (unit) =>
      submitAllocation(unit, submission, notAfterMs, this.#settings),
    );
  }

  application(id = 'app_1') {
    return this.broker.database.rows('applications').find((each) => each.client_application_id === id);
  }

  reports(id = 'app_1'): string[] {
    const own = this.broker.database.rows('application_reports').filter((each) => each.client_application_id === id);
    return own.map(({ kind, reject_reason: reason, param }) =>
      [ApplicationReportKind[Number(kind)], ...(reason === 0 ? [] : [reasons[Number(reason)]]), param]
        .filter((each) => each !== '')
        .join(' '),
    );
  }
}

describe('an application to the simulated broker', () => {
  it('an application is taken once, until its not_after', async () => {
    const office = await Office.start();
    office.broker.directives.addApplication({ outcome: ApplicationOutcome.REJECT }, 1);
    assert.deepEqual(await office.apply({}, wednesday - 1), { outcome: 'too_late' });
    assert.equal(office.application(), undefined);
    assert.equal((await office.apply({}, wednesday)).outcome, 'taken');
    assert.deepEqual(await office.apply({}, wednesday - 1), { outcome: 'seen_before' });
    assert.deepEqual(office.reports(), ['REJECTED REJECTED_BY_BROKER']);
  });

  it('an application lacks no required field, and is rejected by the first that it lacks', async () => {
    const office = await Office.start();
    const fields = [
      ...['first_name', 'last_name', 'date_of_birth', 'gender', 'email', 'phone', 'address', 'city', 'state'],
      ...[
        'state_of_origin',
        'lga_of_origin',
        'bvn',
        'next_of_kin_name',
        'next_of_kin_phone',
        'next_of_kin_relationship',
      ],
    ];
    const nameOf = (field: string) => field.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    for (const [at, field] of fields.entries()) {
      const id = `app_${at + 10}`;
      const later = fields.slice(at).map((each) => [nameOf(each), '']);
      await office.apply(Object.fromEntries(at % 2 === 0 ? later : [[nameOf(field), '']]), undefined, id);
      assert.deepEqual(office.reports(id), [`REJECTED INVALID_FIELD ${field}`]);
      assert.equal(office.application(id)?.reference, '');
    }
  });

  it('an application names known places in any case, and numbers that can be', async () => {
    const office = await Office.start();
    const cases: [Partial<ApplicationFields>, string][] = [
      [{ state: 'lagos', stateOfOrigin: 'akwa-ibom', lgaOfOrigin: 'akwa-ibom-uyo' }, 'ACCEPTED'],
      [{ state: 'NOWHERE' }, 'REJECTED INVALID_FIELD state'],
      [{ stateOfOrigin: 'NOWHERE' }, 'REJECTED INVALID_FIELD state_of_origin'],
      [{ lgaOfOrigin: 'NOWHERE' }, 'REJECTED INVALID_FIELD lga_of_origin'],
      [{ stateOfOrigin: 'LAGOS' }, 'REJECTED INVALID_FIELD lga_of_origin'],
      [{ bvn: '2222222222' }, 'REJECTED INVALID_FIELD bvn'],
      [{ phone: '123' }, 'REJECTED INVALID_FIELD phone'],
    ];
    for (const [at, [changes, expected]] of cases.entries()) {
      await office.apply(changes, undefined, `app_${at}`);
      assert.deepEqual(office.reports(`app_${at}`), [expected], JSON.stringify(changes));
    }
  });

  it('a directive overrides the broker’s rules, and these override a magic name', async () => {
    const office = await Office.start();
    const { REJECT, OPEN, DECLINE } = ApplicationOutcome;
    const directive = { outcome: REJECT, rejectReason: reasons.INVALID_FIELD, param: 'city' };
    for (const [at, [forced, changes, expected]] of (
      [
        [undefined, { lastName: 'SIM-ALREADY' }, 'REJECTED ALREADY_AT_BROKER'],
        [undefined, { lastName: 'SIM-ALREADY', city: '' }, 'REJECTED INVALID_FIELD city'],
        [undefined, { lastName: 'SIM-DECLINE' }, 'ACCEPTED'],
        [{ outcome: OPEN }, { lastName: 'SIM-ALREADY' }, 'ACCEPTED'],
        [{ outcome: DECLINE }, { city: '' }, 'ACCEPTED'],
        [directive, {}, 'REJECTED INVALID_FIELD city'],
        [{ outcome: REJECT }, {}, 'REJECTED REJECTED_BY_BROKER'],
      ] as const
    ).entries()) {
      if (forced !== undefined) office.broker.directives.addApplication(forced, 1);
      await office.apply(changes, undefined, `app_${at}`);
      assert.deepEqual(office.reports(`app_${at}`), [expected], String(at));
    }
  });

  it('an accepted application keeps the broker’s reference, its course and its magic first name', async () => {
    const office = await Office.start();
    await office.apply({ firstName: 'SIM-REFUSE-PHOTO', lastName: 'SIM-DECLINE' });
    const { course, magic_name: magicName, reference, decide_at_ms: decideAt, account } = office.application() ?? {};
    assert.deepEqual(
      [course, magicName, reference, decideAt, account],
      [ApplicationOutcome.DECLINE, 'SIM-REFUSE-PHOTO', 'BRK000000000001', null, ''],
    );
    await office.apply({}, undefined, 'app_2');
    assert.deepEqual(
      [office.application('app_2')?.course, office.application('app_2')?.magic_name],
      [ApplicationOutcome.OPEN, ''],
    );
  });
});

describe('the documents of an application to the simulated broker', () => {
  it('the first file of a type is delivered, also again, and another file of the type is refused', async () => {
    const office = await Office.start();
    await office.apply();
    const { DELIVERED, REFUSED } = DocumentOutcome;
    assert.equal(await office.send(DocumentType.PHOTO), DELIVERED);
    assert.equal(await office.send(DocumentType.PHOTO, 'b'), REFUSED);
    // A file that was delivered stays so, whenever it is sent again.
    assert.equal(await office.send(DocumentType.PHOTO, 'a', { notAfterMs: wednesday - 1 }), DELIVERED);
    assert.equal(await office.send(DocumentType.SIGNATURE, 'b'), DELIVERED);
    const stored = office.broker.database
      .rows('documents')
      .map(({ type, delivered, times_received: times }) => [type, delivered, times]);
    assert.deepEqual(stored, [
      [DocumentType.PHOTO, 1, 2],
      [DocumentType.PHOTO, 0, 1],
      [DocumentType.SIGNATURE, 1, 1],
    ]);
  });

  it('a document is taken until its not_after, of an application that the broker accepted and has not decided', async () => {
    const office = await Office.start();
    await office.apply({ city: '' }, undefined, 'app_2');
    await office.apply();
    assert.equal(await office.send(DocumentType.PHOTO, 'a', { id: 'app_9' }), 'unknown_application');
    assert.equal(await office.send(DocumentType.PHOTO, 'a', { id: 'app_2' }), 'unknown_application');
    assert.equal(await office.send(DocumentType.PHOTO, 'a', { notAfterMs: wednesday - 1 }), 'too_late');
    assert.equal(await office.send(DocumentType.PHOTO, 'a', { notAfterMs: wednesday }), DocumentOutcome.DELIVERED);
    await office.decide('decline');
    assert.equal(await office.send(DocumentType.SIGNATURE), 'closed');
    assert.equal(await office.send(DocumentType.SIGNATURE, 'a', { notAfterMs: wednesday - 1 }), 'too_late');
    assert.equal(await office.send(DocumentType.PHOTO), DocumentOutcome.DELIVERED);
  });

  it('a magic first name refuses its type of document, and a directive decides before it', async () => {
    const office = await Office.start();
    await office.apply({ firstName: 'SIM-REFUSE-PHOTO' });
    const { DELIVERED, REFUSED } = DocumentOutcome;
    assert.equal(await office.send(DocumentType.PHOTO), REFUSED);
    assert.equal(await office.send(DocumentType.SIGNATURE), DELIVERED);
    office.broker.directives.addDocument(
      { clientApplicationId: 'app_1', type: DocumentType.PHOTO, outcome: DELIVERED },
      1,
    );
    assert.equal(await office.send(DocumentType.PHOTO), DELIVERED);
    office.broker.directives.addDocument(
      { clientApplicationId: '', type: DocumentType.UTILITY_BILL, outcome: REFUSED },
      1,
    );
    assert.equal(await office.send(DocumentType.UTILITY_BILL), REFUSED);
    assert.equal(await office.send(DocumentType.UTILITY_BILL), DELIVERED);
  });

  it('100 different files of a type are remembered, and those of other types have room', async () => {
    const office = await Office.start();
    await office.apply();
    const { PHOTO, SIGNATURE } = DocumentType;
    const rooms = await office.broker.change({ applications: ['app_1'] }, (unit) => {
      const found: boolean[] = [];
      for (let at = 0; at < 100; at += 1) {
        if (at >= 99) found.push(hasRoomForFile(unit, 'app_1', PHOTO));
        unit.backOffice.receiveFile('app_1', PHOTO, Buffer.from(String(at)));
      }
      return [
        ...found,
        hasRoomForFile(unit, 'app_1', PHOTO),
        hasRoomForFile(unit, 'app_1', SIGNATURE),
        hasRoomForFile(unit, 'app_2', PHOTO),
      ];
    });
    assert.deepEqual(rooms, [true, false, true, true]);
  });
});

describe('the decision of an application', () => {
  it('an application is decided after a delay once each of the four documents is delivered, not a millisecond earlier', async () => {
    for (const missing of types) {
      const office = await Office.start();
      await office.apply();
      for (const type of types) if (type !== missing) await office.send(type);
      assert.equal(await office.decideIfDue(), null);
      office.broker.passTime(100);
      await office.send(missing);
      const due = Number(office.application()?.decide_at_ms);
      const delay = due - wednesday - 100;
      assert.ok(delay >= decisionDelay.min && delay <= decisionDelay.max, String(delay));
      office.broker.nowMs += dayMs;
      office.broker.realNowMs = due - 1;
      assert.equal(await office.decideIfDue(), due);
      assert.deepEqual(office.reports(), ['ACCEPTED']);
      office.broker.realNowMs = due;
      assert.equal(await office.decideIfDue(), null);
      assert.deepEqual([office.reports(), office.application()?.decide_at_ms], [['ACCEPTED', 'OPENED'], null]);
      assert.equal(await office.decideIfDue(), null);
      assert.equal(await office.decideIfDue('app_9'), null);
    }
  });

  it('a refused file plans no decision', async () => {
    const office = await Office.start();
    await office.apply({ firstName: 'SIM-REFUSE-SIGNATURE' });
    for (const type of types) await office.send(type);
    assert.equal(office.application()?.decide_at_ms, null);
  });

  it('a set outcome has its own delay, declines at the end, or never decides', async () => {
    const { DECLINE, WAIT, OPEN } = ApplicationOutcome;
    for (const [outcome, expected] of [
      [OPEN, ['ACCEPTED', 'OPENED']],
      [DECLINE, ['ACCEPTED', `REJECTED ${reasons[ApplicationRejectReason.DECLINED_BY_BROKER]}`]],
      [WAIT, ['ACCEPTED']],
    ] as const) {
      const office = await Office.start();
      office.broker.directives.addApplication({ outcome, delayMs: 0 }, 1);
      await office.apply();
      await office.sendAll();
      assert.equal(office.application()?.decide_at_ms, outcome === WAIT ? null : wednesday);
      await office.decideIfDue();
      assert.deepEqual(office.reports(), expected);
    }
  });

  it('an application is opened or declined once, and only while it is accepted', async () => {
    const office = await Office.start();
    assert.deepEqual(await office.decide('open'), { outcome: 'unknown' });
    await office.apply();
    await office.sendAll();
    const opened = await office.decide('open', 'OWN1');
    assert.equal(opened.outcome === 'decided' && opened.report.account, 'OWN1');
    assert.deepEqual([office.application()?.account, office.application()?.decide_at_ms], ['OWN1', null]);
    assert.equal(office.broker.world.accounts.get('OWN1'), AccountStatus.ACTIVE);
    assert.deepEqual(await office.decide('decline'), { outcome: 'final' });
    await office.apply({ city: '' }, undefined, 'app_2');
    assert.deepEqual(await office.decide('open', '', 'app_2'), { outcome: 'final' });
    await office.apply({}, undefined, 'app_3');
    await office.decide('decline', 'OWN3', 'app_3');
    assert.deepEqual([office.application('app_3')?.account, office.broker.world.accounts.has('OWN3')], ['', false]);
  });

  it('each application gets an account of its own, which the same id gets again from an empty broker', async () => {
    const codes: string[] = [];
    for (let round = 0; round < 2; round += 1) {
      const office = await Office.start();
      await office.apply();
      await office.apply({}, undefined, 'app_2');
      await office.decide('open');
      if (round === 1) office.broker.world.accounts.set(codes[1] ?? '', AccountStatus.ACTIVE);
      await office.decide('open', '', 'app_2');
      codes.push(String(office.application()?.account), String(office.application('app_2')?.account));
    }
    assert.match(codes[0] ?? '', /^CS[0-9A-F]{12}$/);
    assert.equal(codes[2], codes[0]);
    // A code that is taken goes to nobody else.
    assert.equal(new Set(codes).size, 3);
  });

  it('a broker with as many accounts as it may have declines, and still opens one that it has', async () => {
    const office = await Office.start();
    const { accounts } = office.broker.world;
    for (let at = accounts.size; at < maxAccounts - 1; at += 1) accounts.set(`N${at}`, AccountStatus.ACTIVE);
    for (const id of ['app_1', 'app_2', 'app_3']) await office.apply({}, undefined, id);
    await office.decide('open');
    await office.decide('open', '', 'app_2');
    await office.decide('open', 'N5', 'app_3');
    assert.deepEqual(
      ['app_1', 'app_2', 'app_3'].map((id) => office.reports(id)[1]),
      ['OPENED', 'REJECTED DECLINED_BY_BROKER', 'OPENED'],
    );
  });
});

describe('an allocation at the simulated broker', () => {
  const reason = AllocationRejectReason;
  const booked = async (office: Office, id = 'alc_1') => {
    const row = office.broker.database.rows('allocations').find((each) => each.client_allocation_id === id);
    return [AllocationOutcome[Number(row?.outcome)], reason[Number(row?.reject_reason)], row?.broker_reference];
  };

  async function withAccount(): Promise<Office> {
    const office = await Office.start();
    await office.broker.change({}, (unit) => unit.setAccount('A1', AccountStatus.ACTIVE));
    return office;
  }

  it('an allocation is booked once, until its not_after, and changes the account’s money at once', async () => {
    const office = await withAccount();
    assert.deepEqual(await office.allocate({}, wednesday - 1), { outcome: 'too_late' });
    assert.equal((await office.allocate({}, wednesday)).outcome, 'taken');
    assert.deepEqual(await office.allocate({ amountKobo: 9 }, wednesday - 1), { outcome: 'seen_before' });
    assert.deepEqual(await booked(office), ['BOOKED', 'UNSPECIFIED', 'BKG000000000001']);
    assert.equal(office.broker.world.cash.get('A1'), 500);
    const [entry] = office.broker.database.rows('cash_entries');
    assert.deepEqual(
      [entry?.account, entry?.amount_kobo, entry?.balance_kobo, entry?.client_allocation_id],
      ['A1', 500, 500, 'alc_1'],
    );
  });

  it('an allocation is rejected without a change of money for the first reason there is', async () => {
    const office = await withAccount();
    const restrict = (forbids: AccountActivity[]) =>
      office.broker.change({}, (unit) =>
        unit.clearing.setState({
          ...{ account: 'A1', state: AccountState.RESTRICTED },
          restrictions: [{ code: AccountRestrictionCode.OTHER, forbids, sinceMs: 0 }],
        }),
      );
    await office.allocate({ account: 'A9' });
    assert.deepEqual(await booked(office), ['REJECTED', 'ACCOUNT_NOT_AT_BROKER', '']);
    await restrict([AccountActivity.WITHDRAW]);
    await office.allocate({ clientAllocationId: 'alc_2' });
    assert.deepEqual((await booked(office, 'alc_2'))[0], 'BOOKED');
    await restrict([AccountActivity.FUND]);
    await office.allocate({ clientAllocationId: 'alc_3' });
    assert.deepEqual(await booked(office, 'alc_3'), ['REJECTED', 'ACCOUNT_RESTRICTED', '']);
    assert.equal(office.broker.world.cash.get('A1'), 500);
  });

  it('an allocation whose money could not be counted exactly is rejected', async () => {
    const office = await withAccount();
    await office.allocate({ amountKobo: Number.MAX_SAFE_INTEGER - 1 });
    await office.allocate({ clientAllocationId: 'alc_2', amountKobo: 2 });
    await office.allocate({ clientAllocationId: 'alc_3', amountKobo: 1 });
    assert.deepEqual(
      [(await booked(office))[0], await booked(office, 'alc_2'), (await booked(office, 'alc_3'))[0]],
      ['BOOKED', ['REJECTED', 'AMOUNT_NOT_ACCEPTED', ''], 'BOOKED'],
    );
  });

  it('a directive decides before a magic amount, and neither books what the broker’s rules reject', async () => {
    const office = await withAccount();
    const { REJECTED, BOOKED, UNSPECIFIED } = AllocationOutcome;
    const cases: [AllocationOutcome | undefined, number, string, string][] = [
      [undefined, 999_003, 'A1', 'REJECTED AMOUNT_NOT_ACCEPTED'],
      [REJECTED, 999_003, 'A1', 'REJECTED REJECTED_BY_BROKER'],
      [BOOKED, 999_003, 'A1', 'BOOKED UNSPECIFIED'],
      [UNSPECIFIED, 999_003, 'A1', 'REJECTED AMOUNT_NOT_ACCEPTED'],
      [BOOKED, 500, 'A9', 'REJECTED ACCOUNT_NOT_AT_BROKER'],
      [undefined, 999_003, 'A9', 'REJECTED AMOUNT_NOT_ACCEPTED'],
      [undefined, 999_006, 'A1', 'BOOKED UNSPECIFIED'],
    ];
    for (const [at, [outcome, amountKobo, account, expected]] of cases.entries()) {
      const id = `alc_${at}`;
      if (outcome !== undefined) office.broker.directives.addAllocation({ account: '', behaviour: { outcome } }, 1);
      await office.allocate({ clientAllocationId: id, account, amountKobo });
      assert.equal((await booked(office, id)).slice(0, 2).join(' '), expected, id);
    }
  });
});
