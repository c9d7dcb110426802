import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { ApiError, type ErrorCode } from '../../../../src/gateway/edge/errors.ts';
import { AccountsAtBroker, requireAtBroker } from '../../../../src/gateway/operators/calls/account-at-broker.ts';
import { operatorsReader } from '../../../../src/gateway/operators/calls/call.ts';

const found = {
  state: 1,
  restrictions: [2],
  chn: 'canary',
  asOf: { seconds: 5n },
  holderInitials: 'AB',
  more: 'canary',
};

function open({ offers = true, fails = undefined as unknown } = {}) {
  const asked: unknown[] = [];
  const time = { deadline: 1 };
  const parts = {
    reads: {
      readFor: (reader: string, work: (given: object) => Promise<unknown>, timeoutMs: number) => {
        asked.push([reader, timeoutMs]);
        return work(time);
      },
    },
    orders: {
      capabilities: async (given: object) => {
        assert.equal(given, time, 'within the same time');
        asked.push('capabilities');
        return { accountStatus: offers };
      },
    },
    records: {
      accountStatusWithHolder: async (account: string, given: object) => {
        assert.equal(given, time, 'within the same time');
        asked.push(account);
        if (fails !== undefined) throw fails;
        return found;
      },
    },
    timeoutMs: 7,
  };
  return { accounts: new AccountsAtBroker(parts as never), asked };
}

describe("the broker's answer about an account", () => {
  it("an account that the broker has is told with the holder's initials, and without the number of the CSCS", async () => {
    const { accounts, asked } = open();
    const { chn: _, more: __, ...shown } = found;
    assert.deepEqual(await accounts.ask('A1'), { answer: 'found', hasChn: true, ...shown });
    assert.deepEqual(asked, [[operatorsReader, 7], 'capabilities', 'A1']);
    const without = open();
    const { chn } = found;
    try {
      found.chn = '';
      assert.equal(((await without.accounts.ask('A1')) as { hasChn?: boolean }).hasChn, false);
    } finally {
      found.chn = chn;
    }
  });

  it('a broker that does not offer the status of accounts is not asked for one', async () => {
    const { accounts, asked } = open({ offers: false });
    assert.deepEqual(await accounts.ask('A1'), { answer: 'not_offered' });
    assert.deepEqual(asked, [[operatorsReader, 7], 'capabilities']);
  });

  it('a refusal of the broker is an answer, no answer is one too, and anything else is an error', async () => {
    for (const [code, answer] of [
      ['account_not_at_broker', 'not_found'],
      ['exchange_unavailable', 'none'],
      ['exchange_error', 'none'],
    ] as const) {
      assert.deepEqual(await open({ fails: new ApiError(code) }).accounts.ask('A1'), { answer }, code);
    }
    for (const error of [new ApiError('rate_limited' satisfies ErrorCode), new Error('broken')]) {
      await assert.rejects(open({ fails: error }).accounts.ask('A1'), error);
    }
  });

  it('an account is linked if the broker has it, or if nobody can tell and the operator says so', () => {
    for (const [answer, isUnchecked, code] of [
      ['found', false, undefined],
      ['found', true, undefined],
      ['not_found', false, status.FAILED_PRECONDITION],
      ['not_found', true, status.FAILED_PRECONDITION],
      ['none', false, status.UNAVAILABLE],
      ['none', true, undefined],
      ['not_offered', false, status.UNAVAILABLE],
      ['not_offered', true, undefined],
    ] as const) {
      const require = () => requireAtBroker({ answer } as never, isUnchecked);
      if (code === undefined) assert.doesNotThrow(require, `${answer} ${isUnchecked}`);
      else assert.throws(require, { status: code }, `${answer} ${isUnchecked}`);
    }
  });
});
