import { create } from '@bufbuild/protobuf';
import {
  type GetStatementRequest,
  type GetStatementResponse,
  StatementCashSchema,
  StatementSection,
} from '../../../src/gen/marina/broker/v1/statements_pb.ts';
import type { SeededDefect } from './defect.ts';

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
    also: ['statement-pages', 'statement-of-orders'],
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
];
