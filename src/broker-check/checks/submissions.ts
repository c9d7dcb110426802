import { status } from '@grpc/grpc-js';
import type { Submission } from '../../gen/marina/broker/v1/submissions_pb.ts';
import { checks, expect, NotRun, needing } from '../check.ts';
import type { RecordedCall } from '../exchange.ts';
import type { CheckSession } from '../session.ts';

const longestNote = 2_048;
const maxAtOnce = 1_000;
/** Every byte there is, the ones that end texts first. */
const everyByte = Buffer.from([0, 10, 13, ...Array.from({ length: 256 }, (_, byte) => byte), 0]);

/** The list of what was taken, from which a restored gateway finds what it lost. */
export const submissionChecks = checks({
  'submissions-offered': needing('Submissions').optional(
    'The adapter lists what it was given: without that, a restored database lacks it',
    async () => {},
  ),
  'submissions-dense': needing('Submissions').must(
    'The list has the numbers 1, 2, 3 … without a gap, in pages of the size that was asked for',
    async (session) => {
      const last = await lastSubmission(session);
      for (const [afterNumber, limit] of [
        [0n, 10],
        [0n, maxAtOnce],
        [last > 3n ? last - 3n : 0n, 2],
        [last, 5],
      ] as const) {
        const { submissions, exchange } = await listed(session, afterNumber, limit);
        expect(submissions.length <= limit, `there are ${submissions.length}`, exchange);
        const wrong = submissions.findIndex(({ number }, at) => number !== afterNumber + BigInt(at + 1));
        expect(
          wrong < 0,
          `in the place of ${afterNumber + BigInt(wrong + 1)} is ${submissions[wrong]?.number}`,
          exchange,
        );
        const isFull = submissions.length === limit || afterNumber + BigInt(submissions.length) >= last;
        expect(isFull, `the page ends before submission ${last}`, exchange);
      }
    },
  ),
  'submissions-current': needing('Submissions', 'account', 'rest').must(
    'An order is listed, once, before its first report is known',
    async (session) => {
      const { id, found, exchanges } = await sentAndListed(session, 'rest', {});
      expect(found.length > 0, `${id} is not listed`, ...exchanges);
      expect(found.length === 1, `${id} is listed ${found.length} times`, ...exchanges);
    },
  ),
  'submissions-rejected': needing('Submissions', 'account', 'reject').must(
    'A rejected order is listed too',
    async (session) => {
      const { id, found, exchanges } = await sentAndListed(session, 'reject', {});
      expect(found.length > 0, `${id} is not listed`, ...exchanges);
    },
  ),
  'notes-kept': needing('Submissions', 'account', 'rest').must(
    'A note comes back byte for byte, whatever its bytes',
    async (session) => {
      for (const note of [everyByte, Buffer.alloc(0), Buffer.from([0xff, 0xfe, 0x80])]) {
        const { found, exchanges } = await sentAndListed(session, 'rest', { note });
        const kept = found[0]?.note;
        if (kept === undefined) throw new NotRun('the order is not listed');
        const isKept = Buffer.from(kept).equals(note);
        expect(isKept, `a note of ${note.length} bytes came back with ${kept.length}`, ...exchanges);
      }
    },
  ),
  'notes-longest': needing('Submissions', 'account', 'rest').must(
    'A note of 2,048 bytes is taken, and comes back with all of them',
    async (session) => {
      const note = Buffer.from(Array.from({ length: longestNote }, (_, at) => (at * 31) % 256));
      const { found, exchanges } = await sentAndListed(session, 'rest', { note });
      const kept = found[0]?.note;
      if (kept === undefined) throw new NotRun('the order is not listed');
      if (kept.length === 0) throw new NotRun('the adapter keeps no notes');
      expect(Buffer.from(kept).equals(note), `${kept.length} bytes came back`, ...exchanges);
    },
  ),
});

/** A page of the list. Throws `NotRun` without an answer. */
export async function listed(session: CheckSession, afterNumber: bigint, limit: number) {
  const { answer, exchange } = await session.call('Submissions', 'listSubmissions', { afterNumber, limit });
  if (answer === undefined) throw new NotRun(`the list ended with ${exchange.status}`);
  return { submissions: answer.submissions, exchange };
}

/** The number of the last submission, found in few calls however many there are. */
export async function lastSubmission(session: CheckSession): Promise<bigint> {
  const has = async (number: bigint) => {
    const { code, answer, exchange } = await session.call('Submissions', 'listSubmissions', {
      afterNumber: number - 1n,
      limit: 1,
    });
    expect(code === status.OK, `the list ended with ${exchange.status}`, exchange);
    return (answer?.submissions.length ?? 0) > 0;
  };
  let above = 1n;
  while (await has(above)) above *= 2n;
  let below = above / 2n;
  while (above - below > 1n) {
    const middle = (below + above) / 2n;
    if (await has(middle)) below = middle;
    else above = middle;
  }
  return below;
}

/** Everything listed above a number. */
export async function listedAfter(session: CheckSession, after: bigint) {
  const submissions: Submission[] = [];
  const exchanges: RecordedCall[] = [];
  for (let from = after; exchanges.length < 20; ) {
    const page = await listed(session, from, maxAtOnce);
    submissions.push(...page.submissions);
    exchanges.push(page.exchange);
    if (page.submissions.length < maxAtOnce) break;
    from = page.submissions.at(-1)?.number ?? from;
  }
  return { submissions, exchanges };
}

/** Sends an order, and looks for it in the list at once. */
async function sentAndListed(session: CheckSession, where: 'rest' | 'reject', fields: object) {
  const before = await lastSubmission(session);
  const { id, outcome } = await session.place(where, fields);
  const { submissions, exchanges } = await listedAfter(session, before);
  const found = submissions.filter(({ clientId }) => clientId === id);
  return { id, found, exchanges: [outcome.exchange, ...exchanges] };
}
