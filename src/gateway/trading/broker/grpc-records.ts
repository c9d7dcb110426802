import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Accounts, type GetAccountStatusResponse, TransactionType } from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { Reference } from '../../../gen/marina/broker/v1/reference_pb.ts';
import type { Logger } from '../../../kit/log.ts';
import type { BrokerRecords } from './broker.ts';
import { BrokerConnection, type BrokerOptions, type Closable, closeAll } from './grpc-connection.ts';
import { isDaysOf, isInstrumentList } from './market.ts';
import {
  isAccountStatus,
  isAreaList,
  isBalance,
  isInitialsOrNone,
  isMarket,
  isNotesPage,
  isPositionsPage,
  isTradesPage,
  isTransactionsList,
  isTransactionsPage,
  type ReadTime,
  type TransactionRange,
} from './records.ts';

/** Records and reference data over gRPC, with connections of their own. */
export function grpcRecords(options: BrokerOptions): BrokerRecords & Closable {
  const accounts = new BrokerConnection(Accounts, 'broker', options);
  const reference = new BrokerConnection(Reference, 'broker', options);
  return {
    balance: (account, time) =>
      accounts.read('getBalance', { account }, time, 'account_not_at_broker', (answer) => isBalance(answer, account)),
    positions: (account, range, time) =>
      accounts.read('listPositions', { account, ...range }, time, 'account_not_at_broker', (answer) =>
        isPositionsPage(answer, account, range),
      ),
    trades: (range, time) => {
      const { account, from: fromDate, to: toDate, limit } = range;
      const after = range.after && { executedAt: timestampFromMs(range.after.executedAtMs), id: range.after.id };
      const request = { account, fromDate, toDate, limit, after };
      return accounts.read('listTrades', request, time, 'account_not_at_broker', (answer) =>
        isTradesPage(answer, range),
      );
    },
    contractNotes: (range, time) => {
      const { account, from: fromDate, to: toDate, limit, after } = range;
      const request = { account, fromDate, toDate, limit, after };
      return accounts.read('listContractNotes', request, time, 'account_not_at_broker', (answer) =>
        isNotesPage(answer, range),
      );
    },
    accountStatus: async (account, time) => ({
      ...(await readStatus(accounts, account, time)),
      holderInitials: undefined,
    }),
    accountStatusWithHolder: async (account, time) =>
      withRightInitials(await readStatus(accounts, account, time), options.log),
    transactions: (range, time) => readTransactions(accounts, range, time, isTransactionsPage),
    uncheckedTransactions: (range, time) => {
      const ofAllTypes = { ...range, type: TransactionType.UNSPECIFIED };
      return readTransactions(accounts, ofAllTypes, time, isTransactionsList);
    },
    market: (time) => accounts.read('getMarket', {}, time, 'exchange_error', isMarket),
    states: async (time) =>
      (await reference.read('listStates', {}, time, 'exchange_error', ({ states }) => isAreaList(states, 32))).states,
    lgas: async (state, time) =>
      (await reference.read('listLgas', { state }, time, 'not_found', ({ lgas }) => isAreaList(lgas, 64))).lgas,
    instruments: async (time) => {
      const answer = await reference.read('listInstruments', {}, time, 'exchange_error', ({ instruments }) =>
        isInstrumentList(instruments),
      );
      return answer.instruments;
    },
    marketDays: async (from, to, time) => {
      const asked = { fromDate: from, toDate: to };
      const answer = await reference.read('listMarketDays', asked, time, 'exchange_error', ({ days }) =>
        isDaysOf(days, from, to),
      );
      return answer.days;
    },
    close: () => closeAll([accounts, reference]),
  };
}

function readStatus(accounts: BrokerConnection<typeof Accounts>, account: string, time: ReadTime) {
  return accounts.read('getAccountStatus', { account }, time, 'account_not_at_broker', (answer) =>
    isAccountStatus(answer, account),
  );
}

/** The answer without initials that are none. The adapter's check (`account-status-sense`) finds them. */
function withRightInitials(answer: GetAccountStatusResponse, log: Logger | undefined): GetAccountStatusResponse {
  if (isInitialsOrNone(answer.holderInitials ?? '')) return answer;
  log?.warn('the broker gives initials of an account holder that are none; nobody sees them');
  return { ...answer, holderInitials: undefined };
}

function readTransactions(
  accounts: BrokerConnection<typeof Accounts>,
  range: TransactionRange,
  time: ReadTime,
  isRight: typeof isTransactionsPage,
) {
  const { account, from: fromDate, to: toDate, limit, type } = range;
  const after = range.after && { bookedAt: timestampFromMs(range.after.bookedAtMs), id: range.after.id };
  const request = { account, fromDate, toDate, limit, after, type };
  return accounts.read('listTransactions', request, time, 'account_not_at_broker', (answer) => isRight(answer, range));
}
