/** The checks of the look-up of an order, and of orders that fill, with an adapter that keeps each promise but one. */
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { fillChecks } from '../../../src/broker-check/checks/fills.ts';
import { lookUpChecks } from '../../../src/broker-check/checks/look-ups.ts';
import { ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { type RightBroker, rightBroker } from '../../support/right-broker.ts';
import { type Asked, type CheckCase, ended, holdCases, type Script } from '../../support/scripted-adapter.ts';

type Case = CheckCase<RightBroker>;
type Wrong = (right: RightBroker) => Script;
const lost = ended(status.UNAVAILABLE);

/** An adapter that changes an answer to a look-up, or each of them. */
const lookingUp = (change: (answer: Asked, request: Asked) => object, only?: number): Wrong => {
  return ({ answers }) => ({
    lookUpOrder: (request: Asked, nth: number) => {
      const answer = answers.lookUpOrder(request);
      return only === undefined || nth === only ? change(answer, request) : answer;
    },
  });
};

/** An adapter that does not answer these sends, although it takes them. */
const losing = (...which: readonly number[]): Wrong => {
  return ({ answers }) => ({
    submitOrder: (request: Asked, nth: number) => {
      const answer = answers.submitOrder(request);
      return which.includes(nth) ? lost : answer;
    },
  });
};

function follow(session: Asked, right: RightBroker): void {
  Object.assign(session, { openReports: right.orders.open() });
  session.follow(0n);
}

/** An adapter whose stream changes the reports of each message. */
const streaming = (change: (reports: readonly Asked[]) => readonly Asked[]) => (session: Asked, right: RightBroker) => {
  const open = right.orders.open((message) => ({ ...message, reports: change(message.reports) }));
  Object.assign(session, { openReports: open });
  session.follow(0n);
};

const waits = { settleMs: 2_000 };

describe('the look-up of an order, as broker-check sees it', () => {
  it('a look-up has what was answered and what was streamed, and only later reports above a number', async () => {
    const changed = (answer: Asked) => ({
      ...answer,
      reports: answer.reports.map((report: Asked) => ({ ...report, exchangeOrderId: 'another' })),
    });
    const cases: Case[] = [
      ['look-up-unknown', 'kept'],
      ['look-up-unknown', 'breach', { lookUpOrder: ended(status.NOT_FOUND) }],
      ['look-up-unknown', 'breach', { lookUpOrder: { found: true } }],
      ['look-up-unknown', 'breach', { lookUpOrder: { reports: [{ number: 1n }] } }],
      ['look-up-current', 'kept'],
      ['look-up-current', 'kept', { submitOrder: lost }],
      ['look-up-current', 'not run', { lookUpOrder: lost }],
      ...[0, 4].flatMap((nth): Case[] => [
        ['look-up-current', 'breach', lookingUp((answer) => ({ ...answer, found: false }), nth)],
        ['look-up-current', 'breach', lookingUp((answer) => ({ ...answer, reports: [] }), nth)],
        ['look-up-current', 'breach', lookingUp(() => ({ found: true, reports: [{ number: 99n }] }), nth)],
      ]),
      ['look-up-current', 'kept', lookingUp(() => ({}), 5)],
      // A send without an answer excuses nothing of those behind it.
      ['look-up-current', 'breach', (right) => ({ ...losing(0)(right), ...lookingUp(() => ({}), 3)(right) })],
      [
        'look-up-current',
        'kept',
        lookingUp((answer) => ({ ...answer, reports: [{ number: 99n }, ...answer.reports] })),
      ],
      ['look-up-same-report', 'kept'],
      ['look-up-same-report', 'not run', { submitOrder: lost, lookUpOrder: {} }],
      ['look-up-same-report', 'not run', { lookUpOrder: lost }],
      ['look-up-same-report', 'breach', lookingUp(changed)],
      // That it lacks the report is for another check to say.
      ['look-up-same-report', 'kept', lookingUp((answer) => ({ ...answer, reports: [] }))],
      ['look-up-after-number', 'kept'],
      ['look-up-after-number', 'not run', { lookUpOrder: lost }],
      ['look-up-after-number', 'breach', lookingUp(() => ({}))],
      [
        'look-up-after-number',
        'breach',
        lookingUp((_, { afterNumber }) => ({ found: true, reports: [{ number: afterNumber }] })),
      ],
      [
        'look-up-after-number',
        'kept',
        lookingUp((_, { afterNumber }) => ({ found: true, reports: [{ number: afterNumber + 1n }] })),
      ],
      // On the second page, too.
      [
        'look-up-after-number',
        'breach',
        lookingUp((_, { afterNumber }) => ({
          found: true,
          reports: [{ number: afterNumber === 1n ? 2n : 1n }],
          hasMore: afterNumber === 1n,
        })),
      ],
      ['complete-until-stated', 'kept'],
      ['complete-until-stated', 'not offered', { lookUpOrder: {} }],
      ['complete-until-stated', 'not run', { lookUpOrder: lost }],
      ['complete-until-past', 'kept'],
      ['complete-until-past', 'not offered', { lookUpOrder: {} }],
      ['complete-until-past', 'not run', { lookUpOrder: lost }],
      ['complete-until-past', 'breach', lookingUp(() => ({ completeUntil: timestampFromMs(Date.now() + 3_600_000) }))],
    ];
    await holdCases(lookUpChecks, rightBroker, cases, follow);
  });

  it('a report of the stream is the one of the answer', async () => {
    const check = lookUpChecks.filter(({ id }) => id === 'look-up-same-report');
    const other = (report: Asked) => ({ ...report, exchangeOrderId: 'another' });
    const all = (reports: readonly Asked[]) => reports.map(other);
    const [breach, kept]: Case[] = [
      ['look-up-same-report', 'breach', {}, { waits }],
      ['look-up-same-report', 'kept', {}, { waits: { settleMs: 20 } }],
    ];
    await holdCases(check, rightBroker, [breach as Case], streaming(all));
    await holdCases(
      check,
      rightBroker,
      [kept as Case],
      streaming(() => []),
    );
  });
});

describe('an order that fills, as broker-check sees it', () => {
  /** An adapter that trades so many shares of an order, or does not list the trade in its look-up. */
  const trading = (...quantities: readonly bigint[]): Wrong => {
    return ({ orders }) => ({
      submitOrder: ({ clientOrderId, priceKobo }: Asked) => {
        const report = orders.add({ clientOrderId, kind: ReportKind.ACCEPTED });
        for (const quantity of quantities) orders.add({ clientOrderId, kind: ReportKind.TRADE, quantity, priceKobo });
        return { report };
      },
    });
  };

  it('an order that fills does so in whole, and the look-up knows each trade that the stream has', async () => {
    const cases: Case[] = [
      ['fills-whole', 'kept', {}, { waits }],
      ['fills-whole', 'kept', trading(4n, 6n), { waits }],
      ['fills-whole', 'kept', trading(11n), { waits }],
      ['fills-whole', 'breach', trading(9n), { waits: { settleMs: 20 } }],
      ['fills-whole', 'breach', trading(4n, 5n), { waits: { settleMs: 20 } }],
      ['fills-whole', 'not run', trading(), { waits: { settleMs: 20 } }],
      ['fills-whole', 'not run', { submitOrder: lost }],
      ['look-up-current-trades', 'kept', {}, { waits }],
      ['look-up-current-trades', 'not run', trading(), { waits: { settleMs: 20 } }],
      [
        'look-up-current-trades',
        'breach',
        lookingUp((answer) => ({ ...answer, reports: answer.reports.slice(0, 1) })),
        { waits },
      ],
    ];
    await holdCases(fillChecks, rightBroker, cases, follow);
  });
});
