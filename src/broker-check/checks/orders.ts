import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { Metadata, status } from '@grpc/grpc-js';
import { OrderType, ReportKind, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { answered, checks, expect, NotRun, needed, needing, rejecting, resting } from '../check.ts';
import { exchange as makeExchange } from '../exchange.ts';
import { type CheckSession, type PlacedOrder, type SentOrder, services, shownReport } from '../session.ts';
import { abandoned, late, past, refusedAgain, refusesLate } from './every-kind.ts';
import { reportProblem } from './rules.ts';

const sendsAtOnce = 10;
const ordersAtOnce = 20;

/** Sends: what an answer is, and that an id is taken once. */
export const orderChecks = checks({
  'orders-taken': resting.must('A good order for the named account and symbol is accepted', async (session) => {
    const sent = await session.send(await session.newOrder('rest'));
    const again = sent.outcome.answer === undefined ? await session.send(await session.newOrder('rest')) : sent;
    const { answer, exchange } = again.outcome;
    expect(answer !== undefined, `the send ended with ${exchange.status}, twice`, sent.outcome.exchange, exchange);
    expect(answer.report?.kind === ReportKind.ACCEPTED, 'it was not accepted', exchange);
  }),
  'answer-is-report': resting.must(
    'The answer to a send is the whole report that accepts or rejects the order',
    async (session) => {
      const { id, outcome } = await session.send(await session.newOrder('rest'));
      const { answer, exchange } = needed(outcome, 'the send');
      const { report } = answer;
      expect(report !== undefined, 'the answer has no report', exchange);
      expect(report.clientOrderId === id, `the report is about ${report.clientOrderId}`, exchange);
      const answers = report.kind === ReportKind.ACCEPTED || report.kind === ReportKind.REJECTED;
      expect(answers, `the report is ${ReportKind[report.kind]}`, exchange);
      const problem = reportProblem(report);
      expect(problem === undefined, `${problem}`, exchange);
    },
  ),
  'rejection-is-report': rejecting.must('A rejection is a report of kind REJECTED, and no status', async (session) => {
    const { outcome } = await session.send(await session.newOrder('reject'));
    const { answer, exchange } = answered(outcome, 'the send');
    expect(answer.report?.kind === ReportKind.REJECTED, 'the report is no rejection', exchange);
  }),
  'rejection-has-reason': rejecting.should('A rejection has its reason', async (session) => {
    const { report, outcome } = await session.place('reject');
    if (report.kind !== ReportKind.REJECTED) throw new NotRun('the order was not rejected');
    expect(report.rejectReason !== 0, 'reject_reason is missing', outcome.exchange);
  }),
  once: resting.must('An id that comes again is ALREADY_EXISTS, and the order is not taken again', async (session) =>
    notTakenAgain(session, await session.place('rest')),
  ),
  'once-other-fields': resting.must(
    'An id that comes again with other fields is ALREADY_EXISTS, and nothing is taken',
    async (session) => {
      const placed = await session.place('rest');
      const { quantity } = session.settings;
      await notTakenAgain(session, placed, { quantity: quantity + 1n, side: Side.BUY, note: Buffer.from('another') });
    },
  ),
  'once-late': resting.must(
    'An id that was taken, and comes again when its time is over, is ALREADY_EXISTS and not refused',
    async (session) => notTakenAgain(session, await session.place('rest'), { notAfter: past() }),
  ),
  'once-after-rejection': needing('account', 'rest', 'reject').must(
    'The id of a rejected order is ALREADY_EXISTS, whatever comes with it',
    async (session) => {
      const placed = await session.place('reject');
      const { symbol, priceKobo } = await session.newOrder('rest');
      await notTakenAgain(session, placed, { symbol, priceKobo });
    },
  ),
  'once-at-once': resting.must(
    `Of ${sendsAtOnce} sends of one id at the same time, over connections of their own, one is taken`,
    async (session) => {
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
  ),
  'orders-at-once': resting.must(
    `Of ${ordersAtOnce} orders that are sent at the same time, each is answered with a report of its own`,
    async (session) => {
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
  ),
  'not-after-honoured': resting.must(
    'If honours_not_after is declared, an order that comes later ends with FAILED_PRECONDITION',
    (session) => refusesLate(session, async () => session.send(await session.newOrder('rest', { notAfter: past() }))),
  ),
  'late-never-taken': resting.must(
    'What ended with FAILED_PRECONDITION is not in the record, now and later',
    async (session) => {
      const { id, outcome } = late(await session.send(await session.newOrder('rest', { notAfter: past() })));
      const { found, exchanges } = await session.recorded(id);
      expect(!found, 'the record has it', outcome.exchange, ...exchanges);
    },
  ),
  'once-after-refusal': resting.must(
    'An id that ended with FAILED_PRECONDITION, and comes again in time, is ALREADY_EXISTS and never taken',
    async (session) => {
      const refused = late(await session.send(await session.newOrder('rest', { notAfter: past() })));
      await refusedForGood(session, refused);
    },
  ),
  'abandoned-settles': resting.must(
    'If the sender gives up, the order is taken or not, and the look-up says which for good once not_after is over',
    async (session) => {
      const send = async (notAfter: Timestamp, timeoutMs: number) => {
        return session.send(await session.newOrder('rest', { notAfter }), timeoutMs);
      };
      const settled = await abandoned(
        session,
        send,
        (id) => session.lookUp(id),
        ({ found }) => found,
      );
      for (const { id, found, exchanges } of settled) {
        const isStreamed = found || session.streamed(id).length === 0;
        expect(isStreamed, 'the stream has it, and the look-up not', ...exchanges);
      }
    },
  ),
  'status-means-not-taken': resting.should(
    'An order that was taken is answered with its report, unless the line broke',
    async (session) => {
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
  ),
  'nonsense-not-accepted': resting.must('An order that makes no sense is not accepted', async (session) => {
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
  }),
  'failed-precondition-for-late-only': resting.should(
    'FAILED_PRECONDITION is kept for what was never sent: an order that makes no sense has another status',
    async (session) => {
      const { outcome } = await session.send(await session.newOrder('rest', { quantity: 0n }));
      const isOther = outcome.code !== status.FAILED_PRECONDITION;
      expect(isOther, 'it ended with FAILED_PRECONDITION', outcome.exchange);
    },
  ),
});

/** Sends a refused id again with a fresh `not_after`. Throws if it is taken. */
export async function refusedForGood(session: CheckSession, { id, request, outcome }: SentOrder): Promise<void> {
  const again = await session.send({ ...request, id, notAfter: session.inTime() });
  refusedAgain({ id, outcome }, again.outcome);
  const { found, exchanges } = await session.recorded(id);
  expect(!found, 'the record has it', outcome.exchange, again.outcome.exchange, ...exchanges);
}

/** Sends an id again, and looks for what must not come of it. */
export async function notTakenAgain(session: CheckSession, placed: PlacedOrder, fields: object = {}): Promise<void> {
  const { id } = placed;
  const request = { ...(await session.newOrder('rest')), ...placed.request, notAfter: session.inTime(), ...fields, id };
  const again = await session.send(request);
  refusedAgain(placed, again.outcome);
}
