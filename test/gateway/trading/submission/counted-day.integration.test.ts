import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { insertAccount } from '../../../../src/gateway/trading/accounts/store.ts';
import { AllocationKind } from '../../../../src/gateway/trading/allocations/kind.ts';
import type { BrokerAllocations, BrokerOrders } from '../../../../src/gateway/trading/broker/broker.ts';
import { OrderKind, type TradingContexts } from '../../../../src/gateway/trading/orders/kind.ts';
import type { CreatedKind } from '../../../../src/gateway/trading/submission/kind.ts';
import { Notes } from '../../../../src/gateway/trading/submission/notes.ts';
import { StartGate } from '../../../../src/gateway/trading/submission/start-gate.ts';
import { Submitter } from '../../../../src/gateway/trading/submission/submit.ts';
import { InstrumentSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { CreateAllocationRequestSchema } from '../../../../src/gen/marina/gateway/v1/allocations_pb.ts';
import {
  CreateOrderRequestSchema,
  OrderSide,
  OrderType,
  TimeInForce,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { KeyedDigest, onlyKey, Seal } from '../../../../src/kit/key-ring.ts';
import { creditWallet, walletSeals } from '../../../support/ledger.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import {
  clockSkewMs,
  nothingStopped,
  openSettling,
  type Settling,
  submitTimeoutMs,
} from '../../../support/settling.ts';

/** Midnight in Lagos. */
const midnight = Date.UTC(2026, 2, 2, 23);

describe('an object that is placed about midnight in Lagos', () => {
  let settling: Settling;
  let partnerId: string;
  before(async () => {
    settling = await openSettling();
    partnerId = await settling.newPartner();
    await creditWallet(settling.database, { partnerId, amountKobo: 1_000n, bankReference: 'B1' });
    await settling.database.write(insertAccount(partnerId, plainOrder.account, settling.clock.now()));
  });
  after(() => settling.close());

  /** Submits with a clock that goes on by 1 ms each time it is read, and returns what was stored. */
  async function submit(
    kindOf: (clock: { now(): number; realNow(): number }) => object,
    request: object,
    from: number,
  ) {
    const { database, clock, ids, recorder, log } = settling;
    let at = from;
    const ticking = {
      now: () => {
        at += 1;
        return at;
      },
      realNow: () => clock.realNow(),
    };
    const gate = new StartGate();
    gate.open();
    const submitter = new Submitter({
      ...{ database, recorder, clock: ticking, ids, submitTimeoutMs, clockSkewMs, gate },
      ...{ notes: new Notes(new Seal(onlyKey(Buffer.alloc(32, 1)))), environment: nothingStopped },
    });
    const kind = kindOf(ticking) as CreatedKind<never, never, object>;
    const { row } = await submitter.submit(kind, {
      origin: { partnerId, requestId: null, traceParent: null },
      ...{ keyId: 'key_1', idempotencyKey: randomUUID(), request, log: () => log },
      digest: new KeyedDigest(onlyKey(Buffer.alloc(32)), (hmac) => hmac),
      permission: { renew: async () => {}, isLatest: () => true },
    });
    return row as { readonly createdAt: number; readonly countedDay: string };
  }

  const unclear = async () => ({ outcome: 'unclear', evidence: 'no answer' }) as const;
  const broker = { submitOrder: unclear, submitAllocation: unclear };
  const contexts = {
    cached: () => create(InstrumentSchema, { upperPriceKobo: 1_000n }),
  } as Partial<TradingContexts> as TradingContexts;
  const { account, symbol, priceKobo } = plainOrder;
  const orderOf = (quantity: bigint) =>
    create(CreateOrderRequestSchema, {
      ...{ account, symbol, quantity, priceKobo: priceKobo ?? 0n },
      ...{ side: OrderSide.BUY, type: OrderType.LIMIT, timeInForce: TimeInForce.DAY },
    });
  const allocationOf = (amountKobo: bigint) => create(CreateAllocationRequestSchema, { account, amountKobo });

  for (let leftMs = 6; leftMs >= -1; leftMs -= 1) {
    it(`counts for the day of created_at when it is asked for ${leftMs} ms before midnight`, async () => {
      const start = midnight - leftMs;
      // Each of another size, because no outcome is known and similar ones would be refused.
      const size = BigInt(10 + leftMs);
      const rows = [
        await submit(
          (clock) => new OrderKind(broker as Partial<BrokerOrders> as BrokerOrders, contexts, clock),
          orderOf(size),
          start,
        ),
        await submit(
          (clock) =>
            new AllocationKind(
              broker as Partial<BrokerAllocations> as BrokerAllocations,
              clock,
              settling.ids,
              walletSeals(),
            ),
          allocationOf(size),
          start,
        ),
      ];
      for (const { createdAt, countedDay } of rows) assert.equal(countedDay, lagosDay(createdAt));
    });
  }
});
