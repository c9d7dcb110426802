import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { OrderType, Side, type SubmitOrderRequest, TimeInForce } from '../gen/marina/broker/v1/orders_pb.ts';
import type { OrderRequest } from './model.ts';
import { RpcError } from './wire/rpc.ts';

/** How often one directive can be used, and how long it can wait. */
export const maxTimes = 1_000_000;
export const maxDelayMs = 3_600_000;

const maxNoteBytes = 2_048;
const maxPartnerLength = 64;

const printable = /^[\x21-\x7e]+$/;
const maxSafe = BigInt(Number.MAX_SAFE_INTEGER);

/** Reads an order from its request. A request that makes no sense is an invalid argument, not a rejection. */
export function submissionFrom(request: SubmitOrderRequest): OrderRequest {
  checkNote(request);
  check(isSide(request.side), 'side');
  const priceKobo = limitPriceOf(request);
  check(request.timeInForce >= TimeInForce.DAY && request.timeInForce <= TimeInForce.FOK, 'time_in_force');
  return {
    clientOrderId: text(request.clientOrderId, 'client_order_id', 64),
    account: text(request.account, 'account', 64),
    symbol: text(request.symbol, 'symbol', 32),
    side: request.side,
    type: request.type,
    timeInForce: request.timeInForce,
    quantity: positive(request.quantity, 'quantity'),
    priceKobo,
    ...(request.partner === undefined ? {} : { partner: text(request.partner, 'partner', maxPartnerLength) }),
  };
}

/** Whether orders of each type have a limit price. */
const hasLimitPrice: Readonly<Record<number, boolean>> = { [OrderType.LIMIT]: true, [OrderType.MARKET]: false };

/** The limit price of an order in kobo; null if its type has none. */
export function limitPriceOf({ type, priceKobo }: Pick<SubmitOrderRequest, 'type' | 'priceKobo'>): number | null {
  check(type in hasLimitPrice, 'type');
  check(hasLimitPrice[type] === (priceKobo !== undefined), 'price_kobo');
  return priceKobo === undefined ? null : positive(priceKobo, 'price_kobo');
}

/** Checks that a submission's note fits its column. */
export function checkNote({ note }: { readonly note: Uint8Array }): void {
  check(note.length <= maxNoteBytes, 'note');
}

/** Milliseconds of an instant, fractions dropped. */
export function instantMs(instant: Timestamp | undefined): number | undefined {
  return instant === undefined ? undefined : timestampMs(instant);
}

export function isSide(side: Side): boolean {
  return side === Side.BUY || side === Side.SELL;
}

/** Printable ASCII without spaces. */
export function text(value: string, field: string, maxLength: number): string {
  check(value.length <= maxLength && printable.test(value), field);
  return value;
}

/** A whole number above 0 that a JavaScript number holds exactly. */
export function positive(value: bigint, field: string): number {
  check(value > 0n && value <= maxSafe, field);
  return Number(value);
}

/** A whole number from 0 that a JavaScript number holds exactly. */
export function whole(value: bigint, field: string): number {
  check(isWhole(value), field);
  return Number(value);
}

export function isWhole(value: bigint): boolean {
  return value >= 0n && value <= maxSafe;
}

/** A count or a time from 0 to a bound. */
export function checkCount(value: number, max: number, field: string): void {
  check(value >= 0 && value <= max, field);
}

/** The partner of a directive; empty: the operator. */
export function checkPartner({ partner }: { readonly partner: string }): void {
  check(partner === '' || (partner.length <= maxPartnerLength && printable.test(partner)), 'partner');
}

/** Refuses a request because of one of its fields. */
export function check(holds: boolean, field: string): asserts holds {
  if (!holds) throw new RpcError(status.INVALID_ARGUMENT, `The value of ${field} is not valid.`);
}
