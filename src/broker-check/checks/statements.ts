import { timestampMs } from '@bufbuild/protobuf/wkt';
import { keysOf, type StatementPlace, wrongIn } from '../../gateway/trading/broker/statements.ts';
import { ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import {
  type GetStatementResponse,
  StatementSection,
  type StatementTrade,
  type StatementWithdrawal,
  StatementWithdrawalState,
} from '../../gen/marina/broker/v1/statements_pb.ts';
import { type WithdrawalReport, WithdrawalReportKind } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { daysBefore, lagosDay } from '../../kit/clock.ts';
import { type Check, expect, NotRun } from '../check.ts';
import type { RecordedCall } from '../exchange.ts';
import { type CheckSession, poll, type SentWithdrawal, shownReport } from '../session.ts';
import { filled } from './fills.ts';
import { destinations } from './sent-withdrawals.ts';

const sections = [
  StatementSection.ORDERS,
  StatementSection.TRADES,
  StatementSection.ALLOCATIONS,
  StatementSection.POSITIONS,
  StatementSection.CASH,
] as const;
/** The section of withdrawals is not asked of an adapter that takes none. */
async function sectionsOf(session: CheckSession): Promise<readonly StatementSection[]> {
  return (await destinations(session)).length === 0 ? sections : [...sections, StatementSection.WITHDRAWALS];
}
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
      for (const section of await sectionsOf(session)) await readSection(session, yesterday(), section, largePage);
    },
  },
  {
    id: 'statement-pages',
    class: 'should',
    promise: 'Small pages of a statement have the same records as large ones',
    needs: ['Statements'],
    run: async (session) => {
      for (const section of await sectionsOf(session)) {
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
      // It may have been filled before midnight.
      const filledAt = reports[0]?.at;
      const day = lagosDay(filledAt === undefined ? Date.now() : timestampMs(filledAt));
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

/** The statement of the day on which the kit takes money. They come after the checks that send withdrawals. */
export const withdrawalStatementChecks: readonly Check[] = [
  {
    id: 'statement-of-withdrawals',
    class: 'should',
    promise: 'Every withdrawal with a report is in the statement of its day, with its account, amount and destination',
    needs: ['Statements', 'Withdrawals', 'account', 'withdraw'],
    run: async (session) => {
      await eachWithdrawal(session, ({ request }, { account, amountKobo, destination }) => {
        const isSame = amountKobo === request.amountKobo && destination === request.destination;
        return isSame && account === request.account;
      });
    },
  },
  {
    id: 'statement-of-withdrawal-states',
    class: 'should',
    promise: 'A withdrawal is in the statement in the state of its last report of the day, with its time and reference',
    needs: ['Statements', 'Withdrawals', 'account', 'withdraw'],
    run: async (session) => {
      await eachWithdrawal(session, ({ report }, { state, at, brokerReference }) => {
        const isSame = state === statedStates[report.kind] && brokerReference === report.brokerReference;
        return isSame && shown([at]) === shown([report.at]);
      });
    },
  },
];

const statedStates: Readonly<Record<number, StatementWithdrawalState>> = {
  [WithdrawalReportKind.ACCEPTED]: StatementWithdrawalState.ACCEPTED,
  [WithdrawalReportKind.PAID]: StatementWithdrawalState.PAID,
  [WithdrawalReportKind.REJECTED]: StatementWithdrawalState.REJECTED,
  [WithdrawalReportKind.RETURNED]: StatementWithdrawalState.RETURNED,
};

interface ReportedWithdrawal {
  readonly request: SentWithdrawal['request'];
  /** Its last one of the day. */
  readonly report: WithdrawalReport;
}

/** Waits until the statement of today has each withdrawal of the run that has a report, as it is expected. */
async function eachWithdrawal(
  session: CheckSession,
  isExpected: (sent: ReportedWithdrawal, stated: StatementWithdrawal) => boolean,
): Promise<void> {
  const day = lagosDay(Date.now());
  let wrong: string | undefined;
  let exchanges: readonly RecordedCall[] = [];
  await poll(session.settings.waits.settleMs, async () => {
    const reported = reportedOn(session, day);
    if (reported.size === 0) throw new NotRun('no withdrawal has a report of today');
    const read = await readSection(session, day, StatementSection.WITHDRAWALS, largePage);
    const stated = new Map(
      (read.records as unknown as StatementWithdrawal[]).map((one) => [one.clientWithdrawalId, one]),
    );
    exchanges = read.exchanges.slice(-1);
    wrong = undefined;
    for (const [id, sent] of reported) {
      const one = stated.get(id);
      if (one === undefined) wrong = `the statement does not have ${id}`;
      else if (!isExpected(sent, one)) wrong = `the statement has ${id} otherwise than it was sent and reported`;
    }
    return wrong === undefined || undefined;
  });
  expect(wrong === undefined, `${wrong}`, ...exchanges);
}

/** The withdrawals of the run that have a report of a day. */
function reportedOn(session: CheckSession, day: string): Map<string, ReportedWithdrawal> {
  const reported = new Map<string, ReportedWithdrawal>();
  const isOfDay = ({ at }: WithdrawalReport) => at !== undefined && lagosDay(timestampMs(at)) === day;
  for (const { id, request, outcome } of session.withdrawals) {
    const streamed = session.withdrawalFollower.reports.filter((one) => one.clientWithdrawalId === id);
    const answered = outcome.answer?.report;
    const all = [...(answered === undefined ? [] : [answered]), ...streamed].filter(isOfDay);
    const last = all.toSorted((one, other) => Number(one.number - other.number)).at(-1);
    if (last !== undefined) reported.set(id, { request: request as ReportedWithdrawal['request'], report: last });
  }
  return reported;
}

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
    [StatementSection.WITHDRAWALS]: answer.withdrawals,
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
