import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import {
  type GetStatementRequest,
  type GetStatementResponseSchema,
  StatementOrderState,
  StatementSection,
  type Statements,
} from '../../gen/marina/broker/v1/statements_pb.ts';
import { Call, StatementLie } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { isDate, nextLagosMidnight } from '../../kit/clock.ts';
import { check } from '../validation.ts';
import { unrecorded } from '../wire/legs.ts';
import { RpcError, type SimulatorHandlers } from '../wire/rpc.ts';
import type { Wire } from '../wire/wire.ts';
import type { World } from '../world.ts';
import type { Lies } from './lies.ts';
import type { Day, Page, StatementRecords } from './records.ts';

interface StatementsContext {
  readonly world: World;
  readonly wire: Wire;
  readonly records: StatementRecords;
  readonly lies: Lies;
}

type Answer = MessageInitShape<typeof GetStatementResponseSchema>;

const dayMs = 86_400_000;
const maxPage = 1_000;
const longestCursor = 200;
/** Room in a page for records that a lie adds. */
const room = 50;

/** The broker's statements. A day is complete when it is over. Each call passes the faults first. */
export function statementsService({
  world,
  wire,
  records,
  lies,
}: StatementsContext): SimulatorHandlers<typeof Statements> {
  return {
    getStatement: (request, call) =>
      wire.carry<Answer>(call, {
        ...unrecorded(Call.GET_STATEMENT, ''),
        take: () => answer(request),
        nonsense: () => ({ day: '1970-01-01', isComplete: true }),
      }),
  };

  async function answer({ day, section, cursor, limit }: GetStatementRequest): Promise<Answer> {
    check(isDate(day), 'day');
    check(section !== StatementSection.UNSPECIFIED && section in StatementSection, 'section');
    check(cursor.length <= longestCursor, 'cursor');
    check(limit >= 1 && limit <= maxPage, 'limit');
    if (lies.of(day, StatementLie.NOT_OFFERED).length > 0) {
      throw new RpcError(status.UNIMPLEMENTED, 'This broker gives no statements.');
    }
    const toMs = nextLagosMidnight(Date.parse(`${day}T00:00:00Z`));
    const period: Day = { day, fromMs: toMs - dayMs, toMs };
    const isSaidComplete = lies.of(day, StatementLie.COMPLETE).length > 0;
    const isSaidIncomplete = lies.of(day, StatementLie.INCOMPLETE).length > 0;
    const isComplete = !isSaidIncomplete && (isSaidComplete || world.clock.now() >= toMs);
    const head = { day, isComplete, from: timestampFromMs(period.fromMs), to: timestampFromMs(toMs) };
    if (section === StatementSection.ORDERS && lies.of(day, StatementLie.ENDLESS_ORDERS).length > 0) {
      return { ...head, ...endlessOrders(cursor, limit) };
    }
    const isEndless = lies.of(day, StatementLie.ENDLESS_PAGE).length > 0 && section === StatementSection.ORDERS;
    const list = await read(section, period, isEndless ? '' : cursor, Math.max(1, limit - room));
    return { ...head, ...list, ...(isEndless ? { nextCursor: 'again' } : {}) };
  }

  async function read(section: StatementSection, period: Day, after: string, limit: number): Promise<Answer> {
    switch (section) {
      case StatementSection.ORDERS:
        return shown(await records.orders(period, after, limit), (orders) => ({ orders }));
      case StatementSection.TRADES:
        return shown(await records.trades(period, after, limit), (trades) => ({ trades }));
      case StatementSection.ALLOCATIONS:
        return shown(await records.allocations(period, after, limit), (allocations) => ({ allocations }));
      case StatementSection.WITHDRAWALS:
        return shown(await records.withdrawals(period, after, limit), (withdrawals) => ({ withdrawals }));
      case StatementSection.POSITIONS:
        return shown(await records.positions(period, after, limit), (positions) => ({
          positions: positions.filter(({ quantity }) => quantity !== 0n),
        }));
      default:
        return shown(await records.cash(period, after, limit), (cash) => ({ cash }));
    }
  }
}

function shown<Record>({ records, hasMore }: Page<Record>, toList: (records: Record[]) => Answer): Answer {
  const nextCursor = hasMore ? (records.at(-1)?.[0] ?? '') : '';
  return { ...toList(records.map(([, record]) => record)), nextCursor };
}

/** A page of orders that nobody sent, after which there is always another. */
function endlessOrders(cursor: string, limit: number): Answer {
  const first = Number(cursor || '0');
  const orders = Array.from({ length: limit }, (_, at) => ({
    ...{ clientOrderId: `ord_endless${String(first + at).padStart(13, '0')}`, exchangeOrderId: '' },
    ...{ account: 'NOBODY', symbol: 'NONE', side: Side.BUY, quantity: 1n, filledQuantity: 0n },
    state: StatementOrderState.OPEN,
  }));
  return { orders, nextCursor: String(first + limit) };
}
