import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import { allocations } from '../../../../src/gateway/trading/allocations/table.ts';
import { orders } from '../../../../src/gateway/trading/orders/table.ts';
import { lagosDay } from '../../../../src/kit/clock.ts';
import { eventually } from '../../../support/eventually.ts';
import { type RestAnswer, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { lockPartnerRow } from '../../../support/partner-lock.ts';
import { plainOrder } from '../../../support/plain-order.ts';

/** How long the sender of the first object still has when the second one is asked for. */
const leftMs = 1_500;

describe('a request like one whose sender runs out of time while the request waits for its partner', () => {
  let gateway: TestGateway;
  before(async () => {
    // The reconciler queries the broker for neither: it waits for the same partner.
    gateway = await startGateway();
  });
  // Rows are written here as the sender of another replica leaves them.
  after(() => gateway.stop(['usage', 'ledgers']));

  /** The columns, common to both kinds, of an object that a replica stored and died before it sent it. */
  function sending(partner: TestPartner, id: string, leaseEnd: number) {
    const now = Date.now();
    const times = { createdAt: now, updatedAt: now, countedDay: lagosDay(now), notAfter: leaseEnd, checkAt: leaseEnd };
    return { partnerId: partner.id, account: partner.account, id, state: 'sending' as const, ...times };
  }

  const storeOrder = (partner: TestPartner, leaseEnd: number) =>
    orders.insert({ ...plainOrder, ...sending(partner, 'ord_000000000000000001', leaseEnd) });

  function storeAllocation(partner: TestPartner, leaseEnd: number): Statement {
    const { requestId, traceParent, keyId, reason, rejectReason, idempotencyKey, requestDigest } = plainOrder;
    const shared = { requestId, traceParent, keyId, reason, rejectReason, idempotencyKey, requestDigest };
    const rest = {
      firstAnswer: null,
      steps: 1,
      checks: 0,
      missingSince: null,
      clientReference: null,
      settlement: null,
    };
    const own = { amountKobo: 1_000n, brokerReference: null, evidence: 'stored' };
    return allocations.insert({ ...shared, ...rest, ...own, ...sending(partner, 'alc_000000000000000001', leaseEnd) });
  }

  const cases: readonly {
    readonly kind: string;
    store(partner: TestPartner, leaseEnd: number): Statement;
    ask(partner: TestPartner): Promise<RestAnswer>;
  }[] = [
    { kind: 'order', store: storeOrder, ask: (partner) => gateway.place(partner, { symbol: 'SIM-REST' }) },
    { kind: 'allocation', store: storeAllocation, ask: (partner) => gateway.allocate(partner, {}) },
  ];
  for (const { kind, store, ask } of cases) {
    it(`is refused as similar to the ${kind} and sends nothing`, async () => {
      const partner = await gateway.newPartner();
      await gateway.fund(partner, 1_000_000n);
      const lock = await lockPartnerRow(gateway.databaseUrl, partner.id);
      try {
        const leaseEnd = Date.now() + leftMs;
        await gateway.database.write(store(partner, leaseEnd));
        const asked = ask(partner);
        await lock.waitedFor();
        assert.ok(Date.now() < leaseEnd, 'the request was made after the end of the first sender');
        await eventually(() => assert.ok(Date.now() > leaseEnd + 100));
        await lock.release();
        const { status, body, text } = await asked;
        assert.equal(status, 409, text);
        assert.equal(body.error.code, `similar_${kind}_unresolved`);
      } finally {
        await lock.release();
      }
    });
  }
});
