import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { StatedCapabilities } from '../../../../src/gateway/trading/broker/stated-capabilities.ts';
import {
  type GetCapabilitiesResponse,
  GetCapabilitiesResponseSchema,
} from '../../../../src/gen/marina/broker/v1/orders_pb.ts';

describe('what a broker states about itself', () => {
  const transactions = ({ accountTransactions }: GetCapabilitiesResponse) => accountTransactions;
  const status = ({ accountStatus }: GetCapabilitiesResponse) => accountStatus;

  /** A broker that states its capabilities in turn, the last ones again and again, and counts the questions. */
  function broker(...answers: ({ accountTransactions?: boolean; accountStatus?: boolean } | Error)[]) {
    let asked = 0;
    return {
      asked: () => asked,
      capabilities: async () => {
        const answer = answers[Math.min(asked, answers.length - 1)];
        asked += 1;
        if (answer instanceof Error) throw answer;
        return create(GetCapabilitiesResponseSchema, { honoursNotAfter: true, ...answer });
      },
    };
  }

  it('a capability is asked for once for several reads', async () => {
    const asked = broker({ accountTransactions: true, accountStatus: true });
    const capabilities = new StatedCapabilities(asked);
    assert.equal(capabilities.isKnown(transactions), false);
    for (const offers of [transactions, status, transactions]) assert.equal(await capabilities.has(offers, {}), true);
    assert.equal(capabilities.isKnown(status), true);
    assert.equal(asked.asked(), 1);
  });

  it('a capability that the broker does not offer is asked for again each time', async () => {
    const asked = broker({}, {}, { accountStatus: true });
    const capabilities = new StatedCapabilities(asked);
    const answers = [await capabilities.has(status, {}), await capabilities.has(status, {})];
    assert.deepEqual([...answers, await capabilities.has(status, {})], [false, false, true]);
    assert.equal(capabilities.isKnown(transactions), false);
    assert.equal(asked.asked(), 3);
  });

  it('a capability is asked for again after a question that failed', async () => {
    const capabilities = new StatedCapabilities(broker(new Error('away'), { accountStatus: true }));
    await assert.rejects(capabilities.has(status, {}), /away/);
    assert.equal(capabilities.isKnown(status), false);
    assert.equal(await capabilities.has(status, {}), true);
  });
});
