import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Health, type HealthSources } from '../../../src/gateway/operators/telemetry/health.ts';
import { firstBroker } from '../../../src/gateway/trading/broker/broker.ts';

function brokerParts(aheadMs: number | undefined, id = firstBroker): HealthSources['brokers'][number] {
  return {
    broker: { id, orders: { connected: true }, clock: { estimateMs: aheadMs } },
    clocks: { known: 'in_step' },
    reports: { order: { problem: undefined }, application: { problem: undefined } },
    stuck: { all: [] },
    gate: { isOpen: true, held: [] },
  };
}

/** Everything is well, and the two other clocks are so far ahead of ours. */
function parts(databaseAheadMs: number | undefined, brokerAheadMs: number | undefined): HealthSources {
  return {
    database: { isReachable: true, clockAheadMs: databaseAheadMs, ask: async () => undefined },
    writes: { trouble: undefined },
    brokers: [brokerParts(brokerAheadMs)],
    nats: { connection: {} },
    stream: { isStoring: true },
    events: { webhooks: { consumer: { stuck: [] } } },
    sharing: { isShared: true },
    watchedFiles: [],
    failingWorkers: () => [],
    log: undefined,
  };
}

describe("the machine's clock", () => {
  const cases: readonly [string, number | undefined, number | undefined, boolean][] = [
    ['all agree', 5, -20, false],
    ['both others are 10 s ahead', 10_000, 10_500, false],
    ['both others are more than 10 s ahead', 10_001, 10_500, true],
    ['both others are 10 s behind', -10_000, -10_500, false],
    ['both others are more than 10 s behind', -10_001, -10_500, true],
    ['both others are a day behind', -86_400_000, -86_401_000, true],
    ["the broker's alone differs", 3, -120_000, false],
    ["the database's alone differs", -120_000, 3, false],
    ['both others differ, and from each other', 60_000, -60_000, false],
    ['both others differ, by different times', 60_000, 75_000, false],
    ["the broker's is not known", 60_000, undefined, false],
    ["the database's is not known", undefined, 60_000, false],
  ];
  for (const [what, databaseAheadMs, brokerAheadMs, isWrong] of cases) {
    it(`${isWrong ? 'is wrong' : 'is not blamed'} when ${what}`, () => {
      const health = new Health(parts(databaseAheadMs, brokerAheadMs), () => 0);
      const found = health.known().map(({ part, stops }) => ({ part, stops }));
      assert.deepEqual(found, isWrong ? [{ part: 'clock', stops: true }] : []);
    });
  }
});

it('events that cannot be consumed are a trouble, which names the first of their partners', () => {
  const stuck = ['par_1', 'par_2', 'par_3', 'par_4', 'par_5'];
  const health = new Health({ ...parts(0, 0), events: { webhooks: { consumer: { stuck } } } }, () => 0);
  const reason = 'events cannot be consumed, of par_1, par_2, par_3 and 2 more';
  assert.deepEqual(health.known(), [{ part: 'events', reason, stops: false, sinceMs: 0 }]);
});

it('changed certificates and secrets that are refused are a trouble, which names their links', () => {
  const watchedFiles = ['database', 'nats', 'secret key'].map((name) => ({ name, isRefused: name !== 'nats' }));
  const health = new Health({ ...parts(0, 0), watchedFiles }, () => 0);
  const reason = 'changed files are refused, and the former certificates and secrets are in use: database, secret key';
  assert.deepEqual(health.known(), [{ part: 'changed-files', reason, stops: false, sinceMs: 0 }]);
});

it("reports that wait for a locked partner are another trouble than a partner's damaged rows", () => {
  const reasonOf = (problem: 'locked' | 'damaged') => {
    const broker = brokerParts(0);
    const brokers = [{ ...broker, reports: { ...broker.reports, order: { problem } } }];
    const health = new Health({ ...parts(0, 0), brokers }, () => 0);
    return health.known().map(({ part, reason }) => `${part}: ${reason}`);
  };
  assert.deepEqual(reasonOf('locked'), [
    "order-reports: the exchange's reports cannot be applied: those of a partner wait, because its row is locked or the database cannot serve",
  ]);
  assert.deepEqual(reasonOf('damaged'), [
    "order-reports: the exchange's reports cannot be applied: those of a partner fail, because its rows are damaged",
  ]);
});

it('the troubles of a further broker have its name', () => {
  const further = brokerParts(0, 'zenith');
  const gate = { isOpen: false, held: [{ kind: 'order' }] };
  const brokers = [
    brokerParts(0),
    { ...further, gate, broker: { ...further.broker, orders: { connected: false } }, stuck: { all: ['par_1'] } },
  ];
  const health = new Health({ ...parts(0, 0), brokers }, () => 0);
  const found = health.known().map(({ part }) => part);
  assert.deepEqual(found, ['broker.zenith', 'objects.zenith', 'start.zenith', 'lost orders.zenith']);
});
