import type { Message } from '@bufbuild/protobuf';
import type { Event } from '../../gen/marina/gateway/v1/events_pb.ts';
import type { IdPrefix } from '../edge/ids.ts';
import type { SqlRow } from '../store/statement.ts';
import type { Selection, Table } from '../store/table.ts';
import { allocationStates } from './allocations/rules.ts';
import { allocations, shownAllocation, toAllocationMessage } from './allocations/table.ts';
import { applicationStates } from './applications/rules.ts';
import { applications, shownApplication, toApplicationMessage } from './applications/table.ts';
import { orderStates } from './orders/rules.ts';
import { orders, shownOrder, toOrderMessage } from './orders/table.ts';
import type { KindName } from './submission/kind.ts';
import type { States } from './submission/rules.ts';
import { withdrawalStates } from './withdrawals/rules.ts';
import { shownWithdrawal, toWithdrawalMessage, withdrawals } from './withdrawals/table.ts';

/** An object as its partner sees it, with its kind. */
type ShownObject = Event['data'];

/**
 * A kind of objects that partners create, without its broker: for code that treats all kinds alike and does not submit. A
 * kind is added here once; lists, counts, the archive and the operators' calls then have it.
 */
export interface StoredKind {
  readonly name: KindName;
  readonly prefix: IdPrefix;
  // biome-ignore lint/suspicious/noExplicitAny: tables of all rows stand in one list.
  readonly table: Table<any>;
  readonly states: Pick<States<string>, 'final'>;
  /** The fields that partners see. */
  readonly selection: Selection<unknown>;
  /** The object of a row with these fields. */
  show(row: SqlRow): ShownObject;
}

/** All kinds, in the order in which operators read them. */
export const storedKinds: readonly StoredKind[] = [
  describe('order', 'ord', orders, orderStates, shownOrder, toOrderMessage),
  describe('application', 'app', applications, applicationStates, shownApplication, toApplicationMessage),
  describe('allocation', 'alc', allocations, allocationStates, shownAllocation, toAllocationMessage),
  describe('withdrawal', 'wdr', withdrawals, withdrawalStates, shownWithdrawal, toWithdrawalMessage),
];

/** The kind of an object, by the prefix of its id; undefined for a key and a partner. */
export function storedKindOf(id: string): StoredKind | undefined {
  return storedKinds.find(({ prefix }) => id.startsWith(`${prefix}_`));
}

/** The tables of all kinds, by the kinds' names. */
export const kindTables = Object.fromEntries(storedKinds.map(({ name, table }) => [name, table])) as Readonly<
  Record<KindName, StoredKind['table']>
>;

function describe<Row extends object, Shown>(
  name: KindName,
  prefix: IdPrefix,
  table: Table<Row>,
  states: StoredKind['states'],
  selection: Selection<Shown>,
  toMessage: (shown: Shown) => Message,
): StoredKind {
  const show = (row: SqlRow) => ({ case: name, value: toMessage(selection.read(row)) }) as ShownObject;
  return { name, prefix, table, states, selection, show };
}
