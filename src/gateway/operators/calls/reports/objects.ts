import type {
  ExportAllocationsRequest,
  ExportOrdersRequest,
  ExportWithdrawalsRequest,
} from '../../../../gen/marina/admin/v1/reports_pb.ts';
import type { Database } from '../../../store/database.ts';
import { type SqlRow, sql, statement } from '../../../store/statement.ts';
import type { Selection } from '../../../store/table.ts';
import { toAllocationMessage } from '../../../trading/allocations/table.ts';
import { shownRejectReason } from '../../../trading/orders/rules.ts';
import { toOrderMessage } from '../../../trading/orders/table.ts';
import { indexesOf } from '../../../trading/submission/list.ts';
import { toWithdrawalMessage } from '../../../trading/withdrawals/table.ts';
import type { AdminCall } from '../call.ts';
import { allocationKind, type FoundKind, orderKind, withdrawalKind } from '../diagnostics/find.ts';
import { invalidField } from '../errors.ts';
import { askedDays, type Days, idsAround } from './days.ts';
import { partnersOf } from './partners.ts';
import type { ReportForm, ReportsUnderWay } from './parts.ts';

interface ObjectsRequest {
  readonly fromDay: string;
  readonly toDay: string;
  readonly partnerId: string;
  readonly state: number;
  readonly symbol?: string;
}

/** An object in a report. */
interface ReportedObject<Shown> {
  readonly partnerId: string;
  readonly keyId: string | null;
  readonly shown: Shown;
  /** Its columns, as CSV has them. */
  readonly json: Readonly<Record<string, unknown>>;
}

interface CreatedObject {
  readonly id: string;
  readonly createdAt: number;
}

/** How many objects are read at a time. */
const together = 200;

/** The operators' calls that export the objects of all partners. */
export function objectReports(database: Database, underWay: ReportsUnderWay) {
  return {
    exportOrders(request: ExportOrdersRequest, call: AdminCall, signal: AbortSignal) {
      const form = formOf(orderKind, (lines) => ({
        orders: lines.map(({ shown, ...owner }) => ({ ...owner, order: toOrderMessage(shown) })),
      }));
      const toLines: typeof form.toLines = (line) =>
        form.toLines({ ...line, json: { ...line.json, reject_reason: shownRejectReason(line.shown) } });
      return underWay.messages(
        call,
        request.format,
        { ...form, toLines },
        signal,
        objectsOf(database, orderKind, request),
      );
    },

    exportAllocations(request: ExportAllocationsRequest, call: AdminCall, signal: AbortSignal) {
      const form = formOf(allocationKind, (lines) => ({
        allocations: lines.map(({ shown, ...owner }) => ({ ...owner, allocation: toAllocationMessage(shown) })),
      }));
      return underWay.messages(call, request.format, form, signal, objectsOf(database, allocationKind, request));
    },

    exportWithdrawals(request: ExportWithdrawalsRequest, call: AdminCall, signal: AbortSignal) {
      const form = formOf(withdrawalKind, (lines) => ({
        withdrawals: lines.map(({ shown, ...owner }) => ({ ...owner, withdrawal: toWithdrawalMessage(shown) })),
      }));
      return underWay.messages(call, request.format, form, signal, objectsOf(database, withdrawalKind, request));
    },
  };
}

/** CSV has the columns of the fields that partners see. */
function formOf<Shown, Part>(
  { selection }: FoundKind<Shown>,
  toMessage: ReportForm<ReportedObject<Shown>, Part>['toMessage'],
): ReportForm<ReportedObject<Shown>, Part> {
  const shownColumns = selection.list.split(', ');
  return {
    columns: ['partner_id', 'key_id', ...shownColumns],
    toLines: ({ partnerId, keyId, json }) => [
      [...[partnerId, keyId ?? ''], ...shownColumns.map((name) => String(json[name] ?? ''))],
    ],
    toMessage,
  };
}

/** The objects of some days, partner by partner, oldest first. */
function objectsOf<Shown extends CreatedObject>(database: Database, kind: FoundKind<Shown>, request: ObjectsRequest) {
  return async function* pages(signal: AbortSignal): AsyncGenerator<ReportedObject<Shown>[]> {
    const days = askedDays(request);
    const state = request.state === 0 ? undefined : kind.states.find(request.state);
    if (request.state !== 0 && state === undefined) throw invalidField('state', 'must be a state.');
    const { symbol = '' } = request;
    const filters = {
      ...(state === undefined ? {} : { state }),
      ...(symbol === '' ? {} : { symbol: symbol.toUpperCase() }),
    };
    for await (const partnerId of partnersOf(database, request.partnerId, signal)) {
      yield* pagesOf(database, kind, { partnerId, ...filters }, days, signal);
    }
  };
}

async function* pagesOf<Shown extends CreatedObject>(
  database: Database,
  { table, prefix, selection }: FoundKind<Shown>,
  equal: { readonly partnerId: string },
  days: Days,
  signal: AbortSignal,
): AsyncGenerator<ReportedObject<Shown>[]> {
  const reported: Selection<ReportedObject<Shown>> = {
    list: `partner_id, key_id, ${selection.list}`,
    read: (row: SqlRow) => ({
      partnerId: String(row.partner_id),
      keyId: row.key_id as string | null,
      shown: selection.read(row),
      json: table.toJson(row),
    }),
  };
  const index = indexesOf(table.indexes, equal);
  for (let from: string | undefined; !signal.aborted; ) {
    const tail = sql`AND ${idsAround(days, prefix, from)} ORDER BY id ${statement(`LIMIT ${together}`)}`;
    const page = (await database.read(table.find(equal as never, reported, tail, index))).map(reported.read);
    yield page.filter(({ shown }) => shown.createdAt >= days.from && shown.createdAt < days.until);
    const last = page.at(-1);
    if (last === undefined || page.length < together) return;
    // All ids have the same length, so this is after the last one and before the next.
    from = `${last.shown.id}2`;
  }
}
