import { beyond } from '../../../src/broker-check/session.ts';
import { type Report, ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { impatient, type SeededDefect } from './defect.ts';

/** The numbers of reports that no stream has. */
const lost = 3n;

/** Changes the reports of a kind in all streams. */
function changed(kind: ReportKind, change: (report: Report) => void): SeededDefect['defect'] {
  return {
    reports: (message) => {
      for (const report of message.reports) if (report.kind === kind) change(report);
      return message;
    },
  };
}

/** The defects of an adapter's stream of reports. */
export const reportDefects: readonly SeededDefect[] = [
  {
    adapter: 'forgets its oldest reports',
    breaks: 'stream-from-first',
    defect: {
      reports: (message) => ({ ...message, reports: message.reports.filter(({ number }) => number > lost) }),
    },
  },
  {
    adapter: 'ends a stream from a number that it has not reached',
    breaks: 'stream-beyond-last',
    defect: { refusesStream: ({ service, afterNumber }) => service === 'Orders' && afterNumber >= beyond },
  },
  {
    adapter: 'begins a stream with the report that was applied last',
    breaks: 'stream-any-position',
    defect: {
      reports: (message, { afterNumber, opened, at }) => {
        const [first] = message.reports;
        if (at > 0 || opened < 2 || afterNumber === 0n || first === undefined) return message;
        return { ...message, reports: [{ ...first, number: afterNumber }, ...message.reports] };
      },
    },
  },
  {
    adapter: 'serves three streams, and nothing but heartbeats in a fourth',
    breaks: 'stream-several',
    waits: impatient,
    defect: { reports: (message, { others }) => (others < 3 ? message : { ...message, reports: [] }) },
  },
  {
    adapter: 'sends a message of a stream every 6 s',
    breaks: 'stream-alive',
    defect: { holdsStreamMs: { Orders: 6_000 } },
  },
  {
    adapter: 'sends a message of a stream every 3.8 s',
    breaks: 'stream-every-second',
    defect: { holdsStreamMs: { Orders: 3_800 } },
  },
  {
    adapter: 'states a last_number that is not sent yet',
    breaks: 'stream-last-number',
    defect: { reports: (message) => ({ ...message, lastNumber: message.lastNumber + 1n }) },
  },
  {
    adapter: 'leaves a report out of an open stream',
    breaks: 'reports-dense',
    defect: {
      reports: (message, { adapter, opened }) => {
        const [first] = message.reports;
        if (opened !== 1 || adapter.kept.has('left out') || first === undefined) return message;
        adapter.kept.set('left out', true);
        return { ...message, reports: message.reports.slice(1) };
      },
    },
  },
  {
    adapter: 'streams the report of an answer under the id of another order',
    breaks: 'answers-streamed',
    defect: {
      orders: {
        submitOrder: async ({ request, next, adapter }) => {
          // Before it is streamed.
          if (adapter.kept.get('first') === undefined) adapter.kept.set('first', request.clientOrderId);
          return next();
        },
      },
      reports: (message, { adapter }) => {
        for (const report of message.reports) {
          if (report.clientOrderId === adapter.kept.get('first')) report.clientOrderId = 'another';
        }
        return message;
      },
    },
  },
  {
    adapter: 'has ids of the exchange that are too long',
    breaks: 'reports-well-formed',
    defect: changed(ReportKind.TRADE, (report) => {
      report.exchangeOrderId = 'X'.repeat(65);
    }),
  },
  {
    adapter: 'gives a rejection a quantity',
    breaks: 'trades-exact',
    defect: changed(ReportKind.REJECTED, (report) => {
      report.quantity = 10n;
    }),
  },
  {
    adapter: 'lets an order expire that was never accepted',
    breaks: 'order-life',
    defect: changed(ReportKind.REJECTED, (report) => {
      report.kind = ReportKind.EXPIRED;
    }),
  },
  {
    adapter: 'counts each trade twice',
    breaks: 'fills-within-quantity',
    also: ['trades-of-orders'],
    waits: impatient,
    defect: changed(ReportKind.TRADE, (report) => {
      report.quantity *= 2n;
    }),
  },
  {
    adapter: 'rounds prices up',
    breaks: 'fills-within-limit',
    also: ['fills-within-band', 'trades-of-orders'],
    waits: impatient,
    defect: changed(ReportKind.TRADE, (report) => {
      report.priceKobo += 1n;
    }),
  },
  {
    adapter: 'has prices in naira for prices in kobo',
    breaks: 'fills-within-band',
    also: ['trades-of-orders'],
    waits: impatient,
    defect: changed(ReportKind.TRADE, (report) => {
      report.priceKobo /= 100n;
    }),
  },
];
