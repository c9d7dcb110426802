/** The checks of an account's money, with an adapter that the test makes up. */
import assert from 'node:assert/strict';
import { after, before, describe, it, mock } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Breach, NotOffered, NotRun } from '../../src/broker-check/check.ts';
import { accountChecks } from '../../src/broker-check/checks/accounts.ts';
import { moneyChecks } from '../../src/broker-check/checks/money.ts';
import type { CheckSession } from '../../src/broker-check/session.ts';
import {
  AccountState,
  MarketSession,
  type Transaction,
  TransactionSchema,
  TransactionType,
} from '../../src/gen/marina/broker/v1/accounts_pb.ts';

const exchange = { call: 'a call', request: {}, status: 'OK', tookMs: 1 };
const noon = Date.parse('2026-11-23T11:00:00Z');
/** Midnight in Lagos. */
const midnight = Date.parse('2026-11-22T23:00:00Z');

/** Transactions of an account that began with 1,000 kobo, the newest first; the amounts are given from the oldest on. */
function booked(...given: readonly [at: number, amountKobo: bigint, type?: TransactionType][]): Transaction[] {
  let balanceKobo = 1_000n;
  return given
    .map(([at, amountKobo, type = TransactionType.UNSPECIFIED + 1]) => {
      balanceKobo += amountKobo;
      const id = `T${String(at).padStart(15, '0')}`;
      return create(TransactionSchema, { id, type, amountKobo, balanceKobo, bookedAt: timestampFromMs(at) });
    })
    .reverse();
}

const usual = booked(
  [midnight - 7_200_000, 500n],
  [midnight - 1, 100n, 2],
  [midnight, -50n],
  [noon - 2_000, 30n, 2],
  [noon - 1_000, -80n],
);

interface Adapter {
  readonly list?: readonly Transaction[];
  readonly balance?: object;
  readonly capabilities?: object;
  readonly status?: object | undefined;
  /** Changes a page before it is answered; `nth` counts them from 1. */
  readonly page?: (page: Page, request: Asked, nth: number) => Page;
}
interface Page {
  readonly account: string;
  readonly transactions: readonly Transaction[];
  readonly hasMore: boolean;
  readonly inRange: number;
}
interface Asked {
  readonly limit: number;
  readonly type: TransactionType;
  readonly after?: { readonly id: string };
}

const newest = { openingKobo: 1_600n, settledKobo: 1_400n, unsettledKobo: 100n, withdrawableKobo: 1_400n };

/** The verdict of a check about an adapter. */
async function found(id: string, adapter: Adapter = {}): Promise<string> {
  const { list = usual, balance = {}, capabilities = {}, page = (same: Page) => same } = adapter;
  const account = { account: 'A1' };
  let pages = 0;
  const answers: Record<string, (request: never) => object | undefined> = {
    getCapabilities: () => ({ accountTransactions: true, accountStatus: true, ...capabilities }),
    getBalance: () => ({ ...account, ...newest, asOf: timestampFromMs(noon), pendingDebitsKobo: 0n, ...balance }),
    getAccountStatus: () =>
      'status' in adapter
        ? adapter.status && { ...account, state: AccountState.ACTIVE, restrictions: [], ...adapter.status }
        : { ...account, state: AccountState.ACTIVE, restrictions: [], chn: '', holderInitials: '' },
    listTransactions: (request: Asked) => {
      const ofType = list.filter(({ type }) => request.type === TransactionType.UNSPECIFIED || type === request.type);
      const from = request.after === undefined ? 0 : ofType.findIndex(({ id }) => id === request.after?.id) + 1;
      const transactions = ofType.slice(from, from + request.limit);
      pages += 1;
      const hasMore = ofType.length > from + request.limit;
      return page({ ...account, transactions, hasMore, inRange: ofType.length }, request, pages);
    },
  };
  const session = {
    ...account,
    settings: { waits: { skewMs: 2_000, settleMs: 1 } },
    call: async (_: string, method: string, request: never) => {
      const answer = answers[method]?.(request);
      return { answer, code: answer === undefined ? status.UNIMPLEMENTED : status.OK, exchange, sentAt: noon };
    },
  };
  return verdictOf(id, session);
}

async function verdictOf(id: string, session: object): Promise<string> {
  const check = [...moneyChecks, ...accountChecks].find((each) => each.id === id) ?? assert.fail(`there is no ${id}`);
  try {
    await check.run(session as CheckSession);
    return 'kept';
  } catch (error) {
    for (const [what, name] of [
      [Breach, 'breach'],
      [NotRun, 'not run'],
      [NotOffered, 'not offered'],
    ] as const) {
      if (error instanceof what) return name;
    }
    throw error;
  }
}

describe('the money of an account, as broker-check sees it', () => {
  before(() => mock.timers.enable({ apis: ['Date'], now: noon }));
  after(() => mock.timers.reset());

  /** The list with another balance in one place. */
  const off = (place: number, kobo: bigint) =>
    usual.map((each, at) => (at === place ? { ...each, balanceKobo: each.balanceKobo + kobo } : each));
  /** Hides one transaction in small pages only. */
  const hides =
    (id: string | undefined) =>
    (page: Page, { limit }: Asked) => {
      return limit > 2 ? page : { ...page, transactions: page.transactions.filter((each) => each.id !== id) };
    };

  const many = booked(...Array.from({ length: 402 }, (_, at): [number, bigint] => [noon - 600_000 + 1_000 * at, 1n]));

  const cases: [check: string, expected: string, why: string, adapter?: Adapter][] = [
    ['account-transactions-stated', 'kept', 'it states them'],
    ['account-transactions-stated', 'not offered', 'it does not', { capabilities: { accountTransactions: false } }],
    ['account-status-stated', 'not offered', 'it states the other alone', { capabilities: { accountStatus: false } }],
    ['account-capabilities-kept', 'kept', 'both are answered'],
    ['account-capabilities-kept', 'breach', 'the status is stated, and is not answered', { status: undefined }],
    [
      'account-capabilities-kept',
      'kept',
      'it is not stated',
      { status: undefined, capabilities: { accountStatus: false } },
    ],
    ['account-status-sense', 'breach', 'it is of another account', { status: { account: 'A2' } }],
    ['account-status-sense', 'breach', 'it is restricted by nothing', { status: { state: AccountState.RESTRICTED } }],
    ['account-status-sense', 'breach', 'it has a name', { status: { holderInitials: 'Ada Obi' } }],
    ['withdrawable-bounded', 'kept', 'all that is settled'],
    ['withdrawable-bounded', 'breach', 'a kobo more', { balance: { withdrawableKobo: 1_401n } }],
    ['withdrawable-bounded', 'breach', 'less than nothing', { balance: { withdrawableKobo: -1n } }],
    ['withdrawable-bounded', 'kept', 'nothing, of debts', { balance: { withdrawableKobo: 0n, settledKobo: -5n } }],
    ['withdrawable-bounded', 'breach', 'a kobo, of debts', { balance: { withdrawableKobo: 1n, settledKobo: -5n } }],
    ['withdrawable-bounded', 'not offered', 'it is not stated', { balance: { withdrawableKobo: undefined } }],
    ['withdrawable-bounded', 'kept', 'the settled is not stated', { balance: { settledKobo: undefined } }],
    ['transactions-pages', 'kept', 'the same in small pages'],
    ['transactions-pages', 'breach', 'a small page lacks one', { page: hides(usual[3]?.id) }],
    ['transactions-pages', 'breach', 'a page is of another account', { page: (page) => ({ ...page, account: 'A2' }) }],
    [
      'transactions-pages',
      'breach',
      'the oldest come first',
      {
        page: (page) => ({ ...page, transactions: [...page.transactions].reverse() }),
      },
    ],
    ['transactions-pages', 'breach', 'the count is one too high', { page: (page) => ({ ...page, inRange: 6 }) }],
    [
      'transactions-pages',
      'kept',
      'one was booked while it was read',
      {
        page: (page, { limit }) =>
          limit > 2 ? { ...page, inRange: 6, transactions: [...booked([noon - 500, 1n]), ...page.transactions] } : page,
      },
    ],
    [
      'transactions-pages',
      'kept',
      'one was booked before the large pages, and there are more than are read',
      {
        list: many,
        page: (page, { limit }, nth) => {
          if (limit === 2 && nth === 200) many.unshift(...booked([noon - 500, 1n]));
          return page;
        },
      },
    ],
    ['transactions-of-type', 'kept', 'each type by itself'],
    [
      'transactions-of-type',
      'breach',
      'a type has all of them',
      {
        page: (page, { type, limit }) =>
          type === 2 ? { ...page, transactions: usual.slice(0, limit), hasMore: false } : page,
      },
    ],
    [
      'transactions-of-type',
      'breach',
      'a type lacks one',
      {
        page: (page, { type }) =>
          type === 2 ? { ...page, transactions: page.transactions.slice(0, 1), inRange: 1, hasMore: false } : page,
      },
    ],
    ['transactions-add-up', 'kept', 'each follows from the one before'],
    ['transactions-add-up', 'breach', 'a kobo is off at the border of two pages', { list: off(1, 1n) }],
    ['transactions-add-up', 'breach', 'a kobo is off in the oldest', { list: off(4, -1n) }],
    ['balance-of-transactions', 'kept', 'opening and today are the balance, from midnight in Lagos on'],
    ['balance-of-transactions', 'breach', 'the opening is a kobo off', { balance: { openingKobo: 1_601n } }],
    ['balance-of-transactions', 'breach', 'the parts are a kobo off', { balance: { unsettledKobo: 101n } }],
    ['balance-of-transactions', 'breach', 'the parts are a kobo less', { balance: { unsettledKobo: 99n } }],
    [
      'balance-of-transactions',
      'breach',
      'the balance is of the day before, and the newest is not',
      { balance: { asOf: timestampFromMs(midnight - 1), openingKobo: 1_000n } },
    ],
    [
      'transactions-pages',
      'breach',
      'its second page is of another account',
      { page: (page, _, nth) => (nth === 2 ? { ...page, account: 'A2' } : page) },
    ],
    [
      'transactions-add-up',
      'breach',
      'its second page begins with one that is newer than the first page, though they add up',
      {
        page: (page, _, nth) => {
          const [newer, ...others] = page.transactions;
          const isSecond = nth === 2 && newer !== undefined;
          return isSecond
            ? { ...page, transactions: [{ ...newer, bookedAt: timestampFromMs(noon - 500) }, ...others] }
            : page;
        },
      },
    ],
    ['balance-of-transactions', 'kept', 'the parts are not stated', { balance: { settledKobo: undefined } }],
    [
      'balance-of-transactions',
      'kept',
      'the balance is of the day before',
      {
        list: usual.slice(3),
        balance: { asOf: timestampFromMs(midnight - 1), openingKobo: 1_000n, settledKobo: 1_600n, unsettledKobo: 0n },
      },
    ],
    ['balance-of-transactions', 'not run', 'there is none', { list: [] }],
    ['balance-exact', 'kept', 'it is of the account'],
    ['balance-exact', 'breach', 'it is of another', { balance: { account: 'A2' } }],
    ['balance-exact', 'breach', 'debits are negative', { balance: { pendingDebitsKobo: -1n } }],
  ];
  cases.push(
    ...moneyChecks
      .filter(({ id }) => id.startsWith('transactions') || id === 'balance-of-transactions')
      .map(({ id }): (typeof cases)[number] => {
        return [id, 'not offered', 'it states no transactions', { capabilities: { accountTransactions: false } }];
      }),
  );

  it('the money of an account, as broker-check sees it, is judged to the kobo, page by page and day by day', async () => {
    for (const [check, expected, why, adapter] of cases) {
      assert.equal(await found(check, adapter), expected, `${check}: ${why}`);
    }
  });

  it('the money of an account, as broker-check sees it, is read again when something was booked between two reads, a bounded number of times', async () => {
    for (const [until, expected] of [
      [3, 'kept'],
      [4, 'kept'],
      [100, 'not run'],
    ] as const) {
      let reads = 0;
      const page = (same: Page, { limit }: Asked): Page => {
        reads += 1;
        const more = reads > until || limit <= 2 ? 0 : reads;
        if (more === 0) return same;
        return { ...same, transactions: booked([noon + more, 1n]), inRange: 1 };
      };
      assert.equal(await found('balance-of-transactions', { page }), expected, `${until}`);
      assert.ok(reads <= 10, 'two reads in each of five tries');
    }
  });

  it('the money of an account, as broker-check sees it, stands beside a market whose next times are not over', async () => {
    for (const [more, expected] of [
      [{}, 'kept'],
      [{ session: MarketSession.UNSPECIFIED }, 'breach'],
      [{ nextOpenAt: timestampFromMs(noon - 2_000) }, 'kept'],
      [{ nextOpenAt: timestampFromMs(noon - 2_001) }, 'breach'],
      [{ nextCloseAt: timestampFromMs(noon - 2_001) }, 'breach'],
      [{ nextCloseAt: undefined }, 'kept'],
    ] as const) {
      const times = { nextOpenAt: timestampFromMs(noon + 5), nextCloseAt: timestampFromMs(noon + 9) };
      const answer = { session: 1 as MarketSession, ...times, ...more };
      const call = async () => ({ answer, exchange, sentAt: noon });
      assert.equal(await verdictOf('market-stated', { settings: { waits: { skewMs: 2_000 } }, call }), expected);
    }
  });
});
