import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  OrderType,
  OrderTypeSchema,
  type Side,
  SideSchema,
  type SubmitOrderRequest,
  type TimeInForce,
  TimeInForceSchema,
} from '../../gen/marina/broker/v1/orders_pb.ts';
import { enumWords } from '../../kit/enums.ts';
import { RpcError } from '../service/rpc.ts';
import type { FixOrder } from '../store/table.ts';
import { orderName } from './names.ts';

const sides = enumWords<typeof Side>(SideSchema);
const types = enumWords<typeof OrderType>(OrderTypeSchema);
const timesInForce = enumWords<typeof TimeInForce>(TimeInForceSchema);

/** Above every order that a gateway takes, and low enough for exact sums of money. */
const maxQuantity = 100_000_000n;

/**
 * The row of an order that a gateway submits. Throws INVALID_ARGUMENT for a field that no order can have. `nameLength` is how many
 * characters the exchange takes in a ClOrdID.
 */
export function orderFrom(
  request: SubmitOrderRequest,
  now: number,
  referenceKobo: bigint | null,
  nameLength: number,
): FixOrder {
  const { clientOrderId, account, symbol, quantity, priceKobo, note, partner = '' } = request;
  const clOrdId = orderName(clientOrderId, nameLength);
  const isLimit = request.type === OrderType.LIMIT;
  return {
    id: checked(isPlain(clientOrderId, 64) && clOrdId !== undefined, clientOrderId, 'client_order_id'),
    account: checked(isPlain(account, 64), account, 'account'),
    symbol: checked(isPlain(symbol, 32), symbol, 'symbol'),
    side: given(sides.find(request.side), 'side'),
    quantity: checked(quantity >= 1n && quantity <= maxQuantity, quantity, 'quantity'),
    type: given(types.find(request.type), 'type'),
    timeInForce: given(timesInForce.find(request.timeInForce), 'time_in_force'),
    priceKobo: checked(isLimit ? (priceKobo ?? 0n) >= 1n : priceKobo === undefined, priceKobo ?? null, 'price_kobo'),
    notAfter: timestampDate(given<Timestamp>(request.notAfter, 'not_after')).getTime(),
    receivedAt: now,
    note: Buffer.from(checked(note.length <= 2_048, note, 'note')),
    startedAt: 0,
    number: 0n,
    state: 'sending',
    exchangeOrderId: '',
    filled: 0n,
    acknowledged: false,
    passedOver: false,
    mustAsk: false,
    asked: false,
    adjusted: 0n,
    filledValueKobo: 0n,
    referenceKobo,
    endedAs: null,
    endedCount: null,
    noted: '',
    settled: false,
    partner: checked(partner === '' || isPlain(partner, 64), partner, 'partner'),
    clOrdId: clOrdId ?? clientOrderId,
  };
}

/** Printable characters without a space, as every exchange takes them. */
function isPlain(text: string, longest: number): boolean {
  return text.length <= longest && /^[!-~]+$/.test(text);
}

function checked<T>(isRight: boolean, value: T, field: string): T {
  if (!isRight) throw new RpcError(status.INVALID_ARGUMENT, `${field} is wrong`);
  return value;
}

function given<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw new RpcError(status.INVALID_ARGUMENT, `${field} must be set`);
  return value;
}
