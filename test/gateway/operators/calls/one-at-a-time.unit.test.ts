import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { oneAtATime, oneStreamAtATime } from '../../../../src/gateway/operators/calls/call.ts';

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

  it('a second stream is refused until the first one is read to its end, or left', async () => {
    const exporting = oneStreamAtATime('another export is under way');
    const parts = () =>
      exporting(async function* () {
        yield 1;
        yield 2;
      });
    const first = parts();
    assert.equal((await first.next()).value, 1);
    await assert.rejects(parts().next(), { status: status.RESOURCE_EXHAUSTED, message: /under way: call again/ });
    await first.return(undefined);
    const seen: number[] = [];
    for await (const part of parts()) seen.push(part);
    assert.deepEqual(seen, [1, 2]);
    const failing = exporting(async function* () {
      yield 1;
      throw new Error('the database is away');
    });
    await assert.rejects(async () => {
      for await (const _ of failing);
    }, /the database is away/);
    assert.equal((await parts().next()).value, 1);
  });
});
