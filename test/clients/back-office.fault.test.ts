import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { Wallets } from '../../src/gen/marina/admin/v1/wallets_pb.ts';
import { type KeptProcess, sharedKeeper } from '../../src/sandbox/keeper.ts';
import { readSandbox, type Sandbox, type SandboxPartner } from '../../src/sandbox/sandbox-file.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folders.ts';

const program = 'clients/back-office/back-office.ts';
const ports = ['REST', 'GRPC', 'ADMIN', 'OPS', 'SIMULATOR'].map((name) => [`MARINA_${name}_PORT`, '0']);

describe('the back office of clients/back-office, with a sandbox of make run', () => {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const dataDir = join(folder, 'sandbox');
  const file = join(folder, 'events.jsonl');
  const theirs = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('MARINA_') || name === 'MARINA_SERVERS',
  );
  const env = { ...Object.fromEntries([...theirs, ...ports]), MARINA_DATA_DIR: dataDir };
  let run: KeptProcess;
  let sandbox: Sandbox;
  let office: KeptProcess;

  const start = (name: string, ...args: string[]) =>
    sharedKeeper().start({
      name,
      command: process.execPath,
      args: ['--import', 'tsx', ...args],
      env,
      logPath: join(folder, `${name.replaceAll(' ', '-')}.log`),
    });
  const follow = () => start('back office', program, 'follow', file);
  /** Its files may not grow beyond two or four kilobytes, until the limit of the process is lifted. */
  const followOnFullDisk = () =>
    sharedKeeper().start({
      name: 'back office on a full disk',
      command: '/bin/sh',
      args: ['-c', 'ulimit -S -f 4; exec "$0" "$@"', process.execPath, '--import', 'tsx', program, 'follow', file],
      env,
      logPath: join(folder, 'full-disk.log'),
    });

  before(async () => {
    run = await start('make run', 'src/sandbox/run.ts');
    await eventually(() => assert.match(readFileSync(run.logPath, 'utf8'), /is ready/), 120_000);
    sandbox = readSandbox(dataDir) as Sandbox;
  });
  after(async () => {
    await office?.kill();
    await run?.stop();
  });

  async function call<T>({ key }: SandboxPartner, path: string, body?: object): Promise<T> {
    const answer = await fetch(`${sandbox.rest_url}${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': randomUUID(), 'content-type': 'application/json' },
      signal: AbortSignal.timeout(30_000),
    });
    assert.ok(answer.ok, await answer.clone().text());
    return (await answer.json()) as T;
  }

  /** An order of each partner. Their ids. */
  async function placeOrders(): Promise<string[]> {
    const order = { symbol: 'SIM-FILL', side: 'buy', quantity: 10, type: 'market' };
    const placed = sandbox.partners.map((partner) =>
      call<{ id: string }>(partner, '/v1/orders', { ...order, account: partner.account }),
    );
    return (await Promise.all(placed)).map(({ id }) => id);
  }

  const recorded = (): { partner: string; version: number; id: string; body: string }[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line))
      : [];

  /** Waits until the orders are recorded as filled, and the events recorded are those of the feeds of all partners, each once. */
  async function assertRecordedAll(orders: readonly string[]): Promise<void> {
    await eventually(() => {
      const filled = recorded().filter(({ body }) => body !== undefined && JSON.parse(body).type === 'order.filled');
      const ids = new Set(filled.map(({ body }) => JSON.parse(body).data.id));
      for (const order of orders) assert.ok(ids.has(order), order);
    }, 60_000);
    for (const partner of sandbox.partners) {
      const { data: feed } = await call<{ data: { id: string }[] }>(partner, '/v1/events?limit=100');
      await eventually(() => {
        const ours = recorded().filter((event) => event.partner === partner.id);
        assert.deepEqual(ours.map(({ id }) => id).sort(), feed.map(({ id }) => id).sort());
      });
    }
  }

  it('records every event of all partners once, also if it or NATS is killed meanwhile', async () => {
    assert.equal(new URL(sandbox.nats_url).username, 'back-office');
    const orders = await placeOrders();
    office = await follow();
    await assertRecordedAll(orders);

    orders.push(...(await placeOrders()));
    await office.kill();
    orders.push(...(await placeOrders()));
    office = await follow();
    await assertRecordedAll(orders);

    const { nats = 0 } = readSandbox(dataDir)?.pids ?? {};
    process.kill(nats, 'SIGKILL');
    orders.push(...(await placeOrders()));
    await eventually(() => assert.notEqual(readSandbox(dataDir)?.pids.nats, nats), 30_000);
    orders.push(...(await placeOrders()));
    await assertRecordedAll(orders);
  });

  it('records every event once if its disk was full in the middle of a line', async () => {
    const orders = await placeOrders();
    await office?.kill();
    rmSync(file, { force: true });
    office = await followOnFullDisk();
    await eventually(() => assert.match(readFileSync(office.logPath, 'utf8'), /tries again: .*EFBIG/), 30_000);
    await promisify(execFile)('prlimit', ['--pid', String(office.pid), '--fsize=unlimited']);
    await assertRecordedAll(orders);
  });

  it("lists the day's orders of all partners, and cannot move money", async () => {
    const orders = await placeOrders();
    const day = new Date(Date.now() + 3_600_000).toISOString().slice(0, 10);
    const listed = promisify(execFile)(process.execPath, ['--import', 'tsx', program, 'orders', day], { env });
    const { stdout } = await listed;
    for (const [index, order] of orders.entries()) {
      assert.ok(stdout.includes(`${sandbox.partners[index]?.id} ${order} `), stdout);
    }
    const transport = createGrpcTransport({ baseUrl: `http://${sandbox.admin_address}`, defaultTimeoutMs: 30_000 });
    const headers = { authorization: `Bearer ${sandbox.role_tokens.read}` };
    const credit = {
      partnerId: sandbox.partners[0]?.id ?? '',
      amountKobo: 100n,
      bankReference: 'none',
      reason: 'a test',
    };
    await assert.rejects(createClient(Wallets, transport).creditWallet(credit, { headers }), (error) => {
      return error instanceof ConnectError && error.code === Code.PermissionDenied;
    });
  });
});
