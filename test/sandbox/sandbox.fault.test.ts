import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Metadata } from '@grpc/grpc-js';
import { Accounts } from '../../src/gen/marina/admin/v1/accounts_pb.ts';
import { createGrpcClient } from '../../src/kit/grpc-client.ts';
import { type KeptProcess, sharedKeeper } from '../../src/sandbox/keeper.ts';
import { isRunning } from '../../src/sandbox/lock.ts';
import { readSandbox, type Sandbox } from '../../src/sandbox/sandbox-file.ts';
import { watchArguments } from '../support/fault/arguments.ts';
import { pastePages } from '../support/fault/pages.ts';
import { temporaryFolder } from '../support/folders.ts';

const anyPorts = {
  MARINA_REST_PORT: '0',
  MARINA_GRPC_PORT: '0',
  MARINA_ADMIN_PORT: '0',
  MARINA_OPS_PORT: '0',
  MARINA_SIMULATOR_PORT: '0',
};

interface Run {
  process: KeptProcess;
  /** Everything it printed so far. */
  output: () => string;
}

describe('a sandbox', () => {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const dataDir = join(folder, 'data of a sandbox');
  let runs = 0;

  async function start(variables: Record<string, string> = {}): Promise<Run> {
    runs += 1;
    const kept = await sharedKeeper().start({
      name: 'make run',
      command: process.execPath,
      args: ['--import', 'tsx', 'src/sandbox/run.ts'],
      env: { ...withoutOurs(), ...anyPorts, MARINA_DATA_DIR: dataDir, ...variables },
      logPath: join(folder, `run-${runs}.log`),
    });
    return { process: kept, output: () => readFileSync(kept.logPath, 'utf8') };
  }

  async function startReady(): Promise<Run & { sandbox: Sandbox }> {
    const run = await start({ MARINA_DATABASE_SERVER: 'mariadb' });
    await until(() => run.output().includes('is ready') || !isRunning(run.process.pid), run.output);
    const sandbox = readSandbox(dataDir);
    assert.ok(sandbox, run.output());
    assert.match(run.output(), /Database: MariaDB \d/);
    return { ...run, sandbox };
  }

  function demo(): Promise<{ stdout: string; stderr: string }> {
    const env = { ...process.env, MARINA_DATA_DIR: dataDir };
    return promisify(execFile)(process.execPath, ['--import', 'tsx', 'src/sandbox/demo.ts'], { env });
  }

  it('is ready with a demo that holds, two at once too, and stops everything when asked to', async () => {
    const shown = watchArguments();
    const { process: run, sandbox, output } = await startReady();
    assert.equal(statSync(join(dataDir, 'sandbox.json')).mode & 0o777, 0o600);
    const demos = await Promise.all([demo(), demo()]);
    const programs = shown.stop();
    for (const name of ['src/main.ts', 'simulator/main.ts', 'nats', 'datadir']) {
      assert.ok(programs.includes(name), `${name} was seen`);
    }
    for (const secret of secretsOf(sandbox, dataDir)) {
      assert.ok(!programs.includes(secret), 'no program is started with a secret among its arguments');
    }
    for (const { stdout } of demos) {
      assert.match(stdout, /webhook receiver, which verified.+\n {3}.+ event \d+ order\.pending ord_/);
      const [, summary = ''] = stdout.split('What was shown\n');
      assert.equal(summary.match(/^ {3}✓ /gm)?.length, 10, stdout);
      assert.match(summary, /Everything held/);
      assert.ok(!stdout.includes('\u001b'), 'lines that are not for a terminal are plain');
    }
    assert.equal(demos.filter(({ stdout }) => stdout.includes('Another demo is running')).length, 1);
    await pastePages(sandbox, dataDir, folder);
    const ledgers = await promisify(execFile)(process.execPath, ['--import', 'tsx', 'src/sandbox/verify-ledger.ts'], {
      env: { ...process.env, MARINA_DATA_DIR: dataDir },
    });
    for (const { id } of sandbox.partners) assert.match(ledgers.stdout, new RegExp(`${id}: \\d+ entries, proven`));
    process.kill(run.pid, 'SIGTERM');
    assert.deepEqual(await run.wait(), { code: 0, signal: null }, output());
    assertGone(sandbox);
  });

  it('keeps its partners and keys, and refuses a second start on its folder', async () => {
    const { partners } = readSandbox(dataDir) ?? {};
    const { process: run, sandbox } = await startReady();
    assert.deepEqual(sandbox.partners, partners);
    const second = await start();
    assert.deepEqual(await second.process.wait(), { code: 1, signal: null });
    assert.match(second.output(), /already running/);
    process.kill(run.pid, 'SIGINT');
    assert.deepEqual(await run.wait(), { code: 0, signal: null });
  });

  it('has a demo that ends with an error where something does not hold, and says what', async () => {
    const file = join(dataDir, 'sandbox.json');
    const kept = readFileSync(file, 'utf8');
    writeFileSync(file, kept.replaceAll(/"whsec_.{6}/g, '"whsec_AAAAAA'));
    const { process: run } = await startReady();
    await assert.rejects(demo(), ({ code, stdout, stderr }) => {
      assert.equal(code, 1);
      assert.match(stdout, / {3}✗ every event delivered to the webhook receiver and verified\n {3}– .+: not reached\n/);
      assert.match(
        stderr,
        /^\nThe demo did not come to its end\. It did not come within 30 s: .+ webhook_secret .+ make clean/,
      );
      assert.match(stderr, /\nThe logs may say why: .+receiver\.log\n$/);
      return true;
    });
    process.kill(run.pid, 'SIGTERM');
    assert.deepEqual(await run.wait(), { code: 0, signal: null });
    writeFileSync(file, kept);
  });

  it('leaves nothing running when it is killed, and starts again, with another account for one that was unlinked', async () => {
    const killed = await startReady();
    const [partner, other] = killed.sandbox.partners;
    assert.ok(partner !== undefined);
    const [unlinked = '', kept] = partner.accounts;
    await unlink(killed.sandbox, partner.id, unlinked);
    process.kill(killed.process.pid, 'SIGKILL');
    await until(() => !isAnyRunning(killed.sandbox), killed.output);
    const again = await startReady();
    const [sameWithAccounts, sameOther] = again.sandbox.partners;
    assert.deepEqual(sameOther, other);
    const [first = '', second = ''] = sameWithAccounts?.accounts ?? [];
    assert.deepEqual(sameWithAccounts, { ...partner, account: kept, accounts: [kept, second] });
    assert.equal(first, kept);
    assert.notEqual(second, unlinked);
    const log = readFileSync(join(dataDir, 'gateway.log'), 'utf8');
    assert.ok(log.includes('Accounts.UnlinkAccount'), 'the log goes on over starts');
    process.kill(again.process.pid, 'SIGTERM');
    assert.deepEqual(await again.process.wait(), { code: 0, signal: null });
  });

  it('says that it speaks no TLS when it is given certificates', async () => {
    const run = await start({ MARINA_TLS_CERT_FILE: join(folder, 'server.pem') });
    assert.deepEqual(await run.process.wait(), { code: 1, signal: null });
    assert.match(run.output(), /MARINA_TLS_CERT_FILE is set, and .+ speaks no TLS.+docs\/operations\/deploy\.md/s);
  });

  it('names a taken port and the variable that changes it', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    assert.ok(typeof address === 'object' && address !== null);
    const run = await start({ MARINA_ADMIN_PORT: String(address.port) });
    assert.deepEqual(await run.process.wait(), { code: 1, signal: null });
    assert.match(run.output(), new RegExp(`Port ${address.port} .* taken[^]*MARINA_ADMIN_PORT=`));
    server.close();
  });
});

async function unlink(sandbox: Sandbox, partnerId: string, account: string): Promise<void> {
  const accounts = createGrpcClient(Accounts, sandbox.admin_address);
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${sandbox.operator_token}`);
  try {
    await accounts.unlinkAccount({ partnerId, account, reason: 'a wrong digit' }, { timeoutMs: 10_000, metadata });
  } finally {
    accounts.close();
  }
}

/** A run must not take the settings of the one who tests. */
function withoutOurs(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('MARINA_') || name === 'MARINA_SERVERS');
  return Object.fromEntries(kept);
}

/** The secrets that nobody who can list this machine's programs may learn. */
function secretsOf({ operator_token: token, partners }: Sandbox, dataDir: string): string[] {
  const files = ['secret-key', ...['root', 'owner', 'gateway', 'simulator'].map((name) => `mariadb/${name}-password`)];
  return [
    token,
    ...files.map((name) => readFileSync(join(dataDir, name), 'utf8').trim()),
    ...partners.flatMap(({ key, webhook_secret: secret }) => [key, secret]),
  ];
}

function assertGone(sandbox: Sandbox): void {
  assert.equal(isAnyRunning(sandbox), false, JSON.stringify(sandbox.pids));
}

function isAnyRunning({ pids }: Sandbox): boolean {
  return Object.values(pids).some((pid) => isRunning(pid));
}

async function until(holds: () => boolean, describe: () => string): Promise<void> {
  const deadline = performance.now() + 90_000;
  while (!holds()) {
    assert.ok(performance.now() < deadline, describe());
    await sleep(50);
  }
}
