import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AccountState,
  GetBalanceResponseSchema,
  MarketSession,
  TransactionType,
} from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { ListLgasResponseSchema } from '../../../src/gen/marina/broker/v1/reference_pb.ts';
import type { Submission } from '../../../src/gen/marina/broker/v1/submissions_pb.ts';
import { Status } from '../defective-adapter.ts';
import { impatient, onStatus, type SeededDefect } from './defect.ts';

const dayMs = 86_400_000;
/** How long a submission is not listed. */
const lateMs = 400;

/** Changes each submission of a page. */
function listed(change: (submission: Submission) => void): SeededDefect['defect'] {
  return {
    submissions: {
      listSubmissions: async ({ next }) => {
        const answer = await next();
        answer.submissions.forEach(change);
        return answer;
      },
    },
  };
}

/** The defects of an adapter's list of submissions. */
const submissionDefects: readonly SeededDefect[] = [
  {
    adapter: 'has a gap in its list of submissions',
    breaks: 'submissions-dense',
    defect: {
      submissions: {
        listSubmissions: async ({ next }) => {
          const answer = await next();
          return { ...answer, submissions: answer.submissions.filter(({ number }) => number !== 3n) };
        },
      },
    },
  },
  {
    adapter: 'lists an order some time after it has answered it',
    breaks: 'submissions-current',
    defect: {
      orders: {
        submitOrder: async ({ request: { clientOrderId, symbol }, next, adapter }) => {
          const answer = await next();
          if (symbol === 'SIM-REST') adapter.kept.set(clientOrderId, Date.now());
          return answer;
        },
      },
      submissions: {
        listSubmissions: async ({ next, adapter }) => {
          const answer = await next();
          const isRecent = ({ clientId }: Submission) => {
            return Date.now() - ((adapter.kept.get(clientId) as number | undefined) ?? 0) < lateMs;
          };
          const late = answer.submissions.findIndex(isRecent);
          return late < 0 ? answer : { ...answer, submissions: answer.submissions.slice(0, late) };
        },
      },
    },
  },
  {
    adapter: 'lists rejected orders without their ids',
    breaks: 'submissions-rejected',
    defect: {
      orders: {
        submitOrder: async ({ request: { clientOrderId }, next, adapter }) => {
          const answer = await next();
          if (answer.report?.kind === ReportKind.REJECTED) adapter.kept.set(clientOrderId, true);
          return answer;
        },
      },
      submissions: {
        listSubmissions: async ({ next, adapter }) => {
          const answer = await next();
          for (const each of answer.submissions) if (adapter.kept.has(each.clientId)) each.clientId = '';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'keeps notes as text',
    breaks: 'notes-kept',
    also: ['notes-longest'],
    defect: listed((submission) => {
      submission.note = Buffer.from(Buffer.from(submission.note).toString('utf8'));
    }),
  },
  {
    adapter: 'keeps 1,024 bytes of a note',
    breaks: 'notes-longest',
    defect: listed((submission) => {
      submission.note = submission.note.subarray(0, 1_024);
    }),
  },
];

/** The defects of an adapter's records of accounts. */
const accountDefects: readonly SeededDefect[] = [
  {
    adapter: 'has negative pending debits',
    breaks: 'balance-exact',
    defect: { accounts: { getBalance: async ({ next }) => ({ ...(await next()), pendingDebitsKobo: -1n }) } },
  },
  {
    adapter: 'promises more positions after the last',
    breaks: 'positions-pages',
    defect: { accounts: { listPositions: async ({ next }) => ({ ...(await next()), hasMore: true }) } },
  },
  {
    adapter: 'leaves out a trade between two pages',
    breaks: 'trades-pages',
    defect: {
      accounts: {
        listTrades: async ({ request, next }) => {
          const answer = await next();
          if (request.after === undefined) return answer;
          return { ...answer, trades: answer.trades.slice(1), hasMore: false };
        },
      },
    },
  },
  {
    adapter: 'does not know which order a trade is of',
    breaks: 'trades-of-orders',
    waits: impatient,
    defect: {
      accounts: {
        listTrades: async ({ next }) => {
          const answer = await next();
          for (const trade of answer.trades) trade.clientOrderId = '';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'counts only the contract notes of a page',
    breaks: 'contract-notes-pages',
    defect: {
      accounts: {
        listContractNotes: async ({ next }) => {
          const answer = await next();
          return { ...answer, inRange: answer.notes.length };
        },
      },
    },
  },
  {
    adapter: 'has a balance of 0 for an account that it does not know',
    breaks: 'unknown-account-no-records',
    defect: {
      accounts: {
        getBalance: ({ request: { account }, next }) =>
          onStatus(next(), status.NOT_FOUND, () =>
            create(GetBalanceResponseSchema, { account, brokerTime: timestampFromMs(Date.now()) }),
          ),
      },
    },
  },
  {
    adapter: 'ends the read of an account that it does not know with UNAVAILABLE',
    breaks: 'unknown-account-not-found',
    defect: {
      accounts: {
        listPositions: ({ next }) =>
          onStatus(next(), status.NOT_FOUND, () => Promise.reject(new Status(status.UNAVAILABLE))),
      },
    },
  },
  {
    adapter: 'says that the exchange opened yesterday next',
    breaks: 'market-stated',
    defect: {
      accounts: {
        getMarket: async ({ next }) => {
          const answer = await next();
          return { ...answer, session: MarketSession.CLOSED, nextOpenAt: timestampFromMs(Date.now() - dayMs) };
        },
      },
    },
  },
];

/** The defects of an adapter's transactions and of the status of accounts. */
const moneyDefects: readonly SeededDefect[] = [
  {
    adapter: 'states that it has the status of accounts, and does not have it',
    breaks: 'account-capabilities-kept',
    also: ['account-status-sense'],
    defect: { accounts: { getAccountStatus: () => Promise.reject(new Status(status.UNIMPLEMENTED)) } },
  },
  {
    adapter: 'has a restricted account without a restriction',
    breaks: 'account-status-sense',
    defect: {
      accounts: { getAccountStatus: async ({ next }) => ({ ...(await next()), state: AccountState.RESTRICTED }) },
    },
  },
  {
    adapter: 'gives the name of a customer as initials',
    breaks: 'account-status-sense',
    defect: {
      accounts: { getAccountStatus: async ({ next }) => ({ ...(await next()), holderInitials: 'Adaeze Okafor' }) },
    },
  },
  {
    adapter: 'lets money be withdrawn that is not settled',
    breaks: 'withdrawable-bounded',
    defect: {
      accounts: {
        getBalance: async ({ next }) => {
          const answer = await next();
          const { settledKobo = 0n } = answer;
          return { ...answer, withdrawableKobo: (settledKobo > 0n ? settledKobo : 0n) + 1n };
        },
      },
    },
  },
  {
    adapter: 'leaves out a transaction between two pages',
    breaks: 'transactions-pages',
    also: ['transactions-add-up', 'transactions-of-type'],
    defect: {
      accounts: {
        listTransactions: async ({ request, next }) => {
          const answer = await next();
          if (request.after === undefined || request.limit > 50) return answer;
          return { ...answer, transactions: answer.transactions.slice(1), hasMore: false };
        },
      },
    },
  },
  {
    adapter: 'lists transactions of all types when one is asked for',
    breaks: 'transactions-of-type',
    defect: {
      accounts: {
        listTransactions: async ({ request, next }) => {
          const answer = await next();
          const other = request.type === TransactionType.FEE ? TransactionType.CHARGE : TransactionType.FEE;
          const [first] = answer.transactions;
          if (request.type !== TransactionType.UNSPECIFIED && first !== undefined) first.type = other;
          return answer;
        },
      },
    },
  },
  {
    adapter: 'states balances of another chain',
    breaks: 'transactions-add-up',
    defect: {
      accounts: {
        listTransactions: async ({ next }) => {
          const answer = await next();
          const [, second] = answer.transactions;
          if (second !== undefined) second.balanceKobo += 1n;
          return answer;
        },
      },
    },
  },
  {
    adapter: 'states what was settled as the opening balance',
    breaks: 'balance-of-transactions',
    defect: {
      accounts: {
        getBalance: async ({ next }) => {
          const answer = await next();
          return { ...answer, openingKobo: answer.openingKobo + 1n };
        },
      },
    },
  },
];

/** The defects of an adapter's lists that applications use. */
const referenceDefects: readonly SeededDefect[] = [
  {
    adapter: 'has a state without a name',
    breaks: 'states-listed',
    defect: {
      reference: {
        listStates: async ({ next }) => {
          const answer = await next();
          const [first] = answer.states;
          if (first) first.name = '';
          return answer;
        },
      },
    },
  },
  {
    adapter: 'numbers the areas of each state from 1',
    breaks: 'lgas-listed',
    defect: {
      reference: {
        listLgas: async ({ next }) => {
          const answer = await next();
          for (const [at, lga] of answer.lgas.entries()) lga.code = String(at + 1);
          return answer;
        },
      },
    },
  },
  {
    adapter: 'lists the states backwards',
    breaks: 'areas-by-name',
    defect: {
      reference: {
        listStates: async ({ next }) => {
          const answer = await next();
          return { ...answer, states: answer.states.reverse() };
        },
      },
    },
  },
  {
    adapter: 'has an empty list for a state that it does not know',
    breaks: 'unknown-state-not-found',
    defect: {
      reference: {
        listLgas: ({ next }) =>
          onStatus(next(), status.NOT_FOUND, () =>
            create(ListLgasResponseSchema, { brokerTime: timestampFromMs(Date.now()) }),
          ),
      },
    },
  },
  {
    adapter: 'lists an instrument without ticks',
    breaks: 'instruments-listed',
    defect: {
      reference: {
        listInstruments: async ({ next }) => {
          const answer = await next();
          const [first] = answer.instruments;
          if (first) first.tickSizes = [];
          return answer;
        },
      },
    },
  },
  {
    adapter: 'lists instruments with the band of another day',
    breaks: 'instruments-agree',
    defect: {
      reference: {
        listInstruments: async ({ next }) => {
          const answer = await next();
          for (const each of answer.instruments) each.upperPriceKobo += 10n;
          return answer;
        },
      },
    },
  },
  {
    adapter: 'leaves days without trading out of its calendar',
    breaks: 'market-days-listed',
    defect: {
      reference: {
        listMarketDays: async ({ next }) => {
          const answer = await next();
          return { ...answer, days: answer.days.filter((_, at) => at % 7 !== 5) };
        },
      },
    },
  },
];

export const recordDefects: readonly SeededDefect[] = [
  ...submissionDefects,
  ...accountDefects,
  ...moneyDefects,
  ...referenceDefects,
];
