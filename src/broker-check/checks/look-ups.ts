import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Check, expect, NotOffered, NotRun } from '../check.ts';
import { isSameReport } from './rules.ts';

const sends = 5;

/** The broker's record, asked about one order. */
export const lookUpChecks: readonly Check[] = [
  {
    id: 'look-up-unknown',
    class: 'must',
    promise: 'The look-up of an id that never came says found: false, without reports, and is no status',
    run: async (session) => {
      const { answer, exchange } = await session.lookUp(session.newId());
      expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
      expect(!answer.found && answer.reports.length === 0, 'it was found', exchange);
    },
  },
  {
    id: 'look-up-current',
    class: 'must',
    promise: 'The look-up knows what was answered before it was asked',
    needs: ['account', 'rest'],
    run: async (session) => {
      for (let count = 0; count < sends; count += 1) {
        const { id, outcome } = await session.send(await session.newOrder('rest'));
        const report = outcome.answer?.report;
        if (report === undefined) continue;
        const { answer, exchange } = await session.lookUp(id);
        if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
        const has = answer.found && answer.reports.some(({ number }) => number === report.number);
        expect(has, `it does not have report ${report.number} of the answer`, outcome.exchange, exchange);
      }
    },
  },
  {
    id: 'look-up-same-report',
    class: 'must',
    promise: 'A report is the same in the answer, in the look-up and in the stream',
    needs: ['account', 'rest'],
    run: async (session) => {
      const { id, report, outcome } = await session.place('rest');
      const { reports, exchanges } = await session.recorded(id);
      const recorded = reports.find(({ number }) => number === report.number);
      const isSame = recorded === undefined || isSameReport(recorded, report);
      expect(isSame, `report ${report.number} differs from the answer`, outcome.exchange, ...exchanges);
      const streamed = await session.streamedReport(id, ({ number }) => number === report.number);
      const agrees = streamed === undefined || isSameReport(streamed, report);
      expect(agrees, `report ${report.number} differs in the stream`, outcome.exchange, ...exchanges);
    },
  },
  {
    id: 'look-up-after-number',
    class: 'must',
    promise: 'A look-up from a number has only later reports, and the order stays found',
    needs: ['account', 'rest'],
    run: async (session) => {
      const { id, report, outcome } = await session.place('rest');
      const { found, reports, exchanges } = await session.recorded(id, report.number);
      expect(found, 'it is not found', outcome.exchange, ...exchanges);
      const isLater = reports.every(({ number }) => number > report.number);
      expect(isLater, 'it has reports up to that number', outcome.exchange, ...exchanges);
    },
  },
  {
    id: 'complete-until-stated',
    class: 'optional',
    promise: 'The look-up states until when the record is complete',
    run: async (session) => {
      const { answer, exchange } = await session.lookUp(session.newId());
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      if (answer.completeUntil === undefined) throw new NotOffered('complete_until is absent');
    },
  },
  {
    id: 'complete-until-past',
    class: 'must',
    promise: 'complete_until is never later than now',
    run: async (session) => {
      const { answer, exchange, endedAt } = await session.lookUp(session.newId());
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      if (answer.completeUntil === undefined) throw new NotOffered('complete_until is absent');
      const untilMs = timestampMs(answer.completeUntil);
      const isPast = untilMs <= endedAt + session.settings.waits.skewMs;
      expect(isPast, `it is ${untilMs - endedAt} ms ahead: what comes until then would be given up`, exchange);
    },
  },
];
