import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../src/gateway/store/statement.ts';
import { Call, StatedTime, StatementLie, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { daysBefore, lagosDay } from '../../src/kit/clock.ts';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { startNats } from '../../src/sandbox/servers.ts';
import { adminClient } from '../support/admin.ts';
import { alertmanagerFile, firingAt, fixRules, gatewayRules, type Series } from '../support/alert-rules.ts';
import { type Labels, startAlertmanager } from '../support/alertmanager.ts';
import { eventually } from '../support/eventually.ts';
import { type Observed, phases, sample, timeline } from '../support/fault/observed.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { temporaryFolder } from '../support/folders.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../support/gateway.ts';
import { inPart } from '../support/part.ts';
import { execute, startTestMariaDb, startTestNats } from '../support/servers.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

/** A single cause: how it comes about, the alerts that it raises and why, and the one that is left. */
interface Cause {
  readonly name: string;
  /** The one alert that somebody gets. */
  readonly left: string;
  /** Every other alert that fires, and why. */
  readonly muted: Readonly<Record<string, string>>;
  /** Those that fire or not, by what was under way at that moment. */
  readonly perhaps?: Readonly<Record<string, string>>;
  /** Whether an adapter for FIX is there. */
  readonly hasFix?: true;
  readonly series: () => Promise<Series>;
}

/** A gateway under load, and what ends with it. */
interface Trial {
  readonly gateway: TestGateway;
  readonly partner: TestPartner;
  readonly receiver: WebhookReceiver;
}

/** For so long each phase is watched: a worker that fails counts as failing, and reports as broken, within it. */
const watchedMs = 10_000;
const untilFaultShowsMs = 40_000;

/** Runs some pieces of work at once, and lets the others wait. */
class Slots {
  readonly #waiting: (() => void)[] = [];

  constructor(private free: number) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.free -= 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }
}

/** Few at once, because a gateway that gets no processor has troubles of its own. */
const atOnce = new Slots(2);

type Surroundings = Parameters<typeof startGateway>[1] & { readonly variables?: Record<string, string> };

/** Lets a gateway work, breaks something, and watches what its metrics do. */
function observe(options: Surroundings, break_: (trial: Trial) => Promise<unknown>): Promise<Observed> {
  return atOnce.run(() => observeNow(options, break_));
}

async function observeNow(options: Surroundings, break_: (trial: Trial) => Promise<unknown>): Promise<Observed> {
  const receiver = await WebhookReceiver.start();
  const { variables, ...surroundings } = options;
  const gateway = await startGateway({ ...receiver.variables, ...variables }, surroundings);
  const admin = adminClient(gateway.app.adminPort);
  const stopped = new AbortController();
  try {
    const partner = await gateway.newPartner();
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url('/hooks') }, admin.options);
    const load = placeOrders(gateway, partner, stopped.signal);
    const { opsPort } = gateway.app;
    const watch = async () => {
      const first = await sample(opsPort);
      await delay(watchedMs);
      return [first, await sample(opsPort)] as const;
    };
    await eventually(() => assert.ok(receiver.received.length > 20, 'it works'), 60_000);
    const well = await watch();
    const brokeAtSeconds = performance.now() / 1_000;
    await break_({ gateway, partner, receiver });
    await delay(untilFaultShowsMs);
    const faulty = await watch();
    stopped.abort();
    await load;
    return { well, faulty, brokeAtSeconds };
  } finally {
    stopped.abort();
    admin.close();
    await gateway.stop().catch(() => undefined);
    await receiver.close();
  }
}

/** A partner that places orders and reads them, whatever becomes of it. */
async function placeOrders(gateway: TestGateway, partner: TestPartner, signal: AbortSignal): Promise<void> {
  const underWay = new Set<Promise<unknown>>();
  for (let quantity = 1; !signal.aborted; quantity += 1) {
    const calls = [
      gateway.place(partner, { symbol: quantity % 2 === 0 ? 'SIM-REST' : 'SIM-FILL', quantity }),
      gateway.rest('GET', '/v1/orders', { key: partner.key }),
    ];
    for (const call of calls) {
      const ended: Promise<unknown> = call.catch(() => undefined).finally(() => underWay.delete(ended));
      underWay.add(ended);
    }
    await delay(underWay.size > 50 ? 500 : 150);
  }
  await Promise.all(underWay);
}

/** The alerts that fire when nothing can be stored, and why. */
const withoutWrites = {
  MarinaWorkerFails: 'each worker reads or writes the database all the time',
  MarinaErrors: 'orders are answered 503',
};

/** The alerts that fire when no call reaches the broker, and why. */
const brokerIsAway = {
  MarinaErrors: 'orders are answered 503',
  MarinaBrokerErrors: 'calls end without a connection',
  MarinaReportsStuck: 'the streams of reports are broken',
  MarinaReportsUnfollowed: 'no stream of reports is open',
  MarinaWorkerFails: 'the worker `recovery` asks the broker what it was given',
};

/** Orders that were under way when the broker went. */
const perhapsUnsettled = { MarinaUnsettled: 'nobody says what became of them' };

const brokerAway = once(() => observe({}, ({ gateway }) => gateway.stopBroker()));
const readOnly = once(async () => {
  const server = await startTestMariaDb();
  const seen = await observe({ databaseServerUrl: server.url }, () => execute(server.url, 'SET GLOBAL read_only = 1'));
  await server.kill();
  return timeline(seen);
});
const refusingEndpoint = once(() =>
  observe({}, async ({ gateway, receiver }) => {
    receiver.reply('/hooks', () => 404);
    const before = receiver.received.length;
    await eventually(() => assert.ok(receiver.received.length > before + 5));
    const admin = adminClient(gateway.app.adminPort);
    await admin.clock.advanceClock({ by: { seconds: 7n * 3_600n, nanos: 0 } }, admin.options);
    admin.close();
  }),
);

async function brokersClockIsWrong(error: { errorMs: bigint; stated?: StatedTime }): Promise<Series> {
  return timeline(await observe({}, ({ gateway: { controls } }) => controls.setClockError(error, callTimeout)));
}

/** A gateway that was there for some days. Returns the last one that is over. */
async function withEarlierDays({ app, database }: TestGateway, days: number): Promise<string> {
  const admin = adminClient(app.adminPort);
  const { now } = await admin.diagnostics.getStatus({}, admin.options);
  admin.close();
  const yesterday = daysBefore(lagosDay(Number(now?.seconds) * 1_000), 1);
  const first = new Date(Date.parse(daysBefore(yesterday, days - 1)));
  await database.write(statement('UPDATE partners SET created_at = ?', first));
  return yesterday;
}

const allCauses: readonly Cause[] = [
  {
    name: 'a gateway is down and another works',
    left: 'MarinaDown',
    muted: {},
    series: async () => {
      const { well, brokeAtSeconds } = await brokerAway();
      const down = timeline({ well, faulty: undefined, brokeAtSeconds });
      return { ...down, ...timeline({ well, faulty: well, brokeAtSeconds }, 'b:9464') };
    },
  },
  {
    name: 'all gateways are down',
    left: 'MarinaDown',
    muted: {},
    series: async () => timeline({ ...(await brokerAway()), faulty: undefined }),
  },
  {
    name: 'the database cannot be reached',
    left: 'MarinaDatabaseUnreachable',
    muted: withoutWrites,
    perhaps: {
      MarinaReportsUnfollowed: 'the stream of reports is followed under a lease, which cannot be renewed',
    },
    series: async () => {
      let proxy: FaultProxy | undefined;
      const prepare = async (variables: Record<string, string>) => {
        proxy = await FaultProxy.start(variables.MARINA_DATABASE_URL ?? '');
        variables.MARINA_DATABASE_URL = proxy.through(variables.MARINA_DATABASE_URL ?? '');
      };
      const seen = await observe({ prepare }, async () => {
        await proxy?.refuse();
        proxy?.reset();
      });
      await proxy?.close();
      return timeline(seen);
    },
  },
  {
    name: 'the database is read-only',
    left: 'MarinaDatabaseTakesNoWrites',
    muted: { ...withoutWrites, MarinaLeaseFree: 'leases cannot be renewed, and the database can be asked for them' },
    perhaps: {
      MarinaEventsLate: 'what was committed before stays in the outbox',
      MarinaUnsettled: 'what was sent before cannot be settled',
      MarinaReportsUnfollowed: 'the stream of reports is followed under a lease, which cannot be renewed',
    },
    series: readOnly,
  },
  {
    name: 'the disk of the database is full',
    left: 'MarinaDatabaseDiskFull',
    muted: { ...withoutWrites, MarinaLeaseFree: 'leases cannot be renewed, and the database can be asked for them' },
    perhaps: {
      MarinaEventsLate: 'what was committed before stays in the outbox',
      MarinaUnsettled: 'what was sent before cannot be settled',
      MarinaReportsUnfollowed: 'the stream of reports is followed under a lease, which cannot be renewed',
    },
    // full-disks.test.ts shows that a full disk is a database without writes under the name of another part.
    series: async () => {
      const named = Object.entries(await readOnly()).map(([name, values]): [string, string] => [
        name.replace('part="database-writes"', 'part="database-disk"'),
        values,
      ]);
      return Object.fromEntries(named);
    },
  },
  {
    name: 'the broker cannot be reached',
    left: 'MarinaBrokerUnreachable',
    muted: brokerIsAway,
    perhaps: perhapsUnsettled,
    series: async () => timeline(await brokerAway()),
  },
  {
    name: 'the broker answers no order and no question',
    left: 'MarinaBrokerErrors',
    muted: { MarinaUnsettled: 'nothing says what became of the orders' },
    series: async () =>
      timeline(
        await observe({}, async ({ gateway: { controls } }) => {
          for (const call of [Call.SUBMIT_ORDER, Call.LOOK_UP_ORDER]) {
            await controls.injectFault({ call, fault: WireFault.HANG, times: 100_000 }, callTimeout);
          }
        }),
      ),
  },
  {
    name: "the broker's clock is behind",
    left: 'MarinaBrokerClockApart',
    muted: { MarinaReportsLate: 'reports have the times of that clock' },
    perhaps: perhapsUnsettled,
    series: () => brokersClockIsWrong({ errorMs: -120_000n }),
  },
  {
    name: "the broker's clock is ahead",
    left: 'MarinaBrokerClockApart',
    muted: { MarinaErrors: 'the broker refuses orders as too late, and partners get order_not_sent' },
    perhaps: perhapsUnsettled,
    series: () => brokersClockIsWrong({ errorMs: 120_000n }),
  },
  {
    name: "the clock of the broker's exchange is behind, and the broker states another time",
    left: 'MarinaBrokerClockApart',
    muted: { MarinaReportsLate: 'reports have the times of that clock' },
    perhaps: perhapsUnsettled,
    series: () => brokersClockIsWrong({ errorMs: -120_000n, stated: StatedTime.RIGHT }),
  },
  {
    name: "the clock of the broker's exchange is ahead, and the broker states another time",
    left: 'MarinaErrors',
    muted: {},
    series: () => brokersClockIsWrong({ errorMs: 120_000n, stated: StatedTime.RIGHT }),
  },
  {
    name: "the broker's statement of a day differs",
    left: 'MarinaBrokerDisagrees',
    muted: {},
    series: async () =>
      timeline(
        await observe({}, async ({ gateway, partner: { account } }) => {
          const day = await withEarlierDays(gateway, 1);
          const lie = { lie: StatementLie.ORDER_EXTRA, day, account, symbol: 'SIM-REST' };
          await gateway.controls.lieInStatements(lie, callTimeout);
          const admin = adminClient(gateway.app.adminPort);
          await admin.diagnostics.reconcileDay({ day, reason: 'a test' }, admin.options);
          admin.close();
        }),
      ),
  },
  {
    name: 'the broker answers no question for its statements',
    left: 'MarinaReconciliationLate',
    muted: {},
    series: async () =>
      timeline(
        await observe({}, async ({ gateway }) => {
          const fault = { call: Call.GET_STATEMENT, fault: WireFault.HANG };
          await gateway.controls.injectFault({ ...fault, times: 100_000 }, callTimeout);
          await withEarlierDays(gateway, 3);
        }),
      ),
  },
  {
    name: 'no adapter has the FIX session',
    left: 'MarinaFixNoAdapter',
    muted: {
      ...brokerIsAway,
      MarinaBrokerUnreachable: 'the adapter that waits answers no gateway',
    },
    perhaps: perhapsUnsettled,
    hasFix: true,
    series: async () => ({
      ...timeline(await brokerAway()),
      'marina_fix_active{instance="fix:9465"}': phased(1, 0),
    }),
  },
  {
    name: 'the FIX session is down in its hours',
    left: 'MarinaFixSessionDown',
    muted: { MarinaErrors: 'partners get order_not_sent, as for an order that comes too late' },
    hasFix: true,
    series: async () => ({
      ...(await brokersClockIsWrong({ errorMs: 120_000n, stated: StatedTime.RIGHT })),
      'marina_fix_active{instance="fix:9465"}': phased(1, 1),
      'marina_fix_session_expected{instance="fix:9465"}': phased(1, 1),
      'marina_fix_session_up{instance="fix:9465"}': phased(1, 0),
    }),
  },
  {
    name: 'NATS cannot be reached',
    left: 'MarinaNatsUnreachable',
    muted: { MarinaLimitsNotShared: 'replicas count limits through NATS' },
    series: async () => {
      const nats = await startTestNats();
      return timeline(await observe({ variables: { MARINA_NATS_URL: nats.url } }, () => nats.stop()));
    },
  },
  {
    name: 'NATS runs without JetStream',
    left: 'MarinaJetStreamFails',
    muted: { MarinaLimitsNotShared: 'their counters are in a bucket of JetStream' },
    series: async () => {
      const nats = await startTestNats();
      return timeline(
        await observe({ variables: { MARINA_NATS_URL: nats.url } }, async () => {
          await nats.stop();
          const dataDir = temporaryFolder();
          sharedKeeper().removeAtEnd(dataDir);
          await startNats({ dataDir, port: nats.port, disposable: true, further: ['jetstream: false'] });
        }),
      );
    },
  },
  {
    name: 'the endpoint of a partner answers 404 for seven hours',
    left: 'MarinaWebhookUndelivered',
    muted: { MarinaWebhookFails: 'it is also longer than a quarter of an hour' },
    series: async () => timeline(await refusingEndpoint()),
  },
  {
    name: 'the endpoints of twelve partners get nothing',
    left: 'MarinaWebhooksFail',
    muted: {
      MarinaWebhookFails: 'each endpoint fails for longer than a quarter of an hour',
      MarinaWebhookUndelivered: 'each has delivered nothing for more than six hours',
    },
    series: async () => {
      const series = Object.entries(timeline(await refusingEndpoint()));
      const others = Array.from({ length: 11 }, (_, index) =>
        series
          .filter(([name]) => name.startsWith('marina_webhook_undelivered_seconds'))
          .map(([name, values]): [string, string] => [name.replace(/partner="\w+"/, `partner="par_${index}"`), values]),
      );
      return Object.fromEntries([...series, ...others.flat()]);
    },
  },
];

describe('of the alerts that a single cause raises, one is left', () => {
  const causes = inPart(allCauses);
  const sets = new Map<string, Labels[][]>();
  const unmuted = new Map<string, Set<string>>();
  const environmentOf = ({ name }: Cause, step: number) => `${name}, step ${step}`;
  const steps = Array.from({ length: phases.faulty + phases.after }, (_, index) => phases.well + index);

  before(async () => {
    await Promise.all(
      causes.map(async ({ name, hasFix, series }) => {
        const files = hasFix ? [gatewayRules, fixRules] : [gatewayRules];
        sets.set(name, await firingAt(await series(), steps, files));
      }),
    );
    // Each moment of each cause is an installation of its own, because alerts of one mute none of another.
    const all = causes.flatMap((cause) =>
      (sets.get(cause.name) ?? []).flatMap((firing, index) =>
        firing.map((labels) => ({ ...labels, environment: environmentOf(cause, steps[index] ?? 0) })),
      ),
    );
    const alertmanager = await startAlertmanager(alertmanagerFile);
    for (const { environment = '', alertname = '' } of await alertmanager.unmuted(all)) {
      unmuted.set(environment, (unmuted.get(environment) ?? new Set()).add(alertname));
    }
    await alertmanager.stop();
  });

  for (const cause of causes) {
    it(`when ${cause.name}`, () => {
      const fired = new Set((sets.get(cause.name) ?? []).flat().map(({ alertname = '' }) => alertname));
      const expected = [cause.left, ...Object.keys(cause.muted)];
      const possible = new Set([...expected, ...Object.keys(cause.perhaps ?? {})]);
      assert.deepEqual([...new Set([...expected, ...fired])].sort(), [...fired].sort(), 'all that should fire do');
      assert.deepEqual(
        [...fired].filter((name) => !possible.has(name)),
        [],
        'nothing else does',
      );
      // Two steps are as long as `group_wait`: what is muted by then was not sent.
      const left = steps.map((step) => unmuted.get(environmentOf(cause, step)) ?? new Set<string>());
      const sent = left.flatMap((names, index) =>
        [...names].filter((name) => left[index + 1]?.has(name) && left[index + 2]?.has(name)),
      );
      assert.deepEqual([...new Set(sent)], [cause.left], 'what is sent, until a quarter of an hour after the end');
    });
  }
});

/** Values of a series: while all is well, and during a fault. */
function phased(well: number, faulty: number): string {
  return [
    ...Array(phases.well).fill(well),
    ...Array(phases.faulty).fill(faulty),
    ...Array(phases.after).fill(well),
  ].join(' ');
}

/** The result of the first call, for all. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}
