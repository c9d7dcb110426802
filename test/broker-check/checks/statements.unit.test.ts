import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { withdrawalStatementChecks } from '../../../src/broker-check/checks/statements.ts';
import type { CheckSession } from '../../../src/broker-check/session.ts';
import {
  GetStatementResponseSchema,
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
const reportOf = (number: bigint, kind: WithdrawalReportKind) =>
  create(WithdrawalReportSchema, { number, clientWithdrawalId: 'chk_a', kind, at, brokerReference: 'B1' });
const right = create(StatementWithdrawalSchema, {
  ...{ clientWithdrawalId: 'chk_a', account: 'ACC1', amountKobo: 500n, brokerReference: 'B1', at },
  ...{ destination: WithdrawalDestination.BANK_ACCOUNT, state: StatementWithdrawalState.PAID },
});

/** The result of both checks, with an adapter whose statement has other withdrawals at each look; the last one stays. */
async function checked(...looks: readonly (readonly StatementWithdrawal[])[]): Promise<(string | undefined)[]> {
  return Promise.all(
    withdrawalStatementChecks.map(async ({ run }) => {
      let count = 0;
      const session = {
        settings: { waits: { settleMs: 700 } },
        withdrawals: [
          { id: 'chk_a', request, outcome: { answer: { report: reportOf(1n, WithdrawalReportKind.ACCEPTED) } } },
        ],
        withdrawalFollower: { reports: [reportOf(2n, WithdrawalReportKind.PAID)] },
        call: async (_service: string, _name: string, asked: { day: string }) => {
          const withdrawals = [...(looks[Math.min(count, looks.length - 1)] ?? [])];
          count += 1;
          const from = lagosMidnight(Date.parse(`${asked.day}T12:00:00Z`));
          const to = timestampFromMs(from + 86_400_000);
          const day = { day: asked.day, from: timestampFromMs(from), to, brokerTime: timestampFromMs(Date.now()) };
          const answer = create(GetStatementResponseSchema, { ...day, withdrawals });
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
