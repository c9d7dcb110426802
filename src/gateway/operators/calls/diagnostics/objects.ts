import type { GetTimelineResponse } from '../../../../gen/marina/admin/v1/diagnostics_pb.ts';
import { type SqlRow, type Statement, statement } from '../../../store/statement.ts';
import type { Selection, Table } from '../../../store/table.ts';
import { allocations, shownAllocation, toAllocationMessage } from '../../../trading/allocations/table.ts';
import { applications, shownApplication, toApplicationMessage } from '../../../trading/applications/table.ts';
import { orders, shownOrder, toOrderMessage } from '../../../trading/orders/table.ts';
import { transfers } from '../../../trading/wallet/store.ts';

/** An object as its partner sees it, in an answer to an operator. */
type DiagnosedObject = GetTimelineResponse['object'];

/** How the objects of a kind are read and shown. */
interface ShownKind {
  readonly name: 'order' | 'application' | 'allocation';
  readonly table: Pick<Table<{ readonly id: string }>, 'name' | 'find'>;
  readonly selection: Selection<unknown>;
  show(row: SqlRow): DiagnosedObject;
}

const shownKinds: Readonly<Record<string, ShownKind>> = {
  ord: {
    ...{ name: 'order', table: orders, selection: shownOrder },
    show: (row) => ({ case: 'order', value: toOrderMessage(shownOrder.read(row)) }),
  },
  app: {
    ...{ name: 'application', table: applications, selection: shownApplication },
    show: (row) => ({ case: 'application', value: toApplicationMessage(shownApplication.read(row)) }),
  },
  alc: {
    ...{ name: 'allocation', table: allocations, selection: shownAllocation },
    show: (row) => ({ case: 'allocation', value: toAllocationMessage(shownAllocation.read(row)) }),
  },
};

/** The entries of the ledger about an allocation, oldest first. */
export function findTransfers(partnerId: string, allocationId: string): Statement {
  const inOrder = statement('ORDER BY sequence');
  return transfers.find({ partnerId, allocationId }, transfers.all, inOrder, 'wallet_transfers_allocation');
}

/** The kind of an object, by the prefix of its id; undefined for a key and a partner. */
export function shownKindOf(id: string): ShownKind | undefined {
  return shownKinds[id.slice(0, 3)];
}
