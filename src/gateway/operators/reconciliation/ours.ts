import { groupBy } from '../../../kit/group.ts';
import type { Database } from '../../store/database.ts';
import { type SqlRow, type Statement, statement } from '../../store/statement.ts';
import type { Selection } from '../../store/table.ts';
import { allocations } from '../../trading/allocations/table.ts';
import { orderSteps, orders } from '../../trading/orders/table.ts';
import { isUnsettled } from '../../trading/submission/rules.ts';
import { byId, objectSteps } from '../../trading/submission/table.ts';
import { withdrawals } from '../../trading/withdrawals/table.ts';
import { type MoneyKind, movesOf, type OurMoney, stateBefore } from './money-rules.ts';
import { afterStep, isIn, newHistory, type OrderHistory, type StatementPeriod } from './order-history.ts';
import type { OurOrder } from './rules.ts';
import type { ComparedDay } from './table.ts';

/** How far the clocks of gateway and broker may differ. */
export const clockMarginMs = 600_000;

const comparedOrder = orders.only(
  ...(['partnerId', 'id', 'account', 'symbol', 'side', 'quantity', 'exchangeOrderId'] as const),
  ...(['state', 'filledQuantity', 'createdAt', 'updatedAt'] as const),
);
const comparedAllocation = allocations.only(
  ...(['partnerId', 'id', 'account', 'amountKobo', 'brokerReference', 'state', 'createdAt', 'updatedAt'] as const),
);

const comparedWithdrawal = withdrawals.only(
  ...(['partnerId', 'id', 'account', 'amountKobo', 'destination', 'brokerReference', 'state'] as const),
  ...(['createdAt', 'updatedAt'] as const),
);

const orderStep = orderSteps.only(
  ...(['orderId', 'sequence', 'kind', 'at', 'state', 'reportNumber', 'upstreamAt', 'quantity', 'priceKobo'] as const),
  ...(['tradeSequence', 'filledChange', 'valueChangeKobo'] as const),
);
const objectStep = objectSteps.only('objectId', 'sequence', 'at', 'state', 'upstreamAt');

const stepsTogether = 2_000;

/** The gateway's side of a comparison. */
export interface Compared extends ComparedDay {
  readonly database: Database;
  readonly period: StatementPeriod;
  /** The broker has orders of another installation: one that the gateway does not have is no break. */
  readonly isShared: boolean;
}

/** A page of a partner's objects that changed since an instant, by when they changed. */
export interface ChangedSince {
  readonly partnerId: string;
  readonly updatedAt: number;
  /** The last object before the page; empty: there is none. */
  readonly id: string;
}

/** Reads the gateway's side of a day: its objects as they were at the end of a period. It changes nothing. */
export class OurObjects {
  constructor(private readonly of: Compared) {}

  async ordersById(ids: readonly string[]): Promise<ReadonlyMap<string, OurOrder>> {
    return this.#orders(await this.#byId(orders, comparedOrder, ids));
  }

  async moneyById(kind: MoneyKind, ids: readonly string[]): Promise<ReadonlyMap<string, OurMoney>> {
    return kind === 'allocation'
      ? this.#allocations(await this.#byId(allocations, comparedAllocation, ids))
      : this.#withdrawals(await this.#byId(withdrawals, comparedWithdrawal, ids));
  }

  /**
   * Orders that changed since an instant and were there by the end of the period, with the position of the last that changed; no
   * position: there are no more. Of a later order nothing more is read.
   */
  async changedOrders(since: ChangedSince, most: number) {
    const { early, next } = await this.#changed(orders, comparedOrder, since, most);
    return { ours: await this.#orders(early), count: early.length, next };
  }

  async changedMoney(kind: MoneyKind, since: ChangedSince, most: number) {
    if (kind === 'allocation') {
      const { early, next } = await this.#changed(allocations, comparedAllocation, since, most);
      return { ours: await this.#allocations(early), count: early.length, next };
    }
    const { early, next } = await this.#changed(withdrawals, comparedWithdrawal, since, most);
    return { ours: await this.#withdrawals(early), count: early.length, next };
  }

  async #byId<Row>(table: { readonly name: string }, selection: Selection<Row>, ids: readonly string[]) {
    if (ids.length === 0) return [];
    const query = statement(`SELECT ${selection.list} FROM ${byId({ table })} WHERE id IN (?)`, ids);
    const [rows = []] = await this.of.database.readAll([query]);
    return rows.map(selection.read);
  }

  /** Those of a page that were there by the end of the period: the broker reported nothing of a later one. */
  async #changed<Row extends { readonly id: string; readonly createdAt: number; readonly updatedAt: number }>(
    { name }: { readonly name: string },
    selection: Selection<Row>,
    { partnerId, updatedAt, id }: ChangedSince,
    most: number,
  ): Promise<{ readonly early: readonly Row[]; readonly next: ChangedSince | undefined }> {
    const at = new Date(updatedAt);
    const rows = await this.of.database.read(
      statement(
        `SELECT ${selection.list} FROM ${name} FORCE INDEX (${name}_updated_at)
          WHERE partner_id = ? AND ((updated_at = ? AND id > ?) OR updated_at > ?) ORDER BY updated_at, id LIMIT ${most}`,
        ...[partnerId, at, id, at],
      ),
    );
    const changed = rows.map(selection.read);
    const last = changed.length < most ? undefined : changed.at(-1);
    const early = changed.filter(({ createdAt }) => createdAt < this.of.period.to + clockMarginMs);
    return { early, next: last && { partnerId, updatedAt: last.updatedAt, id: last.id } };
  }

  async #orders(rows: readonly ReturnType<typeof comparedOrder.read>[]): Promise<ReadonlyMap<string, OurOrder>> {
    const histories = new Map(rows.map(({ id, createdAt }) => [id, newHistory(createdAt)]));
    await this.#steps(orderSteps, 'order_id', orderStep, rows, (step) => {
      const history = histories.get(step.orderId);
      if (history !== undefined) histories.set(step.orderId, afterStep(history, step, this.of.period));
    });
    return new Map(rows.map((row) => [row.id, toOrder(row, histories.get(row.id) ?? newHistory(row.createdAt))]));
  }

  async #allocations(
    rows: readonly ReturnType<typeof comparedAllocation.read>[],
  ): Promise<ReadonlyMap<string, OurMoney>> {
    const decidedAt = new Map<string, number>();
    await this.#steps(objectSteps, 'object_id', objectStep, rows, ({ objectId, state, upstreamAt }) => {
      const isDecision = upstreamAt !== null && (state === 'booked' || state === 'rejected');
      if (isDecision && !decidedAt.has(objectId)) decidedAt.set(objectId, upstreamAt);
    });
    return new Map(
      rows.map(({ id, partnerId, account, amountKobo, brokerReference: reference, state, updatedAt }) => {
        const at = decidedAt.get(id) ?? updatedAt;
        const isReported = (state === 'booked' || state === 'rejected') && isIn(this.of.period, at);
        const terms = { account, amountKobo, destination: '', reference, state };
        const moves = state === 'booked' ? [{ at: decidedAt.get(id) ?? null, kobo: amountKobo }] : [];
        return [id, { partnerId, ...terms, isUnsettled: isUnsettled(state), isReported, moves }];
      }),
    );
  }

  /** A report that the gateway refused to believe was made all the same: the statement has its withdrawal. */
  async #withdrawals(
    rows: readonly ReturnType<typeof comparedWithdrawal.read>[],
  ): Promise<ReadonlyMap<string, OurMoney>> {
    const { period } = this.of;
    const steps = new Map<string, { readonly state: string; readonly at: number | null }[]>();
    await this.#steps(objectSteps, 'object_id', objectStep, rows, ({ objectId, state, upstreamAt: at }) => {
      steps.set(objectId, [...(steps.get(objectId) ?? []), { state, at }]);
    });
    return new Map(
      rows.map(({ id, partnerId, account, amountKobo, destination, brokerReference: reference, state }) => {
        const own = (steps.get(id) ?? []).flatMap(({ state, at }) => (at === null ? [] : [{ state, at }]));
        const isOpen = isUnsettled(state);
        const stateThen = isOpen ? state : stateBefore(period.to, own, state);
        const terms = { account, amountKobo, destination, reference, state: stateThen };
        const isReported = own.some(({ at }) => isIn(period, at));
        const moves = movesOf(amountKobo, steps.get(id) ?? []);
        return [id, { partnerId, ...terms, isUnsettled: isOpen, isReported, moves }];
      }),
    );
  }

  /** Reads the steps of some objects, partner by partner, an object's oldest first. It may have any number of them. */
  async #steps<Step>(
    table: { readonly name: string },
    idColumn: string,
    step: Selection<Step>,
    objects: readonly { readonly partnerId: string; readonly id: string }[],
    each: (step: Step) => void,
  ): Promise<void> {
    const order = `ORDER BY ${idColumn}, sequence LIMIT ${stepsTogether}`;
    const from = `SELECT ${step.list} FROM ${table.name} FORCE INDEX (PRIMARY) WHERE partner_id = ?`;
    for (const [partnerId, own] of groupBy(objects, (one) => one.partnerId)) {
      const ids = own.map(({ id }) => id);
      let query: Statement | undefined = statement(`${from} AND ${idColumn} IN (?) ${order}`, partnerId, ids);
      while (query !== undefined) {
        const [rows = []]: SqlRow[][] = await this.of.database.readAll([query]);
        for (const row of rows) each(step.read(row));
        const last = rows.length < stepsTogether ? undefined : rows.at(-1);
        // No object has the empty id. Of one id alone, the database would read all steps from the first on, in each page.
        const later = ['', ...ids.filter((id) => id > String(last?.[idColumn]))];
        const condition = `((${idColumn} = ? AND sequence > ?) OR ${idColumn} IN (?))`;
        query =
          last &&
          statement(
            `${from} AND ${condition} ${order}`,
            ...[partnerId, String(last[idColumn]), Number(last.sequence), later],
          );
      }
    }
  }
}

function toOrder(row: ReturnType<typeof comparedOrder.read>, history: OrderHistory): OurOrder {
  const { partnerId, account, symbol, side, quantity, exchangeOrderId, state, filledQuantity } = row;
  const isOpen = isUnsettled(state);
  return {
    ...{ partnerId, account, symbol, side, quantity, exchangeOrderId },
    state: isOpen ? state : (history.state ?? state),
    possibleStates: history.possibleStates,
    isUnsettled: isOpen,
    filledQuantity: filledQuantity - history.filledLater,
    isReported: history.isReported,
    trades: history.trades,
  };
}
