import type { RowDataPacket } from 'mysql2/promise';
import type { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { SimulatorDatabase } from './database.ts';
import type { SimulatorTable } from './table.ts';

/** The most records of a page. */
export const maxPage = 1_000;

/** A page of orders, applications or allocations, oldest first, each with the number of times it was received. */
export async function listPage<Model extends object>(
  database: SimulatorDatabase,
  table: SimulatorTable<Model>,
  {
    key,
    call,
    after,
    id,
  }: {
    readonly key: string;
    readonly call: Call;
    readonly after: number;
    /** Only the object with this id; empty: all. */
    readonly id: string;
  },
): Promise<{ readonly found: readonly (readonly [Model, number])[]; readonly hasMore: boolean }> {
  const rows = await database.read<RowDataPacket & { received: number }>(
    `SELECT ${table.columns},
       (SELECT COUNT(*) FROM received_messages m
         WHERE m.client_order_id = ${table.name}.${key} AND m.call_kind = ?) AS received
     FROM ${table.name}
     WHERE sequence > ? ${id === '' ? '' : `AND ${key} = ?`} ORDER BY sequence LIMIT ?`,
    [call, after, ...(id === '' ? [] : [id]), maxPage + 1],
  );
  const found = rows.slice(0, maxPage).map((row) => [table.fromRow(row), row.received] as const);
  return { found, hasMore: rows.length > maxPage };
}
