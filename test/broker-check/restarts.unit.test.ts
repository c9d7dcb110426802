/** The checks of an adapter after a restart, and of the silence of its streams, with an adapter that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { Breach } from '../../src/broker-check/check.ts';
import { restartChecks } from '../../src/broker-check/checks/restart.ts';
import { longestSilence } from '../../src/broker-check/checks/streams.ts';
import type { CheckSession } from '../../src/broker-check/session.ts';
import { ApplicationReportKind, ApplicationReportSchema } from '../../src/gen/marina/broker/v1/applications_pb.ts';
import { ReportKind, ReportSchema } from '../../src/gen/marina/broker/v1/orders_pb.ts';

const exchange = { call: 'a call', request: {}, status: 'OK', tookMs: 1 };

/** An entry that an adapter has under a number. */
interface Entry {
  readonly number: bigint;
  readonly text: string;
}
const had: readonly Entry[] = [4n, 5n, 6n].map((number) => ({ number, text: 'as it was' }));

const order = ({ number, text }: Entry) =>
  create(ReportSchema, { number, clientOrderId: 'ord_1', kind: ReportKind.ACCEPTED, exchangeOrderId: text });
const application = ({ number, text }: Entry) => {
  const kind = ApplicationReportKind.ACCEPTED;
  return create(ApplicationReportSchema, { number, clientApplicationId: 'app_1', kind, reference: text });
};
const submission = ({ number, text }: Entry) => ({ number, clientId: `ord_${number}`, note: Buffer.from(text) });

/** Holds a check against what an adapter had before a restart and has after it. */
async function checkRestart(id: string, after: readonly Entry[], about: Entry): Promise<void> {
  const before = {
    placed: { id: 'ord_1', report: order(about), outcome: { exchange } },
    applied: { id: 'app_1', report: application(about), request: {}, outcome: { exchange } },
    ...{ reports: had.map(order), submissions: had.map(submission), last: 6n },
  };
  const answers: Record<string, object> = {
    submitApplication: { code: status.ALREADY_EXISTS },
    lookUpApplication: { code: status.OK, answer: { found: true, reports: after.map(application) } },
    listSubmissions: { code: status.OK, answer: { submissions: after.map(submission) } },
  };
  const session = {
    settings: { waits: { settleMs: 100 } },
    once: async () => before,
    inTime: () => undefined,
    recorded: async () => ({ found: true, reports: after.map(order), exchanges: [exchange] }),
    call: async (_: string, method: string) => ({ exchange, ...answers[method] }),
    follower: { from: 3n, shown: () => exchange },
    openReports: async function* () {
      yield { reports: after.map(order), lastNumber: 9n };
    },
  };
  const check = restartChecks.find((each) => each.id === id) ?? assert.fail(`there is no check ${id}`);
  await check.run(session as unknown as CheckSession);
}

describe('after a restart', () => {
  for (const [id, isOfAll] of [
    ['restart-numbers', true],
    ['restart-submissions', true],
    ['restart-look-up', false],
    ['restart-applications', false],
  ] as const) {
    it(`${id} passes an adapter that has all that it had, also with more behind it`, async () => {
      for (const about of had) {
        await checkRestart(id, had, about);
        await checkRestart(id, [...had, { number: 7n, text: 'new' }], about);
      }
    });

    it(`${id} finds ${isOfAll ? 'each entry' : 'an entry'} that is gone, and one that is another`, async () => {
      for (const about of had) {
        const others = had.filter((entry) => entry !== about);
        const more = { number: 7n, text: 'new' };
        const another = had.map((entry) => (entry === about ? { ...entry, text: 'another' } : entry));
        for (const after of [[], others, [...others, more], another]) {
          await assert.rejects(checkRestart(id, after, about), Breach, `report ${about.number}`);
        }
      }
    });
  }
});

describe('the longest silence of a stream', () => {
  const now = 10_000;
  for (const [what, arrivals, expected] of [
    ['is the time since its only message', [[4_000]], 6_000],
    ['is the time since its last message', [[2_000, 3_000]], 7_000],
    ['is the longest time between two messages', [[2_000, 7_000, 9_900]], 5_000],
    ['may be of a stream before', [[1_000, 6_500], [9_800]], 5_500],
    ['does not count the time between two streams', [[1_000, 2_000], [9_500]], 1_000],
    ['is all of the time if the stream has had no message', [[1_000, 2_000], []], 500],
  ] as const) {
    it(`the longest silence of a stream ${what}`, async (context) => {
      context.mock.method(performance, 'now', () => now);
      const follower = {
        arrivals: arrivals.map((stream) => stream.map((at) => ({ at }))),
        until: async (holds: () => boolean) => holds(),
      };
      assert.equal(await longestSilence(follower as never, 500), expected);
    });
  }
});
