import { crc32, deflateSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import {
  ApplicationReportKind,
  DocumentOutcome,
  DocumentPresence,
  DocumentType,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import { answered, applying, checks, expect, NotOffered, NotRun, needing } from '../check.ts';
import { type CheckSession, isMissing } from '../session.ts';
import { declared, past } from './every-kind.ts';
import { accepted } from './sent-applications.ts';

const { PHOTO, GOVERNMENT_ID, UTILITY_BILL, SIGNATURE } = DocumentType;

/** The documents of an application. */
export const documentChecks = checks({
  'document-delivered': applying.must(
    'A good document of an application that was accepted is delivered',
    async (session) => {
      const { id } = await accepted(session);
      const { answer, exchange } = answered(await send(session, id, PHOTO, image(1)));
      expect(answer.outcome === DocumentOutcome.DELIVERED, `it is ${DocumentOutcome[answer.outcome]}`, exchange);
    },
  ),
  'document-again': applying.must(
    'A file that the broker has is delivered again, because the gateway may send it twice',
    async (session) => {
      const id = await delivered(session);
      const { answer, exchange } = answered(await send(session, id, PHOTO, image(1)));
      expect(answer.outcome === DocumentOutcome.DELIVERED, `it is ${DocumentOutcome[answer.outcome]}`, exchange);
    },
  ),
  'document-other-refused': applying.must('Another file of a type that the broker has is refused', async (session) => {
    const id = await delivered(session);
    const { answer, exchange } = await send(session, id, PHOTO, image(2));
    const isRefused = answer === undefined || answer.outcome === DocumentOutcome.REFUSED;
    expect(isRefused, 'it was delivered', exchange);
  }),
  'document-look-up-offered': needing('Applications').optional(
    'The adapter says whether it has a document: without that, an unconfirmed one can only be sent again',
    async (session) => {
      if (isMissing(await presence(session, session.newId(), PHOTO))) throw new NotOffered('it is UNIMPLEMENTED');
    },
  ),
  'document-look-up-current': applying.must(
    'The look-up of a document says DELIVERED once it was answered so, and MISSING of other types',
    async (session) => {
      const id = await delivered(session);
      const [here, other] = [await presence(session, id, PHOTO), await presence(session, id, SIGNATURE)];
      if (isMissing(here)) throw new NotOffered('LookUpDocument is UNIMPLEMENTED');
      if (here.answer === undefined || other.answer === undefined) throw new NotRun('the look-up has no answer');
      const isHere = here.answer.presence === DocumentPresence.DELIVERED;
      expect(isHere, `it is ${DocumentPresence[here.answer.presence]}`, here.exchange);
      const isLacking = other.answer.presence === DocumentPresence.MISSING;
      expect(isLacking, `another type is ${DocumentPresence[other.answer.presence]}`, other.exchange);
    },
  ),
  'document-look-up-unknown': needing('Applications').should(
    'The look-up of a document of an application that never came ends with NOT_FOUND',
    async (session) => {
      const outcome = await presence(session, session.newId(), PHOTO);
      if (isMissing(outcome)) throw new NotOffered('LookUpDocument is UNIMPLEMENTED');
      const { code, exchange } = outcome;
      expect(code === status.NOT_FOUND, `it ended with ${exchange.status}`, exchange);
    },
  ),
  'document-not-after-honoured': applying.must(
    'If honours_not_after is declared, a document that comes later is not taken, and stays missing',
    async (session) => {
      await declared(session);
      const { id } = await accepted(session);
      const { answer, exchange } = await send(session, id, PHOTO, image(1), past());
      expect(answer?.outcome !== DocumentOutcome.DELIVERED, 'it was delivered', exchange);
      const after = await presence(session, id, PHOTO);
      const isKept = after.answer?.presence === DocumentPresence.DELIVERED;
      expect(!isKept, 'the look-up has it', exchange, after.exchange);
    },
  ),
  'document-unknown-not-delivered': applying.must(
    'A document of an application that never came is not delivered',
    async (session) => {
      const { answer, exchange } = await send(session, session.newId(), PHOTO, image(1));
      expect(answer?.outcome !== DocumentOutcome.DELIVERED, 'it was delivered', exchange);
    },
  ),
  'application-opens': applying.optional(
    'With its four documents, an application of the named fields is decided within the time for a report',
    async (session) => {
      const { id } = await accepted(session);
      for (const [at, type] of [PHOTO, GOVERNMENT_ID, UTILITY_BILL, SIGNATURE].entries()) {
        const { answer, exchange } = await send(session, id, type, image(at + 1));
        if (answer?.outcome !== DocumentOutcome.DELIVERED) throw new NotRun(`a document ended with ${exchange.status}`);
      }
      const follower = session.applicationFollower;
      const isDecided = await follower.until(
        () =>
          follower.reports.some(
            (report) => report.clientApplicationId === id && report.kind !== ApplicationReportKind.ACCEPTED,
          ),
        session.settings.waits.settleMs,
      );
      if (!isDecided) throw new NotOffered('no decision came: people may make it');
    },
  ),
});

/** The application of which the first photo was delivered. All checks look at the same. */
function delivered(session: CheckSession): Promise<string> {
  return session.once('a delivered document', async () => {
    const { id } = await accepted(session);
    const { answer, exchange } = await send(session, id, PHOTO, image(1));
    const isDelivered = answer?.outcome === DocumentOutcome.DELIVERED;
    if (!isDelivered) throw new NotRun(`no document was delivered: ${exchange.status}`);
    return id;
  });
}

function send(
  session: CheckSession,
  clientApplicationId: string,
  type: DocumentType,
  content: Buffer,
  notAfter = session.inTime(),
) {
  const request = { clientApplicationId, type, contentType: 'image/png', content, notAfter };
  return session.call('Applications', 'sendDocument', request);
}

function presence(session: CheckSession, clientApplicationId: string, type: DocumentType) {
  return session.call('Applications', 'lookUpDocument', { clientApplicationId, type });
}

const side = 400;

/** A grey PNG of 400 by 400 pixels, another for each shade. */
function image(shade: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.writeUInt8(8, 8); // Bits of a pixel, all of them grey.
  const row = Buffer.concat([Buffer.alloc(1), Buffer.alloc(side, shade * 40)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: side }, () => row)));
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length, 0);
  ends.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
}
