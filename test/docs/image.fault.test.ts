import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { neededWalls, tryWalls } from '../../src/decoder/decoder.ts';
import { statement } from '../../src/gateway/store/statement.ts';
import { type KeptProcess, sharedKeeper } from '../../src/sandbox/keeper.ts';
import { Cluster, type Partner } from '../support/cluster.ts';
import { listOf, onlyStep, variablesOf } from '../support/dockerfile.ts';
import { eventually, ready } from '../support/eventually.ts';
import { buildImage, type Image, missingForImages } from '../support/image.ts';
import { createTestDatabase } from '../support/servers.ts';

const run = promisify(execFile);
const missing = await missingForImages();
const drainMs = 1_000;

/** A gateway that runs in the image. */
interface Running {
  readonly kept: KeptProcess;
  /** The process that the container's engine would signal. */
  readonly pid: number;
  readonly restPort: number;
  readonly opsPort: number;
}

describe('the image that the Dockerfile makes', { skip: missing ?? false }, () => {
  let image: Image;
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start({ MARINA_DRAIN_MS: String(drainMs) });
    image = await buildImage('docs/deploy/Dockerfile');
  });
  after(() => cluster?.stop());

  const variables = (further: Record<string, string> = {}) => ({
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...variablesOf(image.stage),
    ...cluster.gatewayVariables,
    ...further,
  });

  async function start(further: Record<string, string> = {}): Promise<Running> {
    const logPath = join(cluster.folder, `image-${randomUUID().slice(0, 8)}.log`);
    const kept = await sharedKeeper().start({
      name: 'the image',
      ...image.command(listOf(onlyStep(image.stage, 'CMD'))),
      env: variables(further),
      logPath,
    });
    let hasEnded = false;
    void kept.exited.then(() => {
      hasEnded = true;
    });
    const line = await ready(() => {
      if (hasEnded) return {};
      const text = readFileSync(logPath, 'utf8');
      const found = text.split('\n').find((each) => each.includes('"msg":"ready"'));
      assert.ok(found, text);
      return JSON.parse(found);
    }, 30_000);
    assert.ok(!hasEnded, readFileSync(logPath, 'utf8'));
    const children = readFileSync(`/proc/${kept.pid}/task/${kept.pid}/children`, 'utf8');
    return { kept, pid: Number(children.trim()), restPort: line.restPort, opsPort: line.opsPort };
  }

  /** Runs the image's health check as the engine would. */
  async function isHealthy({ opsPort }: Running, further: Record<string, string> = {}): Promise<boolean> {
    const { command, args } = image.command(listOf(onlyStep(image.stage, 'HEALTHCHECK')));
    const env = variables({ ...further, MARINA_OPS_PORT: String(opsPort) });
    return run(command, args, { env }).then(
      () => true,
      () => false,
    );
  }

  it('migrates an empty database', async () => {
    const database = await createTestDatabase();
    const { command, args } = image.command(['node', 'src/main.js', 'migrate']);
    await run(command, args, { env: variables({ MARINA_DATABASE_URL: database.url }) });
    const again = await run(command, args, { env: variables({ MARINA_DATABASE_URL: database.url }) });
    assert.equal(again.stdout, '');
    await database.drop();
  });

  it('runs as an ordinary user that can write nothing, nor read the program', async () => {
    const places = ['/', image.folder, '/tmp', '/usr/local/bin', '/etc', '/proc/sys/kernel'];
    const tries = places.map((place) => `touch ${place}/file 2>/dev/null && echo ${place}`).join('; ');
    // Without root the test owns the program, also under another number.
    const reading = process.getuid?.() === 0 ? 'test ! -r /usr/local/bin/node || echo readable' : 'true';
    const { command, args } = image.command(['sh', '-c', `id -u; ${tries}; ${reading}`]);
    const { stdout } = await run(command, args, { env: variables() }).catch((error) => error as { stdout: string });
    assert.equal(stdout, '1000\n');
  });

  it('serves, is healthy, and stops under load with every order recorded, within its time', async (context) => {
    const walls = await tryWalls();
    const isolated = neededWalls.every((wall) => walls.has(wall));
    const beganAt = performance.now();
    const running = await start({ MARINA_DECODER_SANDBOX: isolated ? 'required' : 'auto' });
    context.diagnostic(`ready after ${Math.round(performance.now() - beganAt)} ms`);
    context.diagnostic(
      `packages ${mebibytes('node_modules')} MiB, gateway ${mebibytes('src') + mebibytes('migrations')} MiB`,
    );
    assert.ok(await isHealthy(running));
    const partner = await cluster.newPartner();
    const placed: string[] = [];
    const load = placeOrders(running, partner, placed);
    await eventually(() => assert.ok(placed.length > 20, `${placed.length} orders`), 20_000);
    const askedAt = performance.now();
    process.kill(running.pid, 'SIGTERM');
    const { code } = await running.kept.wait();
    const tookMs = performance.now() - askedAt;
    await load;
    context.diagnostic(`${placed.length} orders; stopped after ${Math.round(tookMs)} ms`);
    assert.equal(code, 0);
    assert.ok(tookMs < drainMs + 5_000, `it took ${tookMs} ms`);
    const [row] = await cluster.database.read(
      statement('SELECT COUNT(*) AS count FROM orders WHERE partner_id = ?', partner.id),
    );
    assert.ok(Number(row?.count) >= placed.length, 'every order that was answered is stored');
    assert.equal(await isHealthy(running), false, 'nothing is healthy that has stopped');
  });

  const mebibytes = (path: string) => Math.round(image.size(path) / 2 ** 20);
});

/** Places orders, eight at once, until nothing answers, and notes the ids that were answered. */
async function placeOrders({ restPort }: Running, { key, account }: Partner, ids: string[]): Promise<void> {
  const body = JSON.stringify({
    ...{ account, symbol: 'SIM-REST', side: 'buy', quantity: 100, type: 'limit', price_kobo: 1000 },
  });
  const one = async () => {
    for (;;) {
      try {
        const response = await fetch(`http://127.0.0.1:${restPort}/v1/orders`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${key}`,
            'idempotency-key': randomUUID(),
            'content-type': 'application/json',
          },
          body,
        });
        const { id } = (await response.json()) as { id: string };
        assert.equal(response.status, 201);
        ids.push(id);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, one));
}
