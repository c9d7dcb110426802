import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { oneAtATime } from '../../../../src/gateway/operators/calls/call.ts';

describe('work that one call of a replica does at a time', () => {
  it('a second call is refused until the first one has ended, also if that failed', async () => {
    const counting = oneAtATime('others are being counted');
    let end: (answer: number) => void = () => undefined;
    const first = counting(() => new Promise<number>((resolve) => (end = resolve)));
    const refused = { status: status.RESOURCE_EXHAUSTED, message: /others are being counted: call again/ };
    await assert.rejects(
      counting(async () => 2),
      refused,
    );
    end(1);
    assert.equal(await first, 1);
    await assert.rejects(
      counting(async () => {
        throw new Error('the database is away');
      }),
      /the database is away/,
    );
    assert.equal(await counting(async () => 3), 3);
  });
});
