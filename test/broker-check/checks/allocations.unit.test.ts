/** The checks of allocations and withdrawals, with an adapter that keeps each promise but one. */
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { allocationChecks } from '../../../src/broker-check/checks/allocations.ts';
import { withdrawalChecks } from '../../../src/broker-check/checks/withdrawals.ts';
import { AllocationOutcome } from '../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { type RightBroker, rightBroker } from '../../support/right-broker.ts';
import { type Asked, type CheckCase, ended, holdCases, type Script } from '../../support/scripted-adapter.ts';

const { ALREADY_EXISTS, FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE, UNIMPLEMENTED } = status;
const { BOOKED, REJECTED } = AllocationOutcome;
const { BANK_ACCOUNT, WALLET } = WithdrawalDestination;
const lost = ended(UNAVAILABLE);
const elsewhere = ['allocation-abandoned-settles', 'withdrawal-abandoned-settles'];

type Case = CheckCase<RightBroker>;
type Wrong = (right: RightBroker) => Script;
type Method = 'submitAllocation' | 'lookUpAllocation' | 'submitWithdrawal' | 'lookUpWithdrawal';

/** An adapter that changes an answer of a method, or each of them. */
const changing = (method: Method, change: (answer: Asked, request: Asked) => object, only?: number): Wrong => {
  return ({ answers }) => ({
    [method]: (request: Asked, nth: number) => {
      const answer = answers[method](request);
      return only === undefined || nth === only ? change(answer, request) : answer;
    },
  });
};

/** An adapter that gives a send another request to the broker. */
const sendingOn = (
  method: 'submitAllocation' | 'submitWithdrawal',
  change: (request: Asked, nth: number) => object,
): Wrong => {
  return ({ answers }) => ({
    [method]: (request: Asked, nth: number) => answers[method]({ ...request, ...change(request, nth) }),
  });
};

/** The cases that both kinds of money have, of an adapter that goes wrong in each step. */
function moneyCases(kind: 'allocation' | 'withdrawal', idField: string): Case[] {
  const submit = kind === 'allocation' ? 'submitAllocation' : 'submitWithdrawal';
  const lookUp = kind === 'allocation' ? 'lookUpAllocation' : 'lookUpWithdrawal';
  const asNew = (...which: readonly number[]) =>
    sendingOn(submit, (_, nth) => (which.includes(nth) ? { [idField]: `new${nth}` } : {}));
  const inTime = sendingOn(submit, () => ({ notAfter: timestampFromMs(Date.now() + 60_000) }));
  const again = (code: status) => changing(submit, (answer) => ('code' in answer ? ended(code) : answer));
  return [
    ...['once', 'once-other-fields'].flatMap((each): Case[] => [
      [`${kind}-${each}`, 'kept'],
      [`${kind}-${each}`, 'not run', { [submit]: lost }],
      [`${kind}-${each}`, 'not run', { [lookUp]: lost }],
      [`${kind}-${each}`, 'breach', asNew(1)],
      [`${kind}-${each}`, 'breach', again(FAILED_PRECONDITION)],
      [`${kind}-${each}`, 'breach', again(UNAVAILABLE)],
      [`${kind}-${each}`, 'breach', { [lookUp]: {} }],
    ]),
    [
      `${kind}-once-other-fields`,
      'breach',
      // It takes the same id with another amount for a new send.
      sendingOn(submit, (request) => ([300n, 500n].includes(request.amountKobo) ? {} : { [idField]: 'another' })),
    ],
    [`${kind}-once-at-once`, 'kept'],
    [`${kind}-once-at-once`, 'breach', asNew(1)],
    [`${kind}-once-at-once`, 'breach', asNew(9)],
    [`${kind}-look-up-unknown`, 'kept'],
    [`${kind}-look-up-unknown`, 'breach', { [lookUp]: ended(NOT_FOUND) }],
    [`${kind}-look-up-current`, 'kept'],
    [`${kind}-look-up-current`, 'not run', { [submit]: lost }],
    [`${kind}-look-up-current`, 'not run', { [lookUp]: lost }],
    ...[0, 1, 2].map((nth): Case => [`${kind}-look-up-current`, 'breach', changing(lookUp, () => ({}), nth)]),
    [`${kind}-look-up-current`, 'kept', changing(lookUp, () => ({}), 3)],
    [`${kind}-not-after-honoured`, 'kept'],
    [`${kind}-not-after-honoured`, 'not offered', { getCapabilities: { withdrawalDestinations: [WALLET] } }],
    [`${kind}-not-after-honoured`, 'breach', inTime],
    [`${kind}-not-after-honoured`, 'breach', { [submit]: ended(INVALID_ARGUMENT) }],
    [`${kind}-late-never-taken`, 'kept'],
    [`${kind}-late-never-taken`, 'not run', inTime],
    [`${kind}-late-never-taken`, 'not run', { [lookUp]: lost }],
    [`${kind}-late-never-taken`, 'breach', { [lookUp]: { found: true, record: {} } }],
    [`${kind}-listed`, 'kept'],
    [`${kind}-listed`, 'not run', { [submit]: lost }],
    [`${kind}-listed`, 'breach', { listSubmissions: {} }],
    [`${kind}-listed`, 'breach', sendingOn(submit, () => ({ note: Buffer.from('another') }))],
    [`${kind}-listed`, 'breach', sendingOn(submit, () => ({ note: Buffer.alloc(0) }))],
    [
      `${kind}-listed`,
      'breach',
      ({ answers }) => ({
        // Each page behind the first number has its first entry twice.
        listSubmissions: (request: Asked) => {
          const { submissions } = answers.listSubmissions(request) as { submissions: readonly object[] };
          return { submissions: request.limit > 1 ? [...submissions.slice(0, 1), ...submissions] : submissions };
        },
      }),
    ],
    [`${kind}-complete-until-past`, 'kept'],
    [`${kind}-complete-until-past`, 'not run', { [lookUp]: lost }],
    [`${kind}-complete-until-past`, 'not offered', { [lookUp]: {} }],
    [
      `${kind}-complete-until-past`,
      'breach',
      changing(lookUp, () => ({ completeUntil: timestampFromMs(Date.now() + 3_600_000) })),
    ],
  ];
}

describe('allocations, as broker-check sees them', () => {
  const record = (change: object, only?: number) =>
    changing(
      'submitAllocation',
      (answer) => (answer.record === undefined ? answer : { record: { ...answer.record, ...change } }),
      only,
    );
  const wholes = (id: string): Case[] => [
    [id, 'breach', { submitAllocation: {} }],
    [id, 'breach', record({ clientAllocationId: 'another' })],
    [id, 'breach', record({ at: undefined })],
    [id, 'breach', record({ outcome: AllocationOutcome.UNSPECIFIED })],
    [id, 'breach', record({ outcome: REJECTED, brokerReference: 'K1' })],
  ];

  it('allocations are booked or rejected once, with a whole record that the look-up keeps', async () => {
    const cases: Case[] = [
      ...moneyCases('allocation', 'clientAllocationId'),
      ['allocations-offered', 'kept'],
      ['allocation-booked', 'kept'],
      ['allocation-booked', 'breach', { submitAllocation: lost }],
      ['allocation-booked', 'breach', { submitAllocation: {} }],
      ['allocation-booked', 'breach', record({ outcome: REJECTED })],
      ['allocation-answer-is-record', 'kept'],
      ['allocation-answer-is-record', 'not run', { submitAllocation: lost }],
      ...wholes('allocation-answer-is-record'),
      ['allocation-answer-is-record', 'breach', record({ brokerReference: '' })],
      ['allocation-answer-is-record', 'breach', record({ brokerReference: 'K'.repeat(65) })],
      ['allocation-answer-is-record', 'kept', record({ brokerReference: 'K'.repeat(64) })],
      ['allocation-answer-is-record', 'kept', record({ outcome: REJECTED, brokerReference: '', rejectReason: 1 })],
      ['allocation-answer-is-record', 'breach', record({ rejectReason: 1 })],
      ['allocation-rejection-is-record', 'kept'],
      ['allocation-rejection-is-record', 'breach', { submitAllocation: lost }],
      ['allocation-rejection-is-record', 'breach', record({ outcome: BOOKED, brokerReference: 'K1', rejectReason: 0 })],
      ...wholes('allocation-rejection-is-record'),
      ['allocation-rejection-has-reason', 'kept'],
      ['allocation-rejection-has-reason', 'not run', { submitAllocation: lost }],
      ['allocation-rejection-has-reason', 'not run', record({ outcome: BOOKED })],
      ['allocation-rejection-has-reason', 'breach', record({ rejectReason: 0 })],
      ...['allocation-once', 'allocation-once-other-fields', 'allocation-listed'].map((id): Case => {
        return [id, 'not run', record({ outcome: REJECTED })];
      }),
      ...['allocation-once', 'allocation-once-other-fields', 'allocation-look-up-current'].map((id): Case => {
        const other = changing('lookUpAllocation', ({ record: kept }) => ({
          record: { ...kept, brokerReference: 'K2' },
        }));
        return [id, 'breach', other];
      }),
      ['allocation-in-balance', 'kept'],
      ['allocation-look-up-unknown', 'breach', { lookUpAllocation: { record: {} } }],
      ['allocation-nonsense-not-booked', 'kept'],
      ['allocation-nonsense-not-booked', 'kept', record({ outcome: REJECTED })],
      ...[0n, -500n, 10_000_000_001n].map((amountKobo): Case => {
        const books = sendingOn('submitAllocation', (request) =>
          request.amountKobo === amountKobo ? { amountKobo: 500n } : {},
        );
        return ['allocation-nonsense-not-booked', 'breach', books];
      }),
      ['allocation-record-kept', 'kept'],
    ];
    await holdCases(
      allocationChecks.filter(({ id }) => !elsewhere.includes(id)),
      rightBroker,
      cases,
    );
  });
});

describe('withdrawals, as broker-check sees them', () => {
  const { ACCEPTED, PAID, REJECTED: NO } = WithdrawalReportKind;
  const report = (change: object, only?: number) =>
    changing(
      'submitWithdrawal',
      (answer) => (answer.report === undefined ? answer : { report: { ...answer.report, ...change } }),
      only,
    );
  const wholes = (id: string): Case[] => [
    [id, 'breach', { submitWithdrawal: {} }],
    [id, 'breach', report({ clientWithdrawalId: 'another' })],
    [id, 'breach', report({ at: undefined })],
    [id, 'breach', report({ number: 0n })],
    [id, 'breach', report({ kind: WithdrawalReportKind.UNSPECIFIED })],
  ];
  const stated = (...withdrawalDestinations: readonly WithdrawalDestination[]): Script => ({
    getCapabilities: { honoursNotAfter: true, withdrawalDestinations },
  });
  const none: Script = { lookUpWithdrawal: ended(UNIMPLEMENTED) };

  it('withdrawals are taken or rejected once, to each destination, with a report that the look-up keeps', async () => {
    const cases: Case[] = [
      ...moneyCases('withdrawal', 'clientWithdrawalId'),
      ['withdrawals-offered', 'kept'],
      ['withdrawal-destinations-stated', 'kept'],
      ['withdrawal-destinations-stated', 'kept', stated(WALLET)],
      ['withdrawal-destinations-stated', 'breach', { getCapabilities: lost }],
      ['withdrawal-destinations-stated', 'breach', stated()],
      ['withdrawal-destinations-stated', 'breach', none],
      ['withdrawal-destinations-stated', 'not offered', { ...stated(), ...none }],
      ['withdrawal-destinations-stated', 'kept', { lookUpWithdrawal: lost }],
      ['withdrawal-destinations-stated', 'breach', stated(WALLET, BANK_ACCOUNT, WALLET)],
      ['withdrawal-destinations-stated', 'breach', stated(WALLET, WithdrawalDestination.UNSPECIFIED)],
      ['withdrawal-destinations-stated', 'breach', stated(99 as WithdrawalDestination, WALLET)],
      ['withdrawal-taken', 'kept'],
      ['withdrawal-taken', 'kept', report({ kind: PAID })],
      // Each destination by itself, and none is tried twice.
      ...[BANK_ACCOUNT, WALLET].flatMap((destination): Case[] => {
        const ends = (answer: object) =>
          changing('submitWithdrawal', (right, request) => (request.destination === destination ? answer : right));
        return [
          ['withdrawal-taken', 'breach', ends(lost)],
          ['withdrawal-taken', 'breach', ends({})],
          ['withdrawal-taken', 'breach', ends({ report: { kind: NO } })],
          ['withdrawal-taken', 'kept', (right) => ({ ...ends(lost)(right), ...stated(3 - destination) })],
        ];
      }),
      ['withdrawal-answer-is-report', 'kept'],
      ['withdrawal-answer-is-report', 'not run', { submitWithdrawal: lost }],
      ['withdrawal-answer-is-report', 'not run', stated()],
      ...wholes('withdrawal-answer-is-report'),
      ['withdrawal-answer-is-report', 'breach', report({ brokerReference: '' })],
      ['withdrawal-rejection-is-report', 'kept'],
      ['withdrawal-rejection-is-report', 'breach', { submitWithdrawal: lost }],
      ['withdrawal-rejection-is-report', 'breach', report({ kind: ACCEPTED, brokerReference: 'W1', rejectReason: 0 })],
      ...wholes('withdrawal-rejection-is-report'),
      ['withdrawal-rejection-has-reason', 'kept'],
      ['withdrawal-rejection-has-reason', 'not run', { submitWithdrawal: lost }],
      ['withdrawal-rejection-has-reason', 'not run', report({ kind: PAID })],
      ['withdrawal-rejection-has-reason', 'breach', report({ rejectReason: 0 })],
      ...['withdrawal-once', 'withdrawal-once-other-fields', 'withdrawal-listed', 'withdrawal-look-up-current'].flatMap(
        (id): Case[] => [
          [id, 'not run', report({ kind: NO })],
          [id, 'kept', id === 'withdrawal-listed' ? report({ kind: PAID }) : {}],
        ],
      ),
      ...['withdrawal-once', 'withdrawal-once-other-fields', 'withdrawal-look-up-current'].flatMap((id): Case[] => {
        const looked = (change: (answer: Asked) => object) => changing('lookUpWithdrawal', change);
        return [
          [id, 'breach', looked((answer) => ({ ...answer, found: false }))],
          [id, 'breach', looked((answer) => ({ ...answer, reports: [] }))],
          [
            id,
            'breach',
            looked((answer) => ({ ...answer, reports: [{ ...answer.reports[0], brokerReference: 'W2' }] })),
          ],
          [id, 'breach', looked((answer) => ({ ...answer, reports: [{ number: 9n }, ...answer.reports] }))],
          [id, 'kept', looked((answer) => ({ ...answer, reports: [...answer.reports, { number: 9n }] }))],
        ];
      }),
      ['withdrawal-in-balance', 'kept'],
      ['withdrawal-look-up-unknown', 'breach', { lookUpWithdrawal: { found: true } }],
      ['withdrawal-look-up-unknown', 'breach', { lookUpWithdrawal: { reports: [{ number: 1n }] } }],
      ['withdrawal-nonsense-not-taken', 'kept'],
      ['withdrawal-nonsense-not-taken', 'kept', report({ kind: NO })],
      ...[0n, -500n, 10_000_000_001n].map((amountKobo): Case => {
        const takes = sendingOn('submitWithdrawal', (request) =>
          request.amountKobo === amountKobo ? { amountKobo: 500n } : {},
        );
        return ['withdrawal-nonsense-not-taken', 'breach', takes];
      }),
      ['withdrawal-not-after-honoured', 'breach', { submitWithdrawal: ended(ALREADY_EXISTS) }],
    ];
    await holdCases(
      withdrawalChecks.filter(({ id }) => !elsewhere.includes(id)),
      rightBroker,
      cases,
    );
  });
});
