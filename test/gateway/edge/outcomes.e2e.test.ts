import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { Call as Received, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { type Call, goodBody, type OperationName } from '../../support/e2e/calls.ts';
import { type Protocol, protocols } from '../../support/e2e/protocols.ts';
import type { Refusal } from '../../support/e2e/refusals.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { assertUntouched, noTraces, tracesOf } from '../../support/e2e/traces.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../support/gateway.ts';

/** Obstacles at the broker before anything is stored. */
const upstream: readonly {
  readonly name: string;
  readonly operations: readonly OperationName[];
  readonly status?: AccountStatus;
  readonly fault?: readonly [Received, WireFault];
  readonly refusal: Refusal;
}[] = [
  {
    name: 'an account the broker does not have',
    operations: ['createOrder', 'estimateOrder'],
    status: AccountStatus.NOT_AT_BROKER,
    refusal: { code: 'account_not_at_broker' },
  },
  {
    name: 'an account that is locked',
    operations: ['createOrder', 'estimateOrder'],
    status: AccountStatus.SETTLEMENT_LOCKOUT,
    refusal: { code: 'settlement_lockout' },
  },
  ...([WireFault.HANG, WireFault.RESET_BEFORE, WireFault.UNAVAILABLE_BEFORE] as const).map((fault) => ({
    name: `a broker whose answer about the account is ${WireFault[fault]}`,
    operations: ['createOrder', 'estimateOrder'] as const,
    fault: [Received.GET_TRADING_CONTEXT, fault] as const,
    refusal: { code: 'exchange_unavailable' } as const,
  })),
  ...([WireFault.HANG, WireFault.RESET_AFTER, WireFault.UNAVAILABLE_AFTER] as const).map((fault) => ({
    name: `a broker whose estimate is ${WireFault[fault]}`,
    operations: ['estimateOrder'] as const,
    fault: [Received.ESTIMATE_ORDER, fault] as const,
    refusal: { code: 'exchange_unavailable' } as const,
  })),
  {
    name: 'a broker whose estimate makes no sense',
    operations: ['estimateOrder'],
    fault: [Received.ESTIMATE_ORDER, WireFault.NONSENSE],
    refusal: { code: 'exchange_error' },
  },
];

const rejections: readonly (readonly [string, string])[] = [
  ['SIM-FUNDS', 'insufficient_funds'],
  ['SIM-CLOSED', 'market_closed'],
  ['SIM-LOCKOUT', 'settlement_lockout'],
  ['SIM-ETFONLY', 'limit_orders_etf_only'],
  ['SIM-UNKNOWN', 'unknown_symbol'],
  ['SIM-HALTED', 'symbol_not_tradable'],
  ['SIM-NOACCOUNT', 'account_not_at_broker'],
  ['SIM-REJECT', 'rejected_by_exchange'],
];

function create({ key, account }: TestPartner, symbol = 'SIM-REST'): Call {
  return { operation: 'createOrder', key, idempotencyKey: ['k'], body: { ...goodBody(account), symbol } };
}

// A connection that is reset is everyone's, so these run one after the other.
describe('what the broker stands in the way of', () => {
  const suite = useGateway({ MARINA_READ_TIMEOUT_MS: '500' });

  for (const { name, operations, status, fault, refusal } of upstream) {
    for (const operation of operations) {
      for (const protocol of protocols) {
        it(`${protocol}: ${operation} with ${name} is answered ${refusal.code}, and nothing is stored or sent`, async () => {
          const partner = await suite.gateway.newPartner();
          const { account, key } = partner;
          const { controls } = suite.gateway;
          if (status !== undefined) await controls.setAccount({ account, status }, callTimeout);
          if (fault !== undefined) {
            await controls.injectFault({ call: fault[0], account, times: 1, fault: fault[1] }, callTimeout);
          }
          await suite.protocols.refuses(protocol, { ...create(partner), operation, key }, refusal);
          assert.deepEqual(await tracesOf(suite.gateway, partner), noTraces);
          // The gateway may serve its copy of an account for a while, so only the other calls can be repeated at once.
          if (status === undefined) await eventually(() => assertUntouched(suite.gateway, partner, 'k'));
        });
      }
    }
  }
});

describe('what is refused after all checks of form', { concurrency: 8 }, () => {
  const suite = useGateway();

  for (const protocol of protocols) {
    for (const [symbol, rejectReason] of rejections) {
      it(`${protocol}: an order rejected as ${rejectReason} is answered so, and again with its key`, async () => {
        const partner = await suite.gateway.newPartner();
        const refusal: Refusal = { code: 'order_rejected', rejectReason, location: true };
        await suite.protocols.refuses(protocol, create(partner, symbol), refusal);
        for (const again of protocols) await suite.protocols.refuses(again, create(partner, symbol), refusal);
        assert.equal((await tracesOf(suite.gateway, partner)).sent, 1);
      });
    }

    for (const [name, price, rejectReason] of [
      ['above the band', 1105, 'price_outside_band'],
      ['below the band', 895, 'price_outside_band'],
      ['off its tick', 1001, 'price_off_tick'],
      ['off its tick and outside the band', 1101, 'price_outside_band'],
    ] as const) {
      it(`${protocol}: a price ${name} is rejected as ${rejectReason} by the exchange and in the estimate`, async () => {
        const partner = await suite.gateway.newPartner();
        const body = { ...goodBody(partner.account), symbol: 'SIM-REST', price_kobo: price };
        const estimate: Call = { operation: 'estimateOrder', key: partner.key, body };
        await suite.protocols.refuses(protocol, estimate, { code: 'order_rejected', rejectReason });
        assert.deepEqual(await tracesOf(suite.gateway, partner), noTraces);
        const refusal: Refusal = { code: 'order_rejected', rejectReason, location: true };
        await suite.protocols.refuses(protocol, { ...create(partner), body }, refusal);
        for (const again of protocols) await suite.protocols.refuses(again, { ...create(partner), body }, refusal);
        const list = await suite.protocols.answers('REST', { operation: 'listOrders', key: partner.key });
        assert.equal(list.body.data[0].reject_reason, rejectReason);
        assert.match(list.body.data[0].reason, rejectReason === 'price_off_tick' ? /tick/ : /band/);
      });
    }

    it(`${protocol}: an order past the day's limit is answered limit_exceeded, one at the limit is taken`, async () => {
      const partner = await suite.gateway.newPartner({ limits: { ordersKoboPerDay: 100_000n } });
      const past = { ...create(partner), body: { ...goodBody(partner.account), price_kobo: 1001 } };
      await suite.protocols.refuses(protocol, past, { code: 'limit_exceeded' });
      await assertUntouched(suite.gateway, partner, 'k');
      const { body, ...one } = { ...create(partner), idempotencyKey: ['another'] };
      await suite.protocols.refuses(
        protocol,
        { ...one, body: { ...body, quantity: 1, price_kobo: 1 } },
        { code: 'limit_exceeded' },
      );
    });

    it(`${protocol}: an order like one that is unclear is answered similar_order_unresolved, another is taken`, async () => {
      const partner = await suite.gateway.newPartner();
      const { account } = partner;
      await suite.gateway.controls.injectFault(
        { call: Received.SUBMIT_ORDER, account, fault: WireFault.HANG },
        callTimeout,
      );
      const { body: first } = await suite.protocols.answers('REST', create(partner));
      assert.equal(first.state, 'uncertain');
      const again = { ...create(partner), idempotencyKey: ['l'] };
      await suite.protocols.refuses(protocol, again, { code: 'similar_order_unresolved' });
      await suite.protocols.answers(protocol, { ...again, body: { ...again.body, quantity: 101 } });
    });
  }

  /** Cancels that do not cancel; the order is made so before. */
  const cancels: readonly (readonly [string, string, string, Refusal, WireFault?])[] = [
    ['is filled', 'SIM-FILL', 'filled', { code: 'order_not_cancelable' }],
    ['is rejected', 'SIM-KILLED', 'rejected', { code: 'order_not_cancelable' }],
    ['is expired', 'SIM-LAPSE', 'expired', { code: 'order_not_cancelable' }],
    ['rests and hears nothing', 'SIM-REST', 'pending', { code: 'cancel_unconfirmed' }, WireFault.HANG],
    [
      'rests and hears no clear answer',
      'SIM-HALF',
      'partially_filled',
      { code: 'cancel_unconfirmed' },
      WireFault.UNAVAILABLE_BEFORE,
    ],
  ];

  async function placed(partner: TestPartner, symbol: string, state: string): Promise<string> {
    const { body } = await suite.gateway.place(partner, { symbol });
    await eventually(async () => {
      const read = await suite.gateway.rest('GET', `/v1/orders/${body.id}`, { key: partner.key });
      assert.equal(read.body.state, state);
    });
    return body.id;
  }

  async function assertCancelRefused(protocol: Protocol, [, symbol, state, refusal, fault]: (typeof cancels)[number]) {
    const partner = await suite.gateway.newPartner();
    const { account, key } = partner;
    const id = await placed(partner, symbol, state);
    if (fault !== undefined) {
      await suite.gateway.controls.injectFault({ call: Received.CANCEL_ORDER, account, fault }, callTimeout);
    }
    const before = await tracesOf(suite.gateway, partner);
    await suite.protocols.refuses(protocol, { operation: 'cancelOrder', key, id }, refusal);
    const after = await tracesOf(suite.gateway, partner);
    // The reconciler asks nothing about a final object, and has asked once about one that is not final.
    assert.equal(after.sent - before.sent, fault === undefined ? 0 : 1);
  }

  for (const cancel of cancels)
    for (const protocol of protocols) {
      it(`${protocol}: the cancel of an order that ${cancel[0]} is answered ${cancel[3].code}`, () =>
        assertCancelRefused(protocol, cancel));
    }

  for (const protocol of protocols) {
    it(`${protocol}: the cancel of an unclear order is answered order_not_cancelable`, async () => {
      const partner = await suite.gateway.newPartner();
      const fault = { call: Received.SUBMIT_ORDER, account: partner.account, fault: WireFault.HANG };
      await suite.gateway.controls.injectFault(fault, callTimeout);
      const { body } = await suite.gateway.place(partner, { symbol: 'SIM-REST' });
      const call: Call = { operation: 'cancelOrder', key: partner.key, id: body.id };
      await suite.protocols.refuses(protocol, call, { code: 'order_not_cancelable' });
      assert.equal((await tracesOf(suite.gateway, partner)).sent, 1);
    });
  }
});
