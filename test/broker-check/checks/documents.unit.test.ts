/** The checks of the documents of applications, with an adapter that keeps each promise but one. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import sharp from 'sharp';
import { documentChecks } from '../../../src/broker-check/checks/documents.ts';
import {
  ApplicationReportKind,
  DocumentOutcome,
  DocumentPresence,
  DocumentType,
} from '../../../src/gen/marina/broker/v1/applications_pb.ts';
import { type RightBroker, rightBroker } from '../../support/right-broker.ts';
import { type Asked, type CheckCase, ended, holdCases, type Script } from '../../support/scripted-adapter.ts';

const { INVALID_ARGUMENT, UNAVAILABLE, UNIMPLEMENTED } = status;
const { DELIVERED, REFUSED } = DocumentOutcome;
const { PHOTO, SIGNATURE } = DocumentType;
const [lost, missing] = [ended(UNAVAILABLE), ended(UNIMPLEMENTED)];

type Case = CheckCase<RightBroker>;
type Wrong = (right: RightBroker) => Script;

/** An adapter that answers the send with this number otherwise. */
const sendIs = (at: number, answer: object): Wrong => {
  return ({ answers }) => ({
    sendDocument: (request: Asked, nth: number) => (nth === at ? answer : answers.sendDocument(request)),
  });
};

/** An adapter that answers the look-up of a type otherwise. */
const lookUpIs = (type: DocumentType, answer: object): Wrong => {
  return ({ answers }) => ({
    lookUpDocument: (request: Asked) => (request.type === type ? answer : answers.lookUpDocument(request)),
  });
};

const rejecting: Wrong = ({ answers }) => ({
  submitApplication: (request: Asked) => answers.submitApplication({ ...request, fields: { firstName: '' } }),
});

/** Follows the reports about applications, from the first on. */
function follow(session: Asked, right: RightBroker): void {
  Object.assign(session, { openApplicationReports: right.applications.open() });
  session.followApplications(0n);
}

describe('the documents of an application, as broker-check sees them', () => {
  it('documents are delivered once, are kept as they came, and are missing otherwise', async () => {
    const cases: Case[] = [
      ['document-delivered', 'kept'],
      ['document-delivered', 'breach', { sendDocument: lost }],
      ['document-delivered', 'breach', { sendDocument: { outcome: REFUSED } }],
      ['document-delivered', 'breach', { sendDocument: {} }],

      ['document-again', 'kept'],
      ['document-again', 'not run', { sendDocument: lost }],
      ['document-again', 'not run', { sendDocument: { outcome: REFUSED } }],
      ['document-again', 'breach', sendIs(1, { outcome: REFUSED })],
      ['document-again', 'breach', sendIs(1, ended(status.ALREADY_EXISTS))],

      ['document-other-refused', 'kept'],
      ['document-other-refused', 'kept', sendIs(1, ended(INVALID_ARGUMENT))],
      ['document-other-refused', 'not run', { sendDocument: { outcome: REFUSED } }],
      ['document-other-refused', 'breach', { sendDocument: { outcome: DELIVERED } }],
      ['document-other-refused', 'breach', sendIs(1, {})],

      ['document-look-up-offered', 'kept'],
      ['document-look-up-offered', 'kept', { lookUpDocument: lost }],
      ['document-look-up-offered', 'not offered', { lookUpDocument: missing }],

      ['document-look-up-current', 'kept'],
      ['document-look-up-current', 'not run', { sendDocument: lost }],
      ['document-look-up-current', 'not offered', { lookUpDocument: missing }],
      ['document-look-up-current', 'not run', lookUpIs(PHOTO, lost)],
      ['document-look-up-current', 'not run', lookUpIs(SIGNATURE, lost)],
      ['document-look-up-current', 'breach', lookUpIs(PHOTO, { presence: DocumentPresence.MISSING })],
      ['document-look-up-current', 'breach', lookUpIs(PHOTO, {})],
      ['document-look-up-current', 'breach', lookUpIs(SIGNATURE, { presence: DocumentPresence.DELIVERED })],
      ['document-look-up-current', 'breach', lookUpIs(SIGNATURE, {})],

      ['document-look-up-unknown', 'kept'],
      ['document-look-up-unknown', 'not offered', { lookUpDocument: missing }],
      ['document-look-up-unknown', 'breach', { lookUpDocument: { presence: DocumentPresence.MISSING } }],
      ['document-look-up-unknown', 'breach', { lookUpDocument: lost }],

      ['document-not-after-honoured', 'kept'],
      ['document-not-after-honoured', 'kept', { lookUpDocument: missing }],
      ['document-not-after-honoured', 'kept', { sendDocument: { outcome: REFUSED } }],
      ['document-not-after-honoured', 'not offered', { getCapabilities: {} }],
      ['document-not-after-honoured', 'breach', { sendDocument: { outcome: DELIVERED } }],
      ['document-not-after-honoured', 'breach', lookUpIs(PHOTO, { presence: DocumentPresence.DELIVERED })],
      ['document-not-after-honoured', 'kept', lookUpIs(SIGNATURE, { presence: DocumentPresence.DELIVERED })],

      ['document-unknown-not-delivered', 'kept'],
      ['document-unknown-not-delivered', 'kept', { sendDocument: { outcome: REFUSED } }],
      ['document-unknown-not-delivered', 'breach', { sendDocument: { outcome: DELIVERED } }],

      ['application-opens', 'kept'],
      ...[0, 1, 2, 3].flatMap((at): Case[] => [
        ['application-opens', 'not run', sendIs(at, lost)],
        ['application-opens', 'not run', sendIs(at, { outcome: REFUSED })],
      ]),
      // Nothing is decided, because the last document is not really taken.
      ['application-opens', 'not offered', sendIs(3, { outcome: DELIVERED })],
      [
        'application-opens',
        'not offered',
        (right) => {
          // The decision is about another application.
          const { ACCEPTED, OPENED } = ApplicationReportKind;
          right.applications.add({ clientApplicationId: 'other', kind: ACCEPTED, reference: 'B0' });
          right.applications.add({ clientApplicationId: 'other', kind: OPENED, reference: 'B0', account: 'A1' });
          return sendIs(3, { outcome: DELIVERED })(right);
        },
      ],
      ...['document-delivered', 'document-again', 'document-not-after-honoured', 'application-opens'].map(
        (id): Case => [id, 'not run', rejecting],
      ),
    ];
    await holdCases(documentChecks, rightBroker, cases, follow);
  });

  it('each document that broker-check sends is an image that a gateway takes, of the type that it names', async () => {
    const sent: Asked[] = [];
    const keeping: Wrong = ({ answers }) => ({
      sendDocument: (request: Asked) => {
        sent.push(request);
        return answers.sendDocument(request);
      },
    });
    const opens = documentChecks.filter(({ id }) => id === 'application-opens');
    await holdCases(opens, rightBroker, [['application-opens', 'kept', keeping]], follow);
    assert.deepEqual(
      sent.map(({ type, contentType }) => [type, contentType]),
      [PHOTO, DocumentType.GOVERNMENT_ID, DocumentType.UTILITY_BILL, SIGNATURE].map((type) => [type, 'image/png']),
    );
    assert.equal(new Set(sent.map(({ content }) => Buffer.from(content).toString('hex'))).size, 4, 'they differ');
    for (const { content } of sent) {
      const { format, width, height } = await sharp(content).metadata();
      assert.deepEqual([format, width, height], ['png', 400, 400]);
      const { data } = await sharp(content).raw().toBuffer({ resolveWithObject: true });
      assert.equal(new Set(data).size, 1, 'it has one shade');
    }
  });
});
