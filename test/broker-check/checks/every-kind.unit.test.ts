/** The checks that all kinds of objects share, with an adapter that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { allocationChecks } from '../../../src/broker-check/checks/allocations.ts';
import { reportsById } from '../../../src/broker-check/checks/every-kind.ts';
import { lookUpChecks } from '../../../src/broker-check/checks/look-ups.ts';
import { orderChecks } from '../../../src/broker-check/checks/orders.ts';
import { withdrawalChecks } from '../../../src/broker-check/checks/withdrawals.ts';
import { passTime } from '../../support/passing-time.ts';
import { rightBroker } from '../../support/right-broker.ts';
import { type Asked, ended, scriptedSession, verdictOf } from '../../support/scripted-adapter.ts';

const sends = 5;
const skewMs = 200;
const lost = ended(status.UNAVAILABLE);

const kinds = {
  order: { submit: 'submitOrder', lookUp: 'lookUpOrder', idField: 'clientOrderId', checks: orderChecks },
  allocation: {
    submit: 'submitAllocation',
    lookUp: 'lookUpAllocation',
    idField: 'clientAllocationId',
    checks: allocationChecks,
  },
  withdrawal: {
    submit: 'submitWithdrawal',
    lookUp: 'lookUpWithdrawal',
    idField: 'clientWithdrawalId',
    checks: withdrawalChecks,
  },
} as const;

/** The look-up's answer about a send with this number, at this look. Undefined: it has none. */
type Found = (send: number, look: number, sinceNotAfterMs: number) => boolean | undefined;

/** How the check of abandoned sends ends, with an adapter that takes all of them without an answer and says this of them. */
async function abandoned(
  context: TestContext,
  kind: keyof typeof kinds,
  found: Found,
  { streamed = [] as readonly number[], honoursNotAfter = true } = {},
) {
  const { submit, lookUp, idField, checks } = kinds[kind];
  const sent: { id: string; notAfterMs: number; timeoutMs: number | undefined; looks: number }[] = [];
  const right = rightBroker();
  const session = scriptedSession({
    waits: { skewMs },
    answers: {
      ...right.answers,
      getCapabilities: { honoursNotAfter, withdrawalDestinations: [1] },
      [submit]: (request: Asked, _: number, timeoutMs: number | undefined) => {
        sent.push({ id: request[idField], notAfterMs: timestampMs(request.notAfter), timeoutMs, looks: 0 });
        return ended(status.DEADLINE_EXCEEDED);
      },
      [lookUp]: (request: Asked) => {
        const nth = sent.findIndex(({ id }) => id === request[idField]);
        const one = sent[nth] ?? assert.fail('it was not sent');
        const isFound = found(nth, one.looks, Date.now() - one.notAfterMs);
        one.looks += 1;
        if (isFound === undefined) return lost;
        return { found: isFound, record: isFound ? {} : undefined };
      },
    },
  });
  Object.assign(session, {
    streamed: (id: string) => sent.filter((one, nth) => one.id === id && streamed.includes(nth)),
  });
  const check = kind === 'order' ? 'abandoned-settles' : `${kind}-abandoned-settles`;
  const verdict = await passTime(context, () => verdictOf(checks, check, session), { date: true });
  return { is: verdict?.is, shown: verdict?.shown ?? [], sent };
}

describe('an object whose sender gives up, as broker-check sees it', () => {
  for (const kind of Object.keys(kinds) as (keyof typeof kinds)[]) {
    it(`an ${kind} whose sender gives up is taken or not, for good once its time is over`, async (context) => {
      for (const [what, found, expected] of [
        ['all are found', () => true, 'kept'],
        ['none is found', () => false, 'kept'],
        ['some are found', (send: number) => send % 2 === 0, 'kept'],
        ['the first comes later', (send: number, look: number) => send === 0 && look > 0, 'breach'],
        ['the last comes later', (send: number, look: number) => send === 4 && look > 0, 'breach'],
        ['the first goes', (send: number, look: number) => send !== 0 || look === 0, 'breach'],
        ['the last goes', (send: number, look: number) => send !== 4 || look === 0, 'breach'],
        ['they come while they may', (_: number, __: number, sinceMs: number) => sinceMs >= skewMs, 'kept'],
        ['they come after that', (_: number, __: number, sinceMs: number) => sinceMs >= skewMs + 300, 'breach'],
        ['the first look has no answer', (_: number, look: number) => (look === 0 ? undefined : true), 'kept'],
        ['the second look has no answer', (_: number, look: number) => (look === 1 ? undefined : false), 'kept'],
        [
          'the first has no answer, and the last goes',
          (send: number, look: number) => (send === 0 ? undefined : send !== 4 || look === 0),
          'breach',
        ],
        [
          'the first has no second answer, and the last comes later',
          (send: number, look: number) => (send === 0 && look > 0 ? undefined : send === 4 && look > 0),
          'breach',
        ],
      ] as const satisfies readonly (readonly [string, Found, string])[]) {
        const { is, shown, sent } = await abandoned(context, kind, found);
        assert.equal(is, expected, what);
        if (expected === 'breach') assert.equal(shown.length, 3, `${what}: the send and both look-ups are shown`);
        assert.equal(sent.length, sends);
        assert.deepEqual(
          sent.map(({ timeoutMs }) => timeoutMs),
          [1, 2, 3, 4, 5],
        );
      }
      const { is } = await abandoned(context, kind, () => true, { honoursNotAfter: false });
      assert.equal(is, 'not offered');
    });
  }

  it('an order whose sender gives up is in the stream only if the look-up has it', async (context) => {
    for (const nth of [0, 2, 4]) {
      const { is } = await abandoned(context, 'order', () => false, { streamed: [nth] });
      assert.equal(is, 'breach', `order ${nth}`);
      assert.equal((await abandoned(context, 'order', (send) => send === nth, { streamed: [nth] })).is, 'kept');
    }
  });
});

describe('the time up to which a look-up is complete, as broker-check sees it', () => {
  it('the time up to which a look-up is complete may be ahead by the skew of the clocks, and by no millisecond more', async (context) => {
    const now = 1_800_000_000_000;
    context.mock.timers.enable({ apis: ['Date'], now });
    for (const [aheadMs, expected] of [
      [-3_600_000, 'kept'],
      [skewMs, 'kept'],
      [skewMs + 1, 'breach'],
    ] as const) {
      const lookUpOrder = { completeUntil: timestampFromMs(now + aheadMs) };
      const { is } = await verdictOf(
        lookUpChecks,
        'complete-until-past',
        scriptedSession({ answers: { lookUpOrder } }),
      );
      assert.equal(is, expected, `${aheadMs} ms`);
    }
  });
});

describe('the reports of a run', () => {
  it('the reports of a run are those about its own objects, in the order in which they came', () => {
    const reports = [
      ['theirs', 1],
      ['a', 2],
      ['b', 3],
      ['a', 4],
      ['', 5],
    ] as const;
    const sent = ['b', 'a', 'c', 'a'].map((id) => ({ id, outcome: {} as never }));
    assert.deepEqual(
      reportsById(sent, reports, ([id]) => id),
      new Map([
        ['a', [reports[1], reports[3]]],
        ['b', [reports[2]]],
      ]),
    );
  });
});
