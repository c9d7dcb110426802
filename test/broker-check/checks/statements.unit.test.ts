import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { statementChecks, withdrawalStatementChecks } from '../../../src/broker-check/checks/statements.ts';
import type { CheckSession } from '../../../src/broker-check/session.ts';
import { ReportKind, ReportSchema, Side } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  GetStatementResponseSchema,
  StatementOrderSchema,
  StatementOrderState,
  StatementSection,
  StatementTradeSchema,
  type StatementWithdrawal,
  StatementWithdrawalSchema,
  StatementWithdrawalState,
} from '../../../src/gen/marina/broker/v1/statements_pb.ts';
import {
  SubmitWithdrawalRequestSchema,
  WithdrawalDestination,
  WithdrawalReportKind,
  WithdrawalReportSchema,
} from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { lagosDay, lagosMidnight } from '../../../src/kit/clock.ts';

const now = Date.now();
const at = timestampFromMs(now);
const request = create(SubmitWithdrawalRequestSchema, {
  ...{
    clientWithdrawalId: 'chk_a',
    account: 'ACC1',
    amountKobo: 500n,
    destination: WithdrawalDestination.BANK_ACCOUNT,
  },
});
/** The withdrawals of the run. The statement is always right about the second one, which excuses nothing of the first. */
const ids = ['chk_a', 'chk_b'] as const;
const reportOf = (number: bigint, kind: WithdrawalReportKind, clientWithdrawalId: string) =>
  create(WithdrawalReportSchema, { number, clientWithdrawalId, kind, at, brokerReference: 'B1' });
const right = create(StatementWithdrawalSchema, {
  ...{ clientWithdrawalId: 'chk_a', account: 'ACC1', amountKobo: 500n, brokerReference: 'B1', at },
  ...{ destination: WithdrawalDestination.BANK_ACCOUNT, state: StatementWithdrawalState.PAID },
});

const second = { ...right, clientWithdrawalId: 'chk_b' };

/** The statement of a day with these records. */
function statementOf(day: string, records: MessageInitShape<typeof GetStatementResponseSchema>) {
  const from = lagosMidnight(Date.parse(`${day}T12:00:00Z`));
  const to = timestampFromMs(from + 86_400_000);
  const times = { from: timestampFromMs(from), to, brokerTime: timestampFromMs(Date.now()) };
  return create(GetStatementResponseSchema, { day, ...times, ...records });
}

/** The result of both checks, with an adapter whose statement has other withdrawals at each look; the last one stays. */
async function checked(...looks: readonly (readonly StatementWithdrawal[])[]): Promise<(string | undefined)[]> {
  return Promise.all(
    withdrawalStatementChecks.map(async ({ run }) => {
      let count = 0;
      const session = {
        settings: { waits: { settleMs: 700 } },
        withdrawals: ids.map((id) => {
          return { id, request, outcome: { answer: { report: reportOf(1n, WithdrawalReportKind.ACCEPTED, id) } } };
        }),
        withdrawalFollower: { reports: ids.map((id) => reportOf(2n, WithdrawalReportKind.PAID, id)) },
        call: async (_service: string, _name: string, asked: { day: string }) => {
          const withdrawals = [...(looks[Math.min(count, looks.length - 1)] ?? []), second];
          count += 1;
          const answer = statementOf(asked.day, { withdrawals });
          return { answer, exchange: { call: 'Statements.GetStatement', request: asked, status: 'OK', tookMs: 1 } };
        },
      };
      try {
        await run(session as unknown as CheckSession);
        return undefined;
      } catch (error) {
        return (error as Error).message;
      }
    }),
  );
}

describe('the withdrawals of a statement', () => {
  for (const [name, looks, verdicts] of [
    ['as they were sent and reported are right', [[right]], [undefined, undefined]],
    ['that come a moment later are right', [[], [right]], [undefined, undefined]],
    [
      'that are corrected a moment later are right',
      [[{ ...right, amountKobo: 1n, brokerReference: 'B2' }], [right]],
      [undefined, undefined],
    ],
    ['that never come are wrong', [[]], [/does not have chk_a/, /does not have chk_a/]],
    ['of another amount are wrong', [[{ ...right, amountKobo: 501n }]], [/otherwise than it was sent/, undefined]],
    ['of another account are wrong', [[{ ...right, account: 'ACC2' }]], [/otherwise/, undefined]],
    [
      'to another destination are wrong',
      [[{ ...right, destination: WithdrawalDestination.WALLET }]],
      [/otherwise/, undefined],
    ],
    [
      'in the state of an earlier report are wrong',
      [[{ ...right, state: StatementWithdrawalState.ACCEPTED }]],
      [undefined, /otherwise/],
    ],
    ['with another reference are wrong', [[{ ...right, brokerReference: 'B2' }]], [undefined, /otherwise/]],
    ['of another time are wrong', [[{ ...right, at: timestampFromMs(now - 1) }]], [undefined, /otherwise/]],
  ] as const) {
    it(`withdrawals in a statement ${name}`, { skip: lagosDay(now) !== lagosDay(now + 60_000) }, async () => {
      const found = await checked(...looks);
      for (const [nth, verdict] of verdicts.entries()) {
        if (verdict === undefined) assert.equal(found[nth], undefined);
        else assert.match(String(found[nth]), verdict);
      }
    });
  }
});

describe('the orders of a statement', () => {
  it('orders in a statement are looked for on the day on which they were filled, also if a run goes on after its midnight', async () => {
    const filledAt = timestampFromMs(lagosMidnight(now) - 1);
    const day = lagosDay(lagosMidnight(now) - 1);
    const placed = { clientOrderId: 'chk_a', account: 'ACC1', symbol: 'MTNN', side: Side.BUY, quantity: 100n };
    const trade = { quantity: 100n, priceKobo: 2_500n };
    const order = create(StatementOrderSchema, { ...placed, state: StatementOrderState.FILLED, filledQuantity: 100n });
    const stated = create(StatementTradeSchema, { ...placed, ...trade, id: 'T1', executedAt: filledAt });
    const report = { ...trade, kind: ReportKind.TRADE, clientOrderId: 'chk_a', at: filledAt };
    const session = {
      settings: { waits: { settleMs: 1 } },
      once: async () => ({ id: 'chk_a' }),
      streamed: () => [create(ReportSchema, report)],
      follower: { shown: () => ({}) },
      call: async (_service: string, _name: string, asked: { day: string; section: StatementSection }) => {
        const has = (section: StatementSection) => asked.day === day && asked.section === section;
        const answer = statementOf(asked.day, {
          orders: has(StatementSection.ORDERS) ? [order] : [],
          trades: has(StatementSection.TRADES) ? [stated] : [],
        });
        return { answer, exchange: { call: 'Statements.GetStatement', request: asked, status: 'OK', tookMs: 1 } };
      },
    };
    const check = statementChecks.find(({ id }) => id === 'statement-of-orders');
    await check?.run(session as unknown as CheckSession);
    assert.ok(check);
  });
});
