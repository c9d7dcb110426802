/** The checks of applications for accounts, with an adapter that keeps each promise but one. */
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { applicationChecks } from '../../../src/broker-check/checks/applications.ts';
import { type ApplicationReport, ApplicationReportKind } from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { type RightBroker, rightBroker } from '../../support/right-broker.ts';
import { type Asked, type CheckCase, ended, holdCases, type Script } from '../../support/scripted-adapter.ts';

const { ALREADY_EXISTS, FAILED_PRECONDITION, INVALID_ARGUMENT, UNAVAILABLE } = status;
const { ACCEPTED, OPENED, REJECTED } = ApplicationReportKind;
const lost = ended(UNAVAILABLE);

type Case = CheckCase<RightBroker>;
type Wrong = (right: RightBroker) => Script;

/** An adapter that changes the report of each answer to a send, or of the one that is named. */
const answering = (change: (report: ApplicationReport) => object, only?: number): Wrong => {
  return ({ answers }) => ({
    submitApplication: (request: Asked, nth: number) => {
      const answer = answers.submitApplication(request) as { report?: ApplicationReport };
      const isChanged = answer.report !== undefined && (only === undefined || nth === only);
      return isChanged ? { report: { ...answer.report, ...change(answer.report as ApplicationReport) } } : answer;
    },
  });
};

/** An adapter that changes the answer to each look-up, or to the one that is named. */
const lookingUp = (change: (answer: Asked, request: Asked) => object, only?: number): Wrong => {
  return ({ answers }) => ({
    lookUpApplication: (request: Asked, nth: number) => {
      const answer = answers.lookUpApplication(request);
      return only === undefined || nth === only ? change(answer, request) : answer;
    },
  });
};

/** An adapter that ends a send with this when it would not be accepted. */
const refusing = (code: status): Wrong => {
  return ({ answers }) => ({
    submitApplication: (request: Asked) => {
      const answer = answers.submitApplication(request) as { report?: ApplicationReport };
      return answer.report?.kind === ACCEPTED ? answer : ended(code);
    },
  });
};

/** An adapter that gives each send with other fields to the broker. */
const sendingOn = (change: (request: Asked) => object): Wrong => {
  return ({ answers }) => ({
    submitApplication: (request: Asked) => answers.submitApplication({ ...request, ...change(request) }),
  });
};

/** An adapter that accepts the sends with these numbers, whatever they say, if it has any of them. */
const accepting = (...which: readonly number[]): Wrong => {
  return ({ answers }) => ({
    submitApplication: (request: Asked, nth: number) => {
      const isWrong = which.includes(nth);
      return answers.submitApplication(
        isWrong
          ? { ...request, clientApplicationId: `other${nth}`, fields: { firstName: 'A', state: 'LAGOS' } }
          : request,
      );
    },
  });
};

describe('applications, as broker-check sees them', () => {
  it('applications are taken once, are found as they were answered, and are refused when they come late', async () => {
    const unseen = lookingUp(() => ({ found: false }));
    const cases: Case[] = [
      ['applications-offered', 'kept'],
      ['application-accepted', 'kept'],
      ['application-accepted', 'breach', { submitApplication: lost }],
      ['application-accepted', 'breach', { submitApplication: {} }],
      ['application-accepted', 'breach', answering(() => ({ kind: REJECTED }))],
      ['application-accepted', 'breach', answering(() => ({ kind: OPENED }))],

      ['application-answer-is-report', 'kept'],
      ['application-answer-is-report', 'kept', answering(() => ({ kind: REJECTED }))],
      ['application-answer-is-report', 'not run', { submitApplication: lost }],
      ['application-answer-is-report', 'breach', { submitApplication: {} }],
      ['application-answer-is-report', 'breach', answering(() => ({ clientApplicationId: 'another' }))],
      ['application-answer-is-report', 'breach', answering(() => ({ kind: OPENED, account: 'A1' }))],
      ['application-answer-is-report', 'breach', answering(() => ({ number: 0n }))],
      ['application-answer-is-report', 'breach', answering(() => ({ reference: '' }))],
      ['application-answer-is-report', 'breach', answering(() => ({ at: undefined }))],

      ['application-invalid-not-accepted', 'kept'],
      ['application-invalid-not-accepted', 'kept', { submitApplication: ended(INVALID_ARGUMENT) }],
      ['application-invalid-not-accepted', 'breach', accepting(0)],
      // It looks whether there is a state, and not whether there is such a state.
      [
        'application-invalid-not-accepted',
        'breach',
        sendingOn(({ fields }) => ({ fields: { ...fields, ...(fields.state !== '' && { state: 'LAGOS' }) } })),
      ],
      ['application-invalid-not-accepted', 'breach', accepting(1)],

      ['application-rejection-is-report', 'kept'],
      ['application-rejection-is-report', 'not run', accepting(0)],
      ['application-rejection-is-report', 'not run', accepting(1)],
      ['application-rejection-is-report', 'breach', refusing(INVALID_ARGUMENT)],
      ...[0, 1].flatMap((nth): Case[] => [
        ['application-rejection-is-report', 'breach', answering(() => ({ rejectReason: 2 }), nth)],
        ['application-rejection-is-report', 'breach', answering(() => ({ param: 'firstName' }), nth)],
        ['application-rejection-is-report', 'breach', answering(() => ({ param: '' }), nth)],
        ['application-rejection-is-report', 'kept', answering(() => ({ param: 'mothers_maiden_name' }), nth)],
      ]),

      ...['application-once', 'application-once-other-fields'].flatMap((id): Case[] => [
        [id, 'kept'],
        [id, 'not run', { submitApplication: lost }],
        [id, 'not run', answering(() => ({ kind: REJECTED }))],
        [id, 'breach', accepting(1)],
        [id, 'breach', refusing(FAILED_PRECONDITION)],
        [id, 'breach', refusing(UNAVAILABLE)],
      ]),
      [
        'application-once-other-fields',
        'breach',
        // It takes the same id with other fields for a new application.
        sendingOn(({ clientApplicationId: id, fields }) => ({ clientApplicationId: `${id}${fields.firstName}` })),
      ],
      ['application-once-at-once', 'kept'],
      ['application-once-at-once', 'kept', { submitApplication: lost }],
      ['application-once-at-once', 'breach', accepting(1)],
      ['application-once-at-once', 'breach', accepting(9)],

      ['application-look-up-unknown', 'kept'],
      ['application-look-up-unknown', 'breach', { lookUpApplication: ended(status.NOT_FOUND) }],
      ['application-look-up-unknown', 'breach', { lookUpApplication: { found: true } }],
      ['application-look-up-unknown', 'breach', { lookUpApplication: { reports: [{ number: 1n }] } }],

      ['application-look-up-current', 'kept'],
      ['application-look-up-current', 'not run', { submitApplication: lost }],
      ['application-look-up-current', 'not run', { lookUpApplication: lost }],
      ['application-look-up-current', 'not run', lookingUp(() => lost, 1)],
      ['application-look-up-current', 'breach', unseen],
      ['application-look-up-current', 'breach', lookingUp((answer) => ({ ...answer, found: false }), 0)],
      ['application-look-up-current', 'breach', lookingUp((answer) => ({ ...answer, reports: [] }), 0)],
      [
        'application-look-up-current',
        'breach',
        lookingUp((answer) => ({ ...answer, reports: [{ ...answer.reports[0], reference: 'B9' }] }), 0),
      ],
      [
        'application-look-up-current',
        'kept',
        lookingUp((answer) => ({ ...answer, reports: [{ number: 9n }, ...answer.reports] }), 0),
      ],
      ['application-look-up-current', 'breach', lookingUp((answer) => ({ ...answer, found: false }), 1)],
      [
        'application-look-up-current',
        'breach',
        lookingUp((answer, { afterNumber }) => ({ ...answer, reports: [{ number: afterNumber }] }), 1),
      ],
      [
        'application-look-up-current',
        'kept',
        lookingUp((answer, { afterNumber }) => ({ ...answer, reports: [{ number: afterNumber + 1n }] }), 1),
      ],

      ['application-not-after-honoured', 'kept'],
      ['application-not-after-honoured', 'not offered', { getCapabilities: {} }],
      ['application-not-after-honoured', 'not offered', { getCapabilities: lost }],
      [
        'application-not-after-honoured',
        'breach',
        sendingOn(() => ({ notAfter: timestampFromMs(Date.now() + 5_000) })),
      ],
      ['application-not-after-honoured', 'breach', { submitApplication: ended(ALREADY_EXISTS) }],

      ['application-late-never-taken', 'kept'],
      ['application-late-never-taken', 'not run', { submitApplication: lost }],
      ['application-late-never-taken', 'not run', { lookUpApplication: lost }],
      ['application-late-never-taken', 'breach', lookingUp((answer) => ({ ...answer, found: true }))],

      ['application-listed', 'kept'],
      ['application-listed', 'not run', { submitApplication: lost }],
      ['application-listed', 'breach', { listSubmissions: {} }],
      ['application-listed', 'breach', sendingOn(() => ({ note: Buffer.alloc(0) }))],

      ['application-complete-until-past', 'kept'],
      ['application-complete-until-past', 'not run', { lookUpApplication: lost }],
      ['application-complete-until-past', 'not offered', { lookUpApplication: {} }],
      [
        'application-complete-until-past',
        'breach',
        lookingUp(() => ({ completeUntil: timestampFromMs(Date.now() + 3_600_000) })),
      ],
    ];
    await holdCases(applicationChecks, rightBroker, cases);
  });
});
