import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Drill, drills } from '../../src/sandbox/drills.ts';
import { type KeptProcess, sharedKeeper } from '../../src/sandbox/keeper.ts';
import { isRunning } from '../../src/sandbox/lock.ts';
import { withoutOurs } from '../../src/sandbox/processes.ts';
import { readSandbox, type Sandbox } from '../../src/sandbox/sandbox-file.ts';
import { adminClient } from '../support/admin.ts';
import { firingAt, gatewayRules } from '../support/alert-rules.ts';
import { eventually } from '../support/eventually.ts';
import { type Observed, phases, sample, timeline } from '../support/fault/observed.ts';
import { pasteWhilePractising } from '../support/fault/pages.ts';
import { temporaryFolder } from '../support/folders.ts';
import { inPart } from '../support/part.ts';

/** The parts that a gateway reports as in trouble during a drill; absent: none. */
const troubles: Readonly<Record<string, string>> = {
  database: 'database',
  'disk-full': 'database-disk',
  nats: 'nats',
  broker: 'broker',
  'wrong-clock': 'broker-clock',
};

/** For so long the metrics are watched, before a drill and in its midst. */
const watchedMs = 5_000;

describe('a sandbox to practise in', () => {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const dataDir = join(folder, 'data');
  const ports = ['REST', 'GRPC', 'ADMIN', 'OPS', 'SIMULATOR'].map((name) => [`MARINA_${name}_PORT`, '0']);
  const env = { ...withoutOurs(process.env), ...Object.fromEntries(ports), MARINA_DATA_DIR: dataDir };
  let run: KeptProcess;
  let runs = 0;
  const output = () => readFileSync(run.logPath, 'utf8');
  const sandbox = (): Sandbox => {
    const written = readSandbox(dataDir);
    assert.ok(written !== undefined);
    return written;
  };

  function start(name: string, entry: string, ...args: string[]): Promise<KeptProcess> {
    runs += 1;
    return sharedKeeper().start({
      name,
      command: process.execPath,
      args: ['--import', 'tsx', entry, ...args],
      env,
      logPath: join(folder, `${runs}.log`),
    });
  }

  async function reasons(): Promise<string[]> {
    const answer = await fetch(`${sandbox().ops_url}/readyz`, { signal: AbortSignal.timeout(5_000) });
    const { reasons: parts, degraded } = (await answer.json()) as Record<string, { part: string }[]>;
    return [...(parts ?? []), ...(degraded ?? [])].map(({ part }) => part);
  }

  const isWell = () => eventually(async () => assert.deepEqual(await reasons(), []), 90_000);

  before(async () => {
    run = await start('make run', 'src/sandbox/run.ts');
    await eventually(() => assert.ok(output().includes('is ready') || !isRunning(run.pid)), 120_000);
    assert.ok(output().includes('is ready'), output());
  });

  after(async () => {
    await run?.stop();
  });

  it('starts each part again that dies, at its port, and goes on when all die at once', async () => {
    const { pids, ...before } = sandbox();
    const names = ['gateway', 'simulator', 'receiver', 'nats', 'mariadb'] as const;
    for (const name of names) process.kill(pids[name] ?? 0, 'SIGKILL');
    await eventually(() => {
      for (const name of names) {
        const pid = sandbox().pids[name] ?? 0;
        assert.ok(pid !== pids[name] && isRunning(pid), name);
      }
    }, 60_000);
    await isWell();
    const { pids: _, ...now } = sandbox();
    assert.deepEqual(now, before);
    for (const title of ['gateway', 'simulator', 'receiver', 'NATS', 'MariaDB']) {
      assert.match(output(), new RegExp(`${title} was ended by SIGKILL, and is started again`));
    }
    // An event reaches the receiver that came back: the gateway trusts it, and it knows the partner's secret.
    const [partner] = now.partners;
    const placed = await fetch(`${now.rest_url}/v1/orders`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${partner?.key}`,
        'idempotency-key': 'after the loss',
        'content-type': 'application/json',
      },
      body: JSON.stringify({
        account: partner?.account,
        symbol: 'SIM-FILL',
        side: 'buy',
        quantity: 1,
        type: 'market',
      }),
    });
    const { id } = (await placed.json()) as { id: string };
    await eventually(() => assert.match(output(), new RegExp(`order\\.filled ${id}`)), 60_000);
  });

  /** Two looks at the metrics, a while apart; undefined: nothing answers. */
  async function watch(): Promise<Observed['faulty']> {
    const port = Number(new URL(sandbox().ops_url).port);
    try {
      const first = await sample(port);
      await sleep(watchedMs);
      return [first, await sample(port)];
    } catch (error) {
      if (error instanceof TypeError) return undefined;
      throw error;
    }
  }

  /** The alerts that ring if it lasts for 25 minutes. */
  async function alertsOf(well: Observed['faulty'], brokeAtSeconds: number): Promise<Set<string>> {
    assert.ok(well !== undefined);
    const series = timeline({ well, faulty: await watch(), brokeAtSeconds });
    const lasts = phases.well + phases.faulty - 1;
    const [firing = []] = await firingAt(series, [lasts], [gatewayRules]);
    return new Set(firing.map(({ alertname = '' }) => alertname));
  }

  /** An endpoint counts as failing only after minutes without a delivery. */
  async function letEventsWait(): Promise<void> {
    const { admin_address: address, operator_token: token } = sandbox();
    const admin = adminClient(Number(address.split(':').at(-1)), token);
    await admin.clock.advanceClock({ by: { seconds: 400n, nanos: 0 } }, admin.options);
    admin.close();
    await isShown('marina_webhook_undelivered_seconds');
  }

  /** Waits until a figure is there that is read from the database from time to time. */
  async function isShown(metric: string): Promise<void> {
    const port = Number(new URL(sandbox().ops_url).port);
    await eventually(async () => {
      const { values } = await sample(port);
      assert.ok(
        [...values].some(([name, value]) => name.startsWith(metric) && value > 0),
        metric,
      );
    }, 60_000);
  }

  const alertIn = ({ heard }: Drill) => /\bMarina\w+/.exec(heard)?.[0];

  for (const drill of inPart(drills)) {
    it(`has the drill ${drill.name}, whose page can be gone through while it lasts`, async () => {
      const [page = '', anchor] = drill.page.split('#');
      assert.ok(existsSync(join('docs/operations', page)), page);
      const alert = alertIn(drill);
      if (anchor !== undefined) assert.equal(anchor, alert?.toLowerCase(), 'the page is that of the alert');
      const well = alert === undefined ? undefined : await watch();
      const brokeAtSeconds = performance.now() / 1_000;
      const drilling = await start(`make drill NAME=${drill.name}`, 'src/sandbox/drill.ts', drill.name);
      const said = () => readFileSync(drilling.logPath, 'utf8');
      await eventually(() => assert.match(said(), /The drill is on/), 30_000);
      assert.ok(said().includes(drill.heard) && said().includes(drill.page), said());
      const trouble = troubles[drill.name];
      if (trouble !== undefined) await eventually(async () => assert.ok((await reasons()).includes(trouble)), 60_000);
      if (drill.name === 'webhooks') await letEventsWait();
      if (drill.name === 'broker-statement') await isShown('marina_reconciliation_breaks');
      if (alert !== undefined) {
        const rings = await alertsOf(well, brokeAtSeconds);
        assert.ok(rings.has(alert), `${alert} is said to ring, and these do: ${[...rings].join(', ')}`);
      }
      if (anchor === undefined) {
        const own = temporaryFolder();
        sharedKeeper().removeAtEnd(own);
        await pasteWhilePractising(`docs/operations/${page}`, sandbox(), dataDir, own);
      }
      process.kill(drilling.pid, 'SIGINT');
      assert.deepEqual(await drilling.wait(), { code: 0, signal: null }, said());
      await isWell();
    });
  }

  it('lists the drills, and says which there is not', async () => {
    const list = await start('make drill', 'src/sandbox/drill.ts');
    assert.equal((await list.wait()).code, 0);
    const listed = readFileSync(list.logPath, 'utf8');
    for (const { name } of drills) assert.ok(listed.includes(`NAME=${name}`), name);
    const wrong = await start('make drill', 'src/sandbox/drill.ts', 'earthquake');
    assert.equal((await wrong.wait()).code, 1);
    assert.match(readFileSync(wrong.logPath, 'utf8'), /There is no drill earthquake/);
  });

  it('ends a drill that was killed with the one that ends all', async () => {
    const drilling = await start('make drill NAME=nats', 'src/sandbox/drill.ts', 'nats');
    await eventually(async () => assert.ok((await reasons()).includes('nats')), 60_000);
    await drilling.kill();
    const ending = await start('make drill NAME=end', 'src/sandbox/drill.ts', 'end');
    assert.equal((await ending.wait()).code, 0, readFileSync(ending.logPath, 'utf8'));
    await isWell();
  });

  it('stops as a whole and says so when a part dies again and again', async () => {
    const kill = setInterval(() => {
      const { receiver } = sandbox().pids;
      if (receiver !== undefined && isRunning(receiver)) process.kill(receiver, 'SIGKILL');
    }, 50);
    const exit = await run.wait();
    clearInterval(kill);
    assert.deepEqual(exit, { code: 1, signal: null });
    assert.match(output(), /receiver was ended by SIGKILL\. The end of its log/);
  });
});
