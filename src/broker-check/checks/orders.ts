import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Metadata, status } from '@grpc/grpc-js';
import { OrderType, ReportKind, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { pause } from '../../lib/worker.ts';
import { type Check, expect, NotOffered, NotRun } from '../check.ts';
import { exchange as makeExchange } from '../exchange.ts';
import { type Placed, type Session, services, shownReport } from '../session.ts';
import { reportProblem } from './rules.ts';

const sendsAtOnce = 10;
const ordersAtOnce = 20;
const abandonedSends = 5;
/** How long an order that its sender gives up at once may still be taken. */
const abandonedMs = 400;
export const past = () => timestampFromMs(Date.now() - 60_000);
const never = new AbortController().signal;

/** Sends: what an answer is, and that an id is taken once. */
export const orderChecks: readonly Check[] = [
  {
    id: 'orders-taken',
    class: 'must',
    promise: 'A good order for the named account and symbol is accepted',
    needs: ['account', 'rest'],
    run: async (session) => {
      const sent = await session.send(await session.newOrder('rest'));
      const again = sent.outcome.answer === undefined ? await session.send(await session.newOrder('rest')) : sent;
      const { answer, exchange } = again.outcome;
      expect(answer !== undefined, `the send ended with ${exchange.status}, twice`, sent.outcome.exchange, exchange);
      expect(answer.report?.kind === ReportKind.ACCEPTED, 'it was not accepted', exchange);
    },
  },
  {
    id: 'answer-is-report',
    class: 'must',
    promise: 'The answer to a send is the whole report that accepts or rejects the order',
    needs: ['account', 'rest'],
    run: async (session) => {
      const { id, outcome } = await session.send(await session.newOrder('rest'));
      const { answer, exchange } = outcome;
      if (answer === undefined) throw new NotRun(`the send ended with ${exchange.status}`);
      const { report } = answer;
      expect(report !== undefined, 'the answer has no report', exchange);
      expect(report.clientOrderId === id, `the report is about ${report.clientOrderId}`, exchange);
      const answers = report.kind === ReportKind.ACCEPTED || report.kind === ReportKind.REJECTED;
      expect(answers, `the report is ${ReportKind[report.kind]}`, exchange);
      const problem = reportProblem(report);
      expect(problem === undefined, `${problem}`, exchange);
    },
  },
  {
    id: 'rejection-is-report',
    class: 'must',
    promise: 'A rejection is a report of kind REJECTED, and no status',
    needs: ['account', 'reject'],
    run: async (session) => {
      const { outcome } = await session.send(await session.newOrder('reject'));
      const { answer, exchange } = outcome;
      expect(answer !== undefined, `the send ended with ${exchange.status}`, exchange);
      expect(answer.report?.kind === ReportKind.REJECTED, 'the report is no rejection', exchange);
    },
  },
  {
    id: 'rejection-has-reason',
    class: 'should',
    promise: 'A rejection has its reason',
    needs: ['account', 'reject'],
    run: async (session) => {
      const { report, outcome } = await session.place('reject');
      if (report.kind !== ReportKind.REJECTED) throw new NotRun('the order was not rejected');
      expect(report.rejectReason !== 0, 'reject_reason is missing', outcome.exchange);
    },
  },
  {
    id: 'once',
    class: 'must',
    promise: 'An id that comes again is ALREADY_EXISTS, and the order is not taken again',
    needs: ['account', 'rest'],
    run: async (session) => notTakenAgain(session, await session.place('rest')),
  },
  {
    id: 'once-other-fields',
    class: 'must',
    promise: 'An id that comes again with other fields is ALREADY_EXISTS, and nothing is taken',
    needs: ['account', 'rest'],
    run: async (session) => {
      const placed = await session.place('rest');
      const { quantity } = session.settings;
      await notTakenAgain(session, placed, { quantity: quantity + 1n, side: Side.BUY, note: Buffer.from('another') });
    },
  },
  {
    id: 'once-late',
    class: 'must',
    promise: 'An id that was taken, and comes again when its time is over, is ALREADY_EXISTS and not refused',
    needs: ['account', 'rest'],
    run: async (session) => notTakenAgain(session, await session.place('rest'), { notAfter: past() }),
  },
  {
    id: 'once-after-rejection',
    class: 'must',
    promise: 'The id of a rejected order is ALREADY_EXISTS, whatever comes with it',
    needs: ['account', 'rest', 'reject'],
    run: async (session) => {
      const placed = await session.place('reject');
      const { symbol, priceKobo } = await session.newOrder('rest');
      await notTakenAgain(session, placed, { symbol, priceKobo });
    },
  },
  {
    id: 'once-at-once',
    class: 'must',
    promise: `Of ${sendsAtOnce} sends of one id at the same time, over connections of their own, one is taken`,
    needs: ['account', 'rest'],
    run: async (session) => {
      const { id, ...order } = await session.newOrder('rest');
      const clients = Array.from({ length: sendsAtOnce }, () => session.anotherOrdersClient());
      const method = services.Orders.method.submitOrder;
      const options = { timeoutMs: session.settings.waits.submitMs, metadata: new Metadata() };
      const outcomes = await Promise.all(
        clients.map((client) => makeExchange(method, client.submitOrder, order, options)),
      );
      for (const client of clients) client.close();
      const taken = outcomes.filter(({ answer }) => answer !== undefined);
      const shown = taken.map(({ exchange }) => exchange);
      expect(taken.length <= 1, `${taken.length} were answered with a report`, ...shown);
      await session.streamedReport(id, () => true);
      const accepted = session.streamed(id).filter(({ kind }) => kind === ReportKind.ACCEPTED);
      const reports = session.follower.shown(accepted.map(shownReport));
      expect(accepted.length <= 1, `${accepted.length} were accepted`, reports);
    },
  },
  {
    id: 'orders-at-once',
    class: 'must',
    promise: `Of ${ordersAtOnce} orders that are sent at the same time, each is answered with a report of its own`,
    needs: ['account', 'rest'],
    run: async (session) => {
      const orders = await Promise.all(Array.from({ length: ordersAtOnce }, () => session.newOrder('rest')));
      const sent = await Promise.all(orders.map((order) => session.send(order)));
      const answered = sent.filter(({ outcome }) => outcome.answer?.report !== undefined);
      if (answered.length === 0) throw new NotRun('none was answered with a report');
      const numbers = new Set<bigint>();
      for (const { id, outcome } of answered) {
        const report = outcome.answer?.report;
        expect(report?.clientOrderId === id, `the report is about ${report?.clientOrderId}`, outcome.exchange);
        expect(!numbers.has(report.number), `report ${report.number} is the answer to two orders`, outcome.exchange);
        numbers.add(report.number);
      }
    },
  },
  {
    id: 'not-after-honoured',
    class: 'must',
    promise: 'If honours_not_after is declared, an order that comes later ends with FAILED_PRECONDITION',
    needs: ['account', 'rest'],
    run: async (session) => {
      await declared(session);
      const { outcome } = await session.send(await session.newOrder('rest', { notAfter: past() }));
      const { exchange } = outcome;
      expect(exchange.status === 'FAILED_PRECONDITION', `it ended with ${exchange.status}`, exchange);
    },
  },
  {
    id: 'late-never-taken',
    class: 'must',
    promise: 'What ended with FAILED_PRECONDITION is not in the record, now and later',
    needs: ['account', 'rest'],
    run: async (session) => {
      const { id, outcome } = await session.send(await session.newOrder('rest', { notAfter: past() }));
      if (outcome.code !== status.FAILED_PRECONDITION)
        throw new NotRun(`the send ended with ${outcome.exchange.status}`);
      const { found, exchanges } = await session.recorded(id);
      expect(!found, 'the record has it', outcome.exchange, ...exchanges);
    },
  },
  {
    id: 'abandoned-settles',
    class: 'must',
    promise:
      'If the sender gives up, the order is taken or not, and the look-up says which for good once not_after is over',
    needs: ['account', 'rest'],
    run: async (session) => {
      await declared(session);
      const notAfterMs = Date.now() + abandonedMs;
      const sent = await Promise.all(
        Array.from({ length: abandonedSends }, async (_, at) => {
          const order = await session.newOrder('rest', { notAfter: timestampFromMs(notAfterMs) });
          return session.send(order, 1 + at);
        }),
      );
      await pause(Math.max(0, notAfterMs + session.settings.waits.skewMs - Date.now()), never);
      const first = await Promise.all(sent.map(({ id }) => session.lookUp(id)));
      await pause(abandonedMs, never);
      for (const [at, { id, outcome }] of sent.entries()) {
        const before = first[at];
        if (before?.answer === undefined) continue;
        const { answer, exchange } = await session.lookUp(id);
        if (answer === undefined) continue;
        const exchanges = [outcome.exchange, before.exchange, exchange];
        expect(before.answer.found === answer.found, 'the look-up changed its mind after not_after', ...exchanges);
        const isStreamed = answer.found || session.streamed(id).length === 0;
        expect(isStreamed, 'the stream has it, and the look-up not', ...exchanges);
      }
    },
  },
  {
    id: 'status-means-not-taken',
    class: 'should',
    promise: 'An order that was taken is answered with its report, unless the line broke',
    needs: ['account', 'rest'],
    run: async (session) => {
      for (let count = 0; count < 5; count += 1) await session.send(await session.newOrder('rest'));
      await session.settled();
      const seen = new Set<string>();
      for (const { id, outcome } of session.sends) {
        const { code, exchange } = outcome;
        // The answer to a repetition says nothing about the first send.
        if (seen.has(id)) continue;
        seen.add(id);
        const proves = [status.OK, status.FAILED_PRECONDITION, status.ALREADY_EXISTS, status.DEADLINE_EXCEEDED];
        if (proves.includes(code)) continue;
        const { found, exchanges } = await session.recorded(id);
        expect(!found, `it ended with ${exchange.status}, and the record has it`, exchange, ...exchanges);
      }
    },
  },
  {
    id: 'nonsense-not-accepted',
    class: 'must',
    promise: 'An order that makes no sense is not accepted',
    needs: ['account', 'rest'],
    run: async (session) => {
      const nonsense = [
        { quantity: 0n },
        { quantity: -5n },
        { side: Side.UNSPECIFIED },
        { type: OrderType.LIMIT, priceKobo: undefined },
        { priceKobo: 0n },
      ];
      for (const fields of nonsense) {
        const { outcome } = await session.send(await session.newOrder('rest', fields));
        const isAccepted = outcome.answer?.report?.kind === ReportKind.ACCEPTED;
        expect(!isAccepted, 'it was accepted', outcome.exchange);
      }
    },
  },
  {
    id: 'failed-precondition-for-late-only',
    class: 'should',
    promise: 'FAILED_PRECONDITION is kept for what was never sent: an order that makes no sense has another status',
    needs: ['account', 'rest'],
    run: async (session) => {
      const { outcome } = await session.send(await session.newOrder('rest', { quantity: 0n }));
      const isOther = outcome.code !== status.FAILED_PRECONDITION;
      expect(isOther, 'it ended with FAILED_PRECONDITION', outcome.exchange);
    },
  },
];

/** Throws `NotOffered` unless the adapter declares that it honours `not_after`. */
export async function declared(session: Session): Promise<void> {
  const honours = await session.once('honours not_after', async () => {
    const { answer } = await session.call('Orders', 'getCapabilities', {});
    return answer?.honoursNotAfter ?? false;
  });
  if (!honours) throw new NotOffered('the adapter declares that it does not honour not_after');
}

/** Sends an id again, and looks for what must not come of it. */
export async function notTakenAgain(session: Session, placed: Placed, fields: object = {}): Promise<void> {
  const { id, outcome } = placed;
  const request = { ...(await session.newOrder('rest')), ...placed.request, notAfter: session.inTime(), ...fields, id };
  const again = await session.send(request);
  const { exchange } = again.outcome;
  const isRefused = again.outcome.code === status.ALREADY_EXISTS;
  expect(isRefused, `the second send ended with ${exchange.status}`, outcome.exchange, exchange);
}
