import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { TradingContexts } from '../../../../src/gateway/trading/orders/kind.ts';
import {
  AccountStatus,
  type GetTradingContextResponse,
  GetTradingContextResponseSchema,
} from '../../../../src/gen/marina/broker/v1/orders_pb.ts';

const origin = { partnerId: 'par_a', requestId: null, traceParent: null };
const instrument = { symbol: 'SIM-REST', upperPriceKobo: 1_000n };

describe('the trading context of an account', () => {
  it('a context asked for earlier and answered later does not replace the newer one', async () => {
    const asked: ((answer: GetTradingContextResponse) => void)[] = [];
    const contexts = new TradingContexts({ tradingContext: () => new Promise((resolve) => asked.push(resolve)) });
    const first = contexts.instrument(origin, 'A1', 'SIM-REST');
    // The instant of asking tells the two apart.
    const start = performance.now();
    while (performance.now() === start);
    const second = contexts.instrument(origin, 'A1', 'SIM-REST');
    const answer = (accountStatus: AccountStatus) =>
      create(GetTradingContextResponseSchema, { accountStatus, instrument });
    asked[1]?.(answer(AccountStatus.SETTLEMENT_LOCKOUT));
    await assert.rejects(second, { code: 'settlement_lockout' });
    asked[0]?.(answer(AccountStatus.ACTIVE));
    await first;
    assert.equal(contexts.cached('par_a', 'A1', 'SIM-REST'), undefined, 'the account is locked out');
  });

  it('a context whose read began before the account was forgotten is used once, and not remembered', async () => {
    const asked: ((answer: GetTradingContextResponse) => void)[] = [];
    const contexts = new TradingContexts({ tradingContext: () => new Promise((resolve) => asked.push(resolve)) });
    const answer = create(GetTradingContextResponseSchema, { accountStatus: AccountStatus.ACTIVE, instrument });
    for (const forgets of [true, false]) {
      const found = contexts.instrument(origin, 'A1', 'SIM-REST');
      if (forgets) contexts.forget('par_a', 'A1');
      asked.pop()?.(answer);
      assert.equal(await found, answer.instrument);
      assert.equal(contexts.cached('par_a', 'A1', 'SIM-REST'), forgets ? undefined : answer.instrument);
    }
  });

  it('a context is read for each partner by itself, also of the same account', async () => {
    const askedFor: string[] = [];
    const contexts = new TradingContexts({
      tradingContext: async (_account, _symbol, { partnerId }) => {
        askedFor.push(partnerId ?? '');
        const accountStatus = partnerId === 'par_a' ? AccountStatus.ACTIVE : AccountStatus.NOT_AT_BROKER;
        return create(GetTradingContextResponseSchema, { accountStatus, instrument });
      },
    });
    await contexts.instrument(origin, 'A1', 'SIM-REST');
    assert.equal(contexts.cached('par_b', 'A1', 'SIM-REST'), undefined);
    await assert.rejects(contexts.instrument({ ...origin, partnerId: 'par_b' }, 'A1', 'SIM-REST'), {
      code: 'account_not_at_broker',
    });
    assert.deepEqual(askedFor, ['par_a', 'par_b']);
    contexts.forget('par_b', 'A1');
    assert.ok(contexts.cached('par_a', 'A1', 'SIM-REST'), "another partner's is kept");
    contexts.forget('par_a', 'A1');
    assert.equal(contexts.cached('par_a', 'A1', 'SIM-REST'), undefined);
  });

  const statuses = [
    ['ACTIVE', undefined],
    ['SETTLEMENT_LOCKOUT', 'settlement_lockout'],
    ['NOT_AT_BROKER', 'account_not_at_broker'],
  ] as const;
  for (const [status, code] of statuses) {
    it(`the context of an account that is ${status} is ${code ?? 'used'} the first time and while it is remembered`, async () => {
      const answer = create(GetTradingContextResponseSchema, { accountStatus: AccountStatus[status], instrument });
      const contexts = new TradingContexts({ tradingContext: async () => answer });
      for (let time = 0; time < 2; time += 1) {
        const found = contexts.instrument(origin, 'A1', 'SIM-REST');
        if (code === undefined) assert.equal(await found, answer.instrument);
        else await assert.rejects(found, { code });
        const cached = contexts.cached('par_a', 'A1', 'SIM-REST');
        assert.equal(cached, code === undefined ? answer.instrument : undefined);
      }
    });
  }
});
