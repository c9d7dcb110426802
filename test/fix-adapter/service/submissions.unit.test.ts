/** The list of submissions of the adapter, over a back office and a record that the test scripts. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { RpcError } from '../../../src/fix-adapter/service/rpc.ts';
import { submissionsService } from '../../../src/fix-adapter/service/submissions.ts';
import type { ListedSubmission } from '../../../src/fix-adapter/store/reads.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

const longestPage = 1_000;
const now = 50_000;

/** The list of the back office from one number to another. */
const theirs = (from: bigint, to: bigint): ListedSubmission[] =>
  Array.from({ length: Number(to - from) + 1 }, (_, at) => ({
    number: from + BigInt(at),
    clientId: `alc_${from + BigInt(at)}`,
    note: Buffer.from('a note'),
  }));

describe('the list of submissions', () => {
  /** The last number of the back office that the record has taken over. */
  let taken: bigint;
  let listed: string[];
  let timeouts: number[];
  /** The answer of the back office to each question. */
  let answer: (afterNumber: bigint) => ListedSubmission[];

  beforeEach(() => {
    [taken, listed, timeouts, answer] = [0n, ['ord_a'], [], () => []];
  });

  async function list(afterNumber = 0n, limit = longestPage, deadlineMs = now + 2_000): Promise<string[]> {
    const store = {
      numbers: async () => ({ backOfficeSubmission: taken }),
      takeSubmissions: async (after: bigint, rows: readonly ListedSubmission[]) => {
        assert.equal(after, taken);
        taken = rows.at(-1)?.number ?? taken;
        listed.push(...rows.map(({ clientId }) => clientId));
      },
      submissions: async (after: bigint, most: number) =>
        listed
          .map((clientId, at) => ({ number: BigInt(at + 1), clientId, note: Buffer.alloc(0) }))
          .filter(({ number }) => number > after)
          .slice(0, most),
    };
    const backOffice = {
      listSubmissions: async (request: { afterNumber: bigint; limit: number }, options: { timeoutMs: number }) => {
        assert.equal(request.limit, longestPage);
        timeouts.push(options.timeoutMs);
        return { submissions: answer(request.afterNumber) };
      },
    };
    const parts = { store, backOffice, now: () => now } as unknown as Parameters<typeof submissionsService>[0];
    const answered = await submissionsService(parts).listSubmissions({ afterNumber, limit } as never, {
      deadlineMs,
      call: undefined as never,
    });
    return (answered.submissions ?? []).map(({ clientId = '' }) => clientId);
  }

  const fails = (code: status, details = 'it says so') => {
    throw Object.assign(new Error(details), { code, details });
  };
  const unavailable = (error: unknown) => error instanceof RpcError && error.code === status.UNAVAILABLE;

  it('the list has the orders, then what the back office has listed since the last time', async () => {
    answer = (after) => (after === 0n ? theirs(1n, 2n) : []);
    assert.deepEqual(await list(), ['ord_a', 'alc_1', 'alc_2']);
    answer = (after) => (after === 2n ? theirs(3n, 3n) : []);
    assert.deepEqual(await list(), ['ord_a', 'alc_1', 'alc_2', 'alc_3']);
  });

  const codes = Object.values(status).filter((code): code is status => typeof code === 'number' && code !== status.OK);
  for (const code of codes.filter((each) => each !== status.UNIMPLEMENTED)) {
    it(`the list is not answered while the back office answers ${status[code]}, on the first page and on a later one`, async () => {
      answer = () => fails(code);
      await assert.rejects(list(), unavailable);
      answer = (after) => (after === 0n ? theirs(1n, BigInt(longestPage)) : fails(code));
      await assert.rejects(list(), unavailable);
    });
  }

  it('the list is that of the orders if the back office has no such list', async () => {
    answer = () => fails(status.UNIMPLEMENTED);
    assert.deepEqual(await list(), ['ord_a']);
  });

  it('the list is not answered while the database cannot serve, or after a defect', async () => {
    answer = () => {
      throw new UnavailableError();
    };
    await assert.rejects(list(), unavailable);
    answer = () => {
      throw new Error('a defect');
    };
    await assert.rejects(list(), /a defect/);
  });

  for (const [length, questions] of [
    [0, 1],
    [longestPage - 1, 1],
    [longestPage, 2],
    [longestPage + 1, 2],
    [2 * longestPage, 3],
  ] as const) {
    it(`the list is complete when the back office has listed ${length} more, after ${questions} questions`, async () => {
      const all = theirs(1n, BigInt(length));
      answer = (after) => all.slice(Number(after), Number(after) + longestPage);
      await list();
      assert.deepEqual([listed.length, taken, timeouts.length], [length + 1, BigInt(length), questions]);
    });
  }

  for (const [where, rows] of [
    ['at its beginning', theirs(2n, 3n)],
    ['in its middle', [...theirs(1n, 2n), ...theirs(4n, 4n)]],
    ['because a number comes twice', [...theirs(1n, 1n), ...theirs(1n, 1n)]],
  ] as const) {
    it(`the list is not answered if that of the back office has a gap ${where}, and nothing of it is taken`, async () => {
      answer = () => [...rows];
      await assert.rejects(list(), unavailable);
      assert.deepEqual([taken, listed], [0n, ['ord_a']]);
    });
  }

  it('the adapter asks the back office within what is left of the deadline, and for a moment if nothing is', async () => {
    await list(0n, 1, now + 700);
    await list(0n, 1, now - 5);
    assert.deepEqual(timeouts, [700, 1]);
  });

  it('the list is refused for a number below 0 and a length outside 1 to 1,000', async () => {
    const refused = (error: unknown) => error instanceof RpcError && error.code === status.INVALID_ARGUMENT;
    for (const [after, limit] of [
      [-1n, 1],
      [0n, 0],
      [0n, longestPage + 1],
    ] as const) {
      await assert.rejects(list(after, limit), refused);
    }
    for (const limit of [1, longestPage]) assert.deepEqual(await list(0n, limit), ['ord_a']);
  });
});
