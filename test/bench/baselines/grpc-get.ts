/** A bare gRPC server: grpc-js and mysql2, one prepared SELECT, the same message out, nothing else. */
import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import { createPool, type RowDataPacket } from 'mysql2';
import {
  type GetOrderRequest,
  type Order,
  OrderSchema,
  OrderSide,
  OrderState,
  Orders,
  OrderType,
  TimeInForce,
} from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { serviceDefinition } from '../../../src/kit/grpc-service.ts';

const pool = createPool({
  uri: process.env.BASELINE_DATABASE_URL ?? '',
  connectionLimit: 32,
  timezone: 'Z',
  supportBigNumbers: true,
});
const partnerId = process.env.BASELINE_PARTNER ?? '';
const sql = `SELECT id, state, account, symbol, side, quantity, type, time_in_force, price_kobo, filled_quantity,
  exchange_order_id, reason, reject_reason, created_at, updated_at, filled_at, client_reference
  FROM orders WHERE partner_id = ? AND id = ?`;

const server = new Server();
server.addService({ getOrder: serviceDefinition(Orders).getOrder }, { getOrder });
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, port) => process.send?.({ port }));

function getOrder(call: ServerUnaryCall<GetOrderRequest, Order>, callback: sendUnaryData<Order>): void {
  pool.execute<RowDataPacket[]>(sql, [partnerId, call.request.id ?? ''], (error, rows) => {
    const row = rows?.[0];
    if (error || row === undefined) {
      callback({ code: status.NOT_FOUND });
      return;
    }
    callback(
      null,
      create(OrderSchema, {
        id: row.id,
        state: OrderState[String(row.state).toUpperCase() as keyof typeof OrderState],
        account: row.account,
        symbol: row.symbol,
        side: OrderSide[String(row.side).toUpperCase() as keyof typeof OrderSide],
        quantity: BigInt(row.quantity),
        type: OrderType[String(row.type).toUpperCase() as keyof typeof OrderType],
        timeInForce: TimeInForce[String(row.time_in_force).toUpperCase() as keyof typeof TimeInForce],
        priceKobo: row.price_kobo === null ? undefined : BigInt(row.price_kobo),
        filledQuantity: BigInt(row.filled_quantity),
        exchangeOrderId: row.exchange_order_id ?? undefined,
        reason: row.reason ?? undefined,
        createdAt: timestampFromDate(row.created_at),
        updatedAt: timestampFromDate(row.updated_at),
        clientReference: row.client_reference === null ? undefined : String(row.client_reference),
      }),
    );
  });
}
