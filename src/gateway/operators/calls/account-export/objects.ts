import type { Database } from '../../../store/database.ts';
import { milliseconds, type SqlRow, type Statement, sql, statement } from '../../../store/statement.ts';
import { documents, findDocuments } from '../../../trading/applications/documents/store.ts';
import { type StoredKind, storedKinds } from '../../../trading/kinds.ts';
import { shownRejectReason } from '../../../trading/orders/rules.ts';
import { orderHistory, orderSteps, shownOrder } from '../../../trading/orders/table.ts';
import { objectHistory, objectSteps } from '../../../trading/submission/table.ts';
import { toEntry } from '../../../trading/wallet/store.ts';
import { findTransfers } from '../diagnostics/objects.ts';
import { type Days, idsBefore } from '../reports/days.ts';
import { type AccountLine, isOn, timeText } from './lines.ts';

/** How many objects are read at a time. */
const objectsTogether = 200;
/** How many objects' histories begin in one round trip. */
const historiesTogether = 20;
/** How many steps of an object are read at a time. */
const stepsTogether = 100;
/** How far the instants of two steps may be in the wrong order, because replicas' clocks differ. */
const marginMs = 60_000;

/** An object with the rows of other tables about it. */
interface Found {
  readonly kind: StoredKind;
  readonly row: SqlRow;
  /** The first steps of its history. */
  readonly steps: readonly SqlRow[];
  /** Documents of an application; entries of the ledger about an allocation or a withdrawal. */
  readonly attached: readonly SqlRow[];
}

/** The objects of a partner's account that were created or changed on some days, each with what happened to it then. */
export async function* objectLines(
  database: Database,
  partnerId: string,
  account: string,
  days: Days,
): AsyncGenerator<AccountLine[]> {
  for (const kind of storedKinds) {
    for await (const rows of pagesOf(database, kind, partnerId, account, days)) {
      const changed = await changedSince(database, kind, rows, days.from - marginMs);
      if (changed.length === 0) yield [];
      for (let at = 0; at < changed.length; at += historiesTogether) {
        const some = changed.slice(at, at + historiesTogether);
        const histories = await database.readAll(some.map((row) => stepsAfter(kind, row, 0)));
        const attached = await database.readAll(some.flatMap((row) => findAttached(kind, row)));
        for (const [index, row] of some.entries()) {
          const found = { kind, row, steps: histories[index] ?? [], attached: attached[index] ?? [] };
          yield* linesOf(database, found, days);
        }
      }
    }
  }
}

/** The objects with the account, oldest first. */
async function* pagesOf(
  database: Database,
  { table, prefix, selection }: StoredKind,
  partnerId: string,
  account: string,
  days: Days,
): AsyncGenerator<SqlRow[]> {
  const columns = { list: `partner_id, key_id, steps, ${selection.list}`, read: (row: SqlRow) => row };
  for (let after = ''; ; ) {
    const tail = sql`AND id > ${after} AND ${idsBefore(days, prefix)} ORDER BY id ${statement(`LIMIT ${objectsTogether}`)}`;
    const rows = await database.read(table.find({ partnerId, account }, columns, tail, `${table.name}_account`));
    yield rows;
    if (rows.length < objectsTogether) return;
    after = String(rows.at(-1)?.id);
  }
}

/** Those that got a step at an instant or later. A step can leave an object as partners see it, as a cancel that is sent does. */
async function changedSince(database: Database, kind: StoredKind, rows: readonly SqlRow[], atMs: number) {
  const isLate = (at: unknown) => (milliseconds(at) ?? 0) >= atMs;
  const others = rows.filter((row) => !isLate(row.updated_at));
  const steps = await database.readAll(others.map((row) => lastStepOf(kind, row)));
  const stepped = new Set(others.filter((_, index) => isLate(steps[index]?.[0]?.at ?? null)));
  return rows.filter((row) => isLate(row.updated_at) || stepped.has(row));
}

function lastStepOf({ name }: StoredKind, { partner_id: owner, id, steps }: SqlRow): Statement {
  const [partnerId, objectId, sequence] = [String(owner), String(id), Number(steps)];
  if (name === 'order') return orderSteps.find({ partnerId, orderId: objectId, sequence }, orderSteps.only('at'));
  return objectSteps.find({ partnerId, objectId, sequence }, objectSteps.only('at'));
}

/** An object, if something happened to it on some days, and what. */
async function* linesOf(database: Database, { kind, row, steps, attached }: Found, days: Days) {
  const lines = attached.map(kind.name === 'application' ? documentLine : ledgerLine).filter(({ isOf }) => isOf(days));
  const isOf = [row.created_at, row.updated_at].some((at) => isOn(days, milliseconds(at) ?? 0));
  let isShown = false;
  for (let page = steps; ; ) {
    const some = page.filter(({ at }) => isOn(days, milliseconds(at) ?? 0)).map((step) => stepLine(kind, step));
    const first = page === steps ? lines.map(({ line }) => line) : [];
    const isFirst: boolean = !isShown && (isOf || first.length + some.length > 0);
    isShown ||= isFirst;
    yield [...(isFirst ? [objectLine(kind, row, steps)] : []), ...first, ...some];
    const last = page.at(-1);
    if (last === undefined || page.length < stepsTogether) return;
    [page = []] = await database.readAll([stepsAfter(kind, row, Number(last.sequence))]);
  }
}

function stepsAfter({ name }: StoredKind, { partner_id: partnerId, id }: SqlRow, after: number) {
  const history = name === 'order' ? orderHistory : objectHistory;
  return history.page(String(partnerId), String(id), after, stepsTogether);
}

function findAttached({ name }: StoredKind, { partner_id: partnerId, id }: SqlRow): Statement[] {
  if (name === 'order') return [];
  const find = name === 'application' ? findDocuments : findTransfers;
  return [find(String(partnerId), String(id))];
}

/** The object as its partner sees it. Its first steps may be in the archive alone. */
function objectLine({ name, table, selection }: StoredKind, row: SqlRow, steps: readonly SqlRow[]): AccountLine {
  const json = table.toJson(row);
  const shown = selection.list.split(', ').map((column) => [column, json[column]]);
  const archived = Number(steps[0]?.sequence ?? Number(row.steps) + 1) - 1;
  return {
    ...{ line: 'object', object: name, partner_id: row.partner_id, key_id: row.key_id, ...Object.fromEntries(shown) },
    ...(name === 'order' ? { reject_reason: shownRejectReason(shownOrder.read(row)) } : {}),
    archived_steps: archived,
  };
}

function stepLine({ name }: StoredKind, row: SqlRow): AccountLine {
  const table = name === 'order' ? orderSteps : objectSteps;
  const { order_id: orderId, object_id: objectId = orderId, ...step } = table.toJson(row);
  return { line: 'step', object_id: objectId, ...step };
}

function documentLine(row: SqlRow) {
  const { partnerId, applicationId, type, state, attempt, createdAt, updatedAt } = documents.all.read(row);
  const line: AccountLine = {
    ...{ line: 'document', object_id: applicationId, partner_id: partnerId, type, state, sends: attempt },
    ...{ created_at: timeText(createdAt), updated_at: timeText(updatedAt) },
  };
  return { line, isOf: (days: Days) => createdAt < days.until && updatedAt >= days.from };
}

function ledgerLine(row: SqlRow) {
  const { partnerId, sequence, id, type, amountKobo, allocation, withdrawal, createdAt } = toEntry(row);
  const line: AccountLine = {
    ...{ line: 'ledger', object_id: withdrawal ?? allocation, partner_id: partnerId, sequence: String(sequence), id },
    ...{ at: timeText(createdAt), type, amount_kobo: String(amountKobo) },
  };
  return { line, isOf: (days: Days) => isOn(days, createdAt) };
}
