/** The operators' reads of partners' accounts, over a broker that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { operatorsReader } from '../../../../src/gateway/operators/calls/call.ts';
import { customerAccountService } from '../../../../src/gateway/operators/calls/customer-accounts.ts';
import { accounts } from '../../../../src/gateway/trading/accounts/store.ts';
import { RowsDatabase } from '../../../support/rows-database.ts';
import { anyRow } from '../../../support/stored-row.ts';

/** The calls, over a broker whose reads fail with an error. */
function open(failure: Error) {
  const readers: string[] = [];
  const reads = {
    readFor: async (reader: string) => {
      readers.push(reader);
      throw failure;
    },
  };
  const database = new RowsDatabase({ accounts: [anyRow(accounts, { partnerId: 'par_a', account: 'A1' })] });
  const parts = {
    database,
    reads,
    records: {},
    orders: {},
    cursors: {},
    clock: { now: () => Date.UTC(2026, 2, 5), realNow: () => 0 },
  };
  const { service, calls } = customerAccountService(parts as never);
  const make = (name: string, partnerId = 'par_a') => {
    const method = service.methods.find(({ localName }) => localName === name);
    assert.ok(method !== undefined);
    const asked = create(method.input, { partnerId, account: 'A1' } as never);
    return (calls[name] as (request: object, call: object) => Promise<object>)(asked, { requestId: 'r' });
  };
  return { make, readers, names: service.methods.map(({ localName }) => localName) };
}

describe("an operator's read of an account", () => {
  it('an operator is told that it is the broker who gives no answer, and operators together are one reader', async () => {
    const failure = new ApiError('exchange_unavailable');
    const { make, readers, names } = open(failure);
    for (const name of names) {
      await assert.rejects(make(name), (error: { status?: number; cause?: unknown }) => {
        assert.deepEqual([error.status, error.cause], [status.UNAVAILABLE, failure], name);
        return true;
      });
    }
    assert.deepEqual(readers, Array(names.length).fill(operatorsReader));
  });

  it('any other error is the one that a partner would get', async () => {
    for (const failure of [new ApiError('exchange_error'), new Error('broken')]) {
      const { make, names } = open(failure);
      for (const name of names) await assert.rejects(make(name), failure, name);
    }
  });

  it("an account that is not the named partner's is not read", async () => {
    const { make, readers, names } = open(new Error('never'));
    for (const name of names) await assert.rejects(make(name, 'par_b'), { code: 'account_not_found' }, name);
    assert.deepEqual(readers, []);
  });
});
