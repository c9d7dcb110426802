/** The checks of everything that came in a run, with runs that the test makes up. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Breach, type Check, NotRun } from '../../src/broker-check/check.ts';
import { applicationRunChecks } from '../../src/broker-check/checks/application-stream.ts';
import { wholeRunChecks } from '../../src/broker-check/checks/whole-run.ts';
import { withdrawalRunChecks } from '../../src/broker-check/checks/withdrawal-stream.ts';
import type { CheckSession } from '../../src/broker-check/session.ts';
import { ApplicationReportKind, ApplicationReportSchema } from '../../src/gen/marina/broker/v1/applications_pb.ts';
import { type Report, ReportKind, ReportSchema, Side } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  WithdrawalDestination,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';

const exchange = { call: 'a call', request: {}, status: 'OK', tookMs: 1 };
const at = timestampFromMs(5);

interface Numbered {
  readonly number: bigint;
}

/** A stream that brought these, after `from`. */
function follower(reports: readonly Numbered[], { from = 0n, gaps = [] as string[] } = {}) {
  const last = reports.reduce((most, { number }) => (number > most ? number : most), from);
  const byNumber = new Map(reports.map((report) => [report.number, report]));
  const arrivals = [[{ at: 0, count: 1, lastNumber: last, brokerTimeMs: 5 as number | undefined }]];
  const until = async (holds: () => boolean) => holds();
  return { reports, byNumber, gaps, from, last, ended: undefined, arrivals, shown: () => exchange, until };
}

/** The verdict of a check about a run. */
async function found(all: readonly Check[], id: string, session: object): Promise<string> {
  const check = all.find((each) => each.id === id) ?? assert.fail(`there is no check ${id}`);
  const usual = { settings: { waits: { settleMs: 1, slowMs: 2_000 } }, settled: async () => {} };
  try {
    await check.run({ ...usual, ...session } as unknown as CheckSession);
    return 'kept';
  } catch (error) {
    if (error instanceof Breach) return 'breach';
    if (error instanceof NotRun) return 'not run';
    throw error;
  }
}

describe('the orders of a whole run', () => {
  const report = (number: bigint, kind: ReportKind, more: object = {}): Report =>
    create(ReportSchema, { number, clientOrderId: 'o1', kind, at, ...more });
  const trade = (number: bigint, quantity: bigint, priceKobo: bigint, more: object = {}) =>
    report(number, ReportKind.TRADE, { quantity, priceKobo, ...more });
  const accepted = report(1n, ReportKind.ACCEPTED);
  const whole = [accepted, trade(2n, 60n, 500n), trade(3n, 40n, 400n)];

  interface Run {
    readonly streamed?: readonly Report[];
    readonly recorded?: readonly Report[];
    readonly answer?: Report | undefined;
    readonly request?: object;
    readonly follows?: { readonly from?: bigint; readonly gaps?: string[] };
    readonly more?: object;
  }

  const verdict = (id: string, run: Run = {}) => {
    const { streamed = whole, recorded = streamed, answer = accepted, request = {}, follows = {}, more = {} } = run;
    const sent = {
      id: 'o1',
      request: { quantity: 100n, side: Side.BUY, priceKobo: 500n, symbol: 'AAA', ...request },
      outcome: { answer: { report: answer }, exchange },
    };
    return found(wholeRunChecks, id, {
      follower: follower(streamed, follows),
      ...{ sends: [sent], calls: [], once: async () => sent },
      recorded: async () => ({ reports: recorded, found: true, exchanges: [exchange] }),
      instrument: async () => ({ lowerPriceKobo: 400n, upperPriceKobo: 500n }),
      ...more,
    });
  };

  const cases: [check: string, expected: string, why: string, run?: Run][] = [
    ['reports-dense', 'kept', 'no gap'],
    ['reports-dense', 'breach', 'a gap', { follows: { gaps: ['after report 1 came report 3'] } }],
    ['answers-streamed', 'kept', 'its number is in the stream'],
    ['answers-streamed', 'breach', 'it is not', { streamed: whole.slice(1) }],
    [
      'answers-streamed',
      'breach',
      'under it is that of another order',
      {
        streamed: [report(1n, ReportKind.ACCEPTED, { clientOrderId: 'o2' })],
      },
    ],
    ['answers-streamed', 'kept', 'it came before the run', { streamed: [], follows: { from: 1n } }],
    ['answers-streamed', 'breach', 'it is the first of the run', { streamed: [] }],
    ['answers-streamed', 'kept', 'the gap is said already', { streamed: [], follows: { gaps: ['a gap'] } }],
    [
      'answers-streamed',
      'breach',
      'under it is another order, gap or not',
      { streamed: [report(1n, ReportKind.ACCEPTED, { clientOrderId: 'o2' })], follows: { gaps: ['a gap'] } },
    ],
    ['reports-well-formed', 'kept', 'whole reports'],
    [
      'reports-well-formed',
      'breach',
      'the last one has no kind',
      {
        streamed: [...whole, report(4n, ReportKind.UNSPECIFIED)],
      },
    ],
    ['reports-well-formed', 'breach', 'a trade has no time', { streamed: [trade(2n, 1n, 1n, { at: undefined })] }],
    [
      'reports-well-formed',
      'kept',
      'an acceptance has no time',
      {
        streamed: [report(1n, ReportKind.ACCEPTED, { at: undefined })],
      },
    ],
    [
      'reports-well-formed',
      'breach',
      'the id of the exchange is too long',
      {
        streamed: [report(1n, ReportKind.ACCEPTED, { exchangeOrderId: 'x'.repeat(65) })],
      },
    ],
    [
      'reports-well-formed',
      'kept',
      'it is just short enough',
      {
        streamed: [report(1n, ReportKind.ACCEPTED, { exchangeOrderId: 'x'.repeat(64) })],
      },
    ],
    ['reports-well-formed', 'not run', 'nothing came', { streamed: [] }],
    ['trades-exact', 'kept', 'whole shares and kobo'],
    ['trades-exact', 'breach', 'no share', { streamed: [trade(2n, 0n, 500n)] }],
    ['trades-exact', 'breach', 'no price', { streamed: [trade(2n, 1n, 0n)] }],
    ['trades-exact', 'kept', 'the highest price', { streamed: [trade(2n, 1n, 10_000_000_000n)] }],
    ['trades-exact', 'breach', 'a higher one', { streamed: [trade(2n, 1n, 10_000_000_001n)] }],
    [
      'trades-exact',
      'breach',
      'an acceptance has shares',
      { streamed: [report(1n, ReportKind.ACCEPTED, { quantity: 1n })] },
    ],
    ['trades-exact', 'breach', 'an end has a price', { streamed: [report(1n, ReportKind.EXPIRED, { priceKobo: 1n })] }],
    ['order-life', 'kept', 'accepted, traded and ended', { streamed: [...whole, report(4n, ReportKind.CANCELLED)] }],
    [
      'order-life',
      'kept',
      'a trade that was on its way',
      {
        streamed: [accepted, report(2n, ReportKind.CANCELLED), trade(3n, 1n, 500n)],
      },
    ],
    ['order-life', 'breach', 'a trade first', { streamed: whole.slice(1) }],
    ['order-life', 'breach', 'accepted twice', { streamed: [accepted, report(2n, ReportKind.ACCEPTED)] }],
    [
      'order-life',
      'breach',
      'ended twice',
      {
        streamed: [accepted, report(2n, ReportKind.CANCELLED), report(3n, ReportKind.EXPIRED)],
      },
    ],
    [
      'order-life',
      'breach',
      'traded after its rejection',
      {
        streamed: [report(1n, ReportKind.REJECTED), trade(2n, 1n, 500n)],
      },
    ],
    ['order-life', 'kept', 'rejected', { streamed: [report(1n, ReportKind.REJECTED)] }],
    [
      'order-life',
      'kept',
      'an order of another sender',
      {
        streamed: [accepted, trade(2n, 1n, 500n, { clientOrderId: 'o9' })],
      },
    ],
    ['fills-within-quantity', 'kept', 'all of its shares'],
    ['fills-within-quantity', 'breach', 'one more', { request: { quantity: 99n } }],
    ['fills-within-limit', 'kept', 'at its limit'],
    ['fills-within-limit', 'breach', 'one trade is a kobo above', { request: { priceKobo: 499n } }],
    ['fills-within-limit', 'kept', 'it has no limit', { request: { priceKobo: undefined } }],
    ['fills-within-limit', 'kept', 'a sale gets more', { request: { side: Side.SELL, priceKobo: 1n } }],
    ['fills-within-band', 'kept', 'at both of its ends'],
    ['fills-within-band', 'breach', 'a kobo below', { streamed: [accepted, trade(2n, 1n, 399n)] }],
    ['fills-within-band', 'breach', 'a kobo above', { streamed: [accepted, trade(2n, 1n, 501n)] }],
    ['fills-within-band', 'kept', 'nothing traded', { streamed: [accepted] }],
    [
      'look-up-complete',
      'kept',
      'the look-up has more than the stream',
      { streamed: whole.slice(0, 2), recorded: whole },
    ],
    ['look-up-complete', 'breach', 'it lacks the last one', { recorded: whole.slice(0, 2) }],
    ['look-up-complete', 'breach', 'it has nothing', { recorded: [] }],
    ['stream-complete', 'kept', 'the same in both'],
    ['stream-complete', 'breach', 'the stream lacks the last one', { streamed: whole.slice(0, 2), recorded: whole }],
    [
      'stream-complete',
      'breach',
      'it has another order under it',
      {
        streamed: [accepted, trade(2n, 60n, 500n, { clientOrderId: 'o2' })],
        recorded: whole.slice(0, 2),
      },
    ],
    [
      'stream-complete',
      'kept',
      'they came before the run',
      {
        streamed: whole.slice(2),
        recorded: whole,
        follows: { from: 2n },
      },
    ],
    [
      'stream-complete',
      'breach',
      'one of the run is not there',
      {
        streamed: whole.slice(2),
        recorded: whole,
        follows: { from: 1n },
      },
    ],
    [
      'stream-complete',
      'not run',
      'the stream has gaps',
      { recorded: [...whole, trade(4n, 1n, 1n)], follows: { gaps: ['x'] } },
    ],
    [
      'broker-time-stated',
      'kept',
      'each answer has it',
      {
        more: {
          calls: [{ outcome: { answer: { brokerTime: at }, exchange } }, { outcome: { answer: undefined, exchange } }],
        },
      },
    ],
    [
      'broker-time-stated',
      'breach',
      'one has none',
      {
        more: { calls: [{ outcome: { answer: { brokerTime: at }, exchange } }, { outcome: { answer: {}, exchange } }] },
      },
    ],
    [
      'calls-in-time',
      'kept',
      'each in time, or while the adapter was away, or with a short deadline',
      {
        more: {
          calls: [
            { outcome: { exchange: { ...exchange, tookMs: 2_000 } }, bounded: 10_000, isDisturbed: false },
            { outcome: { exchange: { ...exchange, tookMs: 9_000 } }, bounded: 10_000, isDisturbed: true },
            { outcome: { exchange: { ...exchange, tookMs: 2_001 } }, bounded: 2_000, isDisturbed: false },
          ],
        },
      },
    ],
    [
      'calls-in-time',
      'breach',
      'a millisecond longer',
      {
        more: {
          calls: [{ outcome: { exchange: { ...exchange, tookMs: 2_001 } }, bounded: 2_001, isDisturbed: false }],
        },
      },
    ],
  ];

  it('the orders of a whole run are judged by all that came, each promise exactly at its bound', async () => {
    for (const [check, expected, why, run] of cases) {
      assert.equal(await verdict(check, run), expected, `${check}: ${why}`);
    }
    const checked = new Set(cases.map(([check]) => check));
    assert.deepEqual(
      [...checked],
      wholeRunChecks.map(({ id }) => id),
      'each check of a whole run has its cases',
    );
  });

  it('the orders of a whole run have no broker time if a message of the stream has none', async () => {
    const silent = follower(whole);
    silent.arrivals.push([{ at: 1, count: 0, lastNumber: 3n, brokerTimeMs: undefined }]);
    assert.equal(await verdict('broker-time-stated', { more: { follower: silent } }), 'breach');
  });
});

describe('the withdrawals and the applications of a whole run', () => {
  const withdrawal = (number: bigint, kind: WithdrawalReportKind, more: object = {}) =>
    create(WithdrawalReportSchema, { number, clientWithdrawalId: 'x1', kind, at, brokerReference: 'R1', ...more });
  const application = (number: bigint, kind: ApplicationReportKind, more: object = {}) =>
    create(ApplicationReportSchema, { number, clientApplicationId: 'x1', kind, at, reference: 'R1', ...more });
  const { ACCEPTED, PAID, RETURNED } = WithdrawalReportKind;
  const kinds = [
    {
      name: 'withdrawal',
      checks: withdrawalRunChecks,
      reports: [withdrawal(1n, ACCEPTED), withdrawal(2n, PAID)],
      other: withdrawal(1n, ACCEPTED, { brokerReference: 'R2' }),
      wrong: [
        [withdrawal(1n, ACCEPTED), withdrawal(2n, PAID), withdrawal(3n, PAID)],
        [withdrawal(1n, ACCEPTED), withdrawal(2n, PAID, { at: undefined })],
        [withdrawal(1n, PAID), withdrawal(2n, RETURNED)],
      ],
      ofAnother: withdrawal(3n, RETURNED, { clientWithdrawalId: 'x9' }),
    },
    {
      name: 'application',
      checks: applicationRunChecks,
      reports: [
        application(1n, ApplicationReportKind.ACCEPTED),
        application(2n, ApplicationReportKind.OPENED, { account: 'ACC1' }),
      ],
      other: application(1n, ApplicationReportKind.ACCEPTED, { reference: 'R2' }),
      wrong: [
        [application(1n, ApplicationReportKind.OPENED, { account: 'ACC1' })],
        [application(1n, ApplicationReportKind.ACCEPTED), application(2n, ApplicationReportKind.OPENED)],
        [application(1n, ApplicationReportKind.REJECTED), application(2n, ApplicationReportKind.REJECTED)],
      ],
      ofAnother: application(3n, ApplicationReportKind.OPENED, { clientApplicationId: 'x9', account: 'ACC9' }),
    },
  ] as const;

  for (const { name, checks, reports, other, wrong, ofAnother } of kinds) {
    const [first, second] = reports;
    const verdict = (
      id: string,
      streamed: readonly Numbered[],
      { kept = streamed, answer = first as Numbered, from = 0n, gaps = [] as string[], isAnswered = true } = {},
    ) => {
      const request = { destination: WithdrawalDestination.WALLET };
      const sent = [{ id: 'x1', request, outcome: { answer: { report: answer }, exchange } }];
      const came = follower(streamed, { from, gaps });
      return found(checks, `${name}-${id}`, {
        ...{ withdrawals: sent, applications: sent, withdrawalFollower: came, applicationFollower: came },
        call: async () => ({ answer: isAnswered ? { reports: kept } : undefined, exchange }),
      });
    };

    it(`the ${name}s are whole in the stream and in the look-up, as they were answered`, async () => {
      const results = [
        ['reports-dense', 'kept', await verdict('reports-dense', reports)],
        ['reports-dense', 'breach', await verdict('reports-dense', reports, { gaps: ['a gap'] })],
        ['answers-streamed', 'kept', await verdict('answers-streamed', reports)],
        ['answers-streamed', 'breach', await verdict('answers-streamed', [second])],
        ['answers-streamed', 'breach', await verdict('answers-streamed', [other, second])],
        [
          'answers-streamed',
          'kept, as it came before the run',
          await verdict('answers-streamed', [second], { from: 1n }),
        ],
        [
          'answers-streamed',
          'kept, as a gap is said already',
          await verdict('answers-streamed', [second], { gaps: ['x'] }),
        ],
        ['answers-streamed', 'breach, gap or not', await verdict('answers-streamed', [other], { gaps: ['x'] })],
        ['look-up-complete', 'kept', await verdict('look-up-complete', reports)],
        ['look-up-complete', 'kept', await verdict('look-up-complete', [first], { kept: reports })],
        ['look-up-complete', 'breach', await verdict('look-up-complete', reports, { kept: [first] })],
        ['look-up-complete', 'breach', await verdict('look-up-complete', reports, { kept: [other, second] })],
        ['look-up-complete', 'not run', await verdict('look-up-complete', reports, { isAnswered: false })],
        ['life', 'kept', await verdict('life', reports)],
        ['life', 'kept, whatever others do', await verdict('life', [...reports, ofAnother])],
        ...(await Promise.all(wrong.map(async (each) => ['life', 'breach', await verdict('life', each)] as const))),
      ] as const;
      for (const [at, [id, expected, verdict]] of results.entries()) {
        assert.equal(verdict, expected.split(',')[0], `${id} ${at}`);
      }
    });
  }
});
