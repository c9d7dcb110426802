import { keysOf, type StatementPlace, wrongIn } from '../../gateway/trading/broker/statements.ts';
import { ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import {
  type GetStatementResponse,
  StatementSection,
  type StatementTrade,
} from '../../gen/marina/broker/v1/statements_pb.ts';
import { daysBefore, lagosDay } from '../../kit/clock.ts';
import { type Check, expect } from '../check.ts';
import type { RecordedCall } from '../exchange.ts';
import { type CheckSession, poll, shownReport } from '../session.ts';
import { filled } from './fills.ts';

const sections = [
  StatementSection.ORDERS,
  StatementSection.TRADES,
  StatementSection.ALLOCATIONS,
  StatementSection.POSITIONS,
  StatementSection.CASH,
] as const;
const smallPage = 3;
const largePage = 500;
/** Further pages are not read. */
const maxPages = 20;

/** The broker's statements of days. */
export const statementChecks: readonly Check[] = [
  {
    id: 'statements-offered',
    class: 'optional',
    promise: 'The adapter gives statements of days: without them, no day is compared with the broker',
    needs: ['Statements'],
    run: async () => {},
  },
  {
    id: 'statement-whole',
    class: 'should',
    promise:
      'Every section of a statement can be read to its end: records in their order, a period of the day, exact numbers',
    needs: ['Statements'],
    run: async (session) => {
      for (const section of sections) await readSection(session, yesterday(), section, largePage);
    },
  },
  {
    id: 'statement-pages',
    class: 'should',
    promise: 'Small pages of a statement have the same records as large ones',
    needs: ['Statements'],
    run: async (session) => {
      for (const section of sections) {
        const large = await readSection(session, yesterday(), section, largePage);
        const small = await readSection(session, yesterday(), section, smallPage);
        const begin = large.records.slice(0, small.records.length);
        const isSame = shown(begin) === shown(small.records);
        expect(
          isSame,
          `the pages of ${StatementSection[section]} have different records`,
          ...small.exchanges.slice(-2),
        );
      }
    },
  },
  {
    id: 'statement-of-orders',
    class: 'should',
    promise:
      'An order that filled is in the statement of its day, and its trades have the numbers and times of their reports',
    needs: ['Statements', 'fill'],
    run: async (session) => {
      const { id } = await filled(session);
      const reports = session.streamed(id).filter(({ kind }) => kind === ReportKind.TRADE);
      const day = lagosDay(Date.now());
      let exchanges: readonly RecordedCall[] = [];
      const isThere = await poll(session.settings.waits.settleMs, async () => {
        const orders = await readSection(session, day, StatementSection.ORDERS, largePage);
        const trades = await readSection(session, day, StatementSection.TRADES, largePage);
        exchanges = trades.exchanges;
        const listed = (trades.records as StatementTrade[]).filter(({ clientOrderId }) => clientOrderId === id);
        const has = orders.records.some((order) => 'filledQuantity' in order && order.clientOrderId === id);
        const numbers = listed.map(({ quantity, priceKobo, executedAt }) => [quantity, priceKobo, executedAt]);
        const reported = reports.map(({ quantity, priceKobo, at }) => [quantity, priceKobo, at]);
        return (has && sorted(numbers) === sorted(reported)) || undefined;
      });
      const streamed = session.follower.shown(reports.map(shownReport));
      expect(isThere === true, `the statement does not have ${id} with its trades`, streamed, ...exchanges.slice(-1));
    },
  },
];

/** A day that is over, so that its statement no longer changes. */
function yesterday(): string {
  return daysBefore(lagosDay(Date.now()), 1);
}

/** Reads a section to its end, a bounded number of pages. */
async function readSection(session: CheckSession, day: string, section: StatementSection, limit: number) {
  const records: unknown[] = [];
  const exchanges: RecordedCall[] = [];
  let place: StatementPlace = { day, section, cursor: '', afterKey: '' };
  for (let page = 0; page < maxPages; page += 1) {
    const request = { day, section, cursor: place.cursor, limit };
    const { answer, exchange } = await session.call('Statements', 'getStatement', request);
    exchanges.push(exchange);
    expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
    const wrong = wrongIn(answer, place);
    expect(wrong === undefined, `${wrong}`, exchange);
    const list = listOf(answer, section);
    expect(list.length <= limit, `a page of at most ${limit} has ${list.length} records`, exchange);
    records.push(...list);
    if (answer.nextCursor === '') break;
    place = { day, section, cursor: answer.nextCursor, afterKey: lastKey(answer, place) };
  }
  return { records: records as (StatementTrade | { clientOrderId: string })[], exchanges };
}

function listOf(answer: GetStatementResponse, section: StatementSection): readonly unknown[] {
  const lists: Readonly<Partial<Record<StatementSection, readonly unknown[]>>> = {
    [StatementSection.ORDERS]: answer.orders,
    [StatementSection.TRADES]: answer.trades,
    [StatementSection.ALLOCATIONS]: answer.allocations,
    [StatementSection.POSITIONS]: answer.positions,
    [StatementSection.CASH]: answer.cash,
  };
  return lists[section] ?? [];
}

function lastKey(answer: GetStatementResponse, { section, afterKey }: StatementPlace): string {
  return keysOf(answer, section).at(-1) ?? afterKey;
}

function shown(records: readonly unknown[]): string {
  return JSON.stringify(records, (_, member: unknown) => (typeof member === 'bigint' ? member.toString() : member));
}

function sorted(numbers: readonly unknown[]): string {
  return numbers
    .map((one) => shown([one]))
    .sort()
    .join();
}
