import { status } from '@grpc/grpc-js';
import {
  type BulkCancelResult,
  BulkCancelResultSchema,
  type CancelOpenOrdersRequest,
  type CountOpenOrdersRequest,
  type Trading,
} from '../../../gen/marina/admin/v1/trading_pb.ts';
import { type OrderSide, OrderSideSchema } from '../../../gen/marina/gateway/v1/orders_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import { isSamePerson } from '../../../kit/operator-tokens.ts';
import type { Database } from '../../store/database.ts';
import { type Decision, type SqlRow, statement } from '../../store/statement.ts';
import { findOpenOrders, type OpenOrder, type OrderFilter } from '../../trading/orders/bulk-cancels/open-orders.ts';
import { longestMs } from '../../trading/orders/bulk-cancels/rules.ts';
import {
  type BulkCancel,
  bulkCancelOrders,
  bulkCancels,
  listBulkCancels,
  listOrdersOf,
  maxRunning,
} from '../../trading/orders/bulk-cancels/table.ts';
import { readUpToDate } from '../../trading/submission/table.ts';
import { audit } from './audit.ts';
import { type AdminCall, type AdminCalls, type AdminParts, listed, oneAtATime, requirePartner } from './call.ts';
import { AdminError, invalidField } from './errors.ts';

/** A count stops a little above this: an exact number beyond it is not worth its cost. */
const maxCounted = 100_000;
const maxExamples = 10;
/** One operator leaves room for the jobs of others. */
const maxOfOperator = 10;
/** How far ahead the clock of a replica that stored an order may be. */
const clockMarginMs = 60_000;
/** Rows in one INSERT. */
const insertedAtOnce = 5_000;
const sides = enumWords<typeof OrderSide>(OrderSideSchema);
const results = enumWords<typeof BulkCancelResult>(BulkCancelResultSchema);

type BulkCancelCalls = Pick<
  AdminCalls<typeof Trading>,
  | 'countOpenOrders'
  | 'cancelOpenOrders'
  | 'getBulkCancel'
  | 'listBulkCancels'
  | 'listBulkCancelOrders'
  | 'stopBulkCancel'
>;

/** The operators' calls that cancel open orders. They store, show and end the jobs of `trading/bulk-cancels`. */
export function bulkCancelCalls(parts: AdminParts): BulkCancelCalls {
  const { database, clock } = parts;
  const counting = oneAtATime('other orders are being counted');

  async function find(id: string): Promise<BulkCancel> {
    const [row] = await readUpToDate(database, bulkCancels.find({ id }));
    return readJob(row);
  }

  return {
    async countOpenOrders(request) {
      return counting(async () => {
        const filter = await filterOf(parts, request);
        return counted(await findOpenOrders(database, filter, clock.now() + clockMarginMs, maxCounted));
      });
    },

    cancelOpenOrders: (request, call) => begin(parts, request, call),

    async getBulkCancel({ id }) {
      return { bulkCancel: toMessage(await find(id)) };
    },

    async listBulkCancels({ done, limit, beforeId }) {
      const { rows, hasMore } = await listed(limit, (most) => database.read(listBulkCancels(done, beforeId, most)));
      return { bulkCancels: rows.map((row) => toMessage(bulkCancels.all.read(row))), hasMore };
    },

    async listBulkCancelOrders({ id, result, limit, afterOrderId }) {
      const wanted = Number(result) === 0 ? null : results.find(result);
      if (wanted === undefined) throw invalidField('result', 'must be a result.');
      await find(id);
      const { rows, hasMore } = await listed(limit, (most) =>
        database.read(listOrdersOf(id, wanted, afterOrderId, most)),
      );
      return { orders: rows.map(bulkCancelOrders.all.read), hasMore };
    },

    async stopBulkCancel({ id, reason }, call) {
      return database.transaction(
        [bulkCancels.find({ id }, bulkCancels.all, { sql: 'FOR UPDATE', values: [] })],
        ([rows = []]) => stop(readJob(rows[0]), reason, call, clock.now()),
      );
    },
  };
}

/** Stores a job with the orders that are open now, in one transaction. */
async function begin(
  parts: AdminParts,
  { atMost, reason, ...request }: CancelOpenOrdersRequest,
  call: AdminCall,
): Promise<Changed> {
  const { database, clock, ids } = parts;
  const filter = await filterOf(parts, request);
  const now = clock.now();
  const found = await findOpenOrders(database, filter, now + clockMarginMs, atMost);
  if (found.length === 0) return { changed: false, bulkCancel: undefined };
  if (found.length > atMost) {
    throw new AdminError(
      status.FAILED_PRECONDITION,
      `more than ${atMost} orders match, so nothing was stored: count them, or narrow the filters`,
    );
  }
  const realNow = clock.realNow();
  const job: BulkCancel = {
    ...{ id: ids.object('bcl'), ...filter, reason, startedBy: call.operator, requestId: call.requestId },
    ...{ createdAt: now, giveUpAt: realNow + longestMs, updatedAt: now, matched: found.length },
    ...{ cancelled: 0, notCancelable: 0, unconfirmed: 0, waitsFor: null },
    ...{ endedAt: null, endedBy: null, endReason: null },
  };
  const items = found.map(({ partnerId, id: orderId }) => ({
    ...{ partnerId, bulkCancelId: job.id, orderId, result: null, detail: null, sentAt: null, dueAt: realNow },
  }));
  const inserts = Array.from({ length: Math.ceil(items.length / insertedAtOnce) }, (_, at) =>
    bulkCancelOrders.insert(...items.slice(at * insertedAtOnce, (at + 1) * insertedAtOnce)),
  );
  const entry = { partnerId: filter.partnerId ?? undefined, subject: job.id };
  const detail = { ...filter, atMost, matched: found.length, reason };
  return database.transaction<Changed>([listBulkCancels(false, '', maxRunning)], ([rows = []]) => {
    if (rows.length >= maxRunning) {
      throw new AdminError(status.RESOURCE_EXHAUSTED, `${maxRunning} such jobs are running: wait, or stop one first`);
    }
    const own = rows.map(bulkCancels.all.read).filter(({ startedBy }) => isSamePerson(startedBy, call.operator));
    if (own.length >= maxOfOperator) {
      throw new AdminError(status.RESOURCE_EXHAUSTED, `${maxOfOperator} jobs of yours are running: stop one first`);
    }
    const writes = [
      bulkCancels.insert(job),
      ...inserts,
      audit(call, now, { ...entry, detail, after: { running: true } }),
    ];
    return { writes, result: { changed: true, bulkCancel: toMessage(job) } };
  });
}

interface Changed {
  readonly changed: boolean;
  readonly bulkCancel: ReturnType<typeof toMessage> | undefined;
}

/** Ends a job, unless somebody has stopped it. `now` is business time. */
function stop(before: BulkCancel, reason: string, call: AdminCall, now: number): Decision<Changed> {
  if (before.endedBy !== null) return { writes: [], result: { changed: false, bulkCancel: toMessage(before) } };
  // An operator who stops a job that came to its end most likely means another one.
  if (before.endedAt !== null) throw new AdminError(status.FAILED_PRECONDITION, 'the job has ended by itself');
  const after = { ...before, endedAt: now, endedBy: call.operator, endReason: reason, waitsFor: null };
  const { left, cancelled, notCancelable, unconfirmed } = toMessage(before);
  const entry = { partnerId: before.partnerId ?? undefined, subject: before.id };
  const detail = { reason, left, cancelled, notCancelable, unconfirmed };
  const ended = { ...entry, detail, before: { running: true }, after: { running: false } };
  const writes = [...bulkCancels.update(before, after), audit(call, now, ended)];
  return { writes, result: { changed: true, bulkCancel: toMessage(after) } };
}

type GivenFilter = Pick<CountOpenOrdersRequest, 'partnerId' | 'account' | 'symbol' | 'side' | 'keyId'>;

/** The filter of a request. Throws if it names too little, or NOT_FOUND if there is no such partner or key. */
async function filterOf({ database }: AdminParts, { side, ...given }: GivenFilter): Promise<OrderFilter> {
  const { partnerId, account, symbol, keyId } = given;
  if (partnerId === '' && account === '' && symbol === '') {
    throw invalidField('partner_id', 'or `account` or `symbol` must be given.');
  }
  if (keyId !== '' && partnerId === '') throw invalidField('partner_id', 'is required with `key_id`.');
  const word = Number(side) === 0 ? null : sides.find(side);
  if (word === undefined) throw invalidField('side', 'must be a side.');
  if (partnerId !== '') await requirePartner(database, partnerId);
  if (keyId !== '') await requireKey(database, partnerId, keyId);
  const text = (value: string) => (value === '' ? null : value);
  return {
    ...{ partnerId: text(partnerId), account: text(account.toUpperCase()), symbol: text(symbol) },
    ...{ side: word, keyId: text(keyId) },
  };
}

/** Throws NOT_FOUND if the key is not the partner's: nothing would match, and it would look as if nothing was open. */
async function requireKey(database: Database, partnerId: string, keyId: string): Promise<void> {
  const [key] = await database.read(statement('SELECT partner_id FROM api_keys WHERE id = ?', keyId));
  if (key?.partner_id !== partnerId) throw new AdminError(status.NOT_FOUND, 'the partner has no such key');
}

function counted(found: readonly OpenOrder[]) {
  const count = (has: (order: OpenOrder) => boolean) => found.filter(has).length;
  const pending = count(({ state }) => state === 'pending');
  const partiallyFilled = count(({ state }) => state === 'partially_filled');
  return {
    ...{ matched: found.length, pending, partiallyFilled, undecided: found.length - pending - partiallyFilled },
    cancelling: count(({ cancelUntil }) => cancelUntil !== null),
    examples: found.slice(0, maxExamples).map(({ id: orderId, ...order }) => ({ orderId, ...order })),
  };
}

function readJob(row: SqlRow | undefined): BulkCancel {
  if (row === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such job');
  return bulkCancels.all.read(row);
}

/** A job as operators see it. */
function toMessage({ endedBy: stoppedBy, endReason: stopReason, ...job }: BulkCancel) {
  const { matched, cancelled, notCancelable, unconfirmed, endedAt } = job;
  const left = matched - cancelled - notCancelable - unconfirmed;
  return { ...job, left, stoppedBy, stopReason, state: endedAt === null ? 'running' : 'done' };
}
