import { timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { isNotesPage, isPositionsPage, isTradesPage, type TradePlace } from '../../gateway/trading/broker/records.ts';
import { type ContractNote, MarketSession, type Position, type Trade } from '../../gen/marina/broker/v1/accounts_pb.ts';
import { type Report, ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import { answered, checks, expect, needing } from '../check.ts';
import type { CallOutcome, RecordedCall } from '../exchange.ts';
import { type CheckSession, poll, shownReport } from '../session.ts';
import { filled } from './fills.ts';
import { nobody } from './link.ts';

const dayMs = 86_400_000;
/** How far back lists are read. */
const daysBack = 30;
export const smallPage = 2;
export const largePage = 100;
/** More records are not read. */
const maxRecords = 400;

const reading = needing('Accounts', 'account');

/** The broker's records of the account, and the exchange's session. */
export const accountChecks = checks({
  'accounts-offered': needing('Accounts').optional(
    'The adapter has the records of accounts: without them, partners cannot read balances, positions and trades',
    async () => {},
  ),
  'balance-exact': reading.must(
    'A balance is of the account that was asked about, and its pending debits are not negative',
    async (session) => {
      const { account } = session;
      const { answer, exchange } = answered(await session.call('Accounts', 'getBalance', { account }));
      expect(answer.account === account, `it is of "${answer.account}"`, exchange);
      expect(answer.pendingDebitsKobo >= 0n, `pending_debits_kobo is ${answer.pendingDebitsKobo}`, exchange);
    },
  ),
  'positions-pages': reading.must(
    'Positions come by symbol, with exact numbers, and small pages have the same as large ones',
    async (session) => {
      const [small, large] = [await positions(session, smallPage), await positions(session, largePage)];
      haveSame(small, large, ({ symbol }) => symbol);
    },
  ),
  'trades-pages': reading.must(
    'Trades come newest first, with exact numbers and true counts, and small pages have the same as large ones',
    async (session) => {
      const small = await trades(session, smallPage);
      const idOf = ({ id }: Trade) => id;
      haveSame(...inCommon(small, await trades(session, largePage), idOf), idOf);
    },
  ),
  'trades-of-orders': needing('Accounts', 'account', 'fill').should(
    'A trade of an order is in the list with the id of the order, and with the numbers of its report',
    async (session) => {
      const { id } = await filled(session);
      const reports = session.streamed(id).filter(({ kind }) => kind === ReportKind.TRADE);
      let seen: { records: readonly Trade[]; exchanges: readonly RecordedCall[] } = { records: [], exchanges: [] };
      const isListed = await poll(session.settings.waits.settleMs, async () => {
        seen = await trades(session, largePage);
        const listed = seen.records.filter(({ clientOrderId }) => clientOrderId === id);
        return numbersOf(listed) === numbersOf(reports) || undefined;
      });
      const shown = session.follower.shown(reports.map(shownReport));
      expect(isListed === true, `the list does not have the trades of ${id}`, shown, ...seen.exchanges.slice(0, 1));
    },
  ),
  'contract-notes-pages': reading.must(
    'Contract notes come newest first, in whole kobo and with true counts, and small pages have the same as large ones',
    async (session) => {
      const [small, large] = [await contractNotes(session, smallPage), await contractNotes(session, largePage)];
      haveSame(small, large, ({ ticket }) => ticket);
    },
  ),
  'unknown-account-no-records': needing('Accounts').must(
    'Of an account that the broker does not have, there is no record: no balance and no empty list',
    async (session) => {
      for (const { answer, exchange } of await readsOfNobody(session)) {
        expect(answer === undefined, 'it was answered', exchange);
      }
    },
  ),
  'unknown-account-not-found': needing('Accounts').should(
    'If a read of an account that the broker does not have ends with a status, that is NOT_FOUND',
    async (session) => {
      for (const { answer, code, exchange } of await readsOfNobody(session)) {
        const isRight = answer !== undefined || code === status.NOT_FOUND;
        expect(isRight, `it ended with ${exchange.status}`, exchange);
      }
    },
  ),
  'market-stated': needing('Accounts').must(
    "GetMarket states the exchange's session, and times of the future",
    async (session) => {
      const { answer, exchange, sentAt } = answered(await session.call('Accounts', 'getMarket', {}));
      expect(answer.session !== MarketSession.UNSPECIFIED, 'the session is missing', exchange);
      const { nextOpenAt, nextCloseAt } = answer;
      for (const at of [nextOpenAt, nextCloseAt]) {
        const isFuture = at === undefined || timestampMs(at) >= sentAt - session.settings.waits.skewMs;
        expect(isFuture, 'a next time has passed', exchange);
      }
    },
  ),
});

/** The result of reading all pages of a list. */
interface Read<Item, Answer> {
  readonly records: readonly Item[];
  readonly exchanges: readonly RecordedCall[];
  readonly answers: readonly Answer[];
}

/** All pages of a list. Throws a breach for a page that makes no sense. */
export async function pages<Item, Answer extends { readonly hasMore: boolean }>(
  read: (after?: Item) => Promise<CallOutcome<Answer>>,
  check: (answer: Answer, after: Item | undefined) => { readonly items: readonly Item[]; readonly problem: boolean },
): Promise<Read<Item, Answer>> {
  const records: Item[] = [];
  const exchanges: RecordedCall[] = [];
  const answers: Answer[] = [];
  for (;;) {
    const after = records.at(-1);
    const { answer, exchange } = answered(await read(after));
    const { items, problem } = check(answer, after);
    expect(!problem, 'the page makes no sense: its order, its length, or a field', exchange);
    records.push(...items);
    exchanges.push(exchange);
    answers.push(answer);
    if (!answer.hasMore || records.length >= maxRecords) return { records, exchanges, answers };
  }
}

/** Throws unless small pages have the same records as large ones. */
export function haveSame<Item>(
  small: Read<Item, unknown>,
  large: Read<Item, unknown>,
  idOf: (item: Item) => string,
): void {
  const ids = ({ records }: Read<Item, unknown>) => records.map(idOf).join();
  const what = `small pages have ${small.records.length}, large ones ${large.records.length}, or others`;
  expect(ids(small) === ids(large), what, ...small.exchanges, ...large.exchanges);
}

/**
 * The parts of two reads, one after the other and newest first, that must be the same: from the newest record of the earlier one on,
 * because others may have come meanwhile, and not beyond the most that is read.
 */
export function inCommon<Item, Earlier extends Read<Item, unknown>, Later extends Read<Item, unknown>>(
  earlier: Earlier,
  later: Later,
  idOf: (item: Item) => string,
): [Earlier, Later] {
  const [newest] = earlier.records;
  const newer = newest === undefined ? 0 : later.records.findIndex((record) => idOf(record) === idOf(newest));
  const from = Math.max(0, newer);
  const count = Math.min(earlier.records.length, maxRecords - from);
  return [
    { ...earlier, records: earlier.records.slice(0, count) },
    { ...later, records: later.records.slice(from, from + count) },
  ];
}

function positions(session: CheckSession, limit: number) {
  const { account } = session;
  return pages(
    (after?: Position) =>
      session.call('Accounts', 'listPositions', { account, afterSymbol: after?.symbol ?? '', limit }),
    (answer, after) => ({
      items: answer.positions,
      problem: !isPositionsPage(answer, account, { afterSymbol: after?.symbol ?? '', limit }),
    }),
  );
}

async function trades(session: CheckSession, limit: number) {
  const { range, request } = recently(session, limit);
  const read = await pages(
    (after?: Trade) => {
      const place = after && { executedAt: after.executedAt, id: after.id };
      return session.call('Accounts', 'listTrades', { ...request, after: place } as never);
    },
    (answer, after) => ({
      items: answer.trades,
      problem: !isTradesPage(answer, { ...range, after: after && placeOf(after) }),
    }),
  );
  countIsTrue(read);
  return read;
}

async function contractNotes(session: CheckSession, limit: number) {
  const { range, request } = recently(session, limit);
  const nextNotes = (after?: ContractNote) => {
    const place = after && { tradeDate: after.tradeDate, ticket: after.ticket };
    return session.call('Accounts', 'listContractNotes', { ...request, after: place } as never);
  };
  const read = await pages(nextNotes, (answer, after) => {
    return { items: answer.notes, problem: !isNotesPage(answer, { ...range, after }) };
  });
  countIsTrue(read);
  return read;
}

/** The last days of the account, for a request and for what judges its answer. */
export function recently({ account }: CheckSession, limit: number) {
  const range = { account, ...recentDays(), limit };
  return { range, request: { account, fromDate: range.from, toDate: range.to, limit } };
}

/** Throws unless the last page counts what was read: on a list that does not change meanwhile, nothing else is true. */
export function countIsTrue({ records, exchanges, answers }: Read<unknown, { readonly inRange: number }>): void {
  const counts = new Set(answers.map(({ inRange }) => inRange));
  const [inRange = 0] = counts;
  if (counts.size !== 1 || records.length >= maxRecords) return;
  expect(inRange === records.length, `in_range is ${inRange}, and there are ${records.length}`, ...exchanges);
}

function placeOf({ executedAt, id }: Trade): TradePlace {
  return { id, executedAtMs: executedAt === undefined ? 0 : timestampMs(executedAt) };
}

function recentDays() {
  const now = Date.now();
  return { from: lagosDay(now - daysBack * dayMs), to: lagosDay(now + dayMs) };
}

function numbersOf(trades: readonly (Trade | Report)[]): string {
  return trades
    .map(({ quantity, priceKobo }) => `${quantity} at ${priceKobo}`)
    .sort()
    .join();
}

async function readsOfNobody(session: CheckSession): Promise<readonly CallOutcome<unknown>[]> {
  const { account } = nobody;
  const { from: fromDate, to: toDate } = recentDays();
  return [
    await session.call('Accounts', 'getBalance', { account }),
    await session.call('Accounts', 'listPositions', { account, limit: smallPage }),
    await session.call('Accounts', 'listTrades', { account, fromDate, toDate, limit: smallPage }),
    await session.call('Accounts', 'listContractNotes', { account, fromDate, toDate, limit: smallPage }),
  ];
}
