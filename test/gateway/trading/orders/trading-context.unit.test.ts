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
});
