import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type GetStatementRequest,
  type GetStatementResponse,
  StatementCashSchema,
  StatementSection,
  StatementWithdrawalState,
} from '../../../src/gen/marina/broker/v1/statements_pb.ts';
import { WithdrawalDestination } from '../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { impatient, type SeededDefect } from './defect.ts';

/** Changes each page of a statement. */
function paged(change: (page: GetStatementResponse, request: GetStatementRequest) => void): SeededDefect['defect'] {
  return {
    statements: {
      getStatement: async ({ request, next }) => {
        const page = await next();
        change(page, request);
        return page;
      },
    },
  };
}

/** The defects of an adapter's statements of days. */
export const statementDefects: readonly SeededDefect[] = [
  {
    adapter: 'gives the statement of another day',
    breaks: 'statement-whole',
    also: [
      ...['statement-pages', 'statement-of-orders'],
      ...['statement-of-withdrawals', 'statement-of-withdrawal-states'],
    ],
    defect: paged((page) => {
      page.day = '2026-01-05';
    }),
  },
  {
    adapter: 'has other records in small pages of a statement',
    breaks: 'statement-pages',
    defect: paged((page, { section, limit }) => {
      const isSmall = limit < 100 && section === StatementSection.CASH;
      if (isSmall && page.cash.length === 0)
        page.cash.push(create(StatementCashSchema, { account: 'ACC0', balanceKobo: 1n }));
      else if (isSmall) for (const each of page.cash) each.balanceKobo += 1n;
    }),
  },
  {
    adapter: 'leaves trades out of its statements',
    breaks: 'statement-of-orders',
    defect: paged((page) => {
      page.trades = [];
    }),
  },
  {
    adapter: 'leaves withdrawals out of its statements',
    breaks: 'statement-of-withdrawals',
    also: ['statement-of-withdrawal-states'],
    waits: impatient,
    defect: paged((page) => {
      page.withdrawals = [];
    }),
  },
  {
    adapter: 'adds the charge of a transfer to the amount of a withdrawal in its statements',
    breaks: 'statement-of-withdrawals',
    waits: impatient,
    defect: paged((page) => {
      for (const each of page.withdrawals) each.amountKobo += 50n;
    }),
  },
  {
    adapter: 'states every withdrawal as one to the wallet',
    breaks: 'statement-of-withdrawals',
    waits: impatient,
    defect: paged((page) => {
      for (const each of page.withdrawals) each.destination = WithdrawalDestination.WALLET;
    }),
  },
  {
    adapter: 'states withdrawals as accepted for ever',
    breaks: 'statement-of-withdrawal-states',
    waits: impatient,
    defect: paged((page) => {
      for (const each of page.withdrawals) each.state = StatementWithdrawalState.ACCEPTED;
    }),
  },
  {
    adapter: 'states the end of the day as the time of a withdrawal',
    breaks: 'statement-of-withdrawal-states',
    waits: impatient,
    defect: paged((page) => {
      for (const each of page.withdrawals) each.at = page.to && timestampFromMs(timestampMs(page.to) - 1);
    }),
  },
];
