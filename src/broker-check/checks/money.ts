import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  isAccountStatus,
  isInitialsOrNone,
  isTransactionsList,
  placeOfTransaction,
  transactionDate,
} from '../../gateway/trading/broker/records.ts';
import { type Transaction, TransactionType } from '../../gen/marina/broker/v1/accounts_pb.ts';
import type { GetCapabilitiesResponse } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import { answered, checks, expect, NotOffered, NotRun, needing } from '../check.ts';
import type { CheckSession } from '../session.ts';
import { countIsTrue, haveSame, inCommon, largePage, pages, recently, smallPage } from './accounts.ts';

const reading = needing('Accounts', 'account');

/** How often two reads are repeated between which something was booked. */
const maxTries = 5;

type Capability = 'accountTransactions' | 'accountStatus';
const statedAs = { accountTransactions: 'account_transactions', accountStatus: 'account_status' } as const;

/** The money of the account, and what it may do. */
export const moneyChecks = checks({
  'account-transactions-stated': needing('Accounts').optional(
    'The adapter states that it has the transactions of accounts',
    (session) => checkStated(session, 'accountTransactions'),
  ),
  'account-status-stated': needing('Accounts').optional(
    'The adapter states that it has the status of accounts',
    (session) => checkStated(session, 'accountStatus'),
  ),
  'account-capabilities-kept': reading.must(
    'A read of accounts that the capabilities state is answered',
    async (session) => {
      const capabilities = await capabilitiesOf(session);
      const { account } = session;
      if (capabilities.accountStatus) answered(await session.call('Accounts', 'getAccountStatus', { account }));
      const { request } = recently(session, smallPage);
      if (capabilities.accountTransactions) answered(await session.call('Accounts', 'listTransactions', request));
    },
  ),
  'account-status-sense': reading.must(
    'A status is of the account that was asked about, has restrictions if and only if it is restricted, and no name of a customer',
    async (session) => {
      await checkStated(session, 'accountStatus');
      const { account } = session;
      const { answer, exchange } = answered(await session.call('Accounts', 'getAccountStatus', { account }));
      expect(isAccountStatus(answer, account), 'the status makes no sense', exchange);
      // The exchange would show the customer's name.
      const { holderInitials = '' } = answer;
      expect(
        isInitialsOrNone(holderInitials),
        `holder_initials has ${holderInitials.length} characters, or other ones`,
      );
    },
  ),
  'withdrawable-bounded': reading.must(
    'Withdrawable money is neither negative nor more than the settled money',
    async (session) => {
      const { account } = session;
      const { answer, exchange } = answered(await session.call('Accounts', 'getBalance', { account }));
      const { settledKobo, withdrawableKobo } = answer;
      if (withdrawableKobo === undefined) throw new NotOffered('withdrawable_kobo is absent');
      expect(withdrawableKobo >= 0n, `withdrawable_kobo is ${withdrawableKobo}`, exchange);
      if (settledKobo === undefined) return;
      const isBounded = withdrawableKobo === 0n || withdrawableKobo <= settledKobo;
      expect(isBounded, `withdrawable_kobo is ${withdrawableKobo}, settled_kobo ${settledKobo}`, exchange);
    },
  ),
  'transactions-pages': reading.must(
    'Transactions come newest first and with true counts, and small pages have the same as large ones',
    async (session) => {
      const small = await transactions(session, smallPage);
      haveSame(...inCommon(small, await transactions(session, largePage), idOf), idOf);
    },
  ),
  'transactions-of-type': reading.must(
    'With a type the list has all transactions of this type, and no others',
    async (session) => {
      const all = await transactions(session, largePage);
      for (const type of new Set(all.records.map((each) => each.type))) {
        const ofType = { ...all, records: all.records.filter((each) => each.type === type) };
        const [large, small] = inCommon(ofType, await transactions(session, smallPage, type), idOf);
        haveSame(small, large, idOf);
      }
    },
  ),
  'transactions-add-up': reading.must(
    'Of two neighbours the balance of the newer one without its amount is the balance of the older one, over all pages',
    async (session) => {
      const { records, exchanges } = await transactions(session, smallPage);
      for (const [at, newer] of records.entries()) {
        const older = records[at + 1];
        const isRight = older === undefined || newer.balanceKobo - newer.amountKobo === older.balanceKobo;
        expect(isRight, `${newer.id} and ${older?.id} do not add up`, ...exchanges);
      }
    },
  ),
  'balance-of-transactions': reading.must(
    'The opening balance with the amounts of the day, and the settled with the unsettled money, are the newest balance',
    async (session) => {
      for (let tries = 0; tries < maxTries; tries += 1) {
        const before = await transactions(session, largePage);
        const { account } = session;
        const { answer, exchange } = answered(await session.call('Accounts', 'getBalance', { account }));
        const { records, exchanges } = await transactions(session, largePage);
        const [newest] = records;
        if (newest === undefined) throw new NotRun('the account has no transactions');
        if (before.records[0]?.id !== newest.id) continue;
        const today = lagosDay(answer.asOf === undefined ? Date.now() : timestampMs(answer.asOf));
        const ofToday = records.filter((each) => transactionDate(each) === today);
        const moved = ofToday.reduce((sum, { amountKobo }) => sum + amountKobo, 0n);
        const { openingKobo, settledKobo, unsettledKobo } = answer;
        const shown = [exchange, ...exchanges.slice(0, 1)];
        const opened = `opening_kobo ${openingKobo} and today's ${moved} are not ${newest.balanceKobo}`;
        expect(openingKobo + moved === newest.balanceKobo, opened, ...shown);
        if (settledKobo === undefined || unsettledKobo === undefined) return;
        const parts = `settled_kobo ${settledKobo} and unsettled_kobo ${unsettledKobo} are not ${newest.balanceKobo}`;
        expect(settledKobo + unsettledKobo === newest.balanceKobo, parts, ...shown);
        return;
      }
      throw new NotRun('something was booked between each two reads');
    },
  ),
});

async function capabilitiesOf(session: CheckSession): Promise<GetCapabilitiesResponse> {
  const { answer } = await session.call('Orders', 'getCapabilities', {});
  if (answer === undefined) throw new NotRun('GetCapabilities did not answer');
  return answer;
}

async function checkStated(session: CheckSession, capability: Capability): Promise<void> {
  const capabilities = await capabilitiesOf(session);
  if (!capabilities[capability]) throw new NotOffered(`${statedAs[capability]} is false`);
}

/** All pages of recent transactions. Only one type is asked for if it is given. */
async function transactions(session: CheckSession, limit: number, type = TransactionType.UNSPECIFIED) {
  await checkStated(session, 'accountTransactions');
  const { range, request } = recently(session, limit);
  const read = await pages(
    (after?: Transaction) => {
      const place = after && { bookedAt: after.bookedAt, id: after.id };
      return session.call('Accounts', 'listTransactions', { ...request, type, after: place } as never);
    },
    // Whether they add up is a check of its own.
    (answer, after) => ({
      items: answer.transactions,
      problem: !isTransactionsList(answer, {
        ...{ ...range, type },
        after: after && placeOfTransaction(after),
      }),
    }),
  );
  countIsTrue(read);
  return read;
}

const idOf = ({ id }: Transaction) => id;
