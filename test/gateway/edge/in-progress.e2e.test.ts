import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Call as Received, WireFault } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { type Call, goodBody, type Members, operationNames, sampleBody } from '../../support/e2e/calls.ts';
import { outcomeOf } from '../../support/e2e/outcome.ts';
import { protocols } from '../../support/e2e/protocols.ts';
import type { Refusal } from '../../support/e2e/refusals.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { tracesOf } from '../../support/e2e/traces.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, type TestPartner } from '../../support/gateway.ts';

const limited = { code: 'rate_limited' } as const;

describe('requests in progress', () => {
  // Long enough for everything that is tested while they hang.
  const suite = useGateway({ MARINA_SUBMIT_TIMEOUT_MS: '3000' });

  const create = ({ key, account }: TestPartner, idempotencyKey: string, body: Members): Call => ({
    operation: 'createOrder',
    key,
    idempotencyKey: [idempotencyKey],
    body: { ...goodBody(account), ...body },
  });

  async function hang(partner: TestPartner, call: Received, times: number): Promise<void> {
    await suite.gateway.controls.injectFault(
      { call, account: partner.account, times, fault: WireFault.HANG },
      callTimeout,
    );
  }

  it('a sixth is answered rate_limited while five hang, in every protocol; reads go on, and the places come back', async () => {
    const partner = await suite.gateway.newPartner({ limits: { requestsUnderWay: undefined } });
    const { key } = partner;
    const resting = await suite.gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 });
    await hang(partner, Received.SUBMIT_ORDER, 4);
    await hang(partner, Received.CANCEL_ORDER, 1);
    const cancel: Call = { operation: 'cancelOrder', key, id: resting.body.id };
    const unconfirmed: Refusal = { code: 'cancel_unconfirmed' };
    const hanging = [
      suite.protocols.answers('REST', create(partner, 'a', { quantity: 2 })),
      suite.protocols.answers('REST', create(partner, 'b', { quantity: 3 })),
      suite.protocols.answers('gRPC', create(partner, 'c', { quantity: 4 })),
      suite.protocols.answers('gRPC', create(partner, 'd', { quantity: 5 })),
    ];
    const hangingCancel = suite.protocols.refuses('REST', cancel, unconfirmed);
    const before = await eventually(async () => {
      const traces = await tracesOf(suite.gateway, partner);
      assert.equal(traces.sent, 6);
      return traces;
    });

    for (const protocol of protocols) {
      await suite.protocols.refuses(protocol, create(partner, 'e', { quantity: 6 }), limited);
      await suite.protocols.refuses(
        protocol,
        { operation: 'estimateOrder', key, body: goodBody(partner.account) },
        limited,
      );
      await suite.protocols.refuses(protocol, cancel, limited);
      await suite.protocols.answers(protocol, { operation: 'listOrders', key });
      await suite.protocols.answers(protocol, { operation: 'getOrder', key, id: resting.body.id });
      await suite.protocols.answers(protocol, { operation: 'listEvents', key });
    }
    assert.deepEqual(await tracesOf(suite.gateway, partner), before);

    const answers = await Promise.all(hanging);
    await hangingCancel;
    assert.deepEqual(
      answers.map(({ body }) => body.state),
      ['uncertain', 'uncertain', 5, 5],
    );
    const sixth = await suite.protocols.answers('REST', create(partner, 'e', { quantity: 6 }));
    assert.deepEqual([sixth.status, sixth.header('idempotent-replayed')], [201, undefined]);
  });

  /** The contract's list. */
  const counted = [
    ...['createOrder', 'estimateOrder', 'cancelOrder', 'createApplication', 'createAllocation', 'createWithdrawal'],
  ];
  for (const operation of operationNames) {
    const isCounted = counted.includes(operation);
    it(`${operation} ${isCounted ? 'needs a place' : 'needs none'}`, async () => {
      const partner = await suite.gateway.newPartner({ limits: { requestsUnderWay: 0 } });
      const call: Call = { operation, key: partner.key, idempotencyKey: ['k'], body: sampleBody(operation) };
      for (const protocol of protocols) {
        const { error } = await outcomeOf(suite.protocols, protocol, call);
        assert.equal(error?.code === 'rate_limited', isCounted, `${protocol}: ${error?.code}`);
      }
    });
  }

  /** Requests that are refused after they took their place. */
  const refused: readonly (readonly [string, Partial<Call>, Refusal])[] = [
    ['a malformed id', { operation: 'cancelOrder', id: 'x' }, { code: 'order_not_found' }],
    ['an id nobody has', { operation: 'cancelOrder' }, { code: 'order_not_found' }],
    ['no Idempotency-Key', { idempotencyKey: [] }, { code: 'missing_required_field', param: 'Idempotency-Key' }],
    ['a field out of range', { body: { quantity: 0 } }, { code: 'missing_required_field', param: 'account' }],
    ['an unknown account', { body: goodBody('NOBODYS') }, { code: 'unknown_account', param: 'account' }],
    ['a body too large', { body: { account: 'A'.repeat(20_000) } }, { code: 'request_too_large' }],
  ];
  for (const [name, call, refusal] of refused) {
    it(`a request with ${name} gives its place back`, async () => {
      const partner = await suite.gateway.newPartner({ limits: { requestsUnderWay: 1 } });
      const base: Call = { operation: 'createOrder', key: partner.key, idempotencyKey: ['k'] };
      for (const protocol of [...protocols, ...protocols])
        await suite.protocols.refuses(protocol, { ...base, ...call }, refusal);
      const estimate: Call = { operation: 'estimateOrder', key: partner.key, body: goodBody(partner.account) };
      for (const protocol of protocols) await suite.protocols.answers(protocol, estimate);
    });
  }
});
